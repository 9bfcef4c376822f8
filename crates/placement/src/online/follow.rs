//! What is done period after period: which moves are made, and which are taken back.
//!
//! The share of distributed transactions and the load of the busiest repository are measured
//! exactly, by counters. After moves were made a whole period is measured before anything else
//! moves. If then neither the share nor the load is better than before, the moves are taken back;
//! and for some periods these partitions stay where they are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{MovePlan, MoveVerdict, PlannedMove};

/// What was counted in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PeriodShares {
    /// Transactions that ended.
    pub transactions: u64,
    /// Of 100, those at several repositories.
    pub distributed: f64,
    /// The fragments of the busiest repository by those of the average one.
    pub load: f64,
}

impl PeriodShares {
    /// The shares of so many transactions, and of fragments by repository.
    pub fn of(transactions: u64, distributed: u64, fragments: &[u64]) -> PeriodShares {
        let all: f64 = fragments.iter().map(|it| *it as f64).sum();
        let mean = all / fragments.len().max(1) as f64;
        let most = fragments.iter().max().copied().unwrap_or(0) as f64;
        PeriodShares {
            transactions,
            distributed: 100.0 * distributed as f64 / transactions.max(1) as f64,
            load: if all > 0.0 { most / mean } else { 1.0 },
        }
    }
}

impl PeriodShares {
    /// The shares of two periods.
    fn and(&self, next: &PeriodShares) -> PeriodShares {
        let transactions = self.transactions.saturating_add(next.transactions);
        let part = next.transactions as f64 / transactions.max(1) as f64;
        let mean = |before: f64, after: f64| before * (1.0 - part) + after * part;
        PeriodShares {
            transactions,
            distributed: mean(self.distributed, next.distributed),
            load: mean(self.load, next.load),
        }
    }
}

/// What is to be done after a period.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FollowDecision {
    /// Nothing, as the plan says.
    Stay {
        /// Why.
        verdict: MoveVerdict,
    },
    /// Nothing yet: what came of the last moves is not known.
    Measure,
    /// Nothing: what the plan would move was moved before and taken back.
    HeldBack {
        /// These partitions.
        partitions: Vec<u16>,
    },
    /// These moves.
    Apply {
        /// In this order.
        moves: Vec<PlannedMove>,
    },
    /// The last moves are taken back: they did not help.
    Undo {
        /// In this order.
        moves: Vec<PlannedMove>,
        /// What was measured before them.
        before: PeriodShares,
        /// What was measured after them.
        after: PeriodShares,
    },
}

/// Moves are judged by so many transactions or more, of one period or several.
pub const TRANSACTIONS_TO_JUDGE: u64 = 200;
/// For so many periods a partition stays whose move was taken back.
pub const PERIODS_HELD_BACK: u64 = 10;
/// The share of distributed transactions must have fallen by so much of 100, or the load by a
/// tenth of that.
const BETTER: f64 = 0.5;

#[derive(Clone, Debug)]
struct AppliedMoves {
    moves: Vec<PlannedMove>,
    before: PeriodShares,
    /// What was measured since, over as many periods as it takes to judge.
    after: PeriodShares,
    /// The period in which they were made is no measure of either placement.
    is_measured: bool,
}

#[derive(Clone, Debug)]
struct UndoneMoves {
    moves: Vec<PlannedMove>,
    before: PeriodShares,
    after: PeriodShares,
}

/// Decides, period after period.
#[derive(Clone, Debug, Default)]
pub struct PlacementFollower {
    period: u64,
    /// What was measured of the present placement: in the last period, or in several with few
    /// transactions.
    measured: PeriodShares,
    applied: Option<AppliedMoves>,
    /// What is to be taken back, and was not so far.
    undoing: Option<UndoneMoves>,
    /// Partitions that stay where they are until a period.
    held_back: BTreeMap<u16, u64>,
}

