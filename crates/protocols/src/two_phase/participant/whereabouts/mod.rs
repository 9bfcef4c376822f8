//! Which keys are here, where keys move, and where those went that are not.
//!
//! # The problem
//! A key has one owner, and whoever commits a write of it may become that. Others ask where it was.
//!
//! # The idea
//! A repository that gives a key away keeps a *pointer*: to whom, and when. Static placement says
//! where a key is that never moved, and the repository there is the key's directory: it keeps its
//! pointer for as long as the key is elsewhere, and is told of each later owner by the one before.
//! The others keep theirs until it knows. So a request that comes to the wrong place is sent on, by
//! a pointer, or to the directory: it comes to the owner, as each pointer is later than the one
//! before.
//!
//! A key is here if static placement puts it here and there is no pointer, or else if its newest
//! version has a value. While a commit that moves a key is in doubt, both repositories have its
//! lock: nobody is sent on from the new owner to the old one.
//!
//! A key that is deleted where static placement does not put it goes back to its directory, which
//! is told at once, with the version of the deletion: from then on the key is there, and absent.
//! Until then it is at neither, and whoever asks is sent to and fro.

use std::collections::BTreeSet;
use std::ops::Bound;

use muesli_core::parts::locks::LockWord;
use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::versions::Handle;
use muesli_core::{Address, Catalog, Nanos, RepositoryId, Role, SmallBytes, SpaceId, Timestamp};

use super::Participant;
use crate::two_phase::message::moves::{ArrivingWrite, MovedKey};
use crate::two_phase::message::{Message, Prepare};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::{Context, NotServed, Variant};
use directory::{directory_of, owner_of_pointer};
use rebuilding::Rebuild;

mod announcing;
pub(in crate::two_phase) mod directory;
pub(super) mod range_entries;
pub(super) mod rebuilding;

/// So many keys are told of in one message.
pub(in crate::two_phase) const KEYS_AT_ONCE: usize = 256;

/// A key with its space.
type SpaceKey = (SpaceId, SmallBytes);

/// Where keys went that were here.
///
/// Invariants: of what is to be told there is a pointer, and no more is unanswered than is told of
/// at once.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Whereabouts {
    /// By key: the number of the repository, as a version of the time of the move.
    pub pointers: Spaces,
    /// Keys that were here, and whose directories may not know yet where they went.
    untold: BTreeSet<SpaceKey>,
    /// The last one of these that they were told of.
    announced_to: Option<SpaceKey>,
    /// Of how many they were told last, and have not said that they know.
    unanswered: usize,
    /// When they were last told.
    informed: Nanos,
    /// What others are asked, as the disk was lost.
    pub rebuild: Option<Rebuild>,
}

impl Whereabouts {
    /// Nothing has moved; `hash_seed` is that of its hashes.
    pub fn new(hash_seed: u64) -> Whereabouts {
        Whereabouts {
            pointers: Spaces::new(hash_seed),
            untold: BTreeSet::new(),
            announced_to: None,
            unanswered: 0,
            informed: Nanos(0),
            rebuild: None,
        }
    }

    /// Where a key went, and when.
    pub fn pointer(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> Option<(RepositoryId, Timestamp)> {
        let pointers = self.pointers.get(space)?;
        owner_of_pointer(pointers.newest(pointers.find(key)?), catalog)
    }

    /// The keys of a range that went elsewhere, in order.
    pub fn moved_in<'a>(
        &'a self,
        space: SpaceId,
        (lo, hi): (&'a SmallBytes, Option<&'a SmallBytes>),
        catalog: &'a Catalog,
    ) -> impl DoubleEndedIterator<Item = (&'a SmallBytes, (RepositoryId, Timestamp))> {
        let pointers = self.pointers.get(space).into_iter();
        pointers.flat_map(move |pointers| {
            pointers.range(lo, hi).filter_map(move |(key, handle)| {
                Some((key, owner_of_pointer(pointers.newest(handle), catalog)?))
            })
        })
    }

    /// A key went, unless it is known to have gone later.
    fn point(&mut self, moved: &MovedKey, catalog: &Catalog) {
        assert!(moved.at > Timestamp::ZERO, "{:?} moves with a version", moved.key);
        let pointers = self.pointers.get_or_make(moved.space, catalog);
        let handle = pointers.find_or_create(Handle::NONE, &moved.key);
        if pointers.newest(handle).at < moved.at {
            let to = SmallBytes::new(&moved.to.0.to_le_bytes());
            pointers.overwrite(handle, to, moved.at);
        }
    }

