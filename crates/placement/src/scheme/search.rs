//! The search of the columns: coordinate descent, one table after the other.
//!
//! The cost of a scheme is the share of distributed transactions, of those in which a value
//! crosses, and of those that cannot be routed by their arguments, with a little for how many
//! partitions they span, for skew, and for copies, over units that are dealt by a hash. The little
//! matters: while most tables are placed apart, moving one table saves no transaction from being
//! distributed, but it makes some narrower. As one table at a time can be stuck where all are by a
//! wrong column, it begins once from each domain, with all tables that have it placed by it.
//!
//! Descents from different beginnings meet, so no scheme is counted twice. Where a row is by each
//! column of its key is worked out once for all schemes.

use std::collections::HashMap;

use super::shares::{AccessPlace, ByHash, RowPlaces, ShareCounter};
use super::{PlacedUnit, Scheme, TablePlacement};
use crate::trace::{AccessTrace, TracedTable, TracedTransaction};

/// What the search goes by.
#[derive(Clone, Copy, Debug)]
pub struct SearchTerms {
    /// Partitions that units are dealt to meanwhile.
    pub partitions: u32,
    /// A table may be everywhere if at most this share of its accesses writes, of 1.
    pub written_most: f64,
    /// Of so many transactions at most, the first ones; more add nothing.
    pub transactions_most: usize,
    /// Of so many rows that they touch at most, with what each of these needs: the transactions
    /// behind are left out.
    pub accesses_most: usize,
    /// So many schemes are counted at most; the best of these is taken.
    pub schemes_most: usize,
}

impl Default for SearchTerms {
    fn default() -> SearchTerms {
        SearchTerms {
            partitions: 16,
            written_most: 0.05,
            transactions_most: 4_000,
            accesses_most: 400_000,
            schemes_most: 20_000,
        }
    }
}

/// The best scheme that is found for transactions of a trace, and how many were counted.
pub fn search(
    trace: &AccessTrace,
    transactions: &[TracedTransaction],
    terms: SearchTerms,
) -> (Scheme, usize) {
    let transactions = within(transactions, terms);
    let candidates = candidates(trace, transactions, terms);
    let mut costs = SchemeCosts::new(trace, transactions, terms);
    let mut best: Option<(f64, Scheme)> = None;
    for start in starts(trace, &candidates) {
        let (cost, scheme) = costs.descend(start, &candidates);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, scheme));
        }
        if costs.is_spent() {
            break;
        }
    }
    let scheme = best.map_or_else(|| Scheme { tables: Vec::new() }, |(_, scheme)| scheme);
    (scheme, costs.known.len())
}

/// The transactions that are looked at.
fn within(transactions: &[TracedTransaction], terms: SearchTerms) -> &[TracedTransaction] {
    let (mut count, mut accesses) = (0, 0);
    for transaction in transactions.iter().take(terms.transactions_most) {
        let needs = transaction.accesses.iter().map(|access| access.needs.len()).sum::<usize>();
        accesses += transaction.accesses.len() + needs;
        if accesses > terms.accesses_most {
            break;
        }
        count += 1;
    }
    &transactions[..count]
}

/// How bad schemes are, each of which is counted once.
struct SchemeCosts<'a> {
    transactions: &'a [TracedTransaction],
    terms: SearchTerms,
    /// The partition of each access by each column of its key, one behind the other.
    partitions: Vec<u32>,
    /// By the columns of the tables, one after the other.
    known: HashMap<Vec<u8>, f64>,
}

/// A scheme in a byte for each table: a key has fewer columns than bytes have values.
fn compact(scheme: &Scheme) -> Vec<u8> {
    let byte = |placement: &TablePlacement| match placement {
        TablePlacement::Everywhere => u8::MAX,
        TablePlacement::Column(column) => *column as u8,
    };
    scheme.tables.iter().map(byte).collect()
}

impl<'a> SchemeCosts<'a> {
    fn new(trace: &AccessTrace, transactions: &'a [TracedTransaction], terms: SearchTerms) -> Self {
        let (dealt, mut partitions) = (ByHash(terms.partitions), Vec::new());
        for access in transactions.iter().flat_map(|transaction| &transaction.accesses) {
            let columns = &trace.tables[usize::from(access.table)].columns;
            let units = columns.iter().zip(&access.key);
            let unit =
                |(domain, value): (&u16, &u64)| PlacedUnit { domain: *domain, value: *value };
            partitions.extend(units.map(|it| dealt.partition(unit(it))));
        }
        SchemeCosts { transactions, terms, partitions, known: HashMap::new() }
    }

    /// The cost of a scheme; of one that is too many, more than that of any other.
    fn of(&mut self, scheme: &Scheme) -> f64 {
        let key = compact(scheme);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.is_spent() {
            return f64::INFINITY;
        }
        let cost = self.count(scheme);
        self.known.insert(key, cost);
        cost
    }

    /// Whether as many schemes have been counted as may be.
    fn is_spent(&self) -> bool {
        self.known.len() >= self.terms.schemes_most.max(1)
    }

    /// Where changes of one table at a time lead to, as long as each is better.
    fn descend(&mut self, start: Scheme, candidates: &[Vec<TablePlacement>]) -> (f64, Scheme) {
        let (mut now, mut scheme) = (self.of(&start), start);
        loop {
            let before = now;
            for (table, placements) in candidates.iter().enumerate() {
                for placement in placements {
                    let is = std::mem::replace(&mut scheme.tables[table], *placement);
                    let found = self.of(&scheme);
                    match found < now {
                        true => now = found,
                        false => scheme.tables[table] = is,
                    }
                }
            }
            if now >= before || self.is_spent() {
                return (now, scheme);
            }
        }
    }

