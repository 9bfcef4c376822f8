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
//!
//! # Stale news
//! The directory learns of an owner only where it has an earlier pointer. Where it has none the key
//! has come back to it, after whatever it is told; but where the key is locked, that it left may
//! not have been decided here yet, and it is not told that this is known.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::locator::Static;
use muesli_core::parts::locks::LockWord;
use muesli_core::parts::spaces::Spaces;
use muesli_core::parts::versions::{Handle, Version};
use muesli_core::{Address, Catalog, Nanos, RepositoryId, SmallBytes, SpaceId, Timestamp};

use super::Participant;
use crate::two_phase::message::moves::MovedKey;
use crate::two_phase::message::{Message, Prepare, Record};
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::{Context, NotServed, Time, Variant};

pub(super) mod range_entries;

/// So many keys are told of in one message.
pub(in crate::two_phase) const KEYS_AT_ONCE: usize = 256;

/// Where keys went that were here.
///
/// Invariant: of what is to be told there is a pointer.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct Whereabouts {
    /// By key: the number of the repository, as a version of the time of the move.
    pub pointers: Spaces,
    /// Keys that were here, and whose directories may not know yet where they went.
    untold: BTreeSet<(SpaceId, SmallBytes)>,
    /// When directories were last told.
    informed: Nanos,
}

