//! Trace files: a name and a version, what the numbers name, and the transactions.
//!
//! Whatever bytes a file has, reading takes memory in proportion to them, and what does not fit
//! together is an error that says where.

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::wire_struct;
use thiserror::Error;

use super::{AccessTrace, TracedAccess, TracedTable, TracedTransaction};

/// What a trace file begins with.
const MAGIC: [u8; 8] = *b"muetrace";
/// The version of the layout.
pub const TRACE_VERSION: u16 = 1;
/// The most columns of a key.
const COLUMNS_MAX: usize = 16;

/// Why a file is no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// It is something else.
    #[error("this is no trace of transactions: it does not begin with `muetrace`")]
    Magic,
    /// It is of another version.
    #[error("this trace is of version {0}, and version {TRACE_VERSION} is read here")]
    Version(u16),
    /// Its bytes end too early, or are damaged.
    #[error("the trace is damaged: {0}")]
    Bytes(#[from] WireError),
    /// A table's key cannot be so.
    #[error(
        "table `{0}` of the trace has no key columns, more than {COLUMNS_MAX}, one of a domain \
         that is not named, or accesses that name none of them or more"
    )]
    Table(String),
    /// A transaction names what there is not.
    #[error(
        "transaction {0} of the trace names a procedure or table that there is not, a key of \
         another number of columns than its table's, or needs an access that is not before it"
    )]
    Transaction(usize),
}

wire_struct!(TracedTable { name: String, columns: Vec<u16>, named: u16, row_bytes: u32 });
wire_struct!(TracedAccess { table: u16, writes: bool, key: Vec<u64>, needs: Vec<u16> });
wire_struct!(TracedTransaction { procedure: u16, accesses: Vec<TracedAccess> });

impl AccessTrace {
    /// As a file has it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        TRACE_VERSION.encode(&mut out);
        self.domains.encode(&mut out);
        self.tables.encode(&mut out);
        self.procedures.encode(&mut out);
        self.transactions.encode(&mut out);
        out
    }

    /// The trace that a file has.
    ///
    /// # Errors
    /// It has none.
    pub fn from_bytes(bytes: &[u8]) -> Result<AccessTrace, TraceError> {
        let Some(rest) = bytes.strip_prefix(&MAGIC[..]) else { return Err(TraceError::Magic) };
        let mut input = Reader::new(rest);
        let version = u16::decode(&mut input)?;
        if version != TRACE_VERSION {
            return Err(TraceError::Version(version));
        }
        let trace = AccessTrace {
            domains: Wire::decode(&mut input)?,
            tables: Wire::decode(&mut input)?,
            procedures: Wire::decode(&mut input)?,
            transactions: Wire::decode(&mut input)?,
        };
        input.finish()?;
        trace.check()?;
        Ok(trace)
    }

    /// Whether all numbers name something.
    fn check(&self) -> Result<(), TraceError> {
        for table in &self.tables {
            let known = |domain: &u16| usize::from(*domain) < self.domains.len();
            let count = table.columns.len();
            let fits = (1..=COLUMNS_MAX).contains(&count)
                && (1..=count).contains(&usize::from(table.named));
            if !fits || !table.columns.iter().all(known) {
                return Err(TraceError::Table(table.name.clone()));
            }
        }
        for (number, transaction) in self.transactions.iter().enumerate() {
            let known = usize::from(transaction.procedure) < self.procedures.len();
            let fits = |(place, access): (usize, &TracedAccess)| {
                let table = self.tables.get(usize::from(access.table));
                table.is_some_and(|table| table.columns.len() == access.key.len())
                    && access.needs.iter().all(|need| usize::from(*need) < place)
            };
            if !known || !transaction.accesses.iter().enumerate().all(fits) {
                return Err(TraceError::Transaction(number));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace() -> AccessTrace {
        let key = |writes, key: u64| TracedAccess {
            table: 0,
            writes,
            key: vec![key, 1],
            needs: Vec::new(),
        };
        let mut second = key(true, 8);
        second.needs = vec![0];
        AccessTrace {
            domains: vec!["warehouse".to_owned(), "item".to_owned()],
            tables: vec![TracedTable {
                name: "stock".to_owned(),
                columns: vec![0, 1],
                named: 2,
                row_bytes: 300,
            }],
            procedures: vec!["order".to_owned()],
            transactions: vec![TracedTransaction {
                procedure: 0,
                accesses: vec![key(false, 7), second],
            }],
        }
    }

    #[test]
    fn traces_come_back_from_files() {
        let trace = trace();
        assert_eq!(AccessTrace::from_bytes(&trace.to_bytes()), Ok(trace));
    }

    #[test]
    fn files_that_are_no_traces_are_told_apart() {
        let bytes = trace().to_bytes();
        assert_eq!(AccessTrace::from_bytes(b"else"), Err(TraceError::Magic));
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert_eq!(AccessTrace::from_bytes(&newer), Err(TraceError::Version(9)));
        let short = AccessTrace::from_bytes(&bytes[..bytes.len() - 1]);
        assert!(matches!(short, Err(TraceError::Bytes(_))), "{short:?}");
        let wrong = |change: fn(&mut AccessTrace)| {
            let mut trace = trace();
            change(&mut trace);
            AccessTrace::from_bytes(&trace.to_bytes())
        };
        let table = |result| matches!(result, Err(TraceError::Table(_)));
        assert!(table(wrong(|it| it.tables[0].columns = vec![2, 1])));
        assert!(table(wrong(|it| it.tables[0].columns.clear())));
        assert!(table(wrong(|it| it.tables[0].named = 0)));
        assert!(table(wrong(|it| it.tables[0].named = 3)));
        let transaction = |result| result == Err(TraceError::Transaction(0));
        assert!(transaction(wrong(|it| it.transactions[0].procedure = 1)));
        assert!(transaction(wrong(|it| it.transactions[0].accesses[1].table = 1)));
        assert!(transaction(wrong(|it| it.transactions[0].accesses[1].key = vec![1])));
        assert!(transaction(wrong(|it| it.transactions[0].accesses[1].needs = vec![1])));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, begins: bool) {
            if begins {
                let mut whole = MAGIC.to_vec();
                TRACE_VERSION.encode(&mut whole);
                whole.append(&mut bytes);
                bytes = whole;
            }
            if let Ok(trace) = AccessTrace::from_bytes(&bytes) {
                prop_assert_eq!(trace.to_bytes(), bytes);
            }
        }
    }
}
