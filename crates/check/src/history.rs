//! A recorded history in memory.
//!
//! A history is what the clients of a database saw: for every transaction its interval on one
//! clock, its fate, and its operations with the version each one read or installed. Everything
//! textual (keys, ids, values, list-shaped versions) is interned, so that a million transactions
//! fit in a few hundred megabytes and the checker compares integers.

mod atom;
mod build;
mod intern;
mod key;
mod operations;
mod read;
mod record;
mod root_operations;
mod roots;
mod tokens;
mod write;

use std::cmp::Ordering;
use std::ops::Range;

use hashbrown::HashMap;

use crate::abstract_operations::AbstractOperation;

pub use atom::Value;
pub(crate) use atom::{Atom, show_text};
pub use build::{BuildError, HistoryBuilder, HistoryHeader};
pub(crate) use intern::Interner;
pub(crate) use key::show_key;
pub use read::FormatError;
pub use record::TransactionBuilder;
pub use roots::{HandlerStats, NamedOperation, RootHeader, RootRole};
pub(crate) use roots::{Root, RootPart};

/// Index of a key in [`History::keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyId(pub(crate) u32);

/// Position of a transaction in the history, in the order of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TxnIndex(pub(crate) u32);

impl KeyId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl TxnIndex {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// How versions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// Every read and write names the version; version order is id order.
    #[default]
    Version,
    /// Keys hold lists and writes append: the values read give the order, no version is recorded.
    Append,
}

impl Kind {
    /// The name in the `kind` field of the format.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Version => "version",
            Kind::Append => "append",
        }
    }
}

/// What the client knows about the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The commit was acknowledged.
    Committed,
    /// The abort was acknowledged.
    Aborted,
    /// Timeout or crash: the data decide whether it committed.
    Unknown,
    /// Still running when the recording ended.
    Running,
}

impl Status {
    /// The letter in the `st` field of the format.
    pub fn letter(self) -> &'static str {
        match self {
            Status::Committed => "c",
            Status::Aborted => "a",
            Status::Unknown => "u",
            Status::Running => "r",
        }
    }
}

/// The name of a transaction, unique in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TxnId<'a> {
    /// `n<node>-<sequence>`, the cheap form for recorders.
    Numbered {
        /// The node or client that ran the transaction.
        node: u64,
        /// Its number on that node.
        sequence: u64,
    },
    /// Any other name.
    Text(&'a str),
}

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version<'a> {
    /// A plain number; 0 is the initial version, which nobody wrote.
    Number(u64),
    /// Numbers compared lexicographically, for example a timestamp and its tie-break.
    List(&'a [u64]),
}

impl From<u64> for Version<'_> {
    fn from(number: u64) -> Self {
        Version::Number(number)
    }
}

/// What a read returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// The transaction's own earlier write.
    Own,
    /// A version installed by somebody else, or the initial one.
    Version(Version<'a>),
}

impl From<u64> for Seen<'_> {
    fn from(number: u64) -> Self {
        Seen::Version(Version::Number(number))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Numbered(u64, u64),
    Text(u32),
}

/// A version id: a number, or an interned list (its big-endian bytes sort like the list).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionId {
    Number(u64),
    List(u32),
}

impl VersionId {
    pub(crate) const INITIAL: VersionId = VersionId::Number(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeenId {
    Own,
    Version(VersionId),
}

/// One operation; `Scan` and `ReadList` point into side tables of the history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Read { key: KeyId, seen: SeenId, value: Atom },
    Write { key: KeyId, version: Option<VersionId>, value: Atom },
    Delete { key: KeyId, version: Option<VersionId> },
    Scan { scan: u32 },
    Append { key: KeyId, element: u32 },
    ReadList { key: KeyId, start: u64, length: u32 },
}

/// A scan of `[low, high)`; its rows stand in [`History::rows`].
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub(crate) low: Box<[u8]>,
    pub(crate) high: Option<Box<[u8]>>,
    pub(crate) rows: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) key: KeyId,
    pub(crate) seen: SeenId,
    pub(crate) value: Atom,
}

#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(crate) name: Name,
    pub(crate) session: Atom,
    pub(crate) begin: u64,
    pub(crate) end: Option<u64>,
    pub(crate) status: Status,
    pub(crate) read_only: Option<bool>,
    pub(crate) timestamp: Atom,
    /// What ended before this it must see.
    pub(crate) as_of: Option<u64>,
    pub(crate) first_op: u32,
}

impl Transaction {
    /// The end for real-time purposes: `None` stands for "later than everything".
    pub(crate) fn real_end(&self) -> Option<u64> {
        match self.status {
            Status::Committed | Status::Aborted => self.end,
            Status::Unknown | Status::Running => None,
        }
    }

