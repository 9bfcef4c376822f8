//! Trace files: a name and a version, what the numbers name, and the transactions.
//!
//! Whatever bytes a file has, reading takes memory in proportion to them and no more than its
//! [limits](super::limits) allow, and what does not fit is an error that says where.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::wire_struct;
use thiserror::Error;

use super::limits::{
    ACCESSES_MAX, ALL_COLUMNS_MAX, BYTES_MAX, COLUMNS_MAX, NAMES_MAX, TRANSACTIONS_MAX,
};
use super::{AccessTrace, TracedAccess, TracedTable, TracedTransaction};

/// What a trace file begins with.
const MAGIC: [u8; 8] = *b"muetrace";
/// The version of the layout.
pub const TRACE_VERSION: u16 = 2;

/// Why a file is no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// It is too long.
    #[error("the file has more than {BYTES_MAX} bytes, the most that a trace may have")]
    Long,
    /// It has too many of something.
    #[error("the trace has {count} {what}, and at most {most} are allowed")]
    Many {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// It is something else.
    #[error("this is no trace of transactions: it does not begin with `muetrace`")]
    Magic,
    /// It is of another version.
    #[error("this trace is of version {0}, and version {TRACE_VERSION} is read here")]
    Version(u16),
    /// Its bytes end too early, or are damaged.
    #[error("the trace is damaged: {0}")]
    Bytes(#[from] WireError),
    /// A name would change how a terminal shows what is behind it.
    #[error("the trace has the name {0:?}, and names have no control characters")]
    Name(String),
    /// Two tables have one name.
    #[error("the trace has two tables that are called `{0}`")]
    Twice(String),
    /// A table's key cannot be so.
    #[error(
        "table `{0}` of the trace has no key columns, more than {COLUMNS_MAX}, one of a domain \
         that is not named, or accesses that name none of them or more"
    )]
    Table(String),
    /// A transaction names what there is not.
    #[error(
        "transaction {0} of the trace names a procedure or table that there is not, a key of more \
         columns than its table's or fewer than are always named, or an access whose needs are not \
         earlier ones in their order, each once"
    )]
    Transaction(usize),
}

wire_struct!(TracedTable { name: String, columns: Vec<u16>, named: u16, row_bytes: u32 });
wire_struct!(TracedAccess {
    table: u16,
    writes: bool,
    key: Vec<u64>,
    by_arguments: u16,
    needs: Vec<u16>,
});
wire_struct!(TracedTransaction { procedure: u16, accesses: Vec<TracedAccess> });

