//! What a member of a group must remember, as the consensus library reads and writes it.
//!
//! The library asks for a storage that writes at once. This one writes into memory and lists what
//! it wrote as [`Change`]s; the replica logs them before it says anything, which comes to the same
//! (see the crate's page). A start replays them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use muesli_core::Wire;
use omnipaxos::ballot_leader_election::Ballot as LibraryBallot;
use omnipaxos::storage::StorageResult;
use omnipaxos::storage::{Entry as LibraryEntry, Snapshot, StopSign, Storage, StorageOp};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::configuration::{Configuration, MARK};
use crate::join::Formed;
use crate::protocol::Ballot;

/// A record of the protocol inside, as bytes, or the end of a [`Configuration`]. The library, what
/// a member remembers and what it logs each have it, and share its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry(pub Arc<[u8]>);

impl From<Vec<u8>> for Entry {
    fn from(bytes: Vec<u8>) -> Entry {
        Entry(bytes.into())
    }
}

impl Entry {
    /// The entry by which a configuration ends, and this one begins.
    pub fn that_begins(next: &Configuration) -> Entry {
        let mut bytes = vec![MARK];
        next.encode(&mut bytes);
        Entry::from(bytes)
    }

    /// The configuration that begins with this entry, if it is such.
    pub fn begins(&self) -> Option<Configuration> {
        let (mark, rest) = self.0.split_first()?;
        if *mark != MARK {
            return None;
        }
        Configuration::decode_all(rest).ok()
    }
}

/// The state of the protocol inside after some entries: the pieces of a checkpoint and the entries
/// to replay on top of it. Without pieces, all entries there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// How many entries the checkpoint stands for.
    pub covers: u64,
    /// Pieces of a checkpoint, in order.
    pub pieces: Vec<Entry>,
    /// What follows it.
    pub then: Vec<Entry>,
}

/// All that a member knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How far the group had come when it formed, as far as the member knows.
    pub formed: Formed,
    /// In which epoch the member came to the node whose memory this is.
    pub since: u64,
    /// Who votes, as far as it knows; ballots and undecided entries are of this configuration.
    pub configuration: Configuration,
    /// It follows nobody with a smaller ballot.
    pub promise: Ballot,
    /// Whose entries it has.
    pub accepted: Ballot,
    /// How many entries are decided, as far as it knows.
    pub decided: u64,
    /// How many entries the image stands for.
    pub compacted: u64,
    /// The state after these.
    pub image: Image,
    /// The entries after these.
    pub entries: Vec<Entry>,
}

/// A change of what a member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These entries stand from this number on, and nothing after them.
    Entries(u64, Vec<Entry>),
    /// Promised to follow.
    Promise(Ballot),
    /// Has the entries of.
    Accepted(Ballot),
    /// Knows as decided.
    Decided(u64),
    /// So many entries are in the image.
    Compacted(u64, Image),
    /// Learned everything from the others.
    Adopted(Standing),
    /// So many entries are decided, and with the last of them another configuration begins.
    Configured(u64, Configuration),
}

impl Standing {
    /// How many entries there are, those of the image included.
    pub fn length(&self) -> u64 {
        self.compacted + self.entries.len() as u64
    }

    /// Roughly its bytes on a wire.
    pub fn bytes(&self) -> usize {
        let size = |entries: &[Entry]| entries.iter().map(|entry| 4 + entry.0.len()).sum::<usize>();
        60 + size(&self.entries) + size(&self.image.pieces) + size(&self.image.then)
    }

    /// The configuration that is next, if this one has an entry that ends it. It may not be
    /// decided.
    pub fn next(&self) -> Option<Configuration> {
        let next = self.entries.last().and_then(Entry::begins);
        next.filter(|next| next.number == self.configuration.number + 1)
    }

