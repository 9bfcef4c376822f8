//! Locks on keys and on ranges.
//!
//! A key's lock is a word inside its store entry, so that looking costs nothing beyond the entry
//! that is being read anyway. The word tells who holds it exclusively, or how many share it; which
//! transactions share it is known to the transactions, each of which releases what it took.
//! Ranges are locked for sharing only, by scans; they are few, and kept in a list.

use std::fmt;

use crate::bytes::SmallBytes;
use crate::ids::SpaceId;
use crate::ranges::KeyRange;

/// A transaction as lock owner: its slot among the prepared ones of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u32);

/// The lock of one key: free, shared by a number of readers, held exclusively by one owner, or
/// held by a number of owners whose delayed actions will change it one after the other.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LockWord(u32);

impl LockWord {
    const EXCLUSIVE: u32 = 1 << 31;
    const DELAYED: u32 = 1 << 30;

    /// Whether nobody holds it.
    #[inline]
    pub fn is_free(self) -> bool {
        self.0 == 0
    }

    /// Whether somebody holds it exclusively.
    #[inline]
    pub fn is_exclusive(self) -> bool {
        self.0 & Self::EXCLUSIVE != 0
    }

    /// Whether those hold it whose delayed actions will change it.
    #[inline]
    pub fn is_delayed(self) -> bool {
        self.0 & (Self::EXCLUSIVE | Self::DELAYED) == Self::DELAYED
    }

    /// Whether somebody holds it who will change the key.
    #[inline]
    pub fn is_for_writing(self) -> bool {
        self.0 >= Self::DELAYED
    }

    /// Who holds it exclusively.
    pub fn exclusive_owner(self) -> Option<Owner> {
        self.is_exclusive().then_some(Owner(self.0 & !Self::EXCLUSIVE))
    }

    /// How many hold it for delayed actions.
    pub fn delayers(self) -> u32 {
        if self.is_delayed() { self.0 & !Self::DELAYED } else { 0 }
    }

    /// How many share it.
    pub fn sharers(self) -> u32 {
        if self.is_for_writing() { 0 } else { self.0 }
    }

    /// Takes it exclusively if it is free; false leaves it as it is.
    #[inline]
    pub fn try_exclusive(&mut self, owner: Owner) -> bool {
        assert!(owner.0 < Self::DELAYED, "owner out of range");
        let free = self.is_free();
        if free {
            self.0 = Self::EXCLUSIVE | owner.0;
        }
        free
    }

    /// Shares it unless somebody holds it for writing; false leaves it as it is.
    #[inline]
    pub fn try_shared(&mut self) -> bool {
        let open = !self.is_for_writing();
        if open {
            self.0 += 1;
        }
        open
    }

    /// Takes it for a delayed action if only such hold it; false leaves it as it is.
    #[inline]
    pub fn try_delayed(&mut self) -> bool {
        let open = self.is_free() || self.is_delayed();
        if open {
            self.0 = (self.0 | Self::DELAYED) + 1;
        }
        open
    }

    /// Gives back one hold for a delayed action.
    ///
    /// # Panics
    /// If nobody holds it so.
    #[inline]
    pub fn release_delayed(&mut self) {
        assert!(self.is_delayed(), "released a hold for a delayed action that nobody has");
        self.0 -= 1;
        if self.0 == Self::DELAYED {
            self.0 = 0;
        }
    }

    /// Gives back an exclusive hold.
    ///
    /// # Panics
    /// If `owner` does not hold it.
    #[inline]
    pub fn release_exclusive(&mut self, owner: Owner) {
        assert_eq!(self.exclusive_owner(), Some(owner), "released by another than its owner");
        self.0 = 0;
    }

    /// Gives back one share.
    ///
    /// # Panics
    /// If nobody shares it.
    #[inline]
    pub fn release_shared(&mut self) {
        assert!(self.sharers() > 0, "released a share that nobody holds");
        self.0 -= 1;
    }
}

impl fmt::Debug for LockWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exclusive_owner() {
            Some(owner) => write!(f, "X{}", owner.0),
            None if self.is_delayed() => write!(f, "D{}", self.0 & !Self::DELAYED),
            None => write!(f, "S{}", self.sharers()),
        }
    }
}

