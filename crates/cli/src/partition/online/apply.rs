//! `muesli partition apply`: makes the moves of a plan within a budget.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_placement::online::PlannedMove;
use serde::Deserialize;
use serde_json::Value;

use super::lines::print;
use super::live::LiveCluster;
use super::moving::{MoveBudget, MoveResult, MovesMade, as_json, line, make_moves};
use super::options::{LiveTerms, seconds, with_connection};
use super::report::advice;
use super::suggest::report;

const AFTER: &str = "\
Partitions move one after the other, while both repositories serve. A command that was \
interrupted is given again: with a plan, what was moved is left out; without one, a new plan goes \
on from where partitions are. A move that fails ends the command, and what was moved before it \
stays.";

#[derive(Args, Clone, Debug)]
struct ApplyOptions {
    #[command(flatten)]
    live: LiveTerms,
    /// Make the moves of this plan, as `suggest --json` has printed it, and plan nothing
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Measure for so long before the plan
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, conflicts_with = "plan")]
    seconds: f64,
    /// As JSON, a line for each move and one for all of them
    #[arg(long)]
    json: bool,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("apply")
        .about("Move partitions of servers that run to where a plan says, within a budget")
        .after_help(AFTER);
    let command = ApplyOptions::augment_args(with_connection(command));
    command.mut_arg("budget", |budget| budget.required(true))
}

/// Runs the command.
///
/// # Errors
/// There is no plan, a server does not answer, or a move fails.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = ApplyOptions::from_arg_matches(matches)?;
    let connect = matches.get_one::<String>("connect").expect("it has a default");
    let terms = options.live.terms()?;
    let period = seconds("--seconds", options.seconds)?;
    let given = options.plan.as_deref().map(read).transpose()?;
    let cluster = LiveCluster::connect(connect, &options.live)?;
    let moves = match given {
        Some(moves) => moves,
        None => {
            let planned = report(&cluster, &terms, period)?;
            if !options.json {
                print(&advice(&planned.plan));
            }
            planned.plan.moves
        }
    };
    let budget = MoveBudget { rows: terms.rows_most, ms: terms.ms_most };
    let made = make_moves(&cluster, &moves, budget, &mut |planned, result| {
        print(&match options.json {
            true => as_json(planned, result).to_string(),
            false => line(planned, result),
        });
    })?;
    summarize(&made, moves.len(), options.json)
}

fn summarize(made: &MovesMade, planned: usize, json: bool) -> anyhow::Result<u8> {
    let MovesMade { made: all, there, rows, ms, ended, .. } = made;
    let left = planned - all.len() - there;
    let text = format!("{} of {planned} moves made: {rows} rows in {ms:.0} ms", all.len());
    print(&match json {
        true => serde_json::json!({
            "made": all.len(), "there": there, "left": left, "rows": rows, "ms": ms,
        })
        .to_string(),
        false => text.clone(),
    });
    match ended {
        Some((failed, result @ (MoveResult::Failed(_) | MoveResult::Elsewhere(_)))) => {
            bail!("{}. {text}, and they stay; {left} are left", line(failed, result))
        }
        _ => Ok(0),
    }
}

/// The most bytes of a plan.
const PLAN_BYTES_MAX: u64 = 64 << 20;

/// The moves of a plan that was printed.
fn read(path: &Path) -> anyhow::Result<Vec<PlannedMove>> {
    let wrong = || format!("{} is no plan", path.display());
    let bytes = fs::metadata(path).with_context(wrong)?.len();
    if bytes > PLAN_BYTES_MAX {
        bail!("{}: {bytes} bytes, and {PLAN_BYTES_MAX} at most", wrong());
    }
    let text = fs::read_to_string(path).with_context(wrong)?;
    let value: Value = serde_json::from_str(&text).with_context(wrong)?;
    let moves = value.get("plan").and_then(|plan| plan.get("moves"));
    let moves = moves.with_context(|| format!("{}: it has no `plan.moves`", wrong()))?;
    Vec::deserialize(moves).with_context(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_what_suggest_prints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let read_text = |text: &str| {
            fs::write(&path, text).unwrap();
            read(&path).map_err(|error| format!("{error:#}"))
        };
        let moves = r#"{"plan":{"moves":[{"partition":3,"from":0,"to":1,"rows":5,"bytes":6,
            "cost_ms":1.5,"saves":2.0,"saved_ms":0.5,"pay_back_s":3.0}]}}"#;
        let read_moves = read_text(moves).unwrap();
        assert_eq!((read_moves[0].partition, read_moves[0].to, read_moves.len()), (3, 1, 1));
        for (text, what) in [
            ("no", "is no plan"),
            ("{}", "no `plan.moves`"),
            (r#"{"plan":{"moves":[{"partition":70000}]}}"#, "is no plan"),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(what) && error.contains("plan.json"), "{error}");
        }
        assert!(read(&folder.path().join("none")).is_err());
    }
}