impl PlacementFollower {
    /// What is to be done after a period of which this was measured, and for which this is planned.
    pub fn decide(&mut self, measured: PeriodShares, plan: &MovePlan) -> FollowDecision {
        self.period += 1;
        let period = self.period;
        self.held_back.retain(|_, until| *until > period);
        if let Some(UndoneMoves { moves, before, after }) = self.undoing.clone() {
            return FollowDecision::Undo { moves, before, after };
        }
        if let Some(applied) = &mut self.applied {
            if applied.is_measured {
                applied.after = applied.after.and(&measured);
            }
            applied.is_measured = true;
            if applied.after.transactions < TRANSACTIONS_TO_JUDGE {
                return FollowDecision::Measure;
            }
            let applied = self.applied.take().expect("there are some");
            let after = applied.after;
            if !is_better(&applied.before, &after) {
                return self.undo(applied, after);
            }
        }
        self.measure(&measured);
        // What a move saves rests on those before it: without one of them none after it is made.
        let is_free = |it: &&PlannedMove| !self.held_back.contains_key(&it.partition);
        let moves: Vec<_> = plan.moves.iter().take_while(is_free).copied().collect();
        match (plan.moves.is_empty(), moves.is_empty()) {
            (true, _) => FollowDecision::Stay { verdict: plan.verdict },
            (false, true) => {
                let partitions = plan.moves.iter().map(|it| it.partition).collect();
                FollowDecision::HeldBack { partitions }
            }
            (false, false) if self.measured.transactions < TRANSACTIONS_TO_JUDGE => {
                FollowDecision::Measure
            }
            (false, false) => FollowDecision::Apply { moves },
        }
    }

    fn measure(&mut self, measured: &PeriodShares) {
        let is_enough = |it: &PeriodShares| it.transactions >= TRANSACTIONS_TO_JUDGE;
        self.measured = match is_enough(measured) || is_enough(&self.measured) {
            true => *measured,
            false => self.measured.and(measured),
        };
    }

    fn undo(&mut self, applied: AppliedMoves, after: PeriodShares) -> FollowDecision {
        let until = self.period + PERIODS_HELD_BACK;
        self.held_back.extend(applied.moves.iter().map(|it| (it.partition, until)));
        let back = |it: &PlannedMove| PlannedMove {
            from: it.to,
            to: it.from,
            saves: -it.saves,
            saved_ms: -it.saved_ms,
            ..*it
        };
        let moves: Vec<_> = applied.moves.iter().rev().map(back).collect();
        let before = applied.before;
        self.undoing = Some(UndoneMoves { moves: moves.clone(), before, after });
        FollowDecision::Undo { moves, before, after }
    }

    /// Nothing is left to be taken back of these partitions.
    pub fn note_undone(&mut self, partitions: &[u16]) {
        self.measured = PeriodShares::default();
        if let Some(undoing) = &mut self.undoing {
            undoing.moves.retain(|it| !partitions.contains(&it.partition));
            if undoing.moves.is_empty() {
                self.undoing = None;
            }
        }
    }

    /// These moves were made, or may have been, of those that were to be made.
    pub fn note_applied(&mut self, moves: Vec<PlannedMove>) {
        if !moves.is_empty() {
            let (before, after) = (std::mem::take(&mut self.measured), PeriodShares::default());
            self.applied = Some(AppliedMoves { moves, before, after, is_measured: false });
        }
    }
}

fn is_better(before: &PeriodShares, after: &PeriodShares) -> bool {
    let saved = before.distributed - after.distributed;
    let evened = before.load - after.load;
    saved > BETTER || evened > BETTER / 10.0 && saved > -1.0
}

#[cfg(test)]
mod tests {
    use super::super::plan::SharesOfMoves;
    use super::*;

    fn planned(partitions: &[u16]) -> MovePlan {
        let one = |partition: &u16| PlannedMove {
            partition: *partition,
            from: 0,
            to: 1,
            rows: 5,
            bytes: 9,
            cost_ms: 1.0,
            saves: 3.0,
            saved_ms: 2.0,
            pay_back_s: 0.5,
        };
        let moves: Vec<_> = partitions.iter().map(one).collect();
        let is_empty = moves.is_empty();
        MovePlan {
            verdict: if is_empty { MoveVerdict::NothingPays } else { MoveVerdict::Pays },
            moves,
            samples: 1_000,
            rate: 100.0,
            in_sample: SharesOfMoves::default(),
            fresh: SharesOfMoves::default(),
            loads: Vec::new(),
            rows: 0,
            bytes: 0,
            cost_ms: 0.0,
            pay_back_s: None,
        }
    }

