//! Roots: what clients asked for, above the transactions that it took.
//!
//! With open nesting one thing that a client asks for is many transactions: its open children, its
//! own accesses, compensations. Each of these is judged like any other; the whole is a *root*,
//! which is judged by what its operations on sets and counters answered. Transactions name the root
//! that they are part of, and their [`RootRole`] in it.

use super::build::{BuildError, HistoryBuilder, index};
use super::{Atom, History, Name, Status, TxnId, TxnIndex, Value, show_key};
use crate::abstract_operations::AbstractOperation;

/// How many compensations and commit handlers of roots committed, and how many of these were not
/// run by the session whose the root was: it was gone, or taken for gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerStats {
    /// Compensations.
    pub compensations: usize,
    /// Those of them that others ran.
    pub compensations_by_others: usize,
    /// Commit handlers.
    pub commit_handlers: usize,
    /// Those of them that others ran.
    pub commit_handlers_by_others: usize,
}

impl HandlerStats {
    /// Adds those of another history.
    pub fn add(&mut self, other: &HandlerStats) {
        self.compensations += other.compensations;
        self.compensations_by_others += other.compensations_by_others;
        self.commit_handlers += other.commit_handlers;
        self.commit_handlers_by_others += other.commit_handlers_by_others;
    }
}

/// What a transaction is within its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootRole {
    /// The root's own accesses, with whose commit the root commits. Each attempt is one.
    Own,
    /// An open child, at any depth.
    Child,
    /// It undoes what a child did whose parent was aborted.
    Compensation,
    /// It does what a child left for after the commit.
    CommitHandler,
}

impl RootRole {
    /// All roles.
    pub const ALL: [RootRole; 4] =
        [RootRole::Own, RootRole::Child, RootRole::Compensation, RootRole::CommitHandler];

    /// The word in the `as` field of the format.
    pub fn name(self) -> &'static str {
        match self {
            RootRole::Own => "own",
            RootRole::Child => "child",
            RootRole::Compensation => "compensation",
            RootRole::CommitHandler => "handler",
        }
    }
}

/// That a transaction is part of a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootPart {
    pub(crate) txn: TxnIndex,
    pub(crate) root: Name,
    pub(crate) role: RootRole,
}

/// What a client asked for.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) name: Name,
    pub(crate) session: Atom,
    pub(crate) begin: u64,
    pub(crate) end: Option<u64>,
    pub(crate) status: Status,
    /// In their order; sets, keys and counters are numbers of [`History::objects`].
    pub(crate) operations: Vec<AbstractOperation>,
}

/// An operation on a set or a counter, by name, and what it answered.
pub type NamedOperation<'a> = AbstractOperation<&'a [u8]>;

/// Everything about a root except its operations.
#[derive(Clone, Copy, Debug)]
pub struct RootHeader<'a> {
    /// Its name, unique among roots.
    pub id: TxnId<'a>,
    /// The client session; [`Value::Unrecorded`] if there is none.
    pub session: Value<'a>,
    /// Nanoseconds when the client asked for it, on the one clock of the history.
    pub begin: u64,
    /// Nanoseconds when the client was told how it ended; `None` if it never was.
    pub end: Option<u64>,
    /// What the client knows about its end.
    pub status: Status,
}

impl HistoryBuilder {
    /// Records a root.
    ///
    /// # Errors
    /// [`BuildError::DuplicateRoot`], [`BuildError::EndsBeforeBegin`] or [`BuildError::TooMany`].
    pub fn root<'o>(
        &mut self,
        header: RootHeader<'_>,
        operations: impl IntoIterator<Item = NamedOperation<'o>>,
    ) -> Result<(), BuildError> {
        let RootHeader { begin, end, status, .. } = header;
        let (name, session) = (self.name(header.id)?, self.atom(header.session)?);
        let operations: Result<_, _> =
            operations.into_iter().map(|operation| self.history.abstract_of(operation)).collect();
        self.push_root(Root { name, session, begin, end, status, operations: operations? })
    }

    pub(super) fn push_root(&mut self, root: Root) -> Result<(), BuildError> {
        self.history.push_root(root)
    }

    /// Records what structures held before the first root: an [`NamedOperation::Add`] for each key
    /// that was there, an [`NamedOperation::Increase`] for each counter that was not zero.
    ///
    /// # Errors
    /// [`BuildError::NotAtStart`] for any other operation; [`BuildError::TooMany`].
    pub fn start<'o>(
        &mut self,
        operations: impl IntoIterator<Item = NamedOperation<'o>>,
    ) -> Result<(), BuildError> {
        self.history.add_start(operations)
    }

    pub(super) fn part_of(&mut self, root: TxnId<'_>, role: RootRole) -> Result<(), BuildError> {
        let root = self.name(root)?;
        let txn = TxnIndex(index(self.history.transactions.len() - 1, "transactions")?);
        self.history.parts.push(RootPart { txn, root, role });
        Ok(())
    }
}

impl History {
    /// Number of roots, whatever their fate.
    pub fn roots(&self) -> usize {
        self.roots.len()
    }

