//! `muesli partition watch`: plans again and again, and moves partitions as it goes.

use std::io::{Write, stdout};
use std::thread;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_placement::online::{FollowDecision, MovePlan, PlacementFollower, PlannedMove};
use serde_json::json;

use super::live::LiveCluster;
use super::moving::{MoveBudget, MoveResult, MovesMade, as_json, line, make_moves};
use super::options::{LiveTerms, seconds, with_connection};
use super::report::{PlanReport, decision};
use super::suggest::report_since;

const AFTER: &str = "\
After moves a whole period is measured. Where neither the share of distributed transactions nor \
the load of the busiest repository is better than before them, they are taken back, and these \
partitions stay for ten periods. Budgets are of each period.";

#[derive(Args, Clone, Debug)]
struct WatchOptions {
    #[command(flatten)]
    live: LiveTerms,
    /// How long a period is
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    every: f64,
    /// So many periods, and not for ever
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
    /// Move partitions; without it only what would be done is said
    #[arg(long, requires = "budget")]
    apply: bool,
    /// As JSON, a line for each period and each move
    #[arg(long)]
    json: bool,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("watch")
        .about("Plan moves of partitions of servers that run, again and again; and make them")
        .after_help(AFTER);
    WatchOptions::augment_args(with_connection(command))
}

/// Runs the command.
///
/// # Errors
/// The cluster does not answer at the start, or its partitions do not move.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = WatchOptions::from_arg_matches(matches)?;
    let connect = matches.get_one::<String>("connect").expect("it has a default");
    let (terms, every) = (options.live.terms()?, seconds("--every", options.every)?);
    let mut cluster = LiveCluster::connect(connect, &options.live)?;
    let mut before = cluster.counters()?;
    before.check_sampled()?;
    let mut watch = PlacementWatch { options, follower: PlacementFollower::default() };
    let mut period = 0;
    while watch.options.times.is_none_or(|times| period < times) {
        period += 1;
        thread::sleep(every);
        // A server that is away is no end: it may come again.
        let looked = cluster.look_for_servers().and_then(|()| cluster.counters());
        let looked = looked.and_then(|after| {
            after.check_sampled()?;
            let report = report_since(&cluster, &terms, (&before, &after))?;
            before = after;
            let budget = MoveBudget { rows: terms.rows_most, ms: terms.ms_most };
            watch.act(&cluster, period, &report, budget)
        });
        if let Err(error) = looked {
            watch.tell(&json!({ "period": period, "error": format!("{error:#}") }), || {
                format!("period {period}: {error:#}")
            });
        }
    }
    Ok(0)
}

struct PlacementWatch {
    options: WatchOptions,
    follower: PlacementFollower,
}

impl PlacementWatch {
    /// Decides after a period, says so, and does it.
    fn act(
        &mut self,
        cluster: &LiveCluster,
        period: u64,
        report: &PlanReport,
        budget: MoveBudget,
    ) -> anyhow::Result<()> {
        let (measured, plan) = (report.measured, &report.plan);
        let decided = self.follower.decide(measured, plan);
        let value = json!({ "period": period, "measured": measured, "decision": decided });
        self.tell(&value, || self.line(period, report, &decided));
        if !self.options.apply {
            return Ok(());
        }
        match &decided {
            FollowDecision::Apply { moves } => {
                let made = self.make(cluster, moves, budget)?.made;
                self.follower.note_applied(made);
            }
            FollowDecision::Undo { moves, .. } => {
                // What does not help is taken back whatever that takes, in the next period if not
                // in this one.
                let any = MoveBudget { rows: u64::MAX, ms: f64::INFINITY };
                let settled = self.make(cluster, moves, any)?.settled;
                self.follower.note_undone(&settled);
            }
            FollowDecision::Stay { .. }
            | FollowDecision::Measure
            | FollowDecision::HeldBack { .. } => {}
        }
        Ok(())
    }

    fn line(&self, period: u64, report: &PlanReport, decided: &FollowDecision) -> String {
        let PlanReport { measured, plan, .. } = report;
        let begin = format!(
            "period {period}: {:.0} transactions/s, {:.1} % distributed, load {:.2}",
            plan.rate, measured.distributed, measured.load
        );
        let why = why(plan, decided);
        match (self.options.apply, decided) {
            (false, FollowDecision::Apply { .. }) => format!("{begin}; without --apply: {why}"),
            _ => format!("{begin}; {why}"),
        }
    }

    fn make(
        &self,
        cluster: &LiveCluster,
        moves: &[PlannedMove],
        budget: MoveBudget,
    ) -> anyhow::Result<MovesMade> {
        let mut tell = |planned: &PlannedMove, result: &MoveResult| {
            self.tell(&as_json(planned, result), || format!("  {}", line(planned, result)));
        };
        make_moves(cluster, moves, budget, &mut tell)
    }

    fn tell(&self, value: &serde_json::Value, text: impl FnOnce() -> String) {
        let mut out = stdout().lock();
        let text = if self.options.json { value.to_string() } else { text() };
        let _ = writeln!(out, "{text}"); // A reader that has gone away is no matter.
        let _ = out.flush();
    }
}

fn why(plan: &MovePlan, decided: &FollowDecision) -> String {
    let text = decision(decided);
    match (decided, plan.pay_back_s) {
        (FollowDecision::Apply { .. }, Some(after)) => format!(
            "{text}: fresh transactions {:.1} % distributed and {:.1} % after them, paid for after \
             {after:.1} s",
            plan.fresh.before.distributed, plan.fresh.after.distributed
        ),
        _ => text,
    }
}
