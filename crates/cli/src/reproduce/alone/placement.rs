//! Points of figures about placement: what is suggested from a trace, beside the scheme that the
//! workload's plans are written for. Nothing is distributed; a trace is recorded and looked at, one
//! for all lines at a value of the axis.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, anyhow};
use muesli_placement::suggestion::{ProposedPlacement, propose};
use muesli_placement::trace::TracedTransaction;
use muesli_placement::{AccessTrace, Scheme, Terms};
use muesli_workloads::planned::traces::{PlannedWorkload, TraceRequest, planned};

use crate::partition::placing_terms;
use crate::reproduce::figure::{Figure, PlacedBy, Setting};
use crate::reproduce::point::{Point, Quantity};

/// So many transactions are judged that nothing was learnt from; fewer with `--quick`.
const FRESH: [usize; 2] = [6_000, 2_000];

/// Lengths of traces that are tried, to find the least one that is enough.
const LENGTHS: &[usize] = &[25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1_200];

/// In so many partitions units are placed where the workload does not say how many there are.
const PARTITIONS: u32 = 8;

/// Of how much a point is, for those who read a figure.
pub fn described(figure: &Figure, quick: bool) -> String {
    match figure.shows {
        Quantity::TraceLength => {
            let (least, most) = (LENGTHS[0], LENGTHS[LENGTHS.len() - 1]);
            format!("traces of {least} to {most} transactions")
        }
        _ => format!("{} fresh transactions each", FRESH[usize::from(quick)]),
    }
}

/// The traces of a figure, with what is suggested for each: recorded once, whichever line asks
/// first.
#[derive(Debug, Default)]
pub struct FigureTraces(Mutex<HashMap<TraceKey, OnceRecorded>>);

/// A trace that is recorded once, or why it could not be.
type OnceRecorded = Arc<OnceLock<Result<Arc<JudgedTrace>, String>>>;

/// What a trace is of: parameters, transactions learnt from and fresh ones, and the seed.
type TraceKey = (Vec<String>, (usize, usize), u64);

/// A trace, and what follows from its first part.
#[derive(Debug)]
struct JudgedTrace {
    trace: AccessTrace,
    /// So many are learnt from, and so many more are chosen by.
    learnt: usize,
    chosen_by: usize,
    proposed: ProposedPlacement,
}

impl JudgedTrace {
    fn learnt(&self) -> &[TracedTransaction] {
        &self.trace.transactions[..self.learnt]
    }

    fn fresh(&self) -> &[TracedTransaction] {
        &self.trace.transactions[self.learnt + self.chosen_by..]
    }
}

/// For so many transactions that are learnt from, how many there are besides to choose by: as many
/// as a suggestion has of a trace.
fn chosen_by(learnt: usize) -> usize {
    (learnt * 15).div_ceil(70)
}

impl FigureTraces {
    fn of(
        &self,
        workload: &PlannedWorkload,
        setting: &Setting,
        fresh: usize,
        seed: u64,
    ) -> anyhow::Result<Arc<JudgedTrace>> {
        let key = (setting.parameters.clone(), (setting.placement.learnt, fresh), seed);
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let once = traces.entry(key).or_default().clone();
        drop(traces);
        let judged = once.get_or_init(|| {
            let judged = judged(workload, setting, fresh, seed);
            judged.map(Arc::new).map_err(|error| format!("{error:#}"))
        });
        judged.clone().map_err(|text| anyhow!("{text}"))
    }
}

/// Records a trace.
fn record(
    workload: &PlannedWorkload,
    setting: &Setting,
    count: usize,
    seed: u64,
) -> anyhow::Result<AccessTrace> {
    let (parameters, transactions) = (setting.parameters.clone(), count as u64);
    let trace = workload.record(&TraceRequest { parameters, transactions, seed })?;
    anyhow::ensure!(trace.transactions.len() >= count, "a trace of {count} transactions is short");
    Ok(trace)
}

/// In so many partitions units are placed.
fn partitions(setting: &Setting) -> u32 {
    setting.number("warehouses").map_or(PARTITIONS, |count| count as u32)
}

/// Records a trace, learns from it, and leaves so many transactions to judge what was learnt.
fn judged(
    workload: &PlannedWorkload,
    setting: &Setting,
    fresh: usize,
    seed: u64,
) -> anyhow::Result<JudgedTrace> {
    let learnt = setting.placement.learnt;
    let chosen_by = chosen_by(learnt);
    let trace = record(workload, setting, learnt + chosen_by + fresh, seed)?;
    let (learn, rest) = trace.transactions.split_at(learnt);
    let proposed =
        propose(&trace, learn, &rest[..chosen_by], &placing_terms(partitions(setting))?)?;
    Ok(JudgedTrace { learnt, chosen_by, proposed, trace })
}