/// The trace that is in a file. No more of it is read than a trace may have.
///
/// # Errors
/// It cannot be read, or is no trace.
pub fn read_file(path: &Path) -> Result<AccessTrace, TraceError> {
    let unreadable = |error: io::Error| TraceError::Unreadable(error.to_string());
    let (mut file, mut bytes) = (File::open(path).map_err(unreadable)?, Vec::new());
    let begins = MAGIC.len() as u64;
    file.by_ref().take(begins).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes != MAGIC {
        return Err(TraceError::Magic);
    }
    file.take(BYTES_MAX + 1 - begins).read_to_end(&mut bytes).map_err(unreadable)?;
    AccessTrace::from_bytes(&bytes)
}

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
        if bytes.len() as u64 > BYTES_MAX {
            return Err(TraceError::Long);
        }
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

    /// Whether there is no more of anything than there may be, and all numbers name something.
    ///
    /// # Errors
    /// What does not fit, and where.
    pub fn check(&self) -> Result<(), TraceError> {
        self.check_counts()?;
        self.check_names()?;
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
                let columns = |table: &TracedTable| usize::from(table.named)..=table.columns.len();
                table.is_some_and(|table| columns(table).contains(&access.key.len()))
                    && access.needs.is_sorted_by(|one, next| one < next)
                    && access.needs.last().is_none_or(|last| usize::from(*last) < place)
            };
            if !known || !transaction.accesses.iter().enumerate().all(fits) {
                return Err(TraceError::Transaction(number));
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), TraceError> {
        let columns = self.tables.iter().map(|table| table.columns.len()).sum();
        for (what, count, most) in [
            ("domains", self.domains.len(), NAMES_MAX),
            ("procedures", self.procedures.len(), NAMES_MAX),
            ("tables", self.tables.len(), ALL_COLUMNS_MAX),
            ("columns in all tables", columns, ALL_COLUMNS_MAX),
            ("transactions", self.transactions.len(), TRANSACTIONS_MAX),
            ("accesses", self.accesses(), ACCESSES_MAX),
        ] {
            if count > most {
                return Err(TraceError::Many { what, count, most });
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), TraceError> {
        let of_tables = self.tables.iter().map(|table| &table.name);
        let mut all = self.domains.iter().chain(&self.procedures).chain(of_tables.clone());
        if let Some(name) = all.find(|name| name.chars().any(char::is_control)) {
            return Err(TraceError::Name(name.clone()));
        }
        let mut known = BTreeSet::new();
        match of_tables.into_iter().find(|name| !known.insert(name.as_str())) {
            Some(twice) => Err(TraceError::Twice(twice.clone())),
            None => Ok(()),
        }
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
            by_arguments: 0b11,
            needs: Vec::new(),
        };
        let mut second = key(true, 8);
        second.needs = vec![0];
        AccessTrace {
            domains: vec!["warehouse".to_owned(), "item".to_owned()],
            tables: vec![TracedTable {
                name: "stock".to_owned(),
                columns: vec![0, 1],
                named: 1,
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
        assert!(transaction(wrong(|it| it.transactions[0].accesses[1].key = vec![1; 3])));
        assert!(transaction(wrong(|it| it.transactions[0].accesses[1].key.clear())));
        // Of a range in which nothing was found only the columns are known that named it.
        assert!(wrong(|it| it.transactions[0].accesses[1].key = vec![1]).is_ok());
        assert!(transaction(wrong(|it| it.transactions[0].accesses[1].needs = vec![1])));
    }

    #[test]
    fn needs_are_in_order_and_names_are_plain_and_their_own() {
        let changed = |change: &dyn Fn(&mut AccessTrace)| {
            let mut trace = trace();
            let mut third = trace.transactions[0].accesses[1].clone();
            third.needs = vec![0, 1];
            trace.transactions[0].accesses.push(third);
            change(&mut trace);
            AccessTrace::from_bytes(&trace.to_bytes())
        };
        assert!(changed(&|_| ()).is_ok());
        for needs in [vec![1, 0], vec![0, 0], vec![1, 1], vec![0, 2]] {
            let found = changed(&|it| it.transactions[0].accesses[2].needs.clone_from(&needs));
            assert_eq!(found, Err(TraceError::Transaction(0)), "{needs:?}");
        }
        let twice = changed(&|it| it.tables.push(it.tables[0].clone()));
        assert_eq!(twice, Err(TraceError::Twice("stock".to_owned())));
        let bad = "ware\u{1b}[2Jhouse".to_owned();
        for found in [
            changed(&|it| it.domains[1].clone_from(&bad)),
            changed(&|it| it.procedures[0].clone_from(&bad)),
            changed(&|it| it.tables[0].name.clone_from(&bad)),
        ] {
            let text = found.unwrap_err().to_string();
            assert!(text.contains("control") && !text.contains('\u{1b}'), "{text}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused_before_it_is_worked_on() {
        let many = |change: fn(&mut AccessTrace)| {
            let mut trace = trace();
            change(&mut trace);
            match AccessTrace::from_bytes(&trace.to_bytes()) {
                Err(TraceError::Many { what, .. }) => what,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(many(|it| it.domains = vec!["a".to_owned(); NAMES_MAX + 1]), "domains");
        assert_eq!(many(|it| it.procedures = vec!["a".to_owned(); NAMES_MAX + 1]), "procedures");
        let columns = |it: &mut AccessTrace| {
            let wide =
                TracedTable { columns: vec![0; COLUMNS_MAX], named: 1, ..it.tables[0].clone() };
            it.tables = vec![wide; ALL_COLUMNS_MAX / COLUMNS_MAX + 1];
        };
        assert_eq!(many(columns), "columns in all tables");
        let transactions = |it: &mut AccessTrace| {
            it.transactions = vec![TracedTransaction::default(); TRANSACTIONS_MAX + 1];
        };
        assert_eq!(many(transactions), "transactions");
        let accesses = |it: &mut AccessTrace| {
            let access = it.transactions[0].accesses[0].clone();
            it.transactions[0].accesses = vec![access; ACCESSES_MAX + 1];
        };
        let mut large = trace();
        accesses(&mut large);
        assert!(matches!(large.check(), Err(TraceError::Many { what: "accesses", .. })));
        assert!(AccessTrace::from_bytes(&large.to_bytes()).is_err());
    }

    #[test]
    fn a_file_is_read_as_far_as_a_trace_can_go() {
        let folder = std::env::temp_dir().join(format!("muesli-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("long.trace");
        let file = File::create(&path).unwrap();
        file.set_len(BYTES_MAX + 2).unwrap();
        // It has no bytes but zeroes, and takes no place on the disk.
        assert_eq!(read_file(&path), Err(TraceError::Magic));
        let mut begun = MAGIC.to_vec();
        TRACE_VERSION.encode(&mut begun);
        use std::io::Write as _;
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&begun).unwrap();
        assert_eq!(read_file(&path), Err(TraceError::Long));
        let missing = read_file(&folder.join("none"));
        assert!(matches!(missing, Err(TraceError::Unreadable(_))), "{missing:?}");
        std::fs::remove_dir_all(&folder).unwrap();
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
