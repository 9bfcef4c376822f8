//! Directories are told where the keys went that static placement puts with them.
//!
//! A repository tells of so many keys at once, and of the next ones when it hears that these are
//! known, or after a while; so neither a message nor a step grows with what is untold. It forgets
//! a pointer once the key's directory has one at least as late.
//!
//! # Stale news
//! The directory learns of an owner only where it has an earlier pointer. Where it has none the key
//! has come back to it, after whatever it is told (unless it has lost its disk, and does not
//! [know yet](super::rebuilding)); but where the key is locked, that it left may not have been
//! decided here yet, and it is not told that this is known.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::versions::Handle;
use muesli_core::{Address, Catalog, RepositoryId};

use super::KEYS_AT_ONCE;
use super::directory::directory_of;
use crate::two_phase::message::moves::MovedKey;
use crate::two_phase::message::{Message, Record};
use crate::two_phase::participant::Participant;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

impl<V: Variant> Participant<V> {
    /// Finds out whose directories may not know yet where keys went.
    pub(in crate::two_phase::participant) fn find_untold(&mut self, cx: &mut Context<'_, V>) {
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

    /// Tells directories where keys went that were here: of so many, and of others once they know
    /// these, or after a while.
    pub(in crate::two_phase::participant) fn tell_new_owners(&mut self, cx: &mut Context<'_, V>) {
        if cx.now() >= self.whereabouts.informed + cx.settings.retry_after {
            self.tell_next_owners(cx);
        }
    }

    fn tell_next_owners(&mut self, cx: &mut Context<'_, V>) {
        self.whereabouts.informed = cx.now();
        let mut news: BTreeMap<RepositoryId, Vec<MovedKey>> = BTreeMap::new();
        let next = self.whereabouts.next_untold();
        self.whereabouts.unanswered = next.len();
        for (space, key) in next {
            let pointer = self.whereabouts.pointer(space, &key, cx.catalog);
            let Some((to, at)) = pointer else { continue }; // Of a checkpoint with such bytes.
            let directory = directory_of(space, &key, cx.catalog);
            news.entry(directory).or_default().push(MovedKey { space, key, to, at });
        }
        for (directory, moved) in news {
            assert!(directory != self.id, "a directory hears of owners from others");
            assert!(moved.len() <= KEYS_AT_ONCE, "{} keys in a message", moved.len());
            cx.send_to_repository(directory, Message::NewOwners { moved });
        }
    }

    /// Keys that static placement puts here have moved on.
    pub(in crate::two_phase::participant) fn on_new_owners(
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
            let is_news = match pointer {
                _ if !self.switches.keeps(FamilySwitch::IgnoresStaleNews) => true,
                Some((_, at)) => at < moved.at,
                None => self.whereabouts.lacks_owners() && self.is_newer_than_here(&moved),
            };
            if is_news {
                news.push(moved.clone());
            }
            known.push(moved);
        }
        assert!(news.len() <= known.len(), "what is news is known from then on");
        if !news.is_empty() {
            if self.switches.keeps(FamilySwitch::LogsPointers) {
                cx.log_lazily(|| Record::NewOwners { moved: news.clone() });
            }
            self.learn_owners(&news, cx);
        }
        if !known.is_empty() {
            cx.send_when_logged(from, Message::KnownOwners { moved: known });
        }
    }

    /// Keys that static placement puts here have these owners; those that come back to it are
    /// deleted.
    pub(in crate::two_phase::participant) fn learn_owners(
        &mut self,
        news: &[MovedKey],
        cx: &mut Context<'_, V>,
    ) {
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
    pub(in crate::two_phase::participant) fn on_known_owners(
        &mut self,
        moved: Vec<MovedKey>,
        cx: &mut Context<'_, V>,
    ) {
        let is_news = |it: &MovedKey| {
            let pointer = self.whereabouts.pointer(it.space, &it.key, cx.catalog);
            self.whereabouts.untold.contains(&(it.space, it.key.clone()))
                && pointer.is_some_and(|(_, at)| at <= it.at)
        };
        let known: Vec<_> = moved.into_iter().filter(is_news).collect();
        if !known.is_empty() {
            cx.log_lazily(|| Record::KnownOwners { moved: known.clone() });
            self.forget_owners(&known, cx.catalog);
            let unanswered = &mut self.whereabouts.unanswered;
            *unanswered = unanswered.saturating_sub(known.len());
            if *unanswered == 0 && !self.whereabouts.untold.is_empty() {
                self.tell_next_owners(cx);
            }
        }
    }

    /// Nothing need be kept here of where these keys went.
    pub(in crate::two_phase::participant) fn forget_owners(
        &mut self,
        known: &[MovedKey],
        catalog: &Catalog,
    ) {
        for MovedKey { space, key, at, .. } in known {
            if !self.is_directory_of(*space, key, catalog) {
                self.whereabouts.forget(*space, key, *at, catalog);
            }
        }
    }
}
