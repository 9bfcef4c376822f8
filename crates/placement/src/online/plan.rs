//! Which partitions should move, what that costs, and when it has paid for itself.

use std::fmt;

use muesli_core::recorder::accesses::AccessSample;
use serde::{Deserialize, Serialize};

use super::samples::{LivePlacement, as_trace, graph, placed, scheme};
use super::work::{PlacedWork, WorkTerms};
use crate::scheme::{PlacementShares, shares};
use crate::trace::{AccessTrace, TracedTransaction};
use crate::units::{RefinementTerms, UnitGraph, refine_priced};

/// What moves are found and judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveTerms {
    /// What a transaction costs a repository, in microseconds.
    pub transaction_us: f64,
    /// How much more a distributed one costs each of its repositories.
    pub distributed_us: f64,
    /// What a row costs that moves: it is read, sent, logged and installed.
    pub row_us: f64,
    /// What each KiB of rows costs beside that.
    pub kib_us: f64,
    /// What a move costs beside its rows, in milliseconds.
    pub move_ms: f64,
    /// A move must have paid for itself after so many seconds.
    pub horizon_s: f64,
    /// The most load of a repository, by the mean.
    pub load_cap: f64,
    /// The most rows of a repository, by the mean.
    pub rows_cap: f64,
    /// All moves together must save so many of 100 fresh transactions from being distributed.
    pub worth: f64,
    /// Or must take so much from the busiest repository's load over the mean.
    pub load_worth: f64,
    /// The most rows that may move.
    pub rows_most: u64,
    /// The most milliseconds that moves may take, by the model.
    pub ms_most: f64,
    /// Of fewer samples nothing is learnt.
    pub samples_least: usize,
}

impl Default for MoveTerms {
    fn default() -> MoveTerms {
        MoveTerms {
            transaction_us: 10.0,
            distributed_us: 40.0,
            row_us: 4.0,
            kib_us: 2.0,
            move_ms: 20.0,
            horizon_s: 60.0,
            load_cap: 1.2,
            rows_cap: 2.0,
            worth: 0.5,
            load_worth: 0.1,
            rows_most: u64::MAX,
            ms_most: f64::INFINITY,
            samples_least: 200,
        }
    }
}

impl MoveTerms {
    /// What a partition's move costs, in milliseconds.
    pub fn cost_ms(&self, rows: u64, bytes: u64) -> f64 {
        let kib = bytes as f64 / 1_024.0;
        self.move_ms + (rows as f64 * self.row_us + kib * self.kib_us) / 1_000.0
    }

    fn work(&self) -> WorkTerms {
        WorkTerms { transaction_us: self.transaction_us, distributed_us: self.distributed_us }
    }
}

/// A partition that should move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedMove {
    /// Which one.
    pub partition: u16,
    /// The repository that holds it now.
    pub from: u16,
    /// Where to.
    pub to: u16,
    /// Its rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the move costs by the model, in milliseconds of work.
    pub cost_ms: f64,
    /// By how many distributed transactions a second fewer there are after it.
    pub saves: f64,
    /// How many milliseconds of work a second it saves, that of the busiest repository once more.
    pub saved_ms: f64,
    /// After how many seconds it has paid for itself.
    pub pay_back_s: f64,
}

/// Shares where partitions are now, and where they would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SharesOfMoves {
    /// Now.
    pub before: PlacementShares,
    /// After the moves.
    pub after: PlacementShares,
}

impl SharesOfMoves {
    /// Whether the moves are better by as much as these terms ask for.
    fn is_better(&self, terms: &MoveTerms) -> bool {
        let saved = self.before.distributed - self.after.distributed;
        let evened = self.before.load - self.after.load;
        saved > terms.worth || evened > terms.load_worth && saved > -1.0
    }
}

/// What a repository does, in fragments a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RepositoryLoad {
    /// Which one.
    pub repository: u16,
    /// Where partitions are now, as it was counted.
    pub before: f64,
    /// Where they would be.
    pub after: f64,
}

/// Why these moves are planned, or none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MoveVerdict {
    /// There are moves that pay.
    Pays,
    /// There are too few samples.
    FewSamples {
        /// So many there are.
        samples: usize,
        /// So many there have to be.
        least: usize,
    },
    /// Nothing was done while it was measured, so nothing can be saved.
    Idle,
    /// No move pays for itself within the horizon.
    NothingPays,
    /// What was found is no better on transactions that it was not learnt from.
    NotFresh,
    /// What pays does not fit into the budget.
    OverBudget,
}

