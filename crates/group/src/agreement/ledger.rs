//! What a member of a group must remember, as the consensus library reads and writes it.
//!
//! The library asks for a storage that writes at once. This one writes into memory and lists what
//! it wrote as [`Change`]s; the replica logs them before it says anything, which comes to the same
//! (see the crate's page). A start replays them.
//!
//! Every change is of bounded size: the state of the participant is no part of what is remembered
//! here. It is in the participant, and in the member's checkpoint, piece by piece.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use omnipaxos::ballot_leader_election::Ballot as LibraryBallot;
use omnipaxos::storage::StorageResult;
use omnipaxos::storage::{NoSnapshot, StopSign, Storage, StorageOp};

use crate::agreement::ballot::Ballot;
use crate::agreement::configuration::Configuration;
use crate::agreement::entry::{ENTRY_BYTES, Entry};
use crate::agreement::entry_log::EntryLog;
use crate::agreement::summary::{Formed, Summary};

/// How much of its participant's state a member has on its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateOnDisk {
    /// All of it.
    #[default]
    Whole,
    /// Nothing of use.
    Nothing,
    /// So many pieces of the state after so many entries.
    Part {
        /// After how many entries.
        covers: u64,
        /// How many pieces.
        pieces: u64,
    },
}

/// All that a member knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaState {
    /// See [`Summary`].
    pub formed: Formed,
    /// See [`Summary`].
    pub since: u64,
    /// See [`Summary`].
    pub configuration: Configuration,
    /// See [`Summary`].
    pub promise: Ballot,
    /// See [`Summary`].
    pub accepted: Ballot,
    /// See [`Summary`].
    pub fetched: bool,
    /// See [`Summary`].
    pub decided: u64,
    /// The entries.
    pub log: EntryLog,
    /// How much of the participant's state is there.
    pub held: StateOnDisk,
    /// The participant's state is of use only after so many entries were replayed: its pieces hold
    /// effects of them.
    pub needs: u64,
}

/// A change of what a member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These entries stand from this number on, and nothing after them.
    Entries(u64, Vec<Entry>),
    /// The same for entries that are decided, and came from another member than the leader.
    Fetched(u64, Vec<Entry>),
    /// Promised to follow.
    Promise(Ballot),
    /// Has the entries of.
    Accepted(Ballot),
    /// Knows as decided.
    Decided(u64),
    /// So many entries are decided, and with the last of them another configuration begins.
    Configured(u64, Configuration),
    /// Learned from the others, beside the entries.
    Adopted(Box<Summary>),
    /// The log begins after so many entries of so many bytes, all decided, in this configuration;
    /// the state of the participant after them is to be transferred.
    Rebased {
        /// After how many entries.
        upto: u64,
        /// The bytes of these.
        bytes: u64,
        /// Who votes then; none while the member has no memory.
        configuration: Configuration,
    },
    /// What follows are the pieces of the participant's state after so many entries; what there was
    /// of it is of no use any more.
    Install(u64),
    /// The piece of this number, from 0.
    Piece(u64, Entry),
    /// That was all; the state is of use once this many entries were replayed.
    Installed(u64),
    /// In a checkpoint of the member: the log begins after so many entries of so many bytes, and
    /// the pieces of the participant's state follow.
    Restored {
        /// After how many entries.
        upto: u64,
        /// The bytes of these.
        bytes: u64,
    },
}

impl ReplicaState {
    /// How many entries there are, with those that were trimmed.
    pub fn length(&self) -> u64 {
        self.log.length()
    }

    /// How many pieces of a state that is under way to this member it has.
    pub fn pieces(&self) -> u64 {
        match self.held {
            StateOnDisk::Part { pieces, .. } => pieces,
            StateOnDisk::Whole | StateOnDisk::Nothing => 0,
        }
    }

    /// How many bytes the entries that are not decided take in a message, at most.
    pub fn undecided_bytes(&self) -> u64 {
        let bytes =
            self.log.bytes() - self.log.bytes_upto(self.decided).unwrap_or(self.log.bytes());
        bytes + ENTRY_BYTES * self.length().saturating_sub(self.decided)
    }

    /// What it knows, without the entries.
    pub fn summary(&self) -> Summary {
        let ReplicaState { formed, since, promise, accepted, fetched, decided, .. } = *self;
        let (configuration, length) = (self.configuration.clone(), self.length());
        let next = self.next();
        Summary { formed, since, configuration, promise, accepted, fetched, decided, length, next }
    }

    /// The configuration that is next, if this one has an entry that ends it. It may not be
    /// decided.
    pub fn next(&self) -> Option<Configuration> {
        let next = self.log.last().and_then(Entry::begins);
        next.filter(|next| next.number == self.configuration.number + 1)
    }