    fn count(&self, scheme: &Scheme) -> f64 {
        let mut counter = ShareCounter::new(self.terms.partitions);
        let (mut places, mut first) = (Vec::new(), 0);
        for transaction in self.transactions {
            places.clear();
            for access in &transaction.accesses {
                let placement = scheme.tables[usize::from(access.table)];
                let at = match placement {
                    TablePlacement::Everywhere => None,
                    TablePlacement::Column(column) => Some(self.partitions[first + column]),
                };
                places.push(AccessPlace::of(access, placement, at));
                first += access.key.len();
            }
            counter.add(transaction, &places);
        }
        let shares = counter.shares();
        let is_copied = |it: &&TablePlacement| **it == TablePlacement::Everywhere;
        let copies = scheme.tables.iter().filter(is_copied).count();
        let skew = (shares.load - 1.0).max(0.0);
        let main = shares.distributed + shares.crossing + shares.misrouted;
        main + shares.width + 0.01 * skew + 0.001 * copies as f64
    }
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
    let of_table = |(table, (all, written)): (&TracedTable, &(u64, u64))| {
        let columns = (0..usize::from(table.named)).map(TablePlacement::Column);
        let seldom = *written as f64 <= terms.written_most * *all as f64;
        columns.chain(seldom.then_some(TablePlacement::Everywhere)).collect()
    };
    trace.tables.iter().zip(&counts).map(of_table).collect()
}

/// Where the search begins: from each domain.
fn starts(trace: &AccessTrace, candidates: &[Vec<TablePlacement>]) -> Vec<Scheme> {
    let by = |domain: u16| {
        let placed_by = |(table, placements): (&TracedTable, &Vec<TablePlacement>)| {
            let mut named = table.columns.iter().take(table.named.into());
            let column = named.position(|it| *it == domain);
            column.map_or(*placements.last().expect("a column at least"), TablePlacement::Column)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::shares;
    use crate::trace::TracedAccess;

    fn access(table: u16, key: &[u64], writes: bool) -> TracedAccess {
        TracedAccess { table, writes, key: key.to_vec(), by_arguments: 0b11, needs: Vec::new() }
    }

    /// Two tables by user, one of which has the user in its second column, and one that all read.
    fn trace() -> AccessTrace {
        let table = |name: &str, columns: &[u16]| TracedTable {
            name: name.to_owned(),
            columns: columns.to_vec(),
            named: columns.len() as u16,
            row_bytes: 0,
        };
        let transaction = |number: u64| TracedTransaction {
            procedure: 0,
            accesses: vec![
                access(0, &[number % 40], true),
                access(1, &[number, number % 40], true),
                access(2, &[number % 7], false),
            ],
        };
        AccessTrace {
            domains: ["user", "order", "item"].map(str::to_owned).to_vec(),
            tables: vec![table("user", &[0]), table("order", &[1, 0]), table("item", &[2])],
            procedures: vec!["buy".to_owned()],
            transactions: (0..200).map(transaction).collect(),
        }
    }

    #[test]
    fn tables_come_to_the_unit_that_they_are_used_by() {
        use TablePlacement::{Column, Everywhere};
        let trace = trace();
        let (scheme, counted) = search(&trace, &trace.transactions, SearchTerms::default());
        assert_eq!(scheme.tables, [Column(0), Column(1), Everywhere]);
        // There are four schemes of these candidates, and none is counted twice.
        assert!(counted <= 4, "{counted}");
    }

    #[test]
    fn a_scheme_costs_what_its_shares_say() {
        use TablePlacement::Column;
        let (trace, terms) = (trace(), SearchTerms::default());
        let scheme = Scheme { tables: vec![Column(0), Column(0), Column(0)] };
        let mut costs = SchemeCosts::new(&trace, &trace.transactions, terms);
        let found = shares(&trace, &trace.transactions, &scheme, &ByHash(terms.partitions));
        assert!(found.distributed > 90.0 && found.misrouted == 0.0, "{found:?}");
        let expected = found.distributed + found.width + 0.01 * (found.load - 1.0);
        assert!((costs.of(&scheme) - expected).abs() < 1e-9);
    }

    #[test]
    fn what_the_arguments_do_not_name_is_misrouted() {
        use TablePlacement::{Column, Everywhere};
        let mut trace = trace();
        for transaction in &mut trace.transactions {
            transaction.accesses[1].by_arguments = 0b01;
        }
        let of = |order: usize| {
            let scheme = Scheme { tables: vec![Column(0), Column(order), Everywhere] };
            shares(&trace, &trace.transactions, &scheme, &ByHash(16)).misrouted
        };
        // The user of an order is where the arguments send the call to anyway.
        assert_eq!((of(0), of(1)), (0.0, 0.0));
        trace.transactions.iter_mut().for_each(|it| it.accesses[0].by_arguments = 0);
        let scheme = Scheme { tables: vec![Column(0), Column(1), Everywhere] };
        assert_eq!(shares(&trace, &trace.transactions, &scheme, &ByHash(16)).misrouted, 100.0);
    }

    #[test]
    fn a_search_ends_after_so_many_schemes_and_rows() {
        let trace = trace();
        let few = SearchTerms { schemes_most: 2, ..SearchTerms::default() };
        assert_eq!(search(&trace, &trace.transactions, few).1, 2);
        let terms = SearchTerms { accesses_most: 10, ..SearchTerms::default() };
        assert_eq!(within(&trace.transactions, terms).len(), 3);
        // What rows need is looked at in each scheme, too.
        let mut trace = trace;
        trace.transactions[0].accesses[2].needs = vec![0, 1];
        assert_eq!(within(&trace.transactions, terms).len(), 2);
    }
}