    /// Makes a change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Entries(from, entries) => {
                let kept = from.saturating_sub(self.compacted) as usize;
                self.entries.truncate(kept);
                self.entries.extend(entries);
            }
            Change::Promise(ballot) => self.promise = ballot,
            Change::Accepted(ballot) => self.accepted = ballot,
            Change::Decided(upto) => self.decided = upto,
            Change::Compacted(upto, image) => {
                let gone = upto.saturating_sub(self.compacted).min(self.entries.len() as u64);
                self.entries.drain(..gone as usize);
                (self.compacted, self.image) = (upto, image);
            }
            Change::Adopted(standing) => *self = standing,
            Change::Configured(upto, configuration) => {
                self.entries.truncate(upto.saturating_sub(self.compacted) as usize);
                self.decided = upto;
                // Nobody has accepted anything of the new one. Ballots go on from where they were.
                self.accepted = Ballot::default();
                if self.promise != Ballot::default() {
                    self.promise.configuration = configuration.number;
                }
                self.configuration = configuration;
            }
        }
    }
}

/// What a member knows, shared between the replica and the library.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
struct Inside {
    standing: Standing,
    /// Made and not logged.
    changes: Vec<Vec<Change>>,
    /// A checkpoint to stand in for the entries up to a number, when these are compacted.
    ready: Option<(u64, Vec<Entry>)>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is known.
    pub fn look<T>(&self, look: impl FnOnce(&Standing) -> T) -> T {
        look(&self.lock().standing)
    }

    /// Makes changes that need no logging, because they come from the log.
    pub fn replay(&self, changes: Vec<Change>) {
        let mut inside = self.lock();
        changes.into_iter().for_each(|change| inside.standing.apply(change));
    }

    /// Makes changes.
    pub fn make(&self, changes: Vec<Change>) {
        let mut inside = self.lock();
        changes.iter().for_each(|change| inside.standing.apply(change.clone()));
        inside.changes.push(changes);
    }

    /// The changes made since the last call.
    pub fn take_changes(&self) -> Vec<Vec<Change>> {
        std::mem::take(&mut self.lock().changes)
    }

    /// The next compaction up to `upto` is to be by this checkpoint.
    pub fn prepare_image(&self, upto: u64, pieces: Vec<Entry>) {
        self.lock().ready = Some((upto, pieces));
    }

    /// The image up to `upto`: the checkpoint that was made ready for it, or what the library says.
    ///
    /// Where the library puts what another member sent after what is here, it takes the decided
    /// entries that are here up to the *new* decided number, and so may count some twice or none.
    /// The length tells; then what was sent is put after what was decided here before.
    fn image(&self, upto: u64, given: Image) -> Image {
        let mut inside = self.lock();
        if let Some((covers, pieces)) = inside.ready.take_if(|(ready, _)| *ready == upto) {
            return Image { covers, pieces, then: Vec::new() };
        }
        if given.covers + given.then.len() as u64 == upto {
            return given;
        }
        let standing = &inside.standing;
        let sent = upto.saturating_sub(standing.decided) as usize;
        let sent = &given.then[given.then.len().saturating_sub(sent)..];
        let decided = standing.decided.saturating_sub(standing.compacted) as usize;
        let here = standing.entries.get(..decided).unwrap_or_default();
        let mut image = standing.image.clone();
        image.then.extend_from_slice(here);
        image.then.extend_from_slice(sent);
        assert_eq!(image.covers + image.then.len() as u64, upto, "an image of other entries");
        image
    }
}

impl From<LibraryBallot> for Ballot {
    fn from(ballot: LibraryBallot) -> Ballot {
        let LibraryBallot { config_id: configuration, n: number, pid: member, .. } = ballot;
        Ballot { configuration, number, member }
    }
}

impl From<Ballot> for LibraryBallot {
    fn from(ballot: Ballot) -> LibraryBallot {
        if ballot == Ballot::default() {
            return LibraryBallot::default();
        }
        LibraryBallot::with(ballot.configuration, ballot.number, 0, ballot.member)
    }
}

impl LibraryEntry for Entry {
    type Snapshot = Image;
}

impl Snapshot<Entry> for Image {
    fn create(entries: &[Entry]) -> Image {
        Image { then: entries.to_vec(), ..Image::default() }
    }