    /// Makes a change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Entries(from, entries) => self.log.write(from, entries),
            Change::Fetched(from, entries) => {
                self.log.write(from, entries);
                self.fetched = true;
            }
            Change::Promise(ballot) => self.promise = ballot,
            // With what the leader has before what it sends, or with what it has itself.
            Change::Accepted(ballot) => (self.accepted, self.fetched) = (ballot, false),
            Change::Decided(upto) => self.decided = upto,
            Change::Configured(upto, configuration) => {
                self.log.write(upto.min(self.log.length()), []);
                self.decided = upto;
                self.begin_configuration(configuration);
            }
            Change::Adopted(summary) => {
                let Summary { formed, since, promise, accepted, fetched, decided, .. } = *summary;
                (self.configuration, self.fetched) = (summary.configuration, fetched);
                (self.formed, self.since, self.decided) = (formed, since, decided);
                (self.promise, self.accepted) = (promise, accepted);
            }
            Change::Rebased { upto, bytes, configuration } => {
                if configuration.number > self.configuration.number {
                    self.log.write(self.log.base(), []);
                    self.begin_configuration(configuration);
                }
                self.log.rebase(upto, bytes);
                (self.decided, self.fetched) = (self.decided.max(upto), true);
                (self.held, self.needs) = (StateOnDisk::Nothing, 0);
            }
            Change::Install(covers) => {
                (self.held, self.needs) = (StateOnDisk::Part { covers, pieces: 0 }, 0);
            }
            Change::Piece(number, _) => {
                if let StateOnDisk::Part { pieces, .. } = &mut self.held {
                    assert_eq!(*pieces, number, "pieces come in their order");
                    *pieces += 1;
                }
            }
            Change::Installed(needs) => (self.held, self.needs) = (StateOnDisk::Whole, needs),
            Change::Restored { upto, bytes } => {
                self.log = EntryLog::after(upto, bytes);
                (self.held, self.needs) = (StateOnDisk::Whole, 0);
            }
        }
    }

    /// Another configuration begins: nobody has accepted anything of it. Ballots go on from where
    /// they were.
    fn begin_configuration(&mut self, configuration: Configuration) {
        self.accepted = Ballot::default();
        if self.promise != Ballot::default() {
            self.promise.configuration = configuration.number;
        }
        self.configuration = configuration;
    }
}

/// What a member knows, shared between the replica and the library.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<LedgerInner>>);

#[derive(Debug, Default)]
struct LedgerInner {
    replica_state: ReplicaState,
    /// Made and not logged.
    changes: Vec<Vec<Change>>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, LedgerInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is known.
    pub fn look<T>(&self, look: impl FnOnce(&ReplicaState) -> T) -> T {
        look(&self.lock().replica_state)
    }

    /// Makes changes that need no logging, because they come from the log.
    pub fn replay(&self, changes: Vec<Change>) {
        let mut inside = self.lock();
        changes.into_iter().for_each(|change| inside.replica_state.apply(change));
    }

    /// Makes changes.
    ///
    /// That entries are decided goes into one record with what was changed before it and is not
    /// logged yet. So of a message that brings entries, and says that those before them are
    /// decided, a crash leaves both or nothing: a member never knows of more undecided entries than
    /// the leader had that it has them from.
    pub fn make(&self, changes: Vec<Change>) {
        let inside = &mut *self.lock();
        changes.iter().for_each(|change| inside.replica_state.apply(change.clone()));
        match (&changes[..], inside.changes.last_mut()) {
            ([Change::Decided(_)], Some(last)) => last.extend(changes),
            _ => inside.changes.push(changes),
        }
    }

    /// Forgets entries that the participant's state stands for. Nothing of that is logged: the disk
    /// has them for as long as no checkpoint covers them.
    pub fn trim(&self, upto: u64) {
        let replica_state = &mut self.lock().replica_state;
        if upto > replica_state.log.base() {
            assert!(upto <= replica_state.decided, "undecided entries are not trimmed");
            replica_state.log.trim(upto);
        }
    }

    /// A transfer that had begun is given up: the participant from before it stands.
    pub fn keep_participant(&self) {
        self.lock().replica_state.held = StateOnDisk::Whole;
    }

    /// The participant was restored from a disk: its state is of use once it has replayed all that
    /// is known as decided there.
    pub fn replays_all_decided(&self) {
        let replica_state = &mut self.lock().replica_state;
        assert!(
            replica_state.decided >= replica_state.log.base(),
            "a checkpoint of undecided entries"
        );
        replica_state.needs = replica_state.needs.max(replica_state.decided);
    }

    /// The changes made since the last call.
    pub fn take_changes(&self) -> Vec<Vec<Change>> {
        std::mem::take(&mut self.lock().changes)
    }
}