/// Ranges locked for sharing.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    held: Vec<(Owner, KeyRange)>,
}

impl RangeLocks {
    /// Whether no range is locked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Locks a range; ranges are shared, so this never fails.
    pub fn lock(&mut self, owner: Owner, range: KeyRange) {
        self.held.push((owner, range));
    }

    /// Who holds ranges; once for each.
    pub fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        self.held.iter().map(|(owner, _)| *owner)
    }

    /// Gives back all ranges of `owner`.
    pub fn release(&mut self, owner: Owner) {
        self.held.retain(|(holder, _)| *holder != owner);
    }

    /// Who has locked a range with this key.
    pub fn holders<'a>(
        &'a self,
        space: SpaceId,
        key: &'a SmallBytes,
    ) -> impl Iterator<Item = Owner> + 'a {
        let held = self.held.iter().filter(move |(_, range)| range.contains(space, key));
        held.map(|(holder, _)| *holder)
    }

    /// Whether somebody else than `owner` has locked a range with this key.
    #[inline]
    pub fn blocks(&self, owner: Option<Owner>, space: SpaceId, key: &SmallBytes) -> bool {
        self.held.iter().any(|(holder, range)| Some(*holder) != owner && range.contains(space, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_and_exclusive_exclude_each_other() {
        let mut lock = LockWord::default();
        assert!(lock.try_shared() && lock.try_shared());
        assert!(!lock.try_exclusive(Owner(1)));
        lock.release_shared();
        lock.release_shared();
        assert!(lock.try_exclusive(Owner(1)));
        assert!(!lock.try_shared());
        assert!(!lock.try_exclusive(Owner(2)));
        assert_eq!(lock.exclusive_owner(), Some(Owner(1)));
        lock.release_exclusive(Owner(1));
        assert!(lock.is_free());
    }

    #[test]
    fn delayed_actions_share_with_each_other_alone() {
        let mut lock = LockWord::default();
        assert!(lock.try_delayed() && lock.try_delayed());
        assert!(!lock.try_shared() && !lock.try_exclusive(Owner(0)));
        assert!(lock.is_delayed() && lock.is_for_writing() && !lock.is_exclusive());
        assert_eq!(lock.sharers(), 0);
        lock.release_delayed();
        assert!(lock.is_delayed());
        lock.release_delayed();
        assert!(lock.is_free() && lock.try_shared());
        assert!(!lock.try_delayed());
        lock.release_shared();
        assert!(lock.try_exclusive(Owner(7)) && !lock.try_delayed() && !lock.is_delayed());
    }

    #[test]
    #[should_panic(expected = "another than its owner")]
    fn a_lock_is_released_by_its_owner_only() {
        let mut lock = LockWord::default();
        assert!(lock.try_exclusive(Owner(1)));
        lock.release_exclusive(Owner(2));
    }

    #[test]
    fn ranges_block_writers_inside_but_not_their_own_owner() {
        let mut ranges = RangeLocks::default();
        let range = KeyRange { space: SpaceId(1), lo: "b".into(), hi: Some("d".into()) };
        ranges.lock(Owner(1), range);
        let blocks = |ranges: &RangeLocks, owner, space, key: &str| {
            ranges.blocks(Some(Owner(owner)), SpaceId(space), &key.into())
        };
        assert!(blocks(&ranges, 2, 1, "b") && blocks(&ranges, 2, 1, "cz"));
        assert!(!blocks(&ranges, 2, 1, "d") && !blocks(&ranges, 2, 1, "a"));
        assert!(!blocks(&ranges, 2, 0, "b") && !blocks(&ranges, 1, 1, "b"));
        let holders: Vec<_> = ranges.holders(SpaceId(1), &"c".into()).collect();
        assert_eq!(holders, [Owner(1)]);
        assert_eq!(ranges.holders(SpaceId(1), &"d".into()).count(), 0);
        ranges.release(Owner(1));
        assert!(ranges.is_empty());
    }
}