    fn measured(distributed: u64) -> PeriodShares {
        PeriodShares::of(1_000, distributed, &[500, 500])
    }

    fn applied(follower: &mut PlacementFollower, before: u64, partitions: &[u16]) {
        let decision = follower.decide(measured(before), &planned(partitions));
        let FollowDecision::Apply { moves } = decision else { panic!("{decision:?}") };
        follower.note_applied(moves);
    }

    #[test]
    fn moves_that_help_stay() {
        let mut follower = PlacementFollower::default();
        applied(&mut follower, 400, &[1, 2]);
        // The period of the moves themselves, and one in which too little was done.
        assert_eq!(follower.decide(measured(300), &planned(&[3])), FollowDecision::Measure);
        let little = PeriodShares { transactions: 10, ..measured(900) };
        assert_eq!(follower.decide(little, &planned(&[3])), FollowDecision::Measure);
        let next = follower.decide(measured(380), &planned(&[3]));
        assert!(matches!(next, FollowDecision::Apply { .. }), "{next:?}");
    }

    #[test]
    fn moves_that_do_not_help_are_taken_back_and_not_made_again_for_a_while() {
        let mut follower = PlacementFollower::default();
        applied(&mut follower, 400, &[1, 2]);
        follower.decide(measured(400), &planned(&[]));
        let back = follower.decide(measured(400), &planned(&[3]));
        let FollowDecision::Undo { moves, before, after } = back else { panic!("{back:?}") };
        let ways: Vec<_> = moves.iter().map(|it| (it.partition, it.from, it.to)).collect();
        assert_eq!(ways, [(2, 1, 0), (1, 1, 0)], "the last one first");
        assert_eq!((before, after), (measured(400), measured(400)));
        // One of them could not be taken back so far.
        follower.note_undone(&[2]);
        let rest = follower.decide(measured(100), &planned(&[3]));
        let FollowDecision::Undo { moves, .. } = rest else { panic!("{rest:?}") };
        assert_eq!(moves.iter().map(|it| it.partition).collect::<Vec<_>>(), [1]);
        follower.note_undone(&[1]);
        let again = follower.decide(measured(400), &planned(&[1, 2]));
        assert_eq!(again, FollowDecision::HeldBack { partitions: vec![1, 2] });
        let torn = follower.decide(measured(400), &planned(&[1, 3]));
        assert_eq!(torn, FollowDecision::HeldBack { partitions: vec![1, 3] });
        let FollowDecision::Apply { moves } = follower.decide(measured(400), &planned(&[3, 1]))
        else {
            panic!("partition 3 may move");
        };
        assert_eq!(moves.iter().map(|it| it.partition).collect::<Vec<_>>(), [3]);
        (0..PERIODS_HELD_BACK).for_each(|_| drop(follower.decide(measured(400), &planned(&[]))));
        let afterwards = follower.decide(measured(400), &planned(&[1, 2]));
        assert!(matches!(afterwards, FollowDecision::Apply { .. }), "{afterwards:?}");
    }

    #[test]
    fn nothing_moves_by_what_few_transactions_show() {
        let few = PeriodShares { transactions: 60, ..measured(400) };
        let mut follower = PlacementFollower::default();
        for _ in 0..3 {
            assert_eq!(follower.decide(few, &planned(&[1])), FollowDecision::Measure);
        }
        let enough = follower.decide(few, &planned(&[1]));
        assert!(matches!(enough, FollowDecision::Apply { .. }), "{enough:?}");
    }

    #[test]
    fn less_load_of_the_busiest_repository_is_better_too() {
        let even = PeriodShares::of(1_000, 100, &[500, 500]);
        let uneven = PeriodShares::of(1_000, 100, &[800, 200]);
        assert_eq!((even.load, uneven.load, even.distributed), (1.0, 1.6, 10.0));
        assert!(is_better(&uneven, &even) && !is_better(&even, &uneven));
        let torn = PeriodShares { distributed: 20.0, ..even };
        assert!(!is_better(&uneven, &torn), "it costs too many distributed transactions");
        assert_eq!(PeriodShares::of(0, 0, &[]).load, 1.0);
        let plan = planned(&[]);
        let stays = FollowDecision::Stay { verdict: MoveVerdict::NothingPays };
        assert_eq!(PlacementFollower::default().decide(even, &plan), stays);
    }
}
