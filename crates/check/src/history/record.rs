//! Adding transactions to a history, and their operations.

use super::build::{BuildError, HistoryBuilder, HistoryHeader, index};
use super::{
    Atom, Kind, Op, RootRole, Row, Scan, Seen, Transaction, TxnId, TxnIndex, Value, Version,
};

impl HistoryBuilder {
    /// Starts the next transaction; its operations follow on the returned builder.
    ///
    /// # Errors
    /// [`BuildError::DuplicateId`], [`BuildError::EndsBeforeBegin`] or [`BuildError::TooMany`].
    pub fn transaction(
        &mut self,
        header: HistoryHeader<'_>,
    ) -> Result<TransactionBuilder<'_>, BuildError> {
        if let Some(end) = header.end.filter(|end| *end < header.begin) {
            return Err(BuildError::EndsBeforeBegin { begin: header.begin, end });
        }
        check_as_of(header.begin, header.as_of)?;
        let name = self.name(header.id)?;
        let session = self.atom(header.session)?;
        let timestamp = self.atom(header.timestamp)?;
        self.push_transaction(Transaction {
            name,
            session,
            begin: header.begin,
            end: header.end,
            status: header.status,
            read_only: header.read_only,
            timestamp,
            as_of: header.as_of,
            first_op: 0,
        })
    }

    pub(super) fn push_transaction(
        &mut self,
        mut transaction: Transaction,
    ) -> Result<TransactionBuilder<'_>, BuildError> {
        index(self.history.transactions.len(), "transactions")?;
        transaction.first_op = index(self.history.ops.len(), "operations")?;
        if !self.names.insert(transaction.name) {
            let txn = TxnIndex(self.history.transactions.len() as u32);
            self.history.transactions.push(transaction);
            let name = self.history.show_name(txn);
            self.history.transactions.pop();
            return Err(BuildError::DuplicateId(name));
        }
        self.history.transactions.push(transaction);
        Ok(TransactionBuilder { builder: self })
    }
}

/// Whether a transaction may have to see what ended before this moment.
pub(super) fn check_as_of(begin: u64, as_of: Option<u64>) -> Result<(), BuildError> {
    match as_of.filter(|as_of| *as_of > begin) {
        Some(as_of) => Err(BuildError::SeesTheFuture { begin, as_of }),
        None => Ok(()),
    }
}

/// Adds operations, in program order, to one transaction.
#[derive(Debug)]
pub struct TransactionBuilder<'b> {
    pub(super) builder: &'b mut HistoryBuilder,
}