impl fmt::Display for MoveVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoveVerdict::Pays => f.write_str("these moves pay for themselves"),
            MoveVerdict::FewSamples { samples, least } => write!(
                f,
                "there are {samples} sampled transactions, and something is learnt of {least} or \
                 more"
            ),
            MoveVerdict::Idle => f.write_str("nothing was done while it was measured"),
            MoveVerdict::NothingPays => {
                f.write_str("no move pays for itself within the horizon: nothing is to move")
            }
            MoveVerdict::NotFresh => {
                f.write_str("what was found is no better on fresh transactions: nothing is to move")
            }
            MoveVerdict::OverBudget => f.write_str("no move that pays fits into the budget"),
        }
    }
}

/// What should move, and what it is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovePlan {
    /// Why.
    pub verdict: MoveVerdict,
    /// The moves, in the order in which they are to be made: what pays soonest comes first.
    pub moves: Vec<PlannedMove>,
    /// How many samples it was made of.
    pub samples: usize,
    /// How many transactions a second there were.
    pub rate: f64,
    /// Shares of the transactions that it was learnt from.
    pub in_sample: SharesOfMoves,
    /// Shares of those that it was neither learnt from nor chosen by.
    pub fresh: SharesOfMoves,
    /// What each repository does.
    pub loads: Vec<RepositoryLoad>,
    /// Rows that move.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What all of it costs by the model, in milliseconds of work.
    pub cost_ms: f64,
    /// After how many seconds all of it has paid for itself.
    pub pay_back_s: Option<f64>,
}

/// Finds the moves that pay.
///
/// `samples` are in the order of their timestamps, as [`merged`](super::merged) gives them;
/// `period` is how many seconds the placement's fragments were counted for, and `rate` how many
/// transactions a second there were meanwhile.
///
/// # Panics
/// A partition is held by no repository that there is.
pub fn plan_moves(
    placement: &LivePlacement,
    samples: &[AccessSample],
    (period, rate): (f64, f64),
    terms: &MoveTerms,
) -> MovePlan {
    let labels = placement.labels();
    assert!(placement.is_sound(), "each partition is held by one of the repositories");
    let mut plan = MovePlan {
        verdict: MoveVerdict::NothingPays,
        moves: Vec::new(),
        samples: samples.len(),
        rate,
        in_sample: SharesOfMoves::default(),
        fresh: SharesOfMoves::default(),
        loads: Vec::new(),
        rows: 0,
        bytes: 0,
        cost_ms: 0.0,
        pay_back_s: None,
    };
    let trace = as_trace(samples);
    let few = MoveVerdict::FewSamples { samples: samples.len(), least: terms.samples_least };
    let after = if samples.len() < terms.samples_least.max(10) {
        plan.verdict = few;
        labels.clone()
    } else if rate <= 0.0 || !rate.is_finite() {
        plan.verdict = MoveVerdict::Idle;
        labels.clone()
    } else {
        chosen(placement, &trace, rate, terms, &mut plan)
    };
    plan.describe(placement, &trace, (&labels, &after), period);
    plan
}

/// The placement after the moves that pay, which are noted in the plan: where nothing does, that of
/// now.
fn chosen(
    placement: &LivePlacement,
    trace: &AccessTrace,
    rate: f64,
    terms: &MoveTerms,
    plan: &mut MovePlan,
) -> Vec<u32> {
    let (cut, labels) = (trace.cut(), placement.labels());
    let learn = graph(cut.learn, placement);
    let a_second = rate / cut.learn.len().max(1) as f64;
    let wanted = refined(placement, &learn, a_second, terms);
    let mut work = PlacedWork::new(&learn, &labels, placement.repositories, terms.work());
    let found = moves_that_pay(placement, &wanted, &mut work, a_second, terms);
    (plan.moves, plan.verdict) = found;
    let mut after = labels.clone();
    for planned in &plan.moves {
        after[usize::from(planned.partition)] = u32::from(planned.to);
    }
    let choose = both(placement, trace, cut.choose, (&labels, &after));
    if plan.verdict == MoveVerdict::Pays && !choose.is_better(terms) {
        (plan.verdict, plan.moves) = (MoveVerdict::NotFresh, Vec::new());
        return labels;
    }
    after
}

/// Where partitions would be if nothing but their prices held them.
fn refined(
    placement: &LivePlacement,
    learn: &UnitGraph,
    a_second: f64,
    terms: &MoveTerms,
) -> Vec<u32> {
    // A transaction that becomes whole costs two repositories nothing more.
    let saved_us = (2.0 * terms.distributed_us).max(f64::MIN_POSITIVE) * a_second;
    let price = |partition: &super::LivePartition| {
        let cost_us = 1_000.0 * terms.cost_ms(partition.rows, partition.bytes);
        (cost_us / (saved_us * terms.horizon_s)).min(1e12) as u64
    };
    let prices: Vec<u64> = placement.partitions.iter().map(price).collect();
    let refinement = RefinementTerms {
        partitions: u32::from(placement.repositories),
        load_cap: terms.load_cap,
        rows_cap: terms.rows_cap,
        ..RefinementTerms::default()
    };
    refine_priced(learn, &placement.labels(), &refinement, &prices).labels
}