    /// As [`HistoryBuilder::start`], for a history whose transactions are there already.
    ///
    /// # Errors
    /// As there.
    pub fn add_start<'o>(
        &mut self,
        operations: impl IntoIterator<Item = NamedOperation<'o>>,
    ) -> Result<(), BuildError> {
        for operation in operations {
            let operation = self.abstract_of(operation)?;
            self.push_start(operation)?;
        }
        Ok(())
    }

    pub(super) fn push_start(&mut self, operation: AbstractOperation) -> Result<(), BuildError> {
        match operation {
            AbstractOperation::Add { was_new: true, .. } | AbstractOperation::Increase { .. } => {
                self.start.push(operation);
                Ok(())
            }
            AbstractOperation::Add { .. }
            | AbstractOperation::Remove { .. }
            | AbstractOperation::Contains { .. }
            | AbstractOperation::Read { .. } => Err(BuildError::NotAtStart),
        }
    }

    /// Records roots for the transactions that name them, where a client knows how each ended and
    /// what it did: session and times are those of its own accesses and its children. Roots that no
    /// transaction names are left out, as they did nothing.
    ///
    /// # Errors
    /// [`BuildError::DuplicateRoot`] or [`BuildError::TooMany`].
    pub fn add_roots<'o>(
        &mut self,
        roots: impl IntoIterator<Item = (String, Status, Vec<NamedOperation<'o>>)>,
    ) -> Result<(), BuildError> {
        let spans = self.spans();
        for (id, status, operations) in roots {
            let name = self.name_of(TxnId::Text(&id))?;
            let Some(span) = spans.get(&name) else { continue };
            let operations: Result<_, _> =
                operations.into_iter().map(|operation| self.abstract_of(operation)).collect();
            let (operations, session) = (operations?, span.session);
            let is_known = matches!(status, Status::Committed | Status::Aborted);
            let end = span.end.filter(|_| is_known);
            let begin = span.begin;
            self.push_root(Root { name, session, begin, end, status, operations })?;
        }
        Ok(())
    }

    /// What was run for roots after their ends, by the transactions that committed.
    pub(crate) fn handler_stats(&self, committed: &[bool]) -> HandlerStats {
        let (spans, mut stats) = (self.spans(), HandlerStats::default());
        for part in self.parts.iter().filter(|part| committed[part.txn.index()]) {
            let session = self.transaction(part.txn).session;
            let of_others = spans.get(&part.root).is_some_and(|span| span.session != session);
            let (all, by_others) = match part.role {
                RootRole::Own | RootRole::Child => continue,
                RootRole::Compensation => {
                    (&mut stats.compensations, &mut stats.compensations_by_others)
                }
                RootRole::CommitHandler => {
                    (&mut stats.commit_handlers, &mut stats.commit_handlers_by_others)
                }
            };
            *all += 1;
            *by_others += usize::from(of_others);
        }
        stats
    }

    fn spans(&self) -> hashbrown::HashMap<Name, RootSpan> {
        let mut spans = hashbrown::HashMap::new();
        for part in self.parts.iter().filter(|part| part.role <= RootRole::Child) {
            let transaction = self.transaction(part.txn);
            let (begin, end) = (transaction.begin, transaction.end);
            let session = transaction.session;
            let span = spans.entry(part.root).or_insert(RootSpan { session, begin, end });
            span.begin = span.begin.min(begin);
            span.end = span.end.zip(end).map(|(one, other)| one.max(other));
        }
        spans
    }

    fn push_root(&mut self, root: Root) -> Result<(), BuildError> {
        if let Some(end) = root.end.filter(|end| *end < root.begin) {
            return Err(BuildError::EndsBeforeBegin { begin: root.begin, end });
        }
        let place = index(self.roots.len(), "roots")?;
        if self.root_places.insert(root.name, place).is_some() {
            return Err(BuildError::DuplicateRoot(self.show_any(root.name)));
        }
        self.roots.push(root);
        Ok(())
    }

    pub(super) fn abstract_of(
        &mut self,
        operation: NamedOperation<'_>,
    ) -> Result<AbstractOperation, BuildError> {
        operation.try_renamed(|name, _| self.object(name))
    }

    pub(super) fn object(&mut self, name: &[u8]) -> Result<u64, BuildError> {
        let number =
            self.objects.intern(name).ok_or(BuildError::TooMany("sets, keys, counters"))?;
        Ok(number.into())
    }

    /// The name of a set, a key of one, or a counter, by its number.
    pub(crate) fn show_object(&self, number: u64) -> String {
        let number = u32::try_from(number).expect("numbers of objects are those of their names");
        show_key(self.objects.bytes(number)).into_owned()
    }
}

/// When the transactions of a root were, and whose they were.
#[derive(Clone, Copy, Debug)]
struct RootSpan {
    session: Atom,
    begin: u64,
    /// The greatest; `None` where one of them never returned: the root ended after that, at a time
    /// that no transaction tells.
    end: Option<u64>,
}
