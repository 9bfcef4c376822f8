//! What iterations (`SCAN` and its kin) and random choices have in common.

use crate::call::{CommandCall, integer_or};
use crate::commands::pattern::matches;
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::Member;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

/// So many members may be asked for with repetitions.
const REPEATED_MAX: i64 = 1 << 24;
/// At most about so many are looked at for one page.
const PAGE_MAX: i64 = 1 << 20;

/// The options of an iteration.
pub(crate) struct Iteration<'a> {
    pub cursor: u64,
    pub count: usize,
    pattern: Option<&'a [u8]>,
    /// Only keys of this type; the inner `None`: of a type that no key has.
    pub kind: Option<Option<ValueKind>>,
}

impl<'a> Iteration<'a> {
    /// Reads a cursor at `at`, and the options behind it.
    pub fn read(
        call: &CommandCall<'a>,
        at: usize,
        of_keys: bool,
    ) -> Result<Iteration<'a>, CommandStop> {
        let cursor = std::str::from_utf8(call.arg(at)).ok().and_then(|it| it.parse().ok());
        let Some(cursor) = cursor else { return CommandStop::refused("ERR invalid cursor") };
        let mut iteration = Iteration { cursor, count: 10, pattern: None, kind: None };
        let mut at = at + 1;
        while at < call.len() {
            if at + 1 == call.len() {
                return CommandStop::refused(texts::SYNTAX);
            }
            let value = call.arg(at + 1);
            if call.is(at, "COUNT") {
                let count = integer_or(value, texts::NO_INTEGER)?;
                if count < 1 {
                    return CommandStop::refused(texts::SYNTAX);
                }
                iteration.count = count.min(PAGE_MAX) as usize;
            } else if call.is(at, "MATCH") {
                iteration.pattern = Some(value);
            } else if of_keys && call.is(at, "TYPE") {
                let of_name = |it: &ValueKind| value.eq_ignore_ascii_case(it.name().as_bytes());
                iteration.kind = Some(ValueKind::ALL.into_iter().find(of_name));
            } else {
                return CommandStop::refused(texts::SYNTAX);
            }
            at += 2;
        }
        Ok(iteration)
    }

    pub fn holds(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| matches(pattern, name))
    }

    pub fn page(next: u64, found: Vec<RespReply>) -> RespReply {
        RespReply::Array(vec![RespReply::bulk(next.to_string()), RespReply::Array(found)])
    }
}

/// So many of these members by chance, of which one may come several times.
///
/// # Errors
/// That would be a reply of too many bytes.
pub(crate) fn repeated(
    call: &CommandCall<'_>,
    among: &[Member],
    count: usize,
) -> Result<Vec<Member>, CommandStop> {
    let (mut chosen, mut bytes) = (Vec::new(), 0);
    if among.is_empty() {
        return Ok(chosen);
    }
    for _ in 0..count {
        call.check_reply(bytes)?;
        let member = &among[fastrand::usize(..among.len())];
        bytes += member.0.len() + member.1.len();
        chosen.push(member.clone());
    }
    Ok(chosen)
}

/// How many members are asked for, and whether one may come twice: then the number is negative.
pub(crate) fn random_count(count: i64) -> Result<(usize, bool), CommandStop> {
    match count {
        0.. => Ok((count as usize, false)),
        _ if count < -REPEATED_MAX => CommandStop::refused("ERR value is out of range"),
        _ => Ok((count.unsigned_abs() as usize, true)),
    }
}
