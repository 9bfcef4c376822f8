//! Moves, one after the other, within a budget.

use std::time::Instant;

use muesli_placement::online::PlannedMove;
use serde_json::{Value, json};

use super::live::{LiveCluster, LivePeriod};

/// What moves may take.
#[derive(Clone, Copy, Debug)]
pub struct MoveBudget {
    /// Rows.
    pub rows: u64,
    /// Milliseconds.
    pub ms: f64,
}

/// What came of a move.
#[derive(Clone, Debug, PartialEq)]
pub enum MoveResult {
    /// It was made, in so many milliseconds.
    Made(f64),
    /// The partition is there already.
    There,
    /// The budget has no room for it.
    OverBudget(&'static str),
    /// The partition is elsewhere by now, at this repository.
    Elsewhere(u16),
    /// It could not be made.
    Failed(String),
    /// Whether it was made is not known.
    Unknown(String),
}

impl MoveResult {
    /// Whether what comes after it is to be made, too.
    fn goes_on(&self) -> bool {
        matches!(self, MoveResult::Made(_) | MoveResult::There)
    }

    /// Whether nothing is left to be done of it.
    fn settles(&self) -> bool {
        matches!(self, MoveResult::Made(_) | MoveResult::There | MoveResult::Elsewhere(_))
    }
}

/// What came of several moves: all of them up to the one that ended it.
#[derive(Clone, Debug, Default)]
pub struct MovesMade {
    /// Those that were made.
    pub made: Vec<PlannedMove>,
    /// How many partitions were there already.
    pub there: usize,
    /// Partitions of which nothing is left to be done: they have moved, or are where somebody else
    /// has moved them.
    pub settled: Vec<u16>,
    /// Rows that moved.
    pub rows: u64,
    /// How many milliseconds that took.
    pub ms: f64,
    /// The move that ended it, and why.
    pub ended: Option<(PlannedMove, MoveResult)>,
}

/// Makes moves in their order, until one fails or the budget has no room for the next; tells of
/// each. What was made stays: a partition is at one repository or the other.
///
/// # Errors
/// It is not known where partitions are.
pub fn make_moves(
    cluster: &LiveCluster,
    moves: &[PlannedMove],
    budget: MoveBudget,
    tell: &mut dyn FnMut(&PlannedMove, &MoveResult),
) -> anyhow::Result<MovesMade> {
    let (mut all, now) = (MovesMade::default(), cluster.placement(&LivePeriod::default())?);
    for planned in moves {
        let placed = now.partitions.get(usize::from(planned.partition));
        // A plan may be old: what counts is what the partition holds now.
        let planned = &PlannedMove {
            rows: placed.map_or(planned.rows, |it| it.rows),
            bytes: placed.map_or(planned.bytes, |it| it.bytes),
            ..*planned
        };
        let result = match before(planned, placed.map(|it| it.holder), &all, budget) {
            Some(result) => result,
            None => {
                let begun = Instant::now();
                match cluster.relocate(planned.partition, planned.from, planned.to) {
                    Ok(_) => MoveResult::Made(begun.elapsed().as_secs_f64() * 1_000.0),
                    Err(error @ muesli::Error::Unknown { .. }) => {
                        MoveResult::Unknown(error.to_string())
                    }
                    Err(error) => MoveResult::Failed(error.to_string()),
                }
            }
        };
        tell(planned, &result);
        match result {
            MoveResult::Made(ms) => {
                (all.rows, all.ms) = (all.rows.saturating_add(planned.rows), all.ms + ms);
                all.made.push(*planned);
            }
            // It may have been made: whoever takes moves back looks where the partition is.
            MoveResult::Unknown(_) => all.made.push(*planned),
            MoveResult::There => all.there += 1,
            _ => {}
        }
        if result.settles() {
            all.settled.push(planned.partition);
        }
        if !result.goes_on() {
            all.ended = Some((*planned, result));
            break;
        }
    }
    Ok(all)
}

/// What is known of a move before it is made; none: it is to be made.
fn before(
    planned: &PlannedMove,
    holder: Option<u16>,
    all: &MovesMade,
    budget: MoveBudget,
) -> Option<MoveResult> {
    let rows = all.rows.saturating_add(planned.rows);
    match holder {
        Some(holder) if holder == planned.to => Some(MoveResult::There),
        Some(holder) if holder != planned.from => Some(MoveResult::Elsewhere(holder)),
        _ if rows > budget.rows => Some(MoveResult::OverBudget("rows")),
        _ if all.ms + planned.cost_ms > budget.ms => Some(MoveResult::OverBudget("milliseconds")),
        _ => None,
    }
}

/// A move and what came of it, in one line.
pub fn line(planned: &PlannedMove, result: &MoveResult) -> String {
    let PlannedMove { partition, from, to, rows, .. } = planned;
    match result {
        MoveResult::Made(ms) => {
            format!("partition {partition}: repository {from} to {to}, {rows} rows in {ms:.0} ms")
        }
        MoveResult::There => format!("partition {partition} is at repository {to} already"),
        MoveResult::OverBudget(what) => {
            format!(
                "partition {partition} stays: the budget of {what} has no room for its {rows} rows"
            )
        }
        MoveResult::Elsewhere(holder) => format!(
            "partition {partition} is at repository {holder}, and the plan moves it from {from}: \
             make a new plan"
        ),
        MoveResult::Failed(error) => {
            format!("partition {partition} was not moved from repository {from} to {to}: {error}")
        }
        MoveResult::Unknown(error) => format!(
            "whether partition {partition} was moved from repository {from} to {to} is not known: \
             {error}"
        ),
    }
}

/// The same for programs.
pub fn as_json(planned: &PlannedMove, result: &MoveResult) -> Value {
    let (kind, detail) = match result {
        MoveResult::Made(ms) => ("made", json!(ms)),
        MoveResult::There => ("there", Value::Null),
        MoveResult::OverBudget(what) => ("over-budget", json!(what)),
        MoveResult::Elsewhere(holder) => ("elsewhere", json!(holder)),
        MoveResult::Failed(error) => ("failed", json!(error)),
        MoveResult::Unknown(error) => ("unknown", json!(error)),
    };
    json!({ "move": planned, "result": kind, "detail": detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned() -> PlannedMove {
        PlannedMove {
            partition: 7,
            from: 0,
            to: 1,
            rows: 50,
            bytes: 90,
            cost_ms: 2.0,
            saves: 1.0,
            saved_ms: 1.0,
            pay_back_s: 2.0,
        }
    }

    #[test]
    fn a_move_is_made_only_from_where_it_was_planned_and_within_the_budget() {
        let budget = MoveBudget { rows: 100, ms: 10.0 };
        let after = |rows, ms| MovesMade { rows, ms, ..MovesMade::default() };
        let of = |holder, all: &MovesMade| before(&planned(), holder, all, budget);
        assert_eq!(of(Some(0), &after(50, 8.0)), None);
        assert_eq!(of(Some(1), &after(99, 99.0)), Some(MoveResult::There));
        assert_eq!(of(Some(3), &after(0, 0.0)), Some(MoveResult::Elsewhere(3)));
        assert_eq!(of(Some(0), &after(51, 0.0)), Some(MoveResult::OverBudget("rows")));
        assert_eq!(of(Some(0), &after(u64::MAX, 0.0)), Some(MoveResult::OverBudget("rows")));
        assert_eq!(of(Some(0), &after(0, 9.0)), Some(MoveResult::OverBudget("milliseconds")));
    }

    #[test]
    fn each_result_is_told_with_the_partition() {
        let all = [
            MoveResult::Made(3.0),
            MoveResult::There,
            MoveResult::OverBudget("rows"),
            MoveResult::Elsewhere(3),
            MoveResult::Failed("nobody answers".to_owned()),
            MoveResult::Unknown("nobody answers any more".to_owned()),
        ];
        for result in all {
            let (text, value) = (line(&planned(), &result), as_json(&planned(), &result));
            assert!(text.contains("partition 7"), "{text}");
            assert_eq!(value["move"]["partition"], 7, "{value}");
            assert_eq!(
                result.goes_on(),
                ["made", "there"].contains(&value["result"].as_str().unwrap())
            );
        }
    }
}