impl TransactionBuilder<'_> {
    /// The transaction is part of a root, which is recorded before it or after it.
    ///
    /// # Errors
    /// [`BuildError::TooMany`].
    pub fn part_of(&mut self, root: TxnId<'_>, role: RootRole) -> Result<&mut Self, BuildError> {
        self.builder.part_of(root, role)?;
        Ok(self)
    }

    /// A read of `key` that returned `seen`.
    ///
    /// # Errors
    /// [`BuildError`] for an empty version list, the wrong kind or too many distinct things.
    pub fn read<'s>(
        &mut self,
        key: &[u8],
        seen: impl Into<Seen<'s>>,
        value: Value<'_>,
    ) -> Result<&mut Self, BuildError> {
        let value = self.builder.atom(value)?;
        self.read_atom(key, seen.into(), value)
    }

    /// A write of `key`; `version` is `None` for an earlier write of the same transaction to the
    /// key and in aborted transactions.
    ///
    /// # Errors
    /// As [`TransactionBuilder::read`], and version 0 is refused.
    pub fn write(
        &mut self,
        key: &[u8],
        version: Option<Version<'_>>,
        value: Value<'_>,
    ) -> Result<&mut Self, BuildError> {
        let value = self.builder.atom(value)?;
        self.write_atom(key, version, value)
    }

    /// A delete of `key` that installed the tombstone `version`.
    ///
    /// # Errors
    /// As [`TransactionBuilder::write`].
    pub fn delete(
        &mut self,
        key: &[u8],
        version: Option<Version<'_>>,
    ) -> Result<&mut Self, BuildError> {
        self.builder.require(Kind::Version, "a delete")?;
        let version = self.builder.installed(version)?;
        let key = self.builder.key(key)?;
        self.push(Op::Delete { key, version })
    }

    /// A scan of `[low, high)` (`high` `None`: open) with every row it saw; tombstones seen have
    /// the value [`Value::Null`].
    ///
    /// # Errors
    /// As [`TransactionBuilder::read`].
    pub fn scan<'s>(
        &mut self,
        low: &[u8],
        high: Option<&[u8]>,
        rows: impl IntoIterator<Item = (&'s [u8], Seen<'s>, Value<'s>)>,
    ) -> Result<&mut Self, BuildError> {
        self.begin_scan(low, high)?;
        for (key, seen, value) in rows {
            let value = self.builder.atom(value)?;
            self.scan_row(key, seen, value)?;
        }
        Ok(self)
    }

    /// An append of `element`, unique for its key, to the list at `key`.
    ///
    /// # Errors
    /// As [`TransactionBuilder::read`].
    pub fn append(&mut self, key: &[u8], element: Value<'_>) -> Result<&mut Self, BuildError> {
        self.builder.require(Kind::Append, "an append")?;
        let key = self.builder.key(key)?;
        let element = self.builder.element(key, element)?;
        self.push(Op::Append { key, element })
    }

    /// A read of the whole list at `key`.
    ///
    /// # Errors
    /// As [`TransactionBuilder::read`].
    pub fn read_list<'s>(
        &mut self,
        key: &[u8],
        list: impl IntoIterator<Item = Value<'s>>,
    ) -> Result<&mut Self, BuildError> {
        self.begin_list(key)?;
        for element in list {
            let element = self.builder.atom(element)?;
            self.list_element(element)?;
        }
        Ok(self)
    }

    pub(super) fn intern_json(&mut self, json: &str) -> Result<u32, BuildError> {
        self.builder.text(json)
    }

    pub(super) fn kind(&self) -> Kind {
        self.builder.kind()
    }

    pub(super) fn read_atom(
        &mut self,
        key: &[u8],
        seen: Seen<'_>,
        value: Atom,
    ) -> Result<&mut Self, BuildError> {
        self.builder.require(Kind::Version, "a read of a version")?;
        let seen = self.builder.seen(seen)?;
        let key = self.builder.key(key)?;
        self.push(Op::Read { key, seen, value })
    }

    pub(super) fn write_atom(
        &mut self,
        key: &[u8],
        version: Option<Version<'_>>,
        value: Atom,
    ) -> Result<&mut Self, BuildError> {
        self.builder.require(Kind::Version, "a write of a version")?;
        let version = self.builder.installed(version)?;
        let key = self.builder.key(key)?;
        self.push(Op::Write { key, version, value })
    }

    pub(super) fn append_atom(&mut self, key: &[u8], atom: Atom) -> Result<&mut Self, BuildError> {
        self.builder.require(Kind::Append, "an append")?;
        let key = self.builder.key(key)?;
        let element = self.builder.element_atom(key, atom)?;
        self.push(Op::Append { key, element })
    }

    pub(super) fn begin_scan(&mut self, low: &[u8], high: Option<&[u8]>) -> Result<(), BuildError> {
        self.builder.require(Kind::Version, "a scan")?;
        let history = &mut self.builder.history;
        let scan = index(history.scans.len(), "scans")?;
        let rows = history.rows.len()..history.rows.len();
        history.scans.push(Scan { low: low.into(), high: high.map(Into::into), rows });
        self.push(Op::Scan { scan }).map(|_| ())
    }

    /// Adds a row to the scan begun last.
    pub(super) fn scan_row(
        &mut self,
        key: &[u8],
        seen: Seen<'_>,
        value: Atom,
    ) -> Result<(), BuildError> {
        let seen = self.builder.seen(seen)?;
        let key = self.builder.key(key)?;
        let history = &mut self.builder.history;
        history.rows.push(Row { key, seen, value });
        if let Some(scan) = history.scans.last_mut() {
            scan.rows.end = history.rows.len();
        }
        Ok(())
    }

    pub(super) fn begin_list(&mut self, key: &[u8]) -> Result<(), BuildError> {
        self.builder.require(Kind::Append, "a read of a list")?;
        let key = self.builder.key(key)?;
        let start = self.builder.history.lists_read.len() as u64;
        self.push(Op::ReadList { key, start, length: 0 }).map(|_| ())
    }

    /// Adds an element to the list read begun last.
    pub(super) fn list_element(&mut self, atom: Atom) -> Result<(), BuildError> {
        let Some(Op::ReadList { key, .. }) = self.builder.history.ops.last() else {
            return Ok(());
        };
        let element = self.builder.element_atom(*key, atom)?;
        let history = &mut self.builder.history;
        history.lists_read.push(element);
        if let Some(Op::ReadList { length, .. }) = history.ops.last_mut() {
            *length = length.checked_add(1).ok_or(BuildError::TooMany("elements of one list"))?;
        }
        Ok(())
    }

    fn push(&mut self, op: Op) -> Result<&mut Self, BuildError> {
        index(self.builder.history.ops.len(), "operations")?;
        self.builder.history.ops.push(op);
        Ok(self)
    }
}