/// Of the moves that lead to a placement those that pay, one after the other: always the one that
/// has paid for itself soonest, given those before it.
fn moves_that_pay(
    placement: &LivePlacement,
    wanted: &[u32],
    work: &mut PlacedWork<'_>,
    a_second: f64,
    terms: &MoveTerms,
) -> (Vec<PlannedMove>, MoveVerdict) {
    let differs = |partition: &usize| wanted[*partition] != work.label(*partition);
    let mut left: Vec<usize> = (0..wanted.len()).filter(differs).collect();
    let (mut moves, mut rows, mut cost_ms) = (Vec::new(), 0_u64, 0.0);
    let mut is_over = false;
    loop {
        let mut best: Option<PlannedMove> = None;
        left.retain(|partition| {
            let size = &placement.partitions[*partition];
            let cost = terms.cost_ms(size.rows, size.bytes);
            let fits = rows.saturating_add(size.rows) <= terms.rows_most;
            let fits_in = fits && cost_ms + cost <= terms.ms_most;
            let found = judged(placement, (*partition, wanted[*partition]), work, a_second, terms);
            let pays = found.pay_back_s <= terms.horizon_s;
            is_over |= pays && !fits_in;
            let is_sooner = best.is_none_or(|it| found.pay_back_s < it.pay_back_s);
            if pays && fits_in && is_sooner {
                best = Some(found);
            }
            fits_in
        });
        let Some(found) = best else { break };
        left.retain(|partition| *partition != usize::from(found.partition));
        work.relocate(usize::from(found.partition), u32::from(found.to));
        (rows, cost_ms) = (rows.saturating_add(found.rows), cost_ms + found.cost_ms);
        moves.push(found);
    }
    let verdict = match (moves.is_empty(), is_over) {
        (false, _) => MoveVerdict::Pays,
        (true, true) => MoveVerdict::OverBudget,
        (true, false) => MoveVerdict::NothingPays,
    };
    (moves, verdict)
}

/// What a move is worth after those that were made.
fn judged(
    placement: &LivePlacement,
    (partition, to): (usize, u32),
    work: &mut PlacedWork<'_>,
    a_second: f64,
    terms: &MoveTerms,
) -> PlannedMove {
    let size = &placement.partitions[partition];
    let (gain, fewer) = work.gain(partition, to);
    let (saved_ms, cost_ms) = (gain * a_second / 1_000.0, terms.cost_ms(size.rows, size.bytes));
    let pay_back_s = if saved_ms > 0.0 { cost_ms / saved_ms } else { f64::INFINITY };
    PlannedMove {
        partition: partition as u16,
        from: size.holder,
        to: to as u16,
        rows: size.rows,
        bytes: size.bytes,
        cost_ms,
        saves: fewer as f64 * a_second,
        saved_ms,
        pay_back_s,
    }
}

fn both(
    placement: &LivePlacement,
    trace: &AccessTrace,
    transactions: &[TracedTransaction],
    (before, after): (&[u32], &[u32]),
) -> SharesOfMoves {
    let of = |labels| {
        let units = placed(labels, placement.repositories);
        shares(trace, transactions, &scheme(), &units)
    };
    SharesOfMoves { before: of(before), after: of(after) }
}

impl MovePlan {
    /// Adds what the moves are worth and cost.
    fn describe(
        &mut self,
        placement: &LivePlacement,
        trace: &AccessTrace,
        (before, after): (&[u32], &[u32]),
        period: f64,
    ) {
        let cut = trace.cut();
        self.in_sample = both(placement, trace, cut.learn, (before, after));
        self.fresh = both(placement, trace, cut.report, (before, after));
        let a_second = |fragments: u64| match period > 0.0 {
            true => fragments as f64 / period,
            false => 0.0,
        };
        let loads = placement.fragments(before).into_iter().zip(placement.fragments(after));
        let load = |(repository, (before, after))| RepositoryLoad {
            repository,
            before: a_second(before),
            after: a_second(after),
        };
        self.loads = (0..).zip(loads).map(load).collect();
        let sum =
            |of: fn(&PlannedMove) -> u64| self.moves.iter().map(of).fold(0, u64::saturating_add);
        (self.rows, self.bytes) = (sum(|it| it.rows), sum(|it| it.bytes));
        self.cost_ms = self.moves.iter().map(|it| it.cost_ms).sum();
        let saved_ms: f64 = self.moves.iter().map(|it| it.saved_ms).sum();
        self.pay_back_s = (saved_ms > 0.0).then(|| self.cost_ms / saved_ms);
    }
}

#[cfg(test)]
mod tests;
