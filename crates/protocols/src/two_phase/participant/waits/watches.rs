//! Who waits here for a change of what was read.
//!
//! Their [watches](muesli_core::parts::watches) are kept here, and told of each version that is
//! installed.
//!
//! Who votes for a transaction tells its coordinator who watches what it writes, so that they hear
//! of it from there as soon as it is decided: one message earlier. They are told from here as well,
//! for the coordinator may be gone.
//!
//! Coordinators ask for a watch again after each outage, and once in a while beside; it is kept for
//! [`in_doubt_after`](muesli_core::Settings::in_doubt_after) since it was last asked for. All of a
//! repository have as many bytes together as a transaction may have.

use std::collections::BTreeSet;

use muesli_core::parts::locator::Static;
use muesli_core::parts::watches::{ReadWatch, Watcher};
use muesli_core::ranges::KeyRange;
use muesli_core::{Address, Catalog, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use crate::two_phase::message::{Message, Prepare, WatchRequest};
use crate::two_phase::participant::Participant;
use crate::two_phase::policy::FamilySwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant};

/// A coordinator is told of so many who wait for its transaction at most; the others hear of it
/// once it is applied.
pub(in crate::two_phase) const WAITING_MAX: usize = 64;

impl<V: Variant> Participant<V> {
    pub(in crate::two_phase) fn on_watch(
        &mut self,
        from: Address,
        request: WatchRequest<V>,
        cx: &mut Context<'_, V>,
    ) {
        let WatchRequest { request, snapshot, reads, scans } = request;
        let has_changed = |(space, key, version): &(SpaceId, SmallBytes, Timestamp)| {
            !self.has_key(*space, key, cx.catalog) || self.newest_of(*space, key) != *version
        };
        let is_changed = self.switches.keeps(FamilySwitch::WatchesCompared)
            && (reads.iter().any(has_changed)
                || match V::POLICIES.reading.has_snapshots() {
                    true => scans.iter().any(|range| self.has_changed_in(range, &snapshot)),
                    false => self.has_more_than(&reads, &scans, cx.catalog),
                });
        let keys = reads.into_iter().map(|(space, key, _)| (space, key)).collect();
        let watch = ReadWatch::new(cx.now(), keys, scans);
        let most = cx.settings.limits.transaction_bytes;
        if is_changed || !self.watches.keep((from, request), watch, most) {
            self.watches.remove(&(from, request));
            cx.send(from, Message::Changed { request });
        } else {
            self.set_sweep_timer(cx);
        }
    }

    /// A coordinator does not wait any more.
    pub(in crate::two_phase) fn on_unwatch(&mut self, from: Address, request: u64) {
        self.watches.remove(&(from, request));
    }

    fn newest_of(&self, space: SpaceId, key: &SmallBytes) -> Timestamp {
        let versions = self.versions(space);
        versions.and_then(|it| Some(it.newest(it.find(key)?).at)).unwrap_or_default()
    }

    fn has_changed_in(&self, range: &KeyRange, snapshot: &V::Snapshot) -> bool {
        let Some(versions) = self.versions(range.space) else { return false };
        let mut keys = versions.range(&range.lo, range.hi.as_ref());
        keys.any(|(key, handle)| {
            let newest = versions.newest(handle).at;
            self.time.is_phantom((range.space, key), newest, snapshot, || None)
        })
    }

    /// Whether there are rows in ranges beside those that were read, where that was at no snapshot.
    /// Of a key with several copies the first is asked.
    fn has_more_than(
        &self,
        reads: &[(SpaceId, SmallBytes, Timestamp)],
        ranges: &[KeyRange],
        catalog: &Catalog,
    ) -> bool {
        let read: BTreeSet<_> = reads.iter().map(|(space, key, _)| (*space, key)).collect();
        let is_first = |space, key: &SmallBytes| {
            let partition = catalog.partition(space, key);
            Static.replicas_of(partition, catalog).next() == Some(self.id)
        };
        ranges.iter().any(|range| {
            let space = range.space;
            let Some(versions) = self.versions(space) else { return false };
            let mut keys = versions.range(&range.lo, range.hi.as_ref());
            keys.any(|(key, handle)| {
                let is_read = || read.contains(&(space, key));
                versions.newest(handle).value.is_some() && !is_read() && is_first(space, key)
            })
        })
    }

    /// Whether anything is watched.
    #[inline]
    pub(in crate::two_phase) fn is_watched(&self) -> bool {
        !self.watches.is_empty()
    }

    /// This repository votes for a transaction: its coordinator is told who waits for it. A client
    /// is not, for it reaches no others.
    #[cold]
    pub(in crate::two_phase) fn tell_who_waits(&self, txn: TxnId, cx: &mut Context<'_, V>) {
        if cx.catalog.is_client(txn.node) {
            return;
        }
        let owner = self.table.owner(txn).expect("it is voted for, and so prepared");
        let prepare = &self.table.get(owner).prepare;
        let all: BTreeSet<Watcher> =
            changed_keys(prepare).flat_map(|(space, key)| self.watches.of(space, key)).collect();
        if all.is_empty() {
            return;
        }
        let waiting = all.iter().take(WAITING_MAX).map(|(from, request)| (from.node, *request));
        let waiting = waiting.collect();
        cx.send(Address::coordinator(txn.node), Message::Waiting { txn, waiting });
    }

    /// A transaction was applied.
    #[cold]
    pub(in crate::two_phase) fn tell_of(&mut self, of: &Prepare<V>, cx: &mut Context<'_, V>) {
        for (space, key) in changed_keys(of) {
            self.tell_watchers(space, key, cx);
        }
    }

    /// A key has a new version: whoever watches it is told.
    #[inline]
    pub(in crate::two_phase) fn tell_watchers(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        cx: &mut Context<'_, V>,
    ) {
        for (coordinator, request) in self.watches.take(space, key) {
            cx.send(coordinator, Message::Changed { request });
        }
    }

    /// Drops watches that nobody has asked for again.
    pub(in crate::two_phase) fn drop_watches(&mut self, cx: &Context<'_, V>) {
        let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
        if let Some(until) = now.0.checked_sub(patience.0) {
            self.watches.drop_asked_until(Nanos(until));
        }
    }
}

/// What a transaction changes, where that is known before.
fn changed_keys<V: Variant>(of: &Prepare<V>) -> impl Iterator<Item = (SpaceId, &SmallBytes)> {
    let written = of.writes.iter().map(|(space, key, _)| (*space, key));
    let delayed = of.delayed.iter().map(|(space, key, _)| (*space, key));
    let called = of.calls().iter().flat_map(|call| &call.keys);
    written.chain(delayed).chain(called.map(|(space, key)| (*space, key)))
}