    /// The begin for real-time purposes.
    pub(crate) fn real_begin(&self) -> u64 {
        self.as_of.unwrap_or(self.begin)
    }
}

/// One replica's chain of one key at the end of the run.
#[derive(Clone, Debug)]
pub(crate) struct OrderLine {
    pub(crate) key: KeyId,
    pub(crate) node: Atom,
    pub(crate) versions: Vec<VersionId>,
}

/// A recorded history: build one with [`HistoryBuilder`] or read one with [`History::read`].
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(crate) kind: Kind,
    pub(crate) meta: Option<serde_json::Map<String, serde_json::Value>>,
    pub(crate) keys: Interner,
    pub(crate) texts: Interner,
    pub(crate) lists: Interner,
    pub(crate) elements: Vec<Atom>,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) ops: Vec<Op>,
    pub(crate) scans: Vec<Scan>,
    pub(crate) rows: Vec<Row>,
    pub(crate) lists_read: Vec<u32>,
    pub(crate) orders: Vec<OrderLine>,
    /// What clients asked for.
    pub(crate) roots: Vec<Root>,
    /// The place of each root, by its name.
    pub(crate) root_places: HashMap<Name, u32>,
    /// Which transactions are part of a root, in their order.
    pub(crate) parts: Vec<RootPart>,
    /// What structures held before the first root.
    pub(crate) start: Vec<AbstractOperation>,
    /// Sets, their keys, and counters.
    pub(crate) objects: Interner,
}

impl History {
    /// How versions are known in this history.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Number of transactions, whatever their fate.
    pub fn transactions(&self) -> usize {
        self.transactions.len()
    }

    /// Number of operations; a scan counts once.
    pub fn operations(&self) -> usize {
        self.ops.len()
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = TxnIndex> + use<> {
        (0..self.transactions.len() as u32).map(TxnIndex)
    }

    pub(crate) fn transaction(&self, txn: TxnIndex) -> &Transaction {
        &self.transactions[txn.index()]
    }

    pub(crate) fn ops_range(&self, txn: TxnIndex) -> Range<usize> {
        let next = self.transactions.get(txn.index() + 1);
        let end = next.map_or(self.ops.len(), |t| t.first_op as usize);
        self.transactions[txn.index()].first_op as usize..end
    }

    pub(crate) fn ops_of(&self, txn: TxnIndex) -> &[Op] {
        &self.ops[self.ops_range(txn)]
    }

    pub(crate) fn list_read(&self, start: u64, length: u32) -> &[u32] {
        &self.lists_read[start as usize..start as usize + length as usize]
    }

    /// Version order: the initial version first, then numbers and lists lexicographically.
    pub(crate) fn compare(&self, a: VersionId, b: VersionId) -> Ordering {
        use VersionId::{List, Number};
        match (a, b) {
            (Number(a), Number(b)) => a.cmp(&b),
            (List(a), List(b)) if a == b => Ordering::Equal,
            (List(a), List(b)) => self.lists.bytes(a).cmp(self.lists.bytes(b)),
            (Number(0), List(_)) => Ordering::Less,
            (List(_), Number(0)) => Ordering::Greater,
            (Number(a), List(b)) => a.to_be_bytes().as_slice().cmp(self.lists.bytes(b)),
            (List(a), Number(b)) => self.lists.bytes(a).cmp(b.to_be_bytes().as_slice()),
        }
    }

    pub(crate) fn show_name(&self, txn: TxnIndex) -> String {
        self.show_any(self.transaction(txn).name)
    }

    /// The name of a transaction or a root.
    pub(crate) fn show_any(&self, name: Name) -> String {
        match name {
            Name::Numbered(node, sequence) => format!("n{node}-{sequence}"),
            Name::Text(text) => show_text(&self.texts, text).into_owned(),
        }
    }

    pub(crate) fn show_key(&self, key: KeyId) -> String {
        show_key(self.keys.bytes(key.0)).into_owned()
    }

    pub(crate) fn show_version(&self, version: VersionId) -> String {
        match version {
            VersionId::Number(number) => number.to_string(),
            VersionId::List(list) => {
                let parts: Vec<String> =
                    self.list_parts(list).map(|part| part.to_string()).collect();
                format!("[{}]", parts.join(","))
            }
        }
    }

    pub(crate) fn show_atom(&self, atom: Atom) -> String {
        atom.json(&self.texts).into_owned()
    }

    pub(crate) fn list_parts(&self, list: u32) -> impl Iterator<Item = u64> {
        let (chunks, _) = self.lists.bytes(list).as_chunks::<8>();
        chunks.iter().map(|chunk| u64::from_be_bytes(*chunk))
    }
}
