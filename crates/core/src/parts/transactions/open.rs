//! Transactions that take operations, for coordinators that buffer writes until the commit.

use std::collections::BTreeMap;

use super::transaction::{ReadEntry, TransactionSets};
use crate::bytes::SmallBytes;
use crate::ids::{RepositoryId, SpaceId, Timestamp, Txn, TxnId};
use crate::limits::Limits;
use crate::options::TxnOptions;
use crate::outcome::Failure;
use crate::parts::versions::Handle;
use crate::recorder::{Recorder, Status};
use crate::time::Nanos;

/// A transaction, with what it has read and is going to write.
#[derive(Clone, Debug)]
pub struct OpenTransaction {
    /// As its client began it.
    pub options: TxnOptions,
    /// When that was.
    pub begin: Nanos,
    /// What it has read and is going to write, and what the history says of that.
    pub sets: TransactionSets,
}

/// The transactions of a coordinator that take operations, by slot.
#[derive(Clone, Debug, Default)]
pub struct OpenTransactions {
    begun: u32,
    open: BTreeMap<u32, OpenTransaction>,
}

impl OpenTransactions {
    /// A transaction begins.
    pub fn begin(&mut self, options: TxnOptions, begin: Nanos) -> Txn {
        self.begun = self.begun.wrapping_add(1);
        let open = OpenTransaction { options, begin, sets: TransactionSets::default() };
        let before = self.open.insert(self.begun, open);
        assert!(before.is_none(), "slot {} is free", self.begun);
        Txn { slot: self.begun, generation: 0 }
    }

    /// A transaction that takes operations.
    ///
    /// # Errors
    /// It has ended.
    pub fn get(&mut self, txn: Txn) -> Result<&mut OpenTransaction, Failure> {
        self.open.get_mut(&txn.slot).ok_or(Failure::Ended)
    }

    /// Ends a transaction: it takes no further operations.
    ///
    /// # Errors
    /// It has ended before.
    pub fn end(&mut self, txn: Txn) -> Result<OpenTransaction, Failure> {
        self.open.remove(&txn.slot).ok_or(Failure::Ended)
    }

    /// All of them.
    pub fn all(&self) -> Vec<Txn> {
        self.open.keys().map(|&slot| Txn { slot, generation: 0 }).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl OpenTransaction {
    /// The transaction's own write of a key, which is what it reads: `Some(None)` where it deleted
    /// it.
    pub fn read_own(&mut self, space: SpaceId, key: &SmallBytes) -> Option<Option<SmallBytes>> {
        let own = self.sets.own(space, key)?.clone();
        self.sets.operations.read_own(space, key, own.as_ref());
        Some(own)
    }

    /// It has read a key at a repository, in this version.
    pub fn has_read(
        &mut self,
        (space, key): (SpaceId, SmallBytes),
        repository: RepositoryId,
        (version, value): (Timestamp, Option<&SmallBytes>),
    ) {
        self.sets.operations.read(space, &key, version, value);
        let handle = Handle::NONE;
        self.sets.reads.push(ReadEntry { space, repository, handle, key, version });
    }

    /// Buffers a write.
    ///
    /// # Errors
    /// It is read-only, or over a limit.
    pub fn write(
        &mut self,
        write: (SpaceId, SmallBytes, Option<SmallBytes>),
        limits: &Limits,
    ) -> Result<(), Failure> {
        if self.options.read_only {
            return Err(Failure::ReadOnly);
        }
        self.sets.write_recorded(write, limits)
    }

    /// The versions that it read, by key.
    pub fn reads(&self) -> Vec<(SpaceId, SmallBytes, Timestamp)> {
        self.sets.reads.iter().map(|it| (it.space, it.key.clone(), it.version)).collect()
    }

    /// What it is going to write, by key; a value of `None` deletes.
    pub fn writes(&self) -> Vec<(SpaceId, SmallBytes, Option<SmallBytes>)> {
        self.sets.writes.iter().map(|it| (it.space, it.key.clone(), it.value.clone())).collect()
    }

    /// Writes it into a history, as `id` that ended so, then, and at this timestamp.
    pub fn record(
        &self,
        id: TxnId,
        status: Status,
        (end, at): (Option<Nanos>, Option<Timestamp>),
        recorder: &mut Recorder,
    ) {
        self.sets.record(id, (self.begin, &self.options), status, (end, at), recorder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId(0);

    #[test]
    fn what_a_transaction_wrote_it_reads_until_it_has_ended() {
        let (mut all, limits) = (OpenTransactions::default(), Limits::default());
        let txn = all.begin(TxnOptions::default(), Nanos(1));
        let open = all.get(txn).unwrap();
        let key = SmallBytes::from("k");
        assert_eq!(open.read_own(SPACE, &key), None);
        open.has_read((SPACE, key.clone()), RepositoryId(0), (Timestamp(3), None));
        open.write((SPACE, key.clone(), Some("v".into())), &limits).unwrap();
        assert_eq!(open.read_own(SPACE, &key), Some(Some("v".into())));
        assert_eq!(open.reads(), [(SPACE, key.clone(), Timestamp(3))]);
        assert_eq!(open.writes(), [(SPACE, key, Some("v".into()))]);
        assert_eq!((all.all(), all.len()), (vec![txn], 1));
        assert!(all.end(txn).is_ok() && all.is_empty());
        assert_eq!(all.get(txn).err(), Some(Failure::Ended));
        assert_eq!(all.end(txn).err(), Some(Failure::Ended));
    }

    #[test]
    fn a_read_only_transaction_writes_nothing() {
        let mut all = OpenTransactions::default();
        let txn = all.begin(TxnOptions { read_only: true, ..TxnOptions::default() }, Nanos(0));
        let refused = all.get(txn).unwrap().write((SPACE, "k".into(), None), &Limits::default());
        assert_eq!(refused, Err(Failure::ReadOnly));
    }
}
