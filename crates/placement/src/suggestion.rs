//! A suggestion: which columns, which units where, and what it is worth.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::scheme::{
    ByHash, PlacedUnit, PlacementShares, RowPlaces, Scheme, SearchTerms, TablePlacement, search,
    shares,
};
use crate::trace::{AccessTrace, TRANSACTIONS_MIN, TraceError, TracedTransaction};
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
}

/// Why nothing is suggested.
#[derive(Debug, Error)]
pub enum SuggestionError {
    /// The trace does not fit together, or is too large.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace is too short.
    #[error(
        "the trace has {0} transactions, and something is suggested for {TRANSACTIONS_MIN} or \
         more: some are learnt from, some chosen by, and some judged"
    )]
    Short(usize),
    /// The process that places units failed.
    #[error(transparent)]
    Child(#[from] ChildError),
}

/// Where rows are to be: by which columns, and which units in which partitions.
#[derive(Clone, Debug)]
pub struct ProposedPlacement {
    /// By what each table is placed.
    pub scheme: Scheme,
    /// Where units are; where a hash does as well, no unit is named.
    pub placement: UnitPlacement,
    /// Whether units are named.
    pub places_units: bool,
    /// How many units were seen.
    pub units: usize,
    /// How many schemes were counted.
    pub tried: usize,
    /// Whether METIS made the first placement.
    pub by_metis: bool,
}

impl RowPlaces for ProposedPlacement {
    fn partition(&self, unit: PlacedUnit) -> u32 {
        self.placement.partition(unit)
    }

    fn partitions(&self) -> u32 {
        self.placement.partitions()
    }
}

impl ProposedPlacement {
    /// What it is worth on these transactions.
    pub fn shares(
        &self,
        trace: &AccessTrace,
        transactions: &[TracedTransaction],
    ) -> PlacementShares {
        shares(trace, transactions, &self.scheme, self)
    }

    /// What its columns are worth with units by a hash.
    pub fn shares_by_hash(
        &self,
        trace: &AccessTrace,
        transactions: &[TracedTransaction],
    ) -> PlacementShares {
        shares(trace, transactions, &self.scheme, &ByHash(self.placement.partitions))
    }
}

/// Placing units must save so many of 100 transactions from being distributed, or so much of the
/// busiest partition's load.
const WORTH: f64 = 0.25;
/// More load of the busiest partition over the mean is worth avoiding, even where that costs
/// distributed transactions: it bounds what all partitions do.
const OVERLOAD: f64 = 1.2;

/// Where rows are to be, learnt from some transactions and chosen by others.
///
/// The search judges columns by units that a hash deals, and so prefers copies of tables that are
/// seldom written to units that only a placement brings to one partition. So it is made a second
/// time, where only tables that are never written may be everywhere; what is better once units are
/// placed is taken.
///
/// # Errors
/// The child process failed.
pub fn propose(
    trace: &AccessTrace,
    learn: &[TracedTransaction],
    choose: &[TracedTransaction],
    terms: &Terms,
) -> Result<ProposedPlacement, ChildError> {
    let (schemes, tried) = schemes(trace, learn, terms);
    let mut best: Option<(f64, ProposedPlacement)> = None;
    for scheme in schemes {
        let proposed = placed(trace, (learn, choose), scheme, terms)?;
        let shares = proposed.shares(trace, choose);
        let cost = shares.distributed + shares.crossing + shares.misrouted;
        if best.as_ref().is_none_or(|(least, _)| cost < least - WORTH) {
            best = Some((cost, proposed));
        }
    }
    let (_, proposed) = best.expect("there is one scheme at least");
    Ok(ProposedPlacement { tried, ..proposed })
}

/// The schemes that are placed and compared, and how many were counted to find them.
fn schemes(
    trace: &AccessTrace,
    learn: &[TracedTransaction],
    terms: &Terms,
) -> (Vec<Scheme>, usize) {
    let (seldom, tried) = search(trace, learn, terms.search);
    let (never, more) = search(trace, learn, SearchTerms { written_most: 0.0, ..terms.search });
    let both = if seldom == never { vec![seldom] } else { vec![seldom, never] };
    (both, tried + more)
}

