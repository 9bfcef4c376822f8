//! Commands that say how many keys they have, and those that wait.

use std::ops::Range;

use crate::call::{CommandCall, integer_or};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::request::RespCommand;

/// The keys of a command that says how many there are, at `at`.
pub(crate) fn keys_at(call: &CommandCall<'_>, at: usize) -> Result<Range<usize>, CommandStop> {
    let count = integer_or(call.arg(at), "ERR numkeys should be greater than 0")?;
    if count <= 0 {
        return CommandStop::refused("ERR numkeys should be greater than 0");
    }
    let end = usize::try_from(count).ok().and_then(|it| it.checked_add(at + 1));
    match end.filter(|it| *it <= call.len()) {
        Some(end) => Ok(at + 1..end),
        None => CommandStop::refused(texts::SYNTAX),
    }
}

/// What LMPOP, ZMPOP and their kin take from.
pub(crate) struct PopFrom {
    pub keys: Range<usize>,
    /// Where the word for the end stands.
    pub options: usize,
    pub count: i64,
}

impl PopFrom {
    pub fn read(call: &CommandCall<'_>, at: usize) -> Result<PopFrom, CommandStop> {
        let keys = keys_at(call, at)?;
        let (options, mut count) = (keys.end, None);
        let mut at = options + 1;
        while at < call.len() {
            if !call.is(at, "COUNT") || count.is_some() || at + 1 == call.len() {
                return CommandStop::refused(texts::SYNTAX);
            }
            let given = integer_or(call.arg(at + 1), "ERR count should be greater than 0")?;
            if given <= 0 {
                return CommandStop::refused("ERR count should be greater than 0");
            }
            count = Some(given);
            at += 2;
        }
        Ok(PopFrom { keys, options, count: count.unwrap_or(1) })
    }
}

/// What was found; nothing where that is of another type, and its client has waited already.
pub(crate) fn still_to_come<T>(
    call: &CommandCall<'_>,
    found: Result<Option<T>, CommandStop>,
) -> Result<Option<T>, CommandStop> {
    match found {
        Err(CommandStop::Refused(_)) if call.waited => Ok(None),
        found => found,
    }
}

/// How long a command waits, in milliseconds, by the word at this place; 0: for ever.
pub(crate) fn timeout_ms(command: &RespCommand, at: usize) -> Result<u64, CommandStop> {
    let refused = || CommandStop::refused("ERR timeout is not a float or out of range");
    let Some(seconds) = numbers::double(command.word(at)) else { return refused() };
    if seconds < 0.0 {
        return CommandStop::refused("ERR timeout is negative");
    }
    let ms = (seconds * 1000.0).ceil();
    if ms > (i64::MAX / 2) as f64 { refused() } else { Ok(ms as u64) }
}

/// What a command that waits waits for: its keys, and how long in milliseconds; 0: for ever.
pub(crate) fn waits_for(
    name: &str,
    command: &RespCommand,
) -> Result<(Vec<Vec<u8>>, u64), CommandStop> {
    let last = command.len() - 1;
    let (keys, timeout) = match name {
        "blmove" | "brpoplpush" => (1..2, last),
        "blmpop" | "bzmpop" => {
            let count = numbers::integer(command.word(2)).unwrap_or(0).max(0) as usize;
            (3..3 + count.min(command.len() - 3), 1)
        }
        _ => (1..last, last),
    };
    let keys = keys.map(|at| command.word(at).to_vec()).collect();
    Ok((keys, timeout_ms(command, timeout)?))
}
