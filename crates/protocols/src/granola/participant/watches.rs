//! Who waits here for a change of what an interactive transaction has read.
//!
//! Their [watches](muesli_core::parts::watches) are kept in memory alone, and told as a version is
//! installed. What was read is compared with what is there as a watch comes, as the end of the
//! transaction would be: so nothing is missed that changed in between, whoever answered the read,
//! be it another repository that holds the partition or an older copy of this one. Where that is
//! behind what was read, something seems to have changed that has not, and whoever waits looks
//! again.
//!
//! A partition that is not here counts as changed, and so does one that goes: no keys are installed
//! here from then on, and where it is now versions have kept their timestamps. What replay, loading
//! and copies install nobody waits for: a repository that starts again has no watches, a partition
//! that is loaded is not here yet, and copies are not asked.

use muesli_core::parts::watches::{ReadWatch, Watcher};
use muesli_core::ranges::KeyRange;
use muesli_core::{Address, Catalog, Nanos, SmallBytes, SpaceId};

use super::{Context, Participant};
use crate::granola::message::{Message, SeenRange, WatchedReads};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    /// A coordinator wants to be told of a change. It is told at once where there was one, where
    /// there is no room for its watch, and where it would be too much to look for one.
    pub(super) fn on_watch(
        &mut self,
        from: Address,
        request: u64,
        watched: WatchedReads,
        cx: &mut Context<'_>,
    ) {
        let watcher = (from, request);
        if self.may_have_changed(&watched, cx) || !self.keep_watch(watcher, watched, cx) {
            self.watches.remove(&watcher);
            return self.tell_watcher(watcher, cx);
        }
        assert!(!self.watches.is_empty(), "request {request} is watched for");
        self.set_sweep_timer(cx);
    }

    /// Keeps a watch, in place of an earlier copy of it; false: there is no room.
    fn keep_watch(&mut self, watcher: Watcher, watched: WatchedReads, cx: &Context<'_>) -> bool {
        let most = cx.settings.limits.transaction_bytes;
        if watched.counted_bytes() > most {
            return false;
        }
        let keys = watched.reads.into_iter().map(|(space, key, _)| (space, key)).collect();
        let mut ranges: Vec<KeyRange> = Vec::new();
        for (_, seen) in watched.scans {
            // The next partition has mostly seen the same page.
            if ranges.last() != Some(&seen.range) {
                ranges.push(seen.range);
            }
        }
        self.watches.keep(watcher, ReadWatch::new(cx.now(), keys, ranges), most)
    }

    fn may_have_changed(&self, watched: &WatchedReads, cx: &Context<'_>) -> bool {
        let partition =
            |(space, key, _): &(SpaceId, SmallBytes, _)| cx.catalog.partition(*space, key);
        let mut all =
            watched.reads.iter().map(partition).chain(watched.scans.iter().map(|it| it.0));
        if !all.all(|partition| self.holds(partition, cx.catalog)) {
            return true;
        }
        let has_changed = |(space, key, version): &(SpaceId, SmallBytes, _)| {
            let (_, newest) = self.newest(*space, key);
            newest.at != *version
        };
        self.switches.keeps(GranolaSwitch::ComparesWatches)
            && (watched.reads.iter().any(has_changed)
                || self.may_have_changed_in(&watched.scans, cx))
    }

    /// Whether a range is not as it was seen, or all of them are too much to look at in one step.
    fn may_have_changed_in(&self, scans: &[(u16, SeenRange)], cx: &Context<'_>) -> bool {
        let mut steps = cx.settings.limits.procedure_steps;
        let mut walked = None;
        for (partition, seen) in scans {
            let is_walked = walked.as_ref().is_some_and(|(range, _)| *range == &seen.range);
            if !is_walked {
                let content = self.walk_range(&seen.range, &mut steps, cx.catalog);
                walked = content.map(|content| (&seen.range, content));
            }
            let Some((_, content)) = &walked else { return true };
            if !seen.is_what_is_there(content.get(partition)) {
                return true;
            }
        }
        false
    }

    fn tell_watcher(&self, (coordinator, request): Watcher, cx: &mut Context<'_>) {
        cx.send(coordinator, Message::Changed { repository: self.id, request });
    }

    /// A key has a new version: whoever watches it is told.
    pub(super) fn tell_watchers(&mut self, space: SpaceId, key: &SmallBytes, cx: &mut Context<'_>) {
        assert!(self.spaces.get(space).is_some(), "space {} has a new version", space.0);
        for watcher in self.watches.take(space, key) {
            self.tell_watcher(watcher, cx);
        }
    }

    /// A partition is here no more: whoever watches keys of it is told.
    pub(super) fn tell_watchers_of(&mut self, partition: u16, cx: &mut Context<'_>) {
        let catalog: &Catalog = cx.catalog;
        let taken = self.watches.take_where(
            |space, key| catalog.partition(space, key) == partition,
            |KeyRange { space, lo, hi }| {
                catalog.partitions_of_range(*space, lo, hi.as_ref()).any(|it| it == partition)
            },
        );
        for watcher in taken {
            self.tell_watcher(watcher, cx);
        }
    }

    /// Drops watches that nobody has asked for again.
    pub(super) fn drop_watches(&mut self, cx: &Context<'_>) {
        if let Some(until) = cx.now().0.checked_sub(cx.settings.in_doubt_after.0) {
            self.watches.drop_asked_until(Nanos(until));
        }
    }
}
