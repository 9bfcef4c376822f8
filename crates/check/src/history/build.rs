//! Building a history in memory, transaction by transaction.
//!
//! A recorder that lives in the same process uses this directly; the reader of the file format
//! drives the same builder, so both ways give the same history.

use hashbrown::{HashMap, HashSet};
use thiserror::Error;

use super::{
    Atom, History, KeyId, Kind, Name, OrderLine, Seen, SeenId, Status, TxnId, Value, Version,
    VersionId,
};

/// Why something cannot be part of a history.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// Two transactions have the same id.
    #[error("transaction id `{0}` stands for two transactions; ids must be unique")]
    DuplicateId(String),
    /// Two roots have the same id.
    #[error("root id `{0}` stands for two roots; ids must be unique")]
    DuplicateRoot(String),
    /// What structures held at the start was told by something else than what put it there.
    #[error("a start line has additions with effect only: [\"+\",set,key,true] and [\"+=\",…]")]
    NotAtStart,
    /// An operation of the other kind of history.
    #[error("{operation} does not belong in a history of kind \"{kind}\"")]
    WrongKind {
        /// The operation, as text.
        operation: &'static str,
        /// The kind of this history.
        kind: &'static str,
    },
    /// A version id that is not allowed at this place.
    #[error("{0}")]
    Version(&'static str),
    /// The transaction ends before it begins.
    #[error("the end {end} lies before the begin {begin}")]
    EndsBeforeBegin {
        /// Nanoseconds at the call of begin.
        begin: u64,
        /// Nanoseconds at the return of commit or abort.
        end: u64,
    },
    /// A transaction must see what had ended only after it began.
    #[error("it must see what ended before {as_of}, after its begin at {begin}")]
    SeesTheFuture {
        /// Nanoseconds at the call of begin.
        begin: u64,
        /// The moment.
        as_of: u64,
    },
    /// More than 2³² - 1 of something.
    #[error("too many {0}: a history holds at most 4294967295")]
    TooMany(&'static str),
}

/// Everything about a transaction except its operations.
#[derive(Clone, Copy, Debug)]
pub struct HistoryHeader<'a> {
    /// Its name, unique in the history.
    pub id: TxnId<'a>,
    /// The client session; [`Value::Unrecorded`] if there is none.
    pub session: Value<'a>,
    /// Nanoseconds at the call of begin, on the one clock of the history.
    pub begin: u64,
    /// Nanoseconds at the return of commit or abort; `None` if it never returned.
    pub end: Option<u64>,
    /// What the client knows about its end.
    pub status: Status,
    /// Whether it was declared read-only; informational.
    pub read_only: Option<bool>,
    /// The system's own timestamp; a hint, never trusted.
    pub timestamp: Value<'a>,
    /// Of one that may be stale: all that ended before this moment, which is not after its begin,
    /// it must see, at every level. `None`: as the level says.
    pub as_of: Option<u64>,
}

impl<'a> HistoryHeader<'a> {
    /// A committed transaction of session `session` that ran in `[begin, end]` nanoseconds.
    pub fn committed(id: TxnId<'a>, session: u64, begin: u64, end: u64) -> Self {
        HistoryHeader {
            id,
            session: Value::Unsigned(session),
            begin,
            end: Some(end),
            status: Status::Committed,
            read_only: None,
            timestamp: Value::Unrecorded,
            as_of: None,
        }
    }
}

/// Collects transactions into a [`History`].
#[derive(Debug)]
pub struct HistoryBuilder {
    pub(super) history: History,
    /// Of the transactions so far.
    pub(super) names: HashSet<Name>,
    elements: HashMap<(KeyId, Atom), u32>,
}

impl HistoryBuilder {
    /// An empty history of the given kind.
    pub fn new(kind: Kind) -> Self {
        let history = History { kind, ..History::default() };
        HistoryBuilder { history, names: HashSet::new(), elements: HashMap::new() }
    }

    /// Sets the fields of the `meta` line (workload, protocol, seed, …); `kind` is added.
    pub fn meta(&mut self, fields: serde_json::Map<String, serde_json::Value>) {
        self.history.meta = Some(fields);
    }

