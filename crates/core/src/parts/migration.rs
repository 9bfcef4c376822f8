//! A partition on its way from one repository to another, while its source goes on serving it.
//!
//! # The idea
//! The destination asks the source again and again, and says what it [has](Fetched). First all
//! keys come, a piece at a time; then, numbered from the beginning of the first piece on, all
//! changes ([`Load`]). A piece may have seen changes that come again: of a key the later version
//! stays. The switch is a transaction of the protocol, a [`Move`]: its source votes for it only if
//! the destination has all that there is ([`MigrationSource::is_whole`]) and nothing touches the
//! partition, its destination only if it has what the move says
//! ([`MigrationDestination::has_all_of`]). Who holds the partition afterwards, and by which epoch,
//! is said by the [locator](super::locator).
//!
//! Nobody else keeps any of it going: if whoever moves the partition dies, both forget about it
//! after a lease. What is fetched in one life of the destination is of no use to the next one,
//! which begins anew; unless it has voted for the move.
//!
//! # What the protocol does
//! It logs what is fetched before it tells of it, sends only what is stable at the source, and
//! notes each change of the partition ([`MigrationSource::note`]) in the order of their timestamps.

use std::collections::VecDeque;

use crate::bytes::SmallBytes;
use crate::checkpoint::Cursor;
use crate::ids::{RepositoryId, SpaceId, Timestamp};
use crate::parts::spaces::{KEY_BYTES, Newest, Spaces};
use crate::time::Nanos;
use crate::{wire_enum, wire_struct};

/// Bytes of a piece, and of changes that are sent at once, about.
const PIECE_BYTES: usize = 64 << 10;
/// With more than this kept for a destination, it begins anew, in bytes.
const CHANGES_MAX: usize = 64 << 20;
/// How long a partition is held still is not doubled more often than this.
const DOUBLINGS_MAX: u32 = 6;

/// A key with its new value; `None` deletes.
pub type Write = (SpaceId, SmallBytes, Option<SmallBytes>);

/// A move: what its participants agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// What moves.
    pub partition: u16,
    /// From where.
    pub from: RepositoryId,
    /// To where.
    pub to: RepositoryId,
    /// Its epoch afterwards.
    pub epoch: u64,
    /// What is to be at the destination, and all that there is at the source.
    pub has: Fetched,
}

wire_struct!(Move {
    partition: u16,
    from: RepositoryId,
    to: RepositoryId,
    epoch: u64,
    has: Fetched,
});

/// How much of a partition is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many pieces.
    pub pieces: u32,
    /// How many changes since the first piece.
    pub changes: u64,
    /// Which attempt this is: later ones of a repository have higher numbers.
    pub stream: Timestamp,
    /// By which name the source knows it, in that life; zero until it has answered.
    pub source: Timestamp,
}

wire_struct!(Fetched { pieces: u32, changes: u64, stream: Timestamp, source: Timestamp });

impl Fetched {
    /// Whether nothing is fetched.
    pub fn is_nothing(self) -> bool {
        self == Fetched { stream: self.stream, ..Fetched::default() }
    }
}

/// What a source gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// The next piece of all keys.
    Piece {
        /// From 1.
        number: u32,
        /// Keys with their newest versions, deleted ones too.
        keys: Vec<Newest>,
    },
    /// All pieces are there; these changes are next.
    Changes {
        /// So many came before.
        from: u64,
        /// What was written where, as it was done.
        changes: Vec<(Timestamp, Vec<Write>)>,
        /// There are no more.
        whole: bool,
    },
    /// This attempt is not known here, or the partition is not: begin anew.
    Unknown,
}

wire_enum!(Load, "load" {
    0 => Piece { number: u32, keys: Vec<Newest> },
    1 => Changes { from: u64, changes: Vec<(Timestamp, Vec<Write>)>, whole: bool },
    2 => Unknown,
});

/// A partition that is copied from here, as its source knows the way.
///
/// Invariants: `bytes` are those of the changes that are kept, none of which is empty; the last
/// piece is there to be sent again until all keys were sent.
#[derive(Clone, Debug)]
pub struct MigrationSource {
    to: RepositoryId,
    stream: Timestamp,
    /// Nobody else was ever given this name: what is asked for twice may begin twice.
    source: Timestamp,
    /// The way through all keys; `None` once it has come to the end.
    cursor: Option<Cursor>,
    /// How many pieces were sent, and the last of them, which may be lost.
    sent: u32,
    last: Vec<Newest>,
    /// Changes that are not acknowledged.
    changes: VecDeque<(Timestamp, Vec<Write>)>,
    /// How many are.
    acknowledged: u64,
    bytes: usize,
    /// When the destination asked last.
    asked_at: Nanos,
    /// How often a move to it was refused since.
    refused: u32,
}