    /// A key that went by then need not be pointed to any more.
    fn forget(&mut self, space: SpaceId, key: &SmallBytes, at: Timestamp, catalog: &Catalog) {
        let pointers = self.pointers.get_or_make(space, catalog);
        if let Some(handle) = pointers.find(key).filter(|it| pointers.newest(*it).at <= at) {
            pointers.erase(handle);
            self.untold.remove(&(space, key.clone()));
        }
    }

    /// Whether a directory is to be told of anything, or others are asked.
    pub fn has_news(&self) -> bool {
        !self.untold.is_empty() || self.rebuild.as_ref().is_some_and(Rebuild::asks)
    }

    /// Whether others may own keys of which nothing is known here.
    #[inline]
    pub fn lacks_owners(&self) -> bool {
        self.rebuild.as_ref().is_some_and(|rebuild| !rebuild.knows_owners)
    }

    /// The next keys that directories are told of, in turn.
    fn next_untold(&mut self) -> Vec<SpaceKey> {
        let announced_to = self.announced_to.take();
        let after = announced_to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let again = announced_to.iter().flat_map(|it| self.untold.range(..=it));
        let all = self.untold.range::<SpaceKey, _>((after, Bound::Unbounded)).chain(again);
        let next: Vec<SpaceKey> = all.take(KEYS_AT_ONCE).cloned().collect();
        self.announced_to = next.last().cloned();
        next
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        self.pointers.assert_invariants();
        assert!(self.unanswered <= KEYS_AT_ONCE, "{} keys are unanswered", self.unanswered);
        for (space, key) in &self.untold {
            let pointers = self.pointers.get(*space);
            let is_there = pointers.is_some_and(|pointers| pointers.find(key).is_some());
            assert!(is_there, "{key:?} went where nobody knows");
        }
    }
}

/// Whether a write moves its key away.
fn is_leaving<V: Variant>(prepare: &Prepare<V>, place: usize) -> bool {
    prepare.leaving.binary_search_by_key(&(place as u32), |it| it.place).is_ok()
}