    /// Records one replica's chain of versions of `key` at the end, oldest first.
    ///
    /// # Errors
    /// [`BuildError::WrongKind`], [`BuildError::Version`] or [`BuildError::TooMany`].
    pub fn order(
        &mut self,
        key: &[u8],
        node: Value<'_>,
        versions: &[Version<'_>],
    ) -> Result<(), BuildError> {
        let node = self.atom(node)?;
        self.order_atom(key, node, versions)
    }

    pub(super) fn order_atom(
        &mut self,
        key: &[u8],
        node: Atom,
        versions: &[Version<'_>],
    ) -> Result<(), BuildError> {
        self.require(Kind::Version, "an order line")?;
        let key = self.key(key)?;
        let versions: Result<_, _> = versions.iter().map(|v| self.version(*v)).collect();
        self.history.orders.push(OrderLine { key, node, versions: versions? });
        Ok(())
    }

    /// The finished history.
    pub fn finish(self) -> History {
        self.history
    }

    pub(super) fn kind(&self) -> Kind {
        self.history.kind
    }

    pub(super) fn name(&mut self, id: TxnId<'_>) -> Result<Name, BuildError> {
        self.history.name_of(id)
    }

    pub(super) fn atom(&mut self, value: Value<'_>) -> Result<Atom, BuildError> {
        Ok(match value {
            Value::Unrecorded => Atom::Unrecorded,
            Value::Null => Atom::Null,
            Value::Int(number) => Atom::Int(number),
            Value::Unsigned(number) => Atom::unsigned(number),
            Value::Text(text) => Atom::Json(self.text(&quoted(text))?),
        })
    }

    /// An atom for any other JSON value, given as canonical text.
    pub(super) fn text(&mut self, json: &str) -> Result<u32, BuildError> {
        self.history.text(json)
    }

    pub(super) fn key(&mut self, key: &[u8]) -> Result<KeyId, BuildError> {
        self.history.keys.intern(key).map(KeyId).ok_or(BuildError::TooMany("keys"))
    }

    fn version(&mut self, version: Version<'_>) -> Result<VersionId, BuildError> {
        match version {
            Version::Number(number) => Ok(VersionId::Number(number)),
            Version::List([]) => Err(BuildError::Version("a version list must not be empty")),
            Version::List([number]) => Ok(VersionId::Number(*number)),
            Version::List(parts) => {
                let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_be_bytes()).collect();
                let list = self.history.lists.intern(&bytes);
                list.map(VersionId::List).ok_or(BuildError::TooMany("distinct versions"))
            }
        }
    }

    pub(super) fn installed(
        &mut self,
        version: Option<Version<'_>>,
    ) -> Result<Option<VersionId>, BuildError> {
        match version.map(|version| self.version(version)).transpose()? {
            Some(VersionId::INITIAL) => {
                Err(BuildError::Version("version 0 is the initial version; a write installs more"))
            }
            installed => Ok(installed),
        }
    }

    pub(super) fn seen(&mut self, seen: Seen<'_>) -> Result<SeenId, BuildError> {
        match seen {
            Seen::Own => Ok(SeenId::Own),
            Seen::Version(version) => self.version(version).map(SeenId::Version),
        }
    }

    pub(super) fn element(&mut self, key: KeyId, element: Value<'_>) -> Result<u32, BuildError> {
        let atom = self.atom(element)?;
        self.element_atom(key, atom)
    }

    pub(super) fn element_atom(&mut self, key: KeyId, atom: Atom) -> Result<u32, BuildError> {
        let next = index(self.elements.len(), "elements")?;
        let element = *self.elements.entry((key, atom)).or_insert(next);
        if element == next {
            self.history.elements.push(atom);
        }
        Ok(element)
    }

    pub(super) fn require(&self, kind: Kind, operation: &'static str) -> Result<(), BuildError> {
        if self.history.kind == kind {
            return Ok(());
        }
        Err(BuildError::WrongKind { operation, kind: self.history.kind.name() })
    }
}

impl History {
    /// The name of a transaction or a root.
    pub(super) fn name_of(&mut self, id: TxnId<'_>) -> Result<Name, BuildError> {
        match id {
            TxnId::Numbered { node, sequence } => Ok(Name::Numbered(node, sequence)),
            TxnId::Text(text) => match numbered(text) {
                Some(name) => Ok(name),
                None => Ok(Name::Text(self.text(&quoted(text))?)),
            },
        }
    }

    fn text(&mut self, json: &str) -> Result<u32, BuildError> {
        self.texts.intern(json.as_bytes()).ok_or(BuildError::TooMany("distinct texts"))
    }
}

/// `n<node>-<sequence>` in its canonical spelling.
fn numbered(text: &str) -> Option<Name> {
    let (node, sequence) = text.strip_prefix('n')?.split_once('-')?;
    Some(Name::Numbered(canonical_number(node)?, canonical_number(sequence)?))
}

fn canonical_number(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = plain && (digits == "0" || !digits.starts_with('0'));
    if canonical { digits.parse().ok() } else { None }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn index(length: usize, what: &'static str) -> Result<u32, BuildError> {
    match u32::try_from(length) {
        Ok(index) if index < u32::MAX => Ok(index),
        _ => Err(BuildError::TooMany(what)),
    }
}
