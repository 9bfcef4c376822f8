//! Members that get scores.

use crate::call::{Answer, CommandCall};
use crate::keyspace::header::ValueKind;
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::reply::RespReply;

const NOT_A_NUMBER: &str = "ERR resulting score is not a number (NaN)";

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
struct AddOptions {
    only_new: bool,
    only_old: bool,
    greater: bool,
    less: bool,
    count_changed: bool,
    increment: bool,
    /// Where the first score stands.
    scores: usize,
}

impl AddOptions {
    fn read(call: &CommandCall<'_>) -> Result<AddOptions, CommandStop> {
        let mut options = AddOptions { scores: 2, ..AddOptions::default() };
        while options.scores < call.len() {
            match () {
                () if call.is(options.scores, "NX") => options.only_new = true,
                () if call.is(options.scores, "XX") => options.only_old = true,
                () if call.is(options.scores, "GT") => options.greater = true,
                () if call.is(options.scores, "LT") => options.less = true,
                () if call.is(options.scores, "CH") => options.count_changed = true,
                () if call.is(options.scores, "INCR") => options.increment = true,
                () => break,
            }
            options.scores += 1;
        }
        let words = call.len() - options.scores;
        if words == 0 || words % 2 == 1 {
            return CommandStop::refused(texts::SYNTAX);
        }
        if options.only_new && options.only_old {
            return CommandStop::refused(
                "ERR XX and NX options at the same time are not compatible",
            );
        }
        let both = options.greater && options.less;
        if both || options.only_new && (options.greater || options.less) {
            return CommandStop::refused(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            );
        }
        if options.increment && words > 2 {
            return CommandStop::refused(
                "ERR INCR option supports a single increment-element pair",
            );
        }
        Ok(options)
    }

    /// The score that a member is to have; `None`: it stays as it is.
    fn score(self, before: Option<f64>, given: f64) -> Result<Option<f64>, CommandStop> {
        let new = if self.increment { before.map_or(given, |it| it + given) } else { given };
        if new.is_nan() {
            return CommandStop::refused(NOT_A_NUMBER);
        }
        let Some(old) = before else { return Ok((!self.only_old).then_some(new)) };
        let stays = self.only_new || self.greater && new <= old || self.less && new >= old;
        Ok((!stays).then_some(new))
    }
}

pub(super) async fn zadd(call: &CommandCall<'_>) -> Answer {
    add(call, AddOptions::read(call)?).await
}

pub(super) async fn zincrby(call: &CommandCall<'_>) -> Answer {
    add(call, AddOptions { increment: true, scores: 2, ..AddOptions::default() }).await
}

async fn add(call: &CommandCall<'_>, options: AddOptions) -> Answer {
    let places = (options.scores..call.len()).step_by(2);
    let scores = places.clone().map(|at| call.double(at)).collect::<Result<Vec<_>, _>>()?;
    let mut entry = call.scope.entry(call.db, call.arg(1)).await?;
    let found = entry.rows(ValueKind::Sorted)?;
    if found.is_none() && options.only_old {
        return Ok(if options.increment { RespReply::Null } else { RespReply::Integer(0) });
    }
    if let (true, Some(id)) = (options.increment, found) {
        // Refused, if at all, before anything is written.
        let before = call.scope.score(id, call.arg(options.scores + 1)).await?;
        options.score(before, scores[0])?;
    }
    let id = call.scope.collection(&mut entry, ValueKind::Sorted).await?;
    let (mut new, mut changed, mut last) = (0, 0, None);
    for (at, given) in places.zip(scores) {
        let member = call.arg(at + 1);
        let before = call.scope.score(id, member).await?;
        last = options.score(before, given)?;
        let Some(score) = last else { continue };
        new += usize::from(before.is_none());
        changed += usize::from(before.is_some_and(|it| it != score));
        call.scope.put_score(id, member, score).await?;
    }
    if new + changed > 0 {
        call.scope.changed(&entry).await?;
        call.scope.is_ready(&entry);
    }
    Ok(match options.increment {
        true => last.map_or(RespReply::Null, RespReply::Double),
        false if options.count_changed => RespReply::count(new + changed),
        false => RespReply::count(new),
    })
}