/// Says what a line has at a value of the axis.
///
/// # Errors
/// The workload cannot be traced, or the process that places units failed.
pub fn run(
    figure: &Figure,
    (setting, traces): (&Setting, &FigureTraces),
    (quick, seed): (bool, u64),
    (line, x): (&'static str, f64),
) -> anyhow::Result<Point> {
    let workload = planned(figure.workload)?;
    let mut point = Point { line, x, ..Point::default() };
    if figure.shows == Quantity::TraceLength {
        let most = LENGTHS[LENGTHS.len() - 1];
        let trace = record(workload, setting, most + chosen_by(most), seed);
        let trace = trace.with_context(|| format!("{line} at {x}"))?;
        let terms = placing_terms(partitions(setting))?;
        point.trace_length = enough(&trace, &workload.manual(), &terms)? as f64;
        return Ok(point);
    }
    let judged = traces.of(workload, setting, FRESH[usize::from(quick)], seed);
    let judged = judged.with_context(|| format!("{line} at {x}"))?;
    let (trace, fresh) = (&judged.trace, judged.fresh());
    let shares = match setting.placement.by {
        PlacedBy::Manual => workload.manual_shares(trace, fresh, partitions(setting)),
        PlacedBy::Hash => judged.proposed.shares_by_hash(trace, fresh),
        PlacedBy::Suggestion => judged.proposed.shares(trace, fresh),
        PlacedBy::SuggestionInSample => judged.proposed.shares(trace, judged.learnt()),
    };
    point.distributed = shares.distributed;
    point.misrouted = shares.misrouted;
    point.crossing = shares.crossing;
    point.placed_load = shares.load;
    Ok(point)
}

/// The least length of which, and of all longer ones that are tried, exactly this scheme is
/// suggested; the double of the longest, where that one does not show it. What a suggestion chooses
/// by comes on top.
fn enough(trace: &AccessTrace, manual: &Scheme, terms: &Terms) -> anyhow::Result<usize> {
    let mut least = 2 * LENGTHS[LENGTHS.len() - 1];
    for length in LENGTHS.iter().rev() {
        let (learn, rest) = trace.transactions.split_at(*length);
        let proposed = propose(trace, learn, &rest[..chosen_by(*length)], terms)?;
        if proposed.scheme != *manual {
            break;
        }
        least = *length;
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::figures;

    #[test]
    fn all_lines_at_a_place_are_of_one_trace() {
        let figure = figures::all().find(|figure| figure.name == "turcu-8.1-retwis");
        let figure = figure.expect("there is one");
        let mut setting = Setting::of(figure, "granola", 40.0);
        setting.put("users", 60.0);
        let (workload, traces) = (planned("retwis").unwrap(), FigureTraces::default());
        // Of more units METIS would be asked for, in a process that this program cannot be.
        let of = |seed| traces.of(workload, &setting, 30, seed).unwrap();
        assert!(Arc::ptr_eq(&of(1), &of(1)));
        assert!(!Arc::ptr_eq(&of(1), &of(2)));
        assert_eq!((of(1).learnt().len(), of(1).fresh().len()), (40, 30));
        assert_eq!(of(1).trace.transactions.len(), 40 + 9 + 30);
    }

    #[test]
    fn a_length_is_enough_if_the_whole_suggestion_is_the_manual_scheme() {
        let figure = figures::all().find(|figure| figure.name == "turcu-8.4");
        let figure = figure.expect("there is one");
        let mut setting = Setting::of(figure, "granola", 3.0);
        setting.put("keys", 30.0);
        let workload = planned("tpcc-procedures").unwrap();
        let most = LENGTHS[LENGTHS.len() - 1];
        let mut trace = record(workload, &setting, most + chosen_by(most), 1).unwrap();
        let terms = Terms::default();
        let enough_of = |trace: &AccessTrace| enough(trace, &workload.manual(), &terms).unwrap();
        assert!(enough_of(&trace) <= 400);
        // Of rows that are all written, none is left that can be everywhere.
        let rows = trace.transactions.iter_mut().flat_map(|it| &mut it.accesses);
        rows.for_each(|row| row.writes = true);
        assert_eq!(enough_of(&trace), 2 * most);
    }
}