impl MigrationSource {
    /// Begins a copy for a destination and its attempt `stream`; `source` is a name that was never
    /// given before.
    pub fn new(
        to: RepositoryId,
        stream: Timestamp,
        source: Timestamp,
        now: Nanos,
    ) -> MigrationSource {
        MigrationSource {
            to,
            stream,
            source,
            cursor: Some(Cursor::default()),
            sent: 0,
            last: Vec::new(),
            changes: VecDeque::new(),
            acknowledged: 0,
            bytes: 0,
            asked_at: now,
            refused: 0,
        }
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let bytes: usize = self.changes.iter().map(|(_, writes)| writes_bytes(writes)).sum();
        assert_eq!(self.bytes, bytes, "bytes of changes for {:?}", self.to);
        assert!(self.changes.iter().all(|(_, writes)| !writes.is_empty()), "a change of nothing");
        assert!(self.cursor.is_some() || self.last.is_empty(), "a piece after the last one");
    }

    /// The name under which the destination knows it.
    pub fn name(&self) -> Timestamp {
        self.source
    }

    /// A move is refused: for how long nothing of the partition is to be taken up, so that the next
    /// attempt finds all of it there. At first `shortest`, and longer each time, as nobody knows
    /// how long a round takes.
    pub fn hold_still(&mut self, shortest: Nanos) -> Nanos {
        let doublings = self.refused.min(DOUBLINGS_MAX);
        self.refused += 1;
        Nanos(shortest.0 << doublings)
    }

    /// Whether this is the copy that a destination has so much of.
    pub fn is_for(&self, to: RepositoryId, has: Fetched) -> bool {
        let is_named = has.source == self.source || has.is_nothing();
        self.to == to && self.stream == has.stream && is_named
    }

    /// Whether another attempt, of `to`, takes its place: a later one of the same destination, or
    /// any once nothing was asked for `patience`.
    pub fn gives_way(
        &self,
        (to, stream): (RepositoryId, Timestamp),
        now: Nanos,
        patience: Nanos,
    ) -> bool {
        self.to == to && self.stream < stream || self.asked_at + patience <= now
    }

    /// Whether `has` is all that there is.
    pub fn is_whole(&self, has: Fetched) -> bool {
        let total = self.acknowledged + self.changes.len() as u64;
        self.cursor.is_none() && self.sent == has.pieces && total == has.changes
    }

    /// Whether it is worth keeping: the destination has asked within a lease, and what changed
    /// meanwhile is not too much.
    pub fn is_wanted(&self, now: Nanos, lease: Nanos) -> bool {
        self.asked_at + lease > now && self.bytes <= CHANGES_MAX
    }

    /// Keys of the partition were written.
    pub fn note(&mut self, at: Timestamp, writes: Vec<Write>) {
        if !writes.is_empty() {
            self.bytes += writes_bytes(&writes);
            self.changes.push_back((at, writes));
        }
    }

    /// What comes after what the destination has, from stores of which the keys that are `wanted`
    /// are the partition's; `None`: it says that it has what cannot be.
    pub fn next_load(
        &mut self,
        spaces: &Spaces,
        wanted: impl Fn(SpaceId, &SmallBytes) -> bool,
        has: Fetched,
        now: Nanos,
    ) -> Option<Load> {
        self.asked_at = now;
        if has.pieces == self.sent
            && let Some(cursor) = &mut self.cursor
        {
            match spaces.next_newest(cursor, PIECE_BYTES, wanted) {
                Some(keys) => (self.sent, self.last) = (self.sent + 1, keys),
                None => (self.cursor, self.last) = (None, Vec::new()),
            }
        }
        if has.pieces.checked_add(1) == Some(self.sent) && self.cursor.is_some() {
            return Some(Load::Piece { number: self.sent, keys: self.last.clone() });
        }
        let is_possible =
            has.pieces == self.sent && self.cursor.is_none() && self.acknowledge(has.changes);
        is_possible.then(|| self.next_changes())
    }

