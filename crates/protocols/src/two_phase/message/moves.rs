//! What messages and records say of keys that move.
//!
//! A key has one owner, a repository. A commit that moves it says so to both: the one that it
//! leaves writes nothing and keeps a pointer, the one at which it arrives writes the value. The
//! time of a move is the version that was written with it; it only grows, so that of two pointers
//! the later one counts.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use muesli_core::wire::{Reader, Wire, WireError};
use muesli_core::{RepositoryId, SmallBytes, SpaceId, Timestamp, wire_enum, wire_struct};

use crate::two_phase::Variant;

/// A list that there is only where keys can move: messages of other protocols have no byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhereKeysMove<V, T> {
    list: Vec<T>,
    variant: PhantomData<V>,
}

impl<V, T> Default for WhereKeysMove<V, T> {
    fn default() -> Self {
        WhereKeysMove { list: Vec::new(), variant: PhantomData }
    }
}

impl<V, T> Deref for WhereKeysMove<V, T> {
    type Target = Vec<T>;

    #[inline]
    fn deref(&self) -> &Vec<T> {
        &self.list
    }
}

impl<V: Variant, T> DerefMut for WhereKeysMove<V, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        assert!(V::POLICIES.moving.may_move(), "{} moves no keys", V::NAME);
        &mut self.list
    }
}

impl<V: Variant, T: Wire> Wire for WhereKeysMove<V, T> {
    const LEAST_BYTES: usize =
        if V::POLICIES.moving.may_move() { Vec::<T>::LEAST_BYTES } else { 0 };

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        if V::POLICIES.moving.may_move() {
            self.list.encode(out);
        }
    }

    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, WireError> {
        let list = match V::POLICIES.moving.may_move() {
            true => Vec::decode(input)?,
            false => Vec::new(),
        };
        Ok(WhereKeysMove { list, variant: PhantomData })
    }
}

/// A key that was asked for is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Its place among what was answered.
    pub place: u32,
    /// Where it went, as far as is known here; where static placement puts it, if nothing is.
    pub to: RepositoryId,
    /// When it went there; zero: nothing is known here.
    pub at: Timestamp,
}

wire_struct!(Redirect { place: u32, to: RepositoryId, at: Timestamp });

/// A key that is asked for, of which who asks has a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCopy {
    /// Its place among the keys.
    pub place: u32,
    /// The version that the copy is of.
    pub version: Timestamp,
}

wire_struct!(KnownCopy { place: u32, version: Timestamp });

/// A write that moves its key away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavingWrite {
    /// Its place among the writes.
    pub place: u32,
    /// Who has the key from then on.
    pub to: RepositoryId,
}

wire_struct!(LeavingWrite { place: u32, to: RepositoryId });

/// A write that moves its key here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivingWrite {
    /// Its place among the writes.
    pub place: u32,
    /// Who has the key until then.
    pub from: RepositoryId,
}

wire_struct!(ArrivingWrite { place: u32, from: RepositoryId });

/// A key of a range that is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedRow {
    /// The key.
    pub key: SmallBytes,
    /// Where it went.
    pub to: RepositoryId,
    /// When.
    pub at: Timestamp,
}

wire_struct!(MovedRow { key: SmallBytes, to: RepositoryId, at: Timestamp });

/// A key and who has had it since a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedKey {
    /// The key's space.
    pub space: SpaceId,
    /// The key.
    pub key: SmallBytes,
    /// Its owner.
    pub to: RepositoryId,
    /// Since when.
    pub at: Timestamp,
}

wire_struct!(MovedKey { space: SpaceId, key: SmallBytes, to: RepositoryId, at: Timestamp });

impl MovedKey {
    /// How many bytes it takes, about.
    pub(in crate::two_phase) fn bytes(&self) -> usize {
        14 + self.key.len()
    }
}

/// A part of what a repository knows of keys that moved, in the order in which they are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnedPart {
    /// Keys that it owns and that static placement puts elsewhere.
    Owned,
    /// Its pointers of such keys.
    Pointers,
    /// Its pointers to whoever asks, of keys that static placement puts with it.
    TakenToBeThere,
}

wire_enum!(OwnedPart, "part of what is owned" {
    0 => Owned,
    1 => Pointers,
    2 => TakenToBeThere,
});

/// Where a page begins of what a repository knows of keys that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedPosition {
    /// The part that it is of.
    pub part: OwnedPart,
    /// The space.
    pub space: u32,
    /// The slot of the space.
    pub slot: u64,
}

wire_struct!(OwnedPosition { part: OwnedPart, space: u32, slot: u64 });

impl OwnedPosition {
    /// The beginning of a part.
    pub fn start_of(part: OwnedPart) -> OwnedPosition {
        OwnedPosition { part, space: 0, slot: 0 }
    }
}

/// Which page a repository that has lost its disk asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedQuestion {
    /// When it began to ask, by its clock; it tells its answers from those of an earlier start.
    pub number: u64,
    /// Where the page begins.
    pub from: OwnedPosition,
}

wire_struct!(OwnedQuestion { number: u64, from: OwnedPosition });

/// A page of what a repository knows of keys that moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedPage<V: Variant> {
    /// What was asked.
    pub question: OwnedQuestion,
    /// Keys, each with its owner and a version from which it has had it at least.
    pub owned: Vec<MovedKey>,
    /// Where the next page begins; `None`: there is none, or none but of the last part.
    pub next: Option<OwnedPosition>,
    /// The largest timestamp that the repository knows of.
    pub newest: V::Snapshot,
}

wire_struct!(OwnedPage<V: Variant> {
    question: OwnedQuestion,
    owned: Vec<MovedKey>,
    next: Option<OwnedPosition>,
    newest: V::Snapshot,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Snapshots;
    use crate::tfa::OwnedObjects;

    const ARRIVING: ArrivingWrite = ArrivingWrite { place: 7, from: RepositoryId(1) };

    #[test]
    fn other_protocols_have_no_byte_of_it() {
        let mut moving = WhereKeysMove::<OwnedObjects, ArrivingWrite>::default();
        moving.push(ARRIVING);
        let (mut some, mut none) = (Vec::new(), Vec::new());
        moving.encode(&mut some);
        WhereKeysMove::<Snapshots, ArrivingWrite>::default().encode(&mut none);
        assert_eq!((some.len(), none.len()), (10, 0));
        assert_eq!(Wire::decode(&mut Reader::new(&some)), Ok(moving));
    }

    #[test]
    #[should_panic(expected = "moves no keys")]
    fn what_does_not_move_is_not_said_to() {
        WhereKeysMove::<Snapshots, ArrivingWrite>::default().push(ARRIVING);
    }
}
