//! Points of figures about placement: what is suggested from a trace, beside the scheme that the
//! workload's plans are written for. Nothing is distributed; a trace is recorded and looked at.

use anyhow::Context;
use muesli_placement::scheme::{ByHash, SearchTerms, search, shares};
use muesli_placement::trace::TracedTransaction;
use muesli_placement::units::{RefinementTerms, UnitGraph, UnitPlacement, first_placement, refine};
use muesli_placement::{AccessTrace, Scheme};
use muesli_workloads::planned::traces::{RoundRobin, TraceRequest, planned};

use crate::partition::placing_child;
use crate::reproduce::figure::{Figure, PlacedBy, Setting};
use crate::reproduce::point::{Point, Quantity};

/// So many transactions are judged that nothing was learnt from; fewer with `--quick`.
const FRESH: [usize; 2] = [6_000, 2_000];

/// Lengths of traces that are tried, to find the least one that is enough.
const LENGTHS: &[usize] = &[25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1_200];

/// Records a trace, and says what a line has at a value of the axis.
///
/// # Errors
/// The workload cannot be traced.
pub fn run(
    figure: &Figure,
    setting: &Setting,
    (quick, seed): (bool, u64),
    (line, x): (&'static str, f64),
) -> anyhow::Result<Point> {
    let workload = planned(figure.workload)?;
    let finds_length = figure.shows == Quantity::TraceLength;
    let learnt = if finds_length { LENGTHS[LENGTHS.len() - 1] } else { setting.placement.learnt };
    let fresh = if finds_length { 0 } else { FRESH[usize::from(quick)] };
    let transactions = (learnt + fresh) as u64;
    let recording = TraceRequest { parameters: setting.parameters.clone(), transactions, seed };
    let trace = workload.record(&recording).with_context(|| format!("{line} at {x}"))?;
    let (learnt, fresh) = trace.transactions.split_at(learnt.min(trace.transactions.len()));
    let (manual, mut point) = (workload.manual(), Point { line, x, ..Point::default() });
    if finds_length {
        point.trace_length = enough(&trace, learnt, &manual) as f64;
        return Ok(point);
    }
    let partitions = setting.number("warehouses").map_or(8, |count| count as u32);
    let found = match setting.placement.by {
        PlacedBy::Manual => shares(&trace, fresh, &manual, &RoundRobin(partitions)),
        PlacedBy::Hash => {
            let (scheme, _) = search(&trace, learnt, SearchTerms::default());
            shares(&trace, fresh, &scheme, &ByHash(partitions))
        }
        by => {
            let (scheme, placement) = suggested(&trace, learnt, partitions)?;
            let judged = if by == PlacedBy::Suggestion { fresh } else { learnt };
            shares(&trace, judged, &scheme, &placement)
        }
    };
    point.distributed = found.distributed;
    Ok(point)
}

/// The columns and the places of units that follow from transactions.
fn suggested(
    trace: &AccessTrace,
    learnt: &[TracedTransaction],
    partitions: u32,
) -> anyhow::Result<(Scheme, UnitPlacement)> {
    let (scheme, _) = search(trace, learnt, SearchTerms::default());
    let graph = UnitGraph::new(trace, learnt, &scheme);
    let first = first_placement(&graph, partitions, Some(&placing_child()?))?;
    let terms = RefinementTerms { partitions, ..RefinementTerms::default() };
    let refined = refine(&graph, &first.labels, &terms);
    let units = graph.units.iter().copied().zip(refined.labels).collect();
    Ok((scheme, UnitPlacement { partitions, units }))
}

/// The least length from which on all that are tried give exactly this scheme; the double of the
/// longest, where that one does not.
fn enough(trace: &AccessTrace, learnt: &[TracedTransaction], manual: &Scheme) -> usize {
    let mut least = 2 * LENGTHS[LENGTHS.len() - 1];
    for length in LENGTHS.iter().rev() {
        let (found, _) = search(trace, &learnt[..*length], SearchTerms::default());
        if found != *manual {
            break;
        }
        least = *length;
    }
    least
}
