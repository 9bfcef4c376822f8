//! The dissertation's own method, as far as it goes by a trace: rows and METIS, as a baseline.
//!
//! A row is a node, and a transaction an edge between each two of its rows: a light one, or a heavy
//! one where one of them needs what the other has. METIS cuts the graph, and a table says of each
//! row where it is; a row that was not seen is where a hash says. What the dissertation does
//! besides is not here: copies of rows, classifiers that explain the table and route calls, and
//! edges for what decides on an abort, of which a trace says nothing. So of fresh transactions,
//! which insert rows, this shows what a table of rows comes to without them.
//!
//! Source: Turcu, sections 7.3 to 7.5.

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::scheme::{AccessPlace, PlacementShares, ShareCounter};
use crate::trace::{AccessTrace, TracedAccess, TracedTransaction};
use crate::units::child::{Child, ChildError, PairGraph};

/// The weight of an edge between rows of a transaction, and of one between a row and what it needs.
const LIGHT: u32 = 10;
const HEAVY: u32 = 10_000;
/// So many rows of a transaction are joined to each other: of longer ones the first, as
/// transactions that read much would be most of the graph.
const JOINED_MOST: usize = 100;
/// The most pairs of rows that are joined: a graph of more would take gigabytes.
pub const PAIRS_MAX: usize = 8_000_000;
/// What METIS is allowed beyond the mean, in thousandths: its default.
const TOLERANCE: u32 = 30;

/// Why rows are not placed.
#[derive(Debug, Error)]
pub enum RowTableError {
    /// There are too many pairs.
    #[error(
        "the transactions learnt from join more than {0} pairs of rows, the most that are placed \
         one by one: trace fewer transactions, or place by columns"
    )]
    Pairs(usize),
    /// METIS failed.
    #[error(transparent)]
    Child(#[from] ChildError),
}

/// Where each row is that was seen.
#[derive(Clone, Debug, Default)]
pub struct RowTable {
    partitions: u32,
    rows: HashMap<(u16, Vec<u64>), u32>,
}

/// A row by its table and key.
fn row(access: &TracedAccess) -> (u16, Vec<u64>) {
    (access.table, access.key.clone())
}

impl RowTable {
    /// Has METIS place the rows of transactions into so many partitions.
    ///
    /// # Errors
    /// Too many pairs of rows are joined; or the child process failed, or took too long.
    pub fn learn(
        trace: &AccessTrace,
        learn: &[TracedTransaction],
        partitions: u32,
        child: &Child,
    ) -> Result<RowTable, RowTableError> {
        let (numbers, graph) = graph_of((trace, learn), partitions, PAIRS_MAX)?;
        let labels = match partitions {
            1 => vec![0; numbers.len()],
            _ if numbers.is_empty() => Vec::new(),
            _ => child.cut(graph)?,
        };
        if labels.len() != numbers.len() {
            let text = format!("{} of {} rows", labels.len(), numbers.len());
            return Err(ChildError::Labels(text).into());
        }
        let rows = numbers.into_iter().map(|(row, number)| (row, labels[number as usize]));
        Ok(RowTable { partitions, rows: rows.collect() })
    }

    /// How many rows it knows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The partition of a row.
    fn partition(&self, access: &TracedAccess) -> u32 {
        let known = self.rows.get(&row(access)).copied();
        known.unwrap_or_else(|| {
            let bytes: Vec<u8> = access.key.iter().flat_map(|it| it.to_le_bytes()).collect();
            let hash = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, access.table.into());
            ((u128::from(hash) * u128::from(self.partitions)) >> 64) as u32
        })
    }

    /// What it is worth on these transactions. Nothing is routed by arguments here, so none counts
    /// as misrouted.
    pub fn shares(&self, transactions: &[TracedTransaction]) -> PlacementShares {
        let (mut counter, mut places) = (ShareCounter::new(self.partitions), Vec::new());
        for transaction in transactions {
            places.clear();
            let place = |access| AccessPlace { at: Some(self.partition(access)), is_routed: true };
            places.extend(transaction.accesses.iter().map(place));
            counter.add(transaction, &places);
        }
        counter.shares()
    }
}

/// The rows that were found, by number.
type NumberedRows = HashMap<(u16, Vec<u64>), u32>;

