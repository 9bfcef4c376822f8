//! Unions, intersections and differences of sorted sets, and of sets, whose members have score 1.

use std::collections::BTreeMap;
use std::ops::Range;

use muesli::SmallBytes;

use crate::call::{Answer, CommandCall, integer_or};
use crate::commands::sorted::members::{scored_replies, store};
use crate::keyspace::header::{KeyValue, ValueKind};
use crate::keyspace::sorted::{Scored, score_in};
use crate::keyspace::stop::{CommandStop, texts};
use crate::protocol::numbers;
use crate::protocol::reply::RespReply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetOperation {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Least,
    Most,
}

impl Aggregate {
    fn of(self, left: f64, right: f64) -> f64 {
        let value = match self {
            Aggregate::Sum => left + right,
            Aggregate::Least => left.min(right),
            Aggregate::Most => left.max(right),
        };
        // Infinities that cancel each other are nothing.
        if value.is_nan() { 0.0 } else { value }
    }
}

/// What is asked for.
struct CombineOptions {
    keys: Range<usize>,
    weights: Vec<f64>,
    aggregate: Aggregate,
    scores: bool,
    most: usize,
}

impl CombineOptions {
    fn read(
        call: &CommandCall<'_>,
        operation: SetOperation,
        at: usize,
        card: bool,
    ) -> Result<CombineOptions, CommandStop> {
        let name = String::from_utf8_lossy(call.arg(0)).to_ascii_lowercase();
        let count = integer_or(call.arg(at), texts::NO_INTEGER)?;
        if count < 1 {
            let text = format!("ERR at least 1 input key is needed for '{name}' command");
            return CommandStop::refused(text);
        }
        let end = usize::try_from(count).ok().and_then(|it| it.checked_add(at + 1));
        let Some(end) = end.filter(|it| *it <= call.len()) else {
            return CommandStop::refused(texts::SYNTAX);
        };
        let (keys, aggregate) = (at + 1..end, Aggregate::Sum);
        let (weights, stores) = (vec![1.0; keys.len()], at == 2);
        let mut asked =
            CombineOptions { keys, weights, aggregate, scores: false, most: usize::MAX };
        let mut at = end;
        while at < call.len() {
            at += asked.option(call, (at, operation), (stores, card))?;
        }
        Ok(asked)
    }

    /// Reads one option; how many words it has.
    fn option(
        &mut self,
        call: &CommandCall<'_>,
        (at, operation): (usize, SetOperation),
        (stores, card): (bool, bool),
    ) -> Result<usize, CommandStop> {
        let left = call.len() - at - 1;
        let combines = operation != SetOperation::Difference && !card;
        match () {
            () if combines && call.is(at, "WEIGHTS") && left >= self.keys.len() => {
                for (place, weight) in self.weights.iter_mut().enumerate() {
                    let given = numbers::double(call.arg(at + 1 + place));
                    let Some(given) = given else {
                        return CommandStop::refused("ERR weight value is not a float");
                    };
                    *weight = given;
                }
                Ok(1 + self.keys.len())
            }
            () if combines && call.is(at, "AGGREGATE") && left >= 1 => {
                self.aggregate = match () {
                    () if call.is(at + 1, "SUM") => Aggregate::Sum,
                    () if call.is(at + 1, "MIN") => Aggregate::Least,
                    () if call.is(at + 1, "MAX") => Aggregate::Most,
                    () => return CommandStop::refused(texts::SYNTAX),
                };
                Ok(2)
            }
            () if !stores && !card && call.is(at, "WITHSCORES") => {
                self.scores = true;
                Ok(1)
            }
            () if card && call.is(at, "LIMIT") && left >= 1 => {
                let most = integer_or(call.arg(at + 1), "ERR LIMIT can't be negative")?;
                if most < 0 {
                    return CommandStop::refused("ERR LIMIT can't be negative");
                }
                self.most = if most == 0 { usize::MAX } else { most as usize };
                Ok(2)
            }
            () => CommandStop::refused(texts::SYNTAX),
        }
    }
}

