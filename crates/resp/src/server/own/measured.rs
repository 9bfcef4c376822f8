//! `LATENCY` and `SLOWLOG`: how long commands took.

use super::ServerCall;
use crate::commands::table::find;
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;
use crate::server::stats::{CommandCounts, SlowCommand};

/// So many of the newest slow commands are told where it is not said how many.
const SLOW_SHOWN: usize = 10;

/// `LATENCY`. What Redis tells of sudden waits of its process (`LATEST`, `HISTORY`) is not here.
pub(super) fn latency(asked: ServerCall<'_>) -> RespReply {
    match &*asked.text(1).to_ascii_lowercase() {
        "histogram" => histogram(asked),
        "reset" => RespReply::Integer(0),
        "latest" if asked.len() == 2 => RespReply::Array(Vec::new()),
        "history" if asked.len() == 3 => RespReply::Array(Vec::new()),
        "latest" | "history" => asked.wrong_number(),
        _ => asked.unknown(),
    }
}

/// Of the commands that are named, or of all: how many calls took no longer than 1, 2, 4 and so on
/// microseconds.
fn histogram(asked: ServerCall<'_>) -> RespReply {
    let named: Vec<_> = (2..asked.len()).filter_map(|at| find(asked.arg(at))).collect();
    let mut all = Vec::new();
    asked.shared.stats.times.each(|counts| {
        let is_named = named.iter().any(|it| it.name == counts.spec.name);
        if counts.calls > 0 && (is_named || asked.len() == 2) {
            all.push((RespReply::bulk(counts.spec.name), details(counts)));
        }
    });
    RespReply::Map(all)
}

fn details(counts: &CommandCounts) -> RespReply {
    let number = |it: u64| RespReply::Integer(i64::try_from(it).unwrap_or(i64::MAX));
    let steps = counts.steps_us().into_iter().map(|(us, count)| (number(us), number(count)));
    RespReply::Map(vec![
        (RespReply::bulk("calls"), number(counts.calls)),
        (RespReply::bulk("histogram_usec"), RespReply::Map(steps.collect())),
    ])
}

/// `SLOWLOG`.
pub(super) fn slow_log(asked: ServerCall<'_>) -> RespReply {
    let slow = &asked.shared.stats.slow;
    match &*asked.text(1).to_ascii_lowercase() {
        "get" if asked.len() <= 3 => {
            let count = match asked.len() {
                2 => Some(SLOW_SHOWN as i64),
                _ => numbers::integer(asked.arg(2)),
            };
            match count {
                Some(count @ -1..) => {
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    RespReply::Array(slow.newest(count).into_iter().map(entry).collect())
                }
                _ => {
                    let text = "ERR count should be greater than or equal to -1";
                    RespReply::Error(text.to_owned())
                }
            }
        }
        "len" if asked.len() == 2 => RespReply::count(slow.len()),
        "reset" if asked.len() == 2 => {
            slow.reset();
            RespReply::OK
        }
        "get" | "len" | "reset" => asked.wrong_number(),
        _ => asked.unknown(),
    }
}

fn entry(command: SlowCommand) -> RespReply {
    let SlowCommand { number, at, took, words, address, name } = command;
    let us = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
    RespReply::Array(vec![
        RespReply::Integer(number as i64),
        RespReply::Integer(at as i64),
        RespReply::Integer(us),
        RespReply::bulks(words),
        RespReply::bulk(address),
        RespReply::bulk(name),
    ])
}