impl<V: Variant> Participant<V> {
    /// Whether a key is here. Where keys do not move, whoever is asked for one has it.
    #[inline]
    pub(in crate::two_phase) fn has_key(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> bool {
        if !V::keys_move(catalog) {
            return true;
        }
        let versions = self.versions(space);
        let newest = versions.and_then(|it| it.newest(it.find(key)?).value);
        newest.is_some()
            || !self.whereabouts.lacks_owners()
                && self.is_directory_of(space, key, catalog)
                && self.whereabouts.pointer(space, key, catalog).is_none()
    }

    /// Whether everything that a transaction writes here is here, but for what arrives.
    pub(super) fn has_all_to_write(&self, prepare: &Prepare<V>, catalog: &Catalog) -> bool {
        let mut arriving = prepare.arriving.iter().peekable();
        let mut writes = prepare.writes.iter().enumerate();
        writes.all(|(at, (space, key, _))| {
            let arrives = arriving.next_if(|it: &&ArrivingWrite| it.place as usize == at).is_some();
            let is_ours = arrives || self.has_key(*space, key, catalog);
            is_ours || !self.switches.keeps(FamilySwitch::WritesAtOwner)
        })
    }

    /// A coordinator was to write keys here that are elsewhere: it is told where, as far as is
    /// known, since otherwise it would come here again.
    pub(super) fn tell_where(&self, to: Address, prepare: &Prepare<V>, cx: &mut Context<'_, V>) {
        if to.role != Role::Coordinator {
            return;
        }
        let mut arriving = prepare.arriving.iter().map(|it| it.place as usize).peekable();
        let mut moved = Vec::new();
        for (place, (space, key, _)) in prepare.writes.iter().enumerate() {
            let arrives = arriving.next_if_eq(&place).is_some();
            if moved.len() < KEYS_AT_ONCE && !arrives && !self.has_key(*space, key, cx.catalog) {
                let (to, at) = self.direct(*space, key, cx.catalog);
                moved.push(MovedKey { space: *space, key: key.clone(), to, at });
            }
        }
        if !moved.is_empty() {
            cx.send(to, Message::NewOwners { moved });
        }
    }

    /// Why a key of which no value was found is not read here, if it is not.
    #[inline]
    pub(in crate::two_phase) fn elsewhere(
        &self,
        (space, key): (SpaceId, &SmallBytes),
        lock: LockWord,
        catalog: &Catalog,
    ) -> Option<NotServed> {
        if !V::keys_move(catalog) || self.has_key(space, key, catalog) {
            return None;
        }
        // It may be about to come.
        let waits = lock.is_for_writing() || self.is_unknown(space, key, catalog);
        Some(if waits { NotServed::Blocked } else { NotServed::Elsewhere })
    }

    /// Whether this is the directory of a key, which is not here, and cannot tell who owns it.
    pub(in crate::two_phase) fn is_unknown(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> bool {
        self.whereabouts.lacks_owners()
            && self.is_directory_of(space, key, catalog)
            && self.whereabouts.pointer(space, key, catalog).is_none()
    }

    /// Where a key is to be looked for that is not here, and since when; zero: its directory knows.
    pub(in crate::two_phase) fn direct(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> (RepositoryId, Timestamp) {
        let pointer = self.whereabouts.pointer(space, key, catalog);
        pointer.unwrap_or_else(|| (directory_of(space, key, catalog), Timestamp::ZERO))
    }

    /// Whether a write changes nothing here, as its key leaves a copy.
    #[inline]
    pub(super) fn leaves_copy(&self, prepare: &Prepare<V>, place: usize) -> bool {
        V::POLICIES.moving.may_move()
            && !self.switches.keeps(FamilySwitch::LeavesNoCopy)
            && is_leaving(prepare, place)
    }

    /// A transaction was applied at `at`: the keys that it moves have gone, or are here.
    pub(super) fn hand_over(
        &mut self,
        prepare: &Prepare<V>,
        at: Timestamp,
        cx: &mut Context<'_, V>,
    ) {
        let ascend = prepare.leaving.is_sorted_by_key(|it| it.place);
        assert!(ascend, "{:?} leaves by places that nobody has judged", prepare.txn);
        let leaves = self.switches.keeps(FamilySwitch::LeavesNoCopy);
        for leaving in prepare.leaving.iter().filter(|_| leaves) {
            let Some((space, key, _)) = prepare.writes.get(leaving.place as usize) else {
                continue;
            };
            let moved = MovedKey { space: *space, key: key.clone(), to: leaving.to, at };
            self.whereabouts.point(&moved, cx.catalog);
            if !self.is_directory_of(*space, key, cx.catalog) {
                self.whereabouts.untold.insert((*space, key.clone()));
            }
        }
        self.give_back(prepare, at, cx);
        for arriving in prepare.arriving.iter() {
            let Some((space, key, _)) = prepare.writes.get(arriving.place as usize) else {
                continue;
            };
            self.whereabouts.forget(*space, key, at, cx.catalog);
        }
        if self.whereabouts.has_news() && !self.replaying {
            self.set_sweep_timer(cx);
        }
    }

    /// Keys that a transaction deletes where static placement does not put them go back.
    fn give_back(&mut self, prepare: &Prepare<V>, at: Timestamp, cx: &mut Context<'_, V>) {
        assert!(V::POLICIES.moving.may_move(), "{} gives no keys back", V::NAME);
        for (place, (space, key, value)) in prepare.writes.iter().enumerate() {
            let is_here = self.is_directory_of(*space, key, cx.catalog);
            if value.is_some() || is_here || is_leaving(prepare, place) {
                continue;
            }
            let directory = directory_of(*space, key, cx.catalog);
            let moved = MovedKey { space: *space, key: key.clone(), to: directory, at };
            self.whereabouts.point(&moved, cx.catalog);
            self.whereabouts.untold.insert((*space, key.clone()));
            if !self.replaying {
                cx.send_to_repository(directory, Message::NewOwners { moved: vec![moved] });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{NodeId, SpaceOptions};

    use super::*;

    #[test]
    fn directories_are_told_of_all_in_turn() {
        let homes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let mut whereabouts = Whereabouts::new(0);
        let space = SpaceId(0);
        for number in 0..600u16 {
            let key = SmallBytes::new(&number.to_be_bytes());
            let to = RepositoryId(1);
            let moved = MovedKey { space, key: key.clone(), to, at: Timestamp(9) };
            whereabouts.point(&moved, &catalog);
            whereabouts.untold.insert((space, key));
        }
        let first = whereabouts.next_untold();
        for (space, key) in &first {
            whereabouts.forget(*space, key, Timestamp(9), &catalog);
        }
        whereabouts.assert_invariants();
        let announced: Vec<_> = (0..3).flat_map(|_| whereabouts.next_untold()).collect();
        assert_eq!((first.len(), announced.len()), (KEYS_AT_ONCE, 3 * KEYS_AT_ONCE));
        let all: BTreeSet<_> = first.iter().chain(&announced).cloned().collect();
        assert_eq!(all.len(), 600);
        let mut rounds = [&announced[..344], &announced[344..688], &announced[688..]].into_iter();
        assert!(rounds.all(|round| round.is_sorted()), "and then from the start");
    }
}