impl Storage<Entry> for Ledger {
    fn write_atomically(&mut self, operations: Vec<StorageOp<Entry>>) -> StorageResult<()> {
        let mut changes = Vec::with_capacity(operations.len());
        let mut length = self.look(ReplicaState::length);
        for operation in operations {
            changes.push(match operation {
                StorageOp::AppendEntry(entry) => {
                    length += 1;
                    Change::Entries(length - 1, vec![entry])
                }
                StorageOp::AppendEntries(entries) => {
                    length += entries.len() as u64;
                    Change::Entries(length - entries.len() as u64, entries)
                }
                StorageOp::AppendOnPrefix(from, entries) => {
                    length = (from + entries.len()) as u64;
                    Change::Entries(from as u64, entries)
                }
                StorageOp::SetPromise(ballot) => Change::Promise(ballot.into()),
                StorageOp::SetAcceptedRound(ballot) => Change::Accepted(ballot.into()),
                StorageOp::SetDecidedIndex(upto) => Change::Decided(upto as u64),
                StorageOp::Trim(_) | StorageOp::SetCompactedIdx(_) | StorageOp::SetSnapshot(_) => {
                    return Err("the library neither trims nor takes snapshots".into());
                }
                StorageOp::SetStopsign(None) => continue,
                StorageOp::SetStopsign(Some(_)) => {
                    return Err("configurations end by entries".into());
                }
            });
        }
        for change in &mut changes {
            if let Change::Decided(upto) = change {
                *upto = length.min(*upto); // A member may lie about what is decided.
            }
        }
        self.make(changes);
        Ok(())
    }

    fn append_entry(&mut self, entry: Entry) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::AppendEntry(entry)])
    }

    fn append_entries(&mut self, entries: Vec<Entry>) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::AppendEntries(entries)])
    }

    fn append_on_prefix(&mut self, from: usize, entries: Vec<Entry>) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::AppendOnPrefix(from, entries)])
    }

    fn set_promise(&mut self, ballot: LibraryBallot) -> StorageResult<()> {
        if self.look(|replica_state| replica_state.promise) != ballot.into() {
            self.make(vec![Change::Promise(ballot.into())]);
        }
        Ok(())
    }

    fn set_decided_idx(&mut self, upto: usize) -> StorageResult<()> {
        let length = self.look(ReplicaState::length);
        self.make(vec![Change::Decided(length.min(upto as u64))]);
        Ok(())
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(self.look(|replica_state| replica_state.decided as usize))
    }

    fn set_accepted_round(&mut self, ballot: LibraryBallot) -> StorageResult<()> {
        self.make(vec![Change::Accepted(ballot.into())]);
        Ok(())
    }

    fn get_accepted_round(&self) -> StorageResult<Option<LibraryBallot>> {
        let accepted = self.look(|replica_state| replica_state.accepted);
        Ok((accepted != Ballot::default()).then(|| accepted.into()))
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<Entry>> {
        Ok(self.look(|replica_state| {
            replica_state.log.range(from as u64, to as u64).cloned().collect()
        }))
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        Ok(self.look(|replica_state| replica_state.log.held()))
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<Entry>> {
        self.get_entries(from, self.look(ReplicaState::length) as usize)
    }

    fn get_promise(&self) -> StorageResult<Option<LibraryBallot>> {
        let promise = self.look(|replica_state| replica_state.promise);
        Ok((promise != Ballot::default()).then(|| promise.into()))
    }

    fn set_stopsign(&mut self, stop: Option<StopSign>) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::SetStopsign(stop)])
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(None)
    }

    fn trim(&mut self, _: usize) -> StorageResult<()> {
        Err("the library does not trim".into())
    }

    fn set_compacted_idx(&mut self, _: usize) -> StorageResult<()> {
        Err("the library does not trim".into())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(self.look(|replica_state| replica_state.log.base() as usize))
    }

    fn set_snapshot(&mut self, _: Option<NoSnapshot>) -> StorageResult<()> {
        Err("the library takes no snapshots".into())
    }

    fn get_snapshot(&self) -> StorageResult<Option<NoSnapshot>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(sizes: &[usize]) -> Vec<Entry> {
        sizes.iter().map(|size| Entry::from(vec![1; *size])).collect()
    }

    #[test]
    fn entries_and_that_those_before_them_are_decided_are_one_record() {
        let mut ledger = Ledger::default();
        ledger.append_entries(entries(&[10, 20])).unwrap();
        assert_eq!(ledger.take_changes().len(), 1);
        // As one message of a leader has it.
        ledger.append_entries(entries(&[30])).unwrap();
        ledger.set_decided_idx(2).unwrap();
        let records = ledger.take_changes();
        assert_eq!(records, [vec![Change::Entries(2, entries(&[30])), Change::Decided(2)]]);
        // Alone, as where the leader has nothing else to say, it is a record of its own.
        ledger.set_decided_idx(3).unwrap();
        assert_eq!(ledger.take_changes(), [vec![Change::Decided(3)]]);
    }

    #[test]
    fn undecided_entries_are_counted_as_messages_have_them() {
        let mut ledger = Ledger::default();
        ledger.append_entries(entries(&[10, 20, 1])).unwrap();
        assert_eq!(ledger.look(ReplicaState::undecided_bytes), 31 + 15);
        ledger.set_decided_idx(2).unwrap();
        assert_eq!(ledger.look(ReplicaState::undecided_bytes), 6);
        ledger.set_decided_idx(3).unwrap();
        assert_eq!(ledger.look(ReplicaState::undecided_bytes), 0);
    }
}
