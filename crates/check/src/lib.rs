//! Decides which isolation level a recorded history satisfies.
//!
//! A history says, for every transaction of a run, which version of which key each read saw and
//! each write installed. With the order of versions given, isolation needs no search: it is the
//! absence of cycles in a graph of transactions, in which each level chooses the transactions and
//! the edges. The check takes time about linear in the history, and a failed check shows a short
//! cycle with the key and versions behind every edge.
//!
//! The rooms, in the order data pass through them: [`History`] and its builder and file format;
//! `resolve` (every read and write gets its place in a chain of versions; the rest are findings);
//! `graph` (edges, components, cycles); `level` (which part of it all each level looks at);
//! `explain` and `verdict` (what a person gets to see). Histories in which keys hold lists that
//! transactions append to need no versions at all: the lists read show the order.
//!
//! ```
//! use muesli_check::{
//!     HistoryBuilder, HistoryHeader, Kind, Level, Options, TxnId, Value, Version, check,
//! };
//!
//! # fn main() -> Result<(), muesli_check::BuildError> {
//! // Write skew: both read both accounts at the start, each writes another one.
//! let mut builder = HistoryBuilder::new(Kind::Version);
//! for (sequence, account) in [(1, b"a"), (2, b"b")] {
//!     let id = TxnId::Numbered { node: 1, sequence };
//!     builder
//!         .transaction(HistoryHeader::committed(id, sequence, 10, 20))?
//!         .read(b"a", 0, Value::Null)?
//!         .read(b"b", 0, Value::Null)?
//!         .write(account, Some(Version::Number(1)), Value::Int(7))?;
//! }
//! let history = builder.finish();
//! assert!(check(&history, Level::Rr, &Options::default()).holds());
//! let verdict = check(&history, Level::Serializable, &Options::default());
//! assert!(!verdict.holds());
//! assert_eq!(verdict.cycle.as_ref().map(|cycle| cycle.edges.len()), Some(2));
//! println!("{verdict}");
//! # Ok(())
//! # }
//! ```

pub mod abstract_operations;
mod check;
pub mod command;
mod explain;
mod finding;
mod further;
mod graph;
mod history;
mod level;
mod resolve;
mod verdict;

pub use check::{Checker, Options, check};
pub use finding::{Anomaly, Finding};
pub use further::sums::{SumCheck, SumCheckError};
pub use history::{
    BuildError, FormatError, HandlerStats, History, HistoryBuilder, HistoryHeader, Kind,
    NamedOperation, RootHeader, RootRole, Seen, Status, TransactionBuilder, TxnId, Value, Version,
};
pub use level::{Level, UnknownLevel};
pub use verdict::{Cycle, CycleEdge, CycleTransaction, EdgeKind, RootStats, Stats, Verdict};