impl Whereabouts {
    /// Nothing has moved; `hash_seed` is that of its hashes.
    pub fn new(hash_seed: u64) -> Whereabouts {
        Whereabouts {
            pointers: Spaces::new(hash_seed),
            untold: BTreeSet::new(),
            informed: Nanos(0),
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
        to_owner(pointers.newest(pointers.find(key)?), catalog)
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
                Some((key, to_owner(pointers.newest(handle), catalog)?))
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

    /// Whether a directory is to be told of anything.
    pub fn has_news(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        self.pointers.assert_invariants();
        for (space, key) in &self.untold {
            let pointers = self.pointers.get(*space);
            let is_there = pointers.is_some_and(|pointers| pointers.find(key).is_some());
            assert!(is_there, "{key:?} went where nobody knows");
        }
    }
}

/// Who has a key, by a pointer. Bytes from outside may say anything.
fn to_owner(pointer: Version<'_>, catalog: &Catalog) -> Option<(RepositoryId, Timestamp)> {
    let number = pointer.value?.as_slice().try_into().ok()?;
    let to = RepositoryId(u16::from_le_bytes(number));
    (usize::from(to.0) < catalog.repositories()).then_some((to, pointer.at))
}

/// The repository where static placement puts a key: its directory.
pub(in crate::two_phase) fn directory_of(
    space: SpaceId,
    key: &SmallBytes,
    catalog: &Catalog,
) -> RepositoryId {
    let mut replicas = Static.replicas_of(catalog.partition(space, key), catalog);
    replicas.next().expect("every partition has its replicas")
}

impl<V: Variant> Participant<V> {
    /// Whether static placement puts a key here.
    pub(super) fn is_directory_of(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        catalog: &Catalog,
    ) -> bool {
        Static.holds(self.id, catalog.partition(space, key), catalog)
    }

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
            || self.is_directory_of(space, key, catalog)
                && self.whereabouts.pointer(space, key, catalog).is_none()
    }

    /// Whether everything that a transaction writes here is here, but for what arrives.
    pub(super) fn has_all_to_write(&self, prepare: &Prepare<V>, catalog: &Catalog) -> bool {
        let mut arriving = prepare.arriving.iter().peekable();
        let mut writes = prepare.writes.iter().enumerate();
        writes.all(|(at, (space, key, _))| {
            let arrives = arriving.next_if(|place| **place as usize == at).is_some();
            arrives || self.has_key(*space, key, catalog)
        })
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
        Some(if lock.is_for_writing() { NotServed::Blocked } else { NotServed::Elsewhere })
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
            && prepare.leaving.iter().any(|it| it.place as usize == place)
    }

    /// A transaction was applied at `at`: the keys that it moves have gone, or are here.
    pub(super) fn hand_over(
        &mut self,
        prepare: &Prepare<V>,
        at: Timestamp,
        cx: &mut Context<'_, V>,
    ) {
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
        for place in prepare.arriving.iter() {
            let Some((space, key, _)) = prepare.writes.get(*place as usize) else { continue };
            self.whereabouts.forget(*space, key, at, cx.catalog);
        }
        if self.whereabouts.has_news() && !self.replaying {
            self.set_sweep_timer(cx);
        }
    }

    /// Keys that a transaction deletes where static placement does not put them go back.
    fn give_back(&mut self, prepare: &Prepare<V>, at: Timestamp, cx: &mut Context<'_, V>) {
        assert!(V::POLICIES.moving.may_move(), "{} gives no keys back", V::NAME);
        let leaves = |place: usize| prepare.leaving.iter().any(|it| it.place as usize == place);
        for (place, (space, key, value)) in prepare.writes.iter().enumerate() {
            let is_here = self.is_directory_of(*space, key, cx.catalog);
            if value.is_some() || is_here || leaves(place) {
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

    /// Finds out whose directories may not know yet where keys went.
    pub(super) fn find_untold(&mut self, cx: &mut Context<'_, V>) {
        let mut untold = BTreeSet::new();
        for (space, pointers) in self.whereabouts.pointers.iter() {
            let all = (0..pointers.slots()).filter_map(|slot| pointers.newest_in(slot));
            let others = all.filter(|(key, _)| !self.is_directory_of(space, key, cx.catalog));
            untold.extend(others.map(|(key, _)| (space, key.clone())));
        }
        self.whereabouts.untold = untold;
        if self.whereabouts.has_news() {
            self.set_sweep_timer(cx);
        }
    }

    /// Tells directories where keys went that were here, again once in a while.
    pub(super) fn tell_new_owners(&mut self, cx: &mut Context<'_, V>) {
        if cx.now() < self.whereabouts.informed + cx.settings.retry_after {
            return;
        }
        self.whereabouts.informed = cx.now();
        let mut news: BTreeMap<RepositoryId, Vec<MovedKey>> = BTreeMap::new();
        for (space, key) in &self.whereabouts.untold {
            let directory = directory_of(*space, key, cx.catalog);
            let listed = news.entry(directory).or_default();
            let pointer = self.whereabouts.pointer(*space, key, cx.catalog);
            if let Some((to, at)) = pointer.filter(|_| listed.len() < KEYS_AT_ONCE) {
                listed.push(MovedKey { space: *space, key: key.clone(), to, at });
            }
        }
        for (directory, moved) in news {
            assert!(directory != self.id, "{:?} is its own directory", self.id);
            assert!(moved.len() <= KEYS_AT_ONCE, "{} keys in a message", moved.len());
            cx.send_to_repository(directory, Message::NewOwners { moved });
        }
    }

    /// Keys that static placement puts here have moved on.
    pub(super) fn on_new_owners(
        &mut self,
        from: Address,
        moved: Vec<MovedKey>,
        cx: &mut Context<'_, V>,
    ) {
        let (mut known, mut news) = (Vec::new(), Vec::new());
        for moved in moved {
            let MovedKey { space, key, .. } = &moved;
            let versions = self.versions(*space);
            let lock = versions.and_then(|it| Some(it.lock(it.find(key)?)));
            if lock.is_some_and(|lock| lock.is_for_writing()) {
                continue; // That it left may be in doubt here.
            }
            let pointer = self.whereabouts.pointer(*space, key, cx.catalog);
            if pointer.is_some_and(|(_, at)| at < moved.at) {
                news.push(moved.clone());
            }
            known.push(moved);
        }
        assert!(news.len() <= known.len(), "what is news is known from then on");
        if !news.is_empty() {
            cx.log_lazily(|| Record::NewOwners { moved: news.clone() });
            self.learn_owners(&news, cx);
        }
        if !known.is_empty() {
            cx.send_when_logged(from, Message::KnownOwners { moved: known });
        }
    }

    /// Keys that static placement puts here have these owners; those that come back to it are
    /// deleted.
    pub(super) fn learn_owners(&mut self, news: &[MovedKey], cx: &mut Context<'_, V>) {
        for moved in news {
            let MovedKey { space, key, to, at } = moved;
            if *to != self.id {
                self.whereabouts.point(moved, cx.catalog);
                continue;
            }
            self.whereabouts.forget(*space, key, *at, cx.catalog);
            let versions = self.space(*space, cx);
            let handle = versions.find_or_create(Handle::NONE, key);
            if versions.newest(handle).at < *at {
                versions.install(handle, None, *at);
            }
            self.time.pass(*at);
            self.changes += 1;
            if self.is_watched() {
                self.tell_watchers(*space, key, cx);
            }
        }
    }

    /// Directories know where keys went that were here.
    pub(super) fn on_known_owners(&mut self, moved: Vec<MovedKey>, cx: &mut Context<'_, V>) {
        let is_news = |it: &MovedKey| {
            let pointer = self.whereabouts.pointer(it.space, &it.key, cx.catalog);
            self.whereabouts.untold.contains(&(it.space, it.key.clone()))
                && pointer.is_some_and(|(_, at)| at <= it.at)
        };
        let known: Vec<_> = moved.into_iter().filter(is_news).collect();
        if !known.is_empty() {
            cx.log_lazily(|| Record::KnownOwners { moved: known.clone() });
            self.forget_owners(&known, cx.catalog);
        }
    }

    /// Nothing need be kept here of where these keys went.
    pub(super) fn forget_owners(&mut self, known: &[MovedKey], catalog: &Catalog) {
        for MovedKey { space, key, at, .. } in known {
            if !self.is_directory_of(*space, key, catalog) {
                self.whereabouts.forget(*space, key, *at, catalog);
            }
        }
    }
}