/// The members of a key, by weight.
async fn members(
    call: &CommandCall<'_>,
    at: usize,
    weight: f64,
) -> Result<Vec<Scored>, CommandStop> {
    let header = call.scope.header(call.db, call.arg(at)).await?;
    let (id, scored) = match header.map(|it| it.value) {
        None => return Ok(Vec::new()),
        Some(KeyValue::Rows(ValueKind::Sorted, id)) => (id, true),
        Some(KeyValue::Rows(ValueKind::Set, id)) => (id, false),
        Some(_) => return CommandStop::refused(texts::WRONG_TYPE),
    };
    let weighed = |(member, score): (SmallBytes, SmallBytes)| {
        let score = weight * if scored { score_in(&score) } else { 1.0 };
        (member, if score.is_nan() { 0.0 } else { score })
    };
    Ok(call.scope.members(id).await?.into_iter().map(weighed).collect())
}

async fn combine(
    call: &CommandCall<'_>,
    operation: SetOperation,
    asked: &CombineOptions,
) -> Result<Vec<Scored>, CommandStop> {
    let mut all: BTreeMap<SmallBytes, (f64, usize)> = BTreeMap::new();
    for (number, (at, weight)) in asked.keys.clone().zip(&asked.weights).enumerate() {
        for (member, score) in members(call, at, *weight).await? {
            match (all.get_mut(&member), operation) {
                (Some(_), SetOperation::Difference) => {
                    if number > 0 {
                        all.remove(&member);
                    }
                }
                (Some((sum, count)), _) => {
                    (*sum, *count) = (asked.aggregate.of(*sum, score), *count + 1);
                }
                (None, SetOperation::Union) => drop(all.insert(member, (score, 1))),
                (None, _) if number == 0 => drop(all.insert(member, (score, 1))),
                (None, _) => {}
            }
        }
    }
    let enough = if operation == SetOperation::Intersection { asked.keys.len() } else { 1 };
    let mut found: Vec<Scored> = all
        .into_iter()
        .filter(|(_, (_, count))| *count >= enough)
        .map(|(member, (score, _))| (member, score))
        .collect();
    found.sort_by(|left, right| left.1.total_cmp(&right.1).then_with(|| left.0.cmp(&right.0)));
    Ok(found)
}

async fn show(call: &CommandCall<'_>, operation: SetOperation) -> Answer {
    let asked = CombineOptions::read(call, operation, 1, false)?;
    let found = combine(call, operation, &asked).await?;
    Ok(scored_replies(call, found, asked.scores))
}

async fn keep(call: &CommandCall<'_>, operation: SetOperation) -> Answer {
    let asked = CombineOptions::read(call, operation, 2, false)?;
    let found = combine(call, operation, &asked).await?;
    store(call, found).await
}

pub(super) async fn zunion(call: &CommandCall<'_>) -> Answer {
    show(call, SetOperation::Union).await
}

pub(super) async fn zinter(call: &CommandCall<'_>) -> Answer {
    show(call, SetOperation::Intersection).await
}

pub(super) async fn zdiff(call: &CommandCall<'_>) -> Answer {
    show(call, SetOperation::Difference).await
}

pub(super) async fn zunionstore(call: &CommandCall<'_>) -> Answer {
    keep(call, SetOperation::Union).await
}

pub(super) async fn zinterstore(call: &CommandCall<'_>) -> Answer {
    keep(call, SetOperation::Intersection).await
}

pub(super) async fn zdiffstore(call: &CommandCall<'_>) -> Answer {
    keep(call, SetOperation::Difference).await
}

pub(super) async fn zintercard(call: &CommandCall<'_>) -> Answer {
    let asked = CombineOptions::read(call, SetOperation::Intersection, 1, true)?;
    let found = combine(call, SetOperation::Intersection, &asked).await?;
    Ok(RespReply::count(found.len().min(asked.most)))
}