    /// So many changes have come; false: that cannot be.
    fn acknowledge(&mut self, upto: u64) -> bool {
        while self.acknowledged < upto {
            let Some((_, writes)) = self.changes.pop_front() else { return false };
            let bytes = writes_bytes(&writes);
            assert!(bytes <= self.bytes, "a change that was not counted");
            (self.acknowledged, self.bytes) = (self.acknowledged + 1, self.bytes - bytes);
        }
        self.acknowledged == upto
    }

    fn next_changes(&self) -> Load {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for change in &self.changes {
            // One alone may be as long as a transaction.
            bytes += writes_bytes(&change.1);
            if !changes.is_empty() && bytes > PIECE_BYTES {
                break;
            }
            changes.push(change.clone());
        }
        assert!(!changes.is_empty() || self.changes.is_empty(), "no change is sent of those kept");
        let whole = changes.len() == self.changes.len();
        Load::Changes { from: self.acknowledged, changes, whole }
    }
}

/// A partition as far as it is copied here.
#[derive(Clone, Debug)]
pub struct MigrationDestination {
    from: RepositoryId,
    has: Fetched,
    asked_at: Nanos,
}

/// What a destination does with what a source gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// These keys are next; `whole`: they are the last ones for now.
    Next {
        /// Keys with their newest versions, deleted ones too.
        keys: Vec<Newest>,
        /// Whether there are no more.
        whole: bool,
    },
    /// It is of another attempt, or was here before.
    Late,
    /// The source does not know the attempt: it has to begin anew.
    Unknown,
}

impl MigrationDestination {
    /// Begins the attempt `stream`, a name that was never given before.
    pub fn new(from: RepositoryId, stream: Timestamp, now: Nanos) -> MigrationDestination {
        let has = Fetched { stream, ..Fetched::default() };
        MigrationDestination { from, has, asked_at: now }
    }

    /// From where.
    pub fn source(&self) -> RepositoryId {
        self.from
    }

    /// How much is here.
    pub fn has(&self) -> Fetched {
        self.has
    }

    /// Whoever moves the partition asks for more of it.
    pub fn ask(&mut self, now: Nanos) {
        self.asked_at = now;
    }

    /// Whether anybody has asked within a lease.
    pub fn is_wanted(&self, now: Nanos, lease: Nanos) -> bool {
        self.asked_at + lease > now
    }

    /// Whether all that a move says is here.
    pub fn has_all_of(&self, order: &Move) -> bool {
        self.from == order.from && self.has == order.has
    }

    /// Takes what a source gave, for the attempt `stream`, under its name `source`.
    pub fn load(
        &mut self,
        from: RepositoryId,
        (stream, source): (Timestamp, Timestamp),
        load: Load,
    ) -> Loaded {
        let mut has = self.has;
        let is_other = !has.is_nothing() && has.source != source && load != Load::Unknown;
        if self.from != from || has.stream != stream || is_other {
            return Loaded::Late;
        }
        has.source = source;
        let (keys, whole) = match load {
            Load::Piece { number, keys } if number == has.pieces + 1 => {
                has.pieces = number;
                (keys, false)
            }
            Load::Changes { from, changes, whole } if from == has.changes => {
                has.changes += changes.len() as u64;
                (changes.into_iter().flat_map(keys_of).collect(), whole)
            }
            Load::Piece { .. } | Load::Changes { .. } => return Loaded::Late,
            Load::Unknown => return Loaded::Unknown,
        };
        let is_more = has.pieces >= self.has.pieces && has.changes >= self.has.changes;
        assert!(is_more, "what is loaded from {from:?} becomes less");
        self.has = has;
        Loaded::Next { keys, whole }
    }
}

/// The keys of a change.
fn keys_of((at, writes): (Timestamp, Vec<Write>)) -> impl Iterator<Item = Newest> {
    writes.into_iter().map(move |(space, key, value)| (space, key, at, value))
}

fn writes_bytes(writes: &[Write]) -> usize {
    let bytes = |value: &Option<SmallBytes>| value.as_ref().map_or(0, SmallBytes::len);
    writes.iter().map(|(_, key, value)| KEY_BYTES + key.len() + bytes(value)).sum()
}

#[cfg(test)]
#[path = "migration_tests.rs"]
mod tests;
