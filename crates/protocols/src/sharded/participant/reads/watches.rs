//! Who waits at this member for a change of what was read: it is told as soon as a commit is
//! applied here that changes it.
//!
//! A member may be behind the one at which something was read. It says then that there was a change
//! where there was none, and whoever waits looks again.

use muesli_core::parts::watches::ReadWatch;
use muesli_core::{Address, Nanos, SmallBytes, SpaceId};

use crate::certified::message::command::{ReadKey, ReadRange, rows_of};
use crate::sharded::Context;
use crate::sharded::message::Message;
use crate::sharded::participant::ShardMember;
use crate::sharded::switches::ShardedSwitch;

impl ShardMember {
    /// A coordinator wants to be told of a change. It is told at once where there was one, where
    /// there is no room for its watch, and where it would be too much to look for one.
    pub(in crate::sharded::participant) fn on_watch(
        &mut self,
        from: Address,
        request: u64,
        (reads, ranges): (Vec<ReadKey>, Vec<ReadRange>),
        cx: &mut Context<'_>,
    ) {
        let limits = &cx.settings.limits;
        let is_much = rows_of(&ranges) > limits.procedure_steps;
        let (data, counts) = (self.data(), self.switches.keeps(ShardedSwitch::CountsDeletions));
        let is_changed = || {
            !reads.iter().all(|read| data.is_newest(read, counts))
                || !ranges.iter().all(|range| data.is_unchanged(range, counts))
        };
        let compares = self.switches.keeps(ShardedSwitch::ComparesWatches);
        let answers_at_once = is_much || (compares && is_changed());
        let keys = reads.into_iter().map(|read| (read.space, read.key)).collect();
        let ranges = ranges.into_iter().map(|range| range.seen).collect();
        let watch = ReadWatch::new(cx.now(), keys, ranges);
        let most = limits.transaction_bytes;
        if answers_at_once || !self.watches.keep((from, request), watch, most) {
            self.watches.remove(&(from, request));
            cx.send(from, Message::Changed { request });
            return;
        }
        assert!(!self.watches.is_empty(), "request {request} is watched for");
    }

    /// A key has a new version: whoever watches it is told.
    pub(in crate::sharded::participant) fn tell_watchers(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        cx: &mut Context<'_>,
    ) {
        assert!(self.spaces.get(space).is_some(), "space {} has a new version", space.0);
        for (coordinator, request) in self.watches.take(space, key) {
            cx.send(coordinator, Message::Changed { request });
        }
    }

    /// Drops watches that nobody has asked for again.
    pub(in crate::sharded::participant) fn drop_watches(&mut self, cx: &Context<'_>) {
        if let Some(until) = cx.now().0.checked_sub(cx.settings.in_doubt_after.0) {
            self.watches.drop_asked_until(Nanos(until));
        }
    }
}