/// The rows that were found, and the graph of these, of so many pairs at most.
fn graph_of(
    (trace, learn): (&AccessTrace, &[TracedTransaction]),
    partitions: u32,
    pairs_most: usize,
) -> Result<(NumberedRows, PairGraph), RowTableError> {
    let mut graph = PairGraph { partitions, tolerance: TOLERANCE, ..PairGraph::default() };
    let (mut numbers, mut pairs) = (NumberedRows::new(), BTreeMap::<(u32, u32), u64>::new());
    for transaction in learn {
        let mut of_access: Vec<Option<u32>> = Vec::with_capacity(transaction.accesses.len());
        for access in &transaction.accesses {
            let table = &trace.tables[usize::from(access.table)];
            // Of an empty range there is no row.
            let is_row = access.key.len() == table.columns.len();
            of_access.push(is_row.then(|| {
                let next = numbers.len() as u32;
                let number = *numbers.entry(row(access)).or_insert(next);
                if number == next {
                    graph.weights.push(0);
                }
                graph.weights[number as usize] += 1;
                number
            }));
        }
        let mut all: Vec<u32> = of_access.iter().copied().flatten().collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(JOINED_MOST);
        for (place, one) in all.iter().enumerate() {
            for other in &all[place + 1..] {
                *pairs.entry((*one, *other)).or_default() += u64::from(LIGHT);
            }
        }
        for (access, number) in transaction.accesses.iter().zip(&of_access) {
            for needed in access.needs.iter().filter_map(|need| of_access[usize::from(*need)]) {
                if let Some(number) = number.filter(|number| *number != needed) {
                    let pair = (number.min(needed), number.max(needed));
                    *pairs.entry(pair).or_default() += u64::from(HEAVY);
                }
            }
        }
        if pairs.len() > pairs_most {
            return Err(RowTableError::Pairs(pairs_most));
        }
    }
    graph.pairs = pairs.into_iter().map(|((one, other), weight)| (one, other, weight)).collect();
    Ok((numbers, graph))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TracedTable;

    fn trace() -> AccessTrace {
        let access = |table, key: u64, needs: &[u16]| TracedAccess {
            table,
            writes: true,
            key: vec![key],
            by_arguments: 1,
            needs: needs.to_vec(),
        };
        let order = |shop: u64| TracedTransaction {
            procedure: 0,
            accesses: vec![access(0, shop, &[]), access(1, shop + 100, &[0]), access(1, shop, &[])],
        };
        let table = |name: &str| TracedTable {
            name: name.to_owned(),
            columns: vec![0],
            named: 1,
            row_bytes: 0,
        };
        AccessTrace {
            domains: vec!["shop".to_owned()],
            tables: vec![table("shop"), table("stock")],
            procedures: vec!["order".to_owned()],
            transactions: (0..40).map(|number| order(number % 4)).collect(),
        }
    }

    #[test]
    fn rows_are_joined_by_transactions_and_more_by_what_they_need() {
        let trace = trace();
        let (numbers, graph) = graph_of((&trace, &trace.transactions), 2, 12).unwrap();
        assert_eq!((numbers.len(), graph.weights.len(), graph.pairs.len()), (12, 12, 12));
        assert!(graph.weights.iter().all(|weight| *weight == 10));
        let weight = |one: (u16, u64), other: (u16, u64)| {
            let of = |row: (u16, u64)| numbers[&(row.0, vec![row.1])];
            let pair = (of(one).min(of(other)), of(one).max(of(other)));
            graph.pairs.iter().find(|it| (it.0, it.1) == pair).map_or(0, |it| it.2)
        };
        assert_eq!(weight((0, 1), (1, 101)), 10 * u64::from(LIGHT + HEAVY));
        assert_eq!(weight((0, 1), (1, 1)), 10 * u64::from(LIGHT));
        assert_eq!(weight((0, 1), (1, 2)), 0);
        let large = graph_of((&trace, &trace.transactions), 2, 11).unwrap_err().to_string();
        assert!(large.contains("more than 11 pairs"), "{large}");
    }

    #[test]
    fn a_row_is_where_the_table_says_or_else_a_hash() {
        let (trace, mut table) = (trace(), RowTable { partitions: 4, ..RowTable::default() });
        assert!(table.shares(&trace.transactions).distributed > 50.0);
        for transaction in &trace.transactions {
            for access in &transaction.accesses {
                table.rows.insert(row(access), (access.key[0] % 100) as u32);
            }
        }
        let shares = table.shares(&trace.transactions);
        assert_eq!((shares.distributed, shares.crossing, shares.load), (0.0, 0.0, 1.0));
    }
}
