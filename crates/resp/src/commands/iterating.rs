//! What iterations (`SCAN` and its kin) and random choices have in common.

use crate::call::{Answer, CommandCall, integer_or};
use crate::commands::pattern::matches;
use crate::keyspace::header::ValueKind;
use crate::keyspace::members::{CHOSEN_AMONG, Member};
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

/// `SRANDMEMBER` and its kin: members of a key by chance, as many as the word behind it says, and
/// with repetitions where that is negative. Only behind a number there may be the word `further`,
/// and `several` answers for both.
pub(crate) async fn random_members(
    call: &CommandCall<'_>,
    kind: ValueKind,
    further: Option<&str>,
    several: impl FnOnce(Vec<Member>, bool) -> RespReply,
) -> Answer {
    let asks_further = match (call.len(), further) {
        (4, Some(word)) if call.is(3, word) => true,
        (2 | 3, _) => false,
        _ => return CommandStop::refused(texts::SYNTAX),
    };
    let count = if call.len() > 2 { Some(call.integer(2)?) } else { None };
    if asks_further && count.is_some_and(|it| it.unsigned_abs() > i64::MAX as u64 / 2) {
        return CommandStop::refused("ERR value is out of range");
    }
    let id = call.scope.rows(call.db, call.arg(1), kind).await?;
    let Some(count) = count else {
        let Some(id) = id else { return Ok(RespReply::Null) };
        let found = call.scope.random_members(id, 1).await?;
        return Ok(found.into_iter().next().map_or(RespReply::Null, |it| RespReply::Bulk(it.0)));
    };
    if count < -REPEATED_MAX {
        return CommandStop::refused("ERR value is out of range");
    }
    let found = match id {
        None => Vec::new(),
        Some(id) if count >= 0 => call.scope.random_members(id, count as usize).await?,
        Some(id) => {
            let among = call.scope.random_members(id, CHOSEN_AMONG).await?;
            repeated(call, &among, count.unsigned_abs() as usize)?
        }
    };
    Ok(several(found, asks_further))
}

/// So many of these members by chance, of which one may come several times.
///
/// # Errors
/// That would be a reply of too many bytes.
fn repeated(
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
