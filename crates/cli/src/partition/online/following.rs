//! Partitions that follow their use, period after period: what is measured, decided, moved and
//! taken back. Whoever runs it says how it is told: `muesli partition watch` on its output, a
//! server among its own lines.

use muesli_placement::online::{
    FollowDecision, MovePlan, MoveTerms, PlacementFollower, PlannedMove,
};
use serde_json::{Value, json};

use super::live::{LiveCluster, LiveCounters};
use super::moving::{MoveBudget, MoveResult, MovesMade, as_json, line, make_moves};
use super::report::{PlanReport, decision};
use super::suggest::report_since;

/// What happened in a period.
pub enum PeriodEvent<'a> {
    /// It was measured, and this was decided.
    Decided { report: &'a PlanReport, decided: &'a FollowDecision },
    /// A move was made, or was not.
    Moved { planned: &'a PlannedMove, result: &'a MoveResult },
    /// A server did not answer, or nothing could be planned: the next period tries again.
    Failed { error: &'a anyhow::Error },
}

impl PeriodEvent<'_> {
    /// As JSON.
    pub fn as_json(&self, period: u64) -> Value {
        match self {
            PeriodEvent::Decided { report, decided } => json!({
                "period": period, "measured": report.measured, "decision": decided,
            }),
            PeriodEvent::Moved { planned, result } => as_json(planned, result),
            PeriodEvent::Failed { error } => {
                json!({ "period": period, "error": format!("{error:#}") })
            }
        }
    }

    /// For people; whether what is decided is done is said where it is not.
    pub fn line(&self, period: u64, is_done: bool) -> String {
        match self {
            PeriodEvent::Decided { report, decided } => {
                let PlanReport { measured, plan, .. } = report;
                let begin = format!(
                    "period {period}: {:.0} transactions/s, {:.1} % distributed, load {:.2}",
                    plan.rate, measured.distributed, measured.load
                );
                let why = why(plan, decided);
                match (is_done, decided) {
                    (false, FollowDecision::Apply { .. }) => {
                        format!("{begin}; without --apply: {why}")
                    }
                    _ => format!("{begin}; {why}"),
                }
            }
            PeriodEvent::Moved { planned, result } => format!("  {}", line(planned, result)),
            PeriodEvent::Failed { error } => format!("period {period}: {error:#}"),
        }
    }
}

/// Why it was decided so.
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

/// A cluster whose partitions follow their use, or would.
pub struct FollowedCluster {
    cluster: LiveCluster,
    terms: MoveTerms,
    /// Whether moves are made.
    moves: bool,
    follower: PlacementFollower,
    /// What was counted when the period began.
    before: LiveCounters,
}

impl FollowedCluster {
    /// Counts from now on.
    ///
    /// # Errors
    /// A server does not answer, or samples nothing.
    pub fn begin(
        cluster: LiveCluster,
        terms: MoveTerms,
        moves: bool,
    ) -> anyhow::Result<FollowedCluster> {
        let before = cluster.counters()?;
        before.check_sampled()?;
        let follower = PlacementFollower::default();
        Ok(FollowedCluster { cluster, terms, moves, follower, before })
    }

    /// Ends a period: plans by what was counted in it, and does what is decided, if moves are made.
    /// Its length is that since the last one has ended.
    pub fn end_period(&mut self, tell: &mut dyn FnMut(&PeriodEvent<'_>)) {
        if let Err(error) = self.try_to_end(tell) {
            tell(&PeriodEvent::Failed { error: &error });
        }
    }

    fn try_to_end(&mut self, tell: &mut dyn FnMut(&PeriodEvent<'_>)) -> anyhow::Result<()> {
        // A server that is away is no end: it may come again.
        self.cluster.look_for_servers()?;
        let after = self.cluster.counters()?;
        after.check_sampled()?;
        let report = report_since(&self.cluster, &self.terms, (&self.before, &after))?;
        self.before = after;
        let decided = self.follower.decide(report.measured, &report.plan);
        tell(&PeriodEvent::Decided { report: &report, decided: &decided });
        if !self.moves {
            return Ok(());
        }
        match &decided {
            FollowDecision::Apply { moves } => {
                let budget = MoveBudget { rows: self.terms.rows_most, ms: self.terms.ms_most };
                let made = self.make(moves, budget, tell)?.made;
                self.follower.note_applied(made);
            }
            FollowDecision::Undo { moves, .. } => {
                // What does not help is taken back whatever that takes, in the next period if not
                // in this one.
                let any = MoveBudget { rows: u64::MAX, ms: f64::INFINITY };
                let settled = self.make(moves, any, tell)?.settled;
                self.follower.note_undone(&settled);
            }
            FollowDecision::Stay { .. }
            | FollowDecision::Measure
            | FollowDecision::HeldBack { .. } => {}
        }
        Ok(())
    }

    fn make(
        &self,
        moves: &[PlannedMove],
        budget: MoveBudget,
        tell: &mut dyn FnMut(&PeriodEvent<'_>),
    ) -> anyhow::Result<MovesMade> {
        make_moves(&self.cluster, moves, budget, &mut |planned, result| {
            tell(&PeriodEvent::Moved { planned, result });
        })
    }
}