/// The units of a scheme, placed.
fn placed(
    trace: &AccessTrace,
    (learn, choose): (&[TracedTransaction], &[TracedTransaction]),
    scheme: Scheme,
    terms: &Terms,
) -> Result<ProposedPlacement, ChildError> {
    let partitions = terms.refinement.partitions;
    let graph = UnitGraph::new(trace, learn, &scheme);
    let first = first_placement(&graph, partitions, terms.child.as_ref())?;
    let refined = refine(&graph, &first.labels, &terms.refinement);
    let units = graph.units.iter().copied().zip(refined.labels).collect();
    let mut proposed = ProposedPlacement {
        scheme,
        placement: UnitPlacement { partitions, units },
        places_units: true,
        units: graph.units.len(),
        tried: 0,
        by_metis: first.by_metis,
    };
    let chosen = proposed.shares(trace, choose);
    if !is_worth_it(&chosen, &proposed.shares_by_hash(trace, choose)) {
        proposed.places_units = false;
        proposed.placement.units.clear();
    }
    Ok(proposed)
}

/// Whether units that are placed are better than a hash of them.
fn is_worth_it(placed: &PlacementShares, hashed: &PlacementShares) -> bool {
    let saves = hashed.distributed - placed.distributed > WORTH;
    let keeps = placed.distributed <= hashed.distributed + 1.0;
    // A hash of few units saves by having them in one place, and pays for that in load.
    let balances = hashed.load - placed.load > WORTH && (keeps || hashed.load > OVERLOAD);
    saves || balances
}

/// A share on what was learnt from, and on fresh transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BothShares {
    /// On the transactions that it was learnt from.
    pub in_sample: PlacementShares,
    /// On those that nothing was learnt from or chosen by.
    pub fresh: PlacementShares,
}

impl BothShares {
    /// Shares of both parts of a trace.
    pub fn of(
        trace: &AccessTrace,
        shares: impl Fn(&[TracedTransaction]) -> PlacementShares,
    ) -> BothShares {
        let cut = trace.cut();
        BothShares { in_sample: shares(cut.learn), fresh: shares(cut.report) }
    }
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
    /// Units that were seen.
    pub units: usize,
    /// Who made the first placement: `metis`, or `largest-first`.
    pub first_by: &'static str,
    /// The suggestion's shares: of units as they are placed, or by a hash, as `places_units` says.
    pub suggested: BothShares,
    /// Those of the same columns, with units by a hash.
    pub by_hash: BothShares,
    /// Whether placing units was worth it on transactions that it was not learnt from; if not, a
    /// hash is suggested.
    pub places_units: bool,
    /// All of it.
    #[serde(skip)]
    pub proposed: ProposedPlacement,
}

