//! Plans as people and programs read them.

use muesli_placement::online::{FollowDecision, MovePlan, MoveVerdict, PeriodShares, PlannedMove};
use serde_json::{Value, json};

use crate::table;

/// A plan, with what was measured before it.
pub struct PlanReport {
    pub servers: usize,
    pub seconds: f64,
    pub measured: PeriodShares,
    pub plan: MovePlan,
}

impl PlanReport {
    pub fn as_json(&self) -> Value {
        json!({
            "servers": self.servers,
            "seconds": self.seconds,
            "measured": self.measured,
            "plan": self.plan,
        })
    }

    pub fn as_text(&self) -> String {
        let PlanReport { servers, seconds, measured, plan } = self;
        let mut text = format!(
            "{servers} servers: {} transactions in {seconds:.1} s, {:.1} % distributed; {} \
             sampled\n",
            measured.transactions, measured.distributed, plan.samples
        );
        if !plan.moves.is_empty() {
            text += &format!("{}\n\n", moves(&plan.moves));
        }
        text += &format!("{}\n\n{}\n\n{}", shares(plan), loads(plan), advice(plan));
        text
    }
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn moves(all: &[PlannedMove]) -> String {
    let names = ["partition", "from", "to", "rows", "KiB", "ms", "saves/s", "paid after s"];
    let mut table = table::new(header(&names));
    for planned in all {
        table.add_row([
            planned.partition.to_string(),
            planned.from.to_string(),
            planned.to.to_string(),
            table::grouped(planned.rows),
            table::grouped(planned.bytes.div_ceil(1 << 10)),
            format!("{:.0}", planned.cost_ms),
            format!("{:.1}", planned.saves),
            format!("{:.1}", planned.pay_back_s),
        ]);
    }
    table.to_string()
}

fn shares(plan: &MovePlan) -> String {
    let mut table = table::new(header(&["fresh (learnt from)", "now", "after the moves"]));
    let (fresh, learnt) = (plan.fresh, plan.in_sample);
    let both = |fresh: f64, learnt: f64| format!("{fresh:.1} ({learnt:.1})");
    table.add_row([
        "distributed, %".to_owned(),
        both(fresh.before.distributed, learnt.before.distributed),
        both(fresh.after.distributed, learnt.after.distributed),
    ]);
    let both = |fresh: f64, learnt: f64| format!("{fresh:.2} ({learnt:.2})");
    table.add_row([
        "load, busiest by mean".to_owned(),
        both(fresh.before.load, learnt.before.load),
        both(fresh.after.load, learnt.after.load),
    ]);
    table.to_string()
}

fn loads(plan: &MovePlan) -> String {
    let names = ["repository", "fragments/s now", "after the moves"];
    let mut table = table::new(header(&names));
    for load in &plan.loads {
        let numbers = [load.before, load.after].map(|it| table::grouped(it as u64));
        table.add_row([vec![load.repository.to_string()], numbers.into()].concat());
    }
    table.to_string()
}

/// What a plan says in the end.
pub fn advice(plan: &MovePlan) -> String {
    match (plan.verdict, plan.pay_back_s) {
        (MoveVerdict::Pays, Some(after)) => format!(
            "{} moves of {} rows, {} KiB, about {:.0} ms of work: paid for after {after:.1} s",
            plan.moves.len(),
            table::grouped(plan.rows),
            table::grouped(plan.bytes.div_ceil(1 << 10)),
            plan.cost_ms
        ),
        (verdict, _) => verdict.to_string(),
    }
}

/// What was decided after a period, in one line.
pub fn decision(decision: &FollowDecision) -> String {
    match decision {
        FollowDecision::Stay { verdict } => verdict.to_string(),
        FollowDecision::Measure => "what came of the last moves is being measured".to_owned(),
        FollowDecision::HeldBack { partitions } => format!(
            "partitions {} stay: their last moves did not help and were taken back",
            listed(partitions.iter())
        ),
        FollowDecision::Apply { moves } => {
            format!("moving partitions {}", listed(moves.iter().map(|it| &it.partition)))
        }
        FollowDecision::Undo { moves, before, after } => format!(
            "taking back moves of partitions {}: {:.1} % distributed and load {:.2} before them, \
             {:.1} % and {:.2} after them",
            listed(moves.iter().map(|it| &it.partition)),
            before.distributed,
            before.load,
            after.distributed,
            after.load
        ),
    }
}

/// So many partitions are named.
const NAMED: usize = 12;

fn listed<'a>(all: impl Iterator<Item = &'a u16>) -> String {
    let all: Vec<String> = all.map(u16::to_string).collect();
    let more = all.len().saturating_sub(NAMED);
    let named = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_partitions_are_cut() {
        let all: Vec<u16> = (0..15).collect();
        assert_eq!(listed(all[..2].iter()), "0, 1");
        assert!(listed(all.iter()).ends_with("11 and 3 more"), "{}", listed(all.iter()));
    }

    #[test]
    fn decisions_say_what_was_done_and_why() {
        let undone = PlannedMove {
            partition: 4,
            from: 1,
            to: 0,
            rows: 9,
            bytes: 9,
            cost_ms: 1.0,
            saves: 0.0,
            saved_ms: 0.0,
            pay_back_s: 0.0,
        };
        let shares = |distributed| PeriodShares { transactions: 9, distributed, load: 1.0 };
        let undo =
            FollowDecision::Undo { moves: vec![undone], before: shares(10.0), after: shares(12.5) };
        let text = decision(&undo);
        assert!(text.contains("partitions 4: 10.0 %") && text.contains("12.5 %"), "{text}");
        let idle = FollowDecision::Stay { verdict: MoveVerdict::Idle };
        assert_eq!(decision(&idle), MoveVerdict::Idle.to_string());
    }
}
