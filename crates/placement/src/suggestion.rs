//! A suggestion: which columns, which units where, and what it is worth.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::scheme::{ByHash, PlacementShares, Scheme, SearchTerms, TablePlacement, search, shares};
use crate::trace::AccessTrace;
use crate::units::child::{Child, ChildError};
use crate::units::{RefinementTerms, UnitGraph, UnitPlacement, first_placement, refine};

/// What a suggestion goes by.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Of the search of columns.
    pub search: SearchTerms,
    /// Of refinement.
    pub refinement: RefinementTerms,
    /// What makes first placements, if anything.
    pub child: Option<Child>,
    /// Columns that are given, in place of a search.
    pub scheme: Option<Scheme>,
}

/// A share on what was learnt from, and on fresh transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BothShares {
    /// On the transactions that it was learnt from.
    pub in_sample: PlacementShares,
    /// On those that nothing was learnt from or chosen by.
    pub fresh: PlacementShares,
}

/// What is suggested.
#[derive(Clone, Debug, Serialize)]
pub struct Suggestion {
    /// By what each table is placed.
    pub tables: BTreeMap<String, String>,
    /// The tables that are everywhere.
    pub everywhere: Vec<String>,
    /// How many schemes were tried.
    pub tried: usize,
    /// Units that are placed one by one.
    pub units: usize,
    /// Who made the first placement: `metis`, `largest-first`, or nobody.
    pub first_by: &'static str,
    /// The suggestion's shares.
    pub suggested: BothShares,
    /// Those of the same columns, with units by a hash.
    pub by_hash: BothShares,
    /// Whether placing units was worth it on transactions that it was not learnt from; if not, a
    /// hash is suggested.
    pub places_units: bool,
    /// The scheme.
    #[serde(skip)]
    pub scheme: Scheme,
    /// The placement.
    #[serde(skip)]
    pub placement: UnitPlacement,
}

/// Placing units must save so many of 100 transactions from being distributed, or so much of the
/// busiest partition's load.
const WORTH: f64 = 0.25;

/// Suggests a placement for a trace.
///
/// # Errors
/// The child process failed.
pub fn suggest(trace: &AccessTrace, terms: &Terms) -> Result<Suggestion, ChildError> {
    let cut = trace.cut();
    let (scheme, tried) = match &terms.scheme {
        Some(scheme) => (scheme.clone(), 0),
        None => search(trace, cut.learn, terms.search),
    };
    let partitions = terms.refinement.partitions;
    let graph = UnitGraph::new(trace, cut.learn, &scheme);
    let first = first_placement(&graph, partitions, terms.child.as_ref())?;
    let refined = refine(&graph, &first.labels, &terms.refinement);
    let named = graph.units.iter().copied().zip(refined.labels).collect();
    let placement = UnitPlacement { partitions, units: named };
    let by_hash = ByHash(partitions);
    let chosen = shares(trace, cut.choose, &scheme, &placement);
    let hashed = shares(trace, cut.choose, &scheme, &by_hash);
    let saves = hashed.distributed - chosen.distributed > WORTH;
    let balances =
        hashed.load - chosen.load > WORTH && chosen.distributed <= hashed.distributed + 1.0;
    // Of few units all were seen; what a hash saves by having them together, it pays in load.
    let places_units = saves || balances || hashed.load - chosen.load > 1.0;
    let suggested = BothShares {
        in_sample: shares(trace, cut.learn, &scheme, &placement),
        fresh: shares(trace, cut.report, &scheme, &placement),
    };
    let by_hash = BothShares {
        in_sample: shares(trace, cut.learn, &scheme, &by_hash),
        fresh: shares(trace, cut.report, &scheme, &by_hash),
    };
    let is_everywhere =
        |(number, _): &(usize, _)| scheme.tables[*number] == TablePlacement::Everywhere;
    let everywhere = trace.tables.iter().enumerate().filter(is_everywhere);
    Ok(Suggestion {
        tables: scheme.described(trace),
        everywhere: everywhere.map(|(_, table)| table.name.clone()).collect(),
        tried,
        units: graph.units.len(),
        first_by: if first.by_metis { "metis" } else { "largest-first" },
        suggested,
        by_hash,
        places_units,
        placement: match places_units {
            true => placement,
            false => UnitPlacement { partitions, units: BTreeMap::new() },
        },
        scheme,
    })
}
