//! The search of the columns: coordinate descent, one table after the other.
//!
//! The cost of a scheme is the share of distributed transactions, and of those in which a value
//! crosses, with a little for how many partitions they span, for skew, and for copies, over units
//! that are dealt by a hash. The little matters: while most tables are placed apart, moving one
//! table saves no transaction from being distributed, but it makes some narrower. As one table at a
//! time can be stuck where all are by a wrong column, it begins once from each domain, with all
//! tables that have it placed by it.

use super::shares::{ByHash, PlacementShares, shares};
use super::{Scheme, TablePlacement};
use crate::trace::{AccessTrace, TracedTransaction};

/// What the search goes by.
#[derive(Clone, Copy, Debug)]
pub struct SearchTerms {
    /// Partitions that units are dealt to meanwhile.
    pub partitions: u32,
    /// A table may be everywhere if at most this share of its accesses writes, of 1.
    pub written_most: f64,
    /// Of so many transactions at most; more add nothing.
    pub transactions_most: usize,
}

impl Default for SearchTerms {
    fn default() -> SearchTerms {
        SearchTerms { partitions: 16, written_most: 0.05, transactions_most: 4_000 }
    }
}

/// How bad a scheme is.
fn cost(shares: &PlacementShares, scheme: &Scheme) -> f64 {
    let copies =
        scheme.tables.iter().filter(|placement| **placement == TablePlacement::Everywhere).count();
    let skew = (shares.load - 1.0).max(0.0);
    shares.distributed + shares.crossing + shares.width + 0.01 * skew + 0.001 * copies as f64
}

/// The best scheme that is found for transactions of a trace, and how many were tried.
pub fn search(
    trace: &AccessTrace,
    transactions: &[TracedTransaction],
    terms: SearchTerms,
) -> (Scheme, usize) {
    let transactions = &transactions[..transactions.len().min(terms.transactions_most)];
    let candidates = candidates(trace, transactions, terms);
    let mut tried = 0;
    let mut value = |scheme: &Scheme| {
        tried += 1;
        cost(&shares(trace, transactions, scheme, &ByHash(terms.partitions)), scheme)
    };
    let mut best: Option<(f64, Scheme)> = None;
    for start in starts(trace, &candidates) {
        let (mut now, mut scheme) = (value(&start), start);
        loop {
            let before = now;
            for (table, placements) in candidates.iter().enumerate() {
                for placement in placements {
                    let mut other = scheme.clone();
                    other.tables[table] = *placement;
                    if other == scheme {
                        continue;
                    }
                    let found = value(&other);
                    if found < now {
                        (now, scheme) = (found, other);
                    }
                }
            }
            if now >= before {
                break;
            }
        }
        if best.as_ref().is_none_or(|(least, _)| now < *least) {
            best = Some((now, scheme));
        }
    }
    let scheme = best.map_or_else(|| Scheme { tables: Vec::new() }, |(_, scheme)| scheme);
    (scheme, tried)
}

/// What each table can be placed by.
fn candidates(
    trace: &AccessTrace,
    transactions: &[TracedTransaction],
    terms: SearchTerms,
) -> Vec<Vec<TablePlacement>> {
    let mut counts = vec![(0_u64, 0_u64); trace.tables.len()];
    for access in transactions.iter().flat_map(|it| &it.accesses) {
        let (all, written) = &mut counts[usize::from(access.table)];
        *all += 1;
        *written += u64::from(access.writes);
    }
    let of_table = |(table, (all, written)): (&crate::trace::TracedTable, &(u64, u64))| {
        let columns = (0..usize::from(table.named)).map(TablePlacement::Column);
        let seldom = *written as f64 <= terms.written_most * *all as f64;
        columns.chain(seldom.then_some(TablePlacement::Everywhere)).collect()
    };
    trace.tables.iter().zip(&counts).map(of_table).collect()
}

/// Where the search begins: from each domain.
fn starts(trace: &AccessTrace, candidates: &[Vec<TablePlacement>]) -> Vec<Scheme> {
    let by = |domain: u16| {
        let placed_by =
            |(table, placements): (&crate::trace::TracedTable, &Vec<TablePlacement>)| {
                let mut named = table.columns.iter().take(table.named.into());
                let column = named.position(|it| *it == domain);
                column
                    .map_or(*placements.last().expect("a column at least"), TablePlacement::Column)
            };
        Scheme { tables: trace.tables.iter().zip(candidates).map(placed_by).collect() }
    };
    let mut starts: Vec<Scheme> = Vec::new();
    for domain in 0..trace.domains.len() as u16 {
        let start = by(domain);
        if !starts.contains(&start) {
            starts.push(start);
        }
    }
    starts
}