/// Suggests a placement for a trace.
///
/// # Errors
/// The trace is too short, too large or does not fit together; or the child process failed.
pub fn suggest(trace: &AccessTrace, terms: &Terms) -> Result<Suggestion, SuggestionError> {
    trace.check()?;
    let count = trace.transactions.len();
    if count < TRANSACTIONS_MIN {
        return Err(SuggestionError::Short(count));
    }
    let cut = trace.cut();
    let proposed = propose(trace, cut.learn, cut.choose, terms)?;
    let is_everywhere =
        |(number, _): &(usize, _)| proposed.scheme.tables[*number] == TablePlacement::Everywhere;
    let everywhere = trace.tables.iter().enumerate().filter(is_everywhere);
    Ok(Suggestion {
        tables: proposed.scheme.described(trace),
        everywhere: everywhere.map(|(_, table)| table.name.clone()).collect(),
        tried: proposed.tried,
        units: proposed.units,
        first_by: if proposed.by_metis { "metis" } else { "largest-first" },
        suggested: BothShares::of(trace, |of| proposed.shares(trace, of)),
        by_hash: BothShares::of(trace, |of| proposed.shares_by_hash(trace, of)),
        places_units: proposed.places_units,
        proposed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{TracedAccess, TracedTable};

    /// Transfers between users, who are drawn by a function.
    fn transfers(count: u64, pair: fn(u64) -> [u64; 2]) -> AccessTrace {
        let touched = |user: u64| TracedAccess {
            table: 0,
            writes: true,
            key: vec![user],
            by_arguments: 1,
            needs: Vec::new(),
        };
        let transfer = |number| TracedTransaction {
            procedure: 0,
            accesses: pair(number).map(touched).to_vec(),
        };
        AccessTrace {
            domains: vec!["user".to_owned()],
            tables: vec![TracedTable {
                name: "account".to_owned(),
                columns: vec![0],
                named: 1,
                row_bytes: 0,
            }],
            procedures: vec!["transfer".to_owned()],
            transactions: (0..count).map(transfer).collect(),
        }
    }

    #[test]
    fn the_shares_are_those_of_what_is_suggested() {
        // Friends are placed with each other; of strangers nothing can be learnt.
        let friends = transfers(4_000, |number| [number * 7 % 200, number * 7 % 200 + 1_000]);
        let strangers = transfers(4_000, |number| [number * number * 31, number * number * 17 + 5]);
        for (trace, is_placed) in [(friends, true), (strangers, false)] {
            let suggestion = suggest(&trace, &Terms::default()).unwrap();
            assert_eq!(suggestion.places_units, is_placed, "{suggestion:?}");
            let (proposed, cut) = (&suggestion.proposed, trace.cut());
            assert_eq!(proposed.placement.units.is_empty(), !is_placed);
            let fresh = shares(&trace, cut.report, &proposed.scheme, &proposed.placement);
            assert_eq!(suggestion.suggested.fresh, fresh);
            match is_placed {
                true => assert!(fresh.distributed < 20.0 && fresh.load < 1.3, "{fresh:?}"),
                false => assert_eq!(suggestion.suggested, suggestion.by_hash),
            }
        }
    }

    #[test]
    fn copies_are_not_taken_where_placing_units_saves_more() {
        let table = |name: &str, columns: &[u16]| TracedTable {
            name: name.to_owned(),
            columns: columns.to_vec(),
            named: columns.len() as u16,
            row_bytes: 0,
        };
        let access = |table, key: u64, writes| TracedAccess {
            table,
            writes,
            key: vec![key],
            by_arguments: 1,
            needs: Vec::new(),
        };
        // A user reads what a friend says, and one of twenty-five writes something: copies make
        // that 4 of 100 distributed ones, and friends in one partition none.
        let transaction = |number: u64| {
            let (one, friend) = (number * 7 % 200, number * 7 % 200 + 1_000);
            let read = access(1, friend, number.is_multiple_of(25));
            TracedTransaction { procedure: 0, accesses: vec![access(0, one, true), read] }
        };
        let trace = AccessTrace {
            domains: vec!["user".to_owned()],
            tables: vec![table("user", &[0]), table("text", &[0])],
            procedures: vec!["read".to_owned()],
            transactions: (0..4_000).map(transaction).collect(),
        };
        let (by_hash, _) = search(&trace, trace.cut().learn, SearchTerms::default());
        assert_eq!(by_hash.tables[1], TablePlacement::Everywhere, "copies are better by a hash");
        let suggestion = suggest(&trace, &Terms::default()).unwrap();
        assert!(suggestion.everywhere.is_empty(), "{suggestion:?}");
        assert!(suggestion.suggested.fresh.distributed < 2.0, "{suggestion:?}");
    }

    #[test]
    fn few_units_are_placed_where_a_hash_loads_a_partition_too_much() {
        let shares =
            |distributed, load| PlacementShares { distributed, load, ..PlacementShares::default() };
        // Three warehouses, two of which a hash has in one partition.
        assert!(is_worth_it(&shares(10.5, 1.07), &shares(7.0, 1.94)));
        assert!(is_worth_it(&shares(5.0, 1.2), &shares(9.0, 1.1)));
        assert!(is_worth_it(&shares(9.5, 1.05), &shares(9.0, 1.35)));
        // What follows from no pattern costs, and a hash is even enough.
        assert!(!is_worth_it(&shares(27.0, 1.02), &shares(25.0, 1.1)));
        assert!(!is_worth_it(&shares(9.0, 1.1), &shares(9.1, 1.1)));
    }

    #[test]
    fn for_too_few_transactions_or_a_broken_trace_nothing_is_suggested() {
        let short = suggest(&transfers(9, |number| [number, 0]), &Terms::default());
        assert!(matches!(short, Err(SuggestionError::Short(9))), "{short:?}");
        let mut broken = transfers(20, |number| [number, 0]);
        broken.transactions[3].accesses[0].table = 1;
        let broken = suggest(&broken, &Terms::default());
        assert!(matches!(broken, Err(SuggestionError::Trace(_))), "{broken:?}");
    }
}
