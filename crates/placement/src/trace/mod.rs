//! What transactions did, as far as placement goes by it.

mod file;
mod limits;

pub use file::{TRACE_VERSION, TraceError, read_file};
pub use limits::{
    ACCESSES_MAX, ALL_COLUMNS_MAX, BYTES_MAX, COLUMNS_MAX, NAMES_MAX, TRANSACTIONS_MAX,
    TRANSACTIONS_MIN,
};

/// A table, as traces name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedTable {
    /// Its name, which no other table has.
    pub name: String,
    /// The columns of its key, in their order, each by the number of its domain: equal values of
    /// one domain are one thing, whatever table they are found in.
    pub columns: Vec<u16>,
    /// So many leading columns are named by all that touches it: scans name fewer than others. By
    /// another column it cannot be placed, as nobody knew then where a scan is.
    pub named: u16,
    /// How many bytes a row has, about.
    pub row_bytes: u32,
}

/// A row that a transaction touched, or a range in which it found none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedAccess {
    /// The table, by its number.
    pub table: u16,
    /// Whether it was written.
    pub writes: bool,
    /// The columns of the key; of others than numbers a hash. Of a range in which nothing was
    /// found there are only those that it was asked by: at least as many as its table has `named`.
    pub key: Vec<u64>,
    /// Which columns follow from the arguments of the call, a bit for each, the first the lowest:
    /// by those it is known before the call where the row is.
    pub by_arguments: u16,
    /// Which earlier accesses of the transaction found what this one needed, beside its key: each
    /// once, in their order.
    pub needs: Vec<u16>,
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedTransaction {
    /// The procedure, by its number.
    pub procedure: u16,
    /// What it touched, in its order.
    pub accesses: Vec<TracedAccess>,
}

/// A trace, in the order in which transactions ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessTrace {
    /// What values of keys are of.
    pub domains: Vec<String>,
    /// The tables.
    pub tables: Vec<TracedTable>,
    /// The procedures.
    pub procedures: Vec<String>,
    /// The transactions.
    pub transactions: Vec<TracedTransaction>,
}

/// A trace cut by time: to learn from, to choose by, and to report.
#[derive(Clone, Debug)]
pub struct CutTrace<'a> {
    /// The first ones.
    pub learn: &'a [TracedTransaction],
    /// Those after them.
    pub choose: &'a [TracedTransaction],
    /// The last ones, which nothing was learnt from or chosen by.
    pub report: &'a [TracedTransaction],
}

impl AccessTrace {
    /// Cut by time: 70, 15 and 15 of 100.
    pub fn cut(&self) -> CutTrace<'_> {
        let all = self.transactions.len();
        let (learn, rest) = self.transactions.split_at(all * 70 / 100);
        let (choose, report) = rest.split_at(rest.len() / 2);
        CutTrace { learn, choose, report }
    }

    /// How many rows all transactions touched, empty ranges included.
    pub fn accesses(&self) -> usize {
        self.transactions.iter().map(|transaction| transaction.accesses.len()).sum()
    }

    /// The number of the domain called so.
    pub fn domain(&self, name: &str) -> Option<u16> {
        self.domains.iter().position(|known| known == name).map(|at| at as u16)
    }
}