    fn merge(&mut self, delta: Image) {
        self.then.extend(delta.then);
    }

    fn use_snapshots() -> bool {
        true
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'a> Deserialize<'a> for Entry {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_bytes(EntryVisitor)
    }
}

struct EntryVisitor;

impl Visitor<'_> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Entry, E> {
        Ok(Entry(bytes.into()))
    }
}

impl Storage<Entry> for Ledger {
    fn write_atomically(&mut self, operations: Vec<StorageOp<Entry>>) -> StorageResult<()> {
        let mut changes = Vec::with_capacity(operations.len());
        let mut length = self.look(Standing::length);
        let mut compacted = None;
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
                // The three of a compaction come together; the image is the last of them.
                StorageOp::Trim(upto) | StorageOp::SetCompactedIdx(upto) => {
                    compacted = Some(upto as u64);
                    continue;
                }
                StorageOp::SetSnapshot(given) => {
                    let upto = compacted.take().ok_or("an image without its number")?;
                    Change::Compacted(upto, self.image(upto, given.unwrap_or_default()))
                }
                StorageOp::SetStopsign(None) => continue,
                StorageOp::SetStopsign(Some(_)) => {
                    return Err("configurations end by entries".into());
                }
            });
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
        if self.look(|standing| standing.promise) != ballot.into() {
            self.make(vec![Change::Promise(ballot.into())]);
        }
        Ok(())
    }

    fn set_decided_idx(&mut self, upto: usize) -> StorageResult<()> {
        self.make(vec![Change::Decided(upto as u64)]);
        Ok(())
    }

    fn get_decided_idx(&self) -> StorageResult<usize> {
        Ok(self.look(|standing| standing.decided as usize))
    }

    fn set_accepted_round(&mut self, ballot: LibraryBallot) -> StorageResult<()> {
        self.make(vec![Change::Accepted(ballot.into())]);
        Ok(())
    }

    fn get_accepted_round(&self) -> StorageResult<Option<LibraryBallot>> {
        let accepted = self.look(|standing| standing.accepted);
        Ok((accepted != Ballot::default()).then(|| accepted.into()))
    }

    fn get_entries(&self, from: usize, to: usize) -> StorageResult<Vec<Entry>> {
        Ok(self.look(|standing| {
            let place = |at: usize| at.checked_sub(standing.compacted as usize);
            let (Some(from), Some(to)) = (place(from), place(to)) else { return Vec::new() };
            standing.entries.get(from..to).unwrap_or_default().to_vec()
        }))
    }

    fn get_log_len(&self) -> StorageResult<usize> {
        Ok(self.look(|standing| standing.entries.len()))
    }

    fn get_suffix(&self, from: usize) -> StorageResult<Vec<Entry>> {
        self.get_entries(from, self.look(Standing::length) as usize)
    }

    fn get_promise(&self) -> StorageResult<Option<LibraryBallot>> {
        let promise = self.look(|standing| standing.promise);
        Ok((promise != Ballot::default()).then(|| promise.into()))
    }

    fn set_stopsign(&mut self, stop: Option<StopSign>) -> StorageResult<()> {
        self.write_atomically(vec![StorageOp::SetStopsign(stop)])
    }

    fn get_stopsign(&self) -> StorageResult<Option<StopSign>> {
        Ok(None)
    }

    fn trim(&mut self, _: usize) -> StorageResult<()> {
        Err("entries are trimmed with their image".into())
    }

    fn set_compacted_idx(&mut self, _: usize) -> StorageResult<()> {
        Err("entries are compacted with their image".into())
    }

    fn get_compacted_idx(&self) -> StorageResult<usize> {
        Ok(self.look(|standing| standing.compacted as usize))
    }

    fn set_snapshot(&mut self, _: Option<Image>) -> StorageResult<()> {
        Err("an image is set with its number".into())
    }

    fn get_snapshot(&self) -> StorageResult<Option<Image>> {
        Ok(self.look(|standing| (standing.compacted > 0).then(|| standing.image.clone())))
    }
}
