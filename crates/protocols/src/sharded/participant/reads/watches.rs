//! Who waits at this member for a change of what was read: it is told as soon as a commit is
//! applied here that changes it.
//!
//! A member may be behind the one at which something was read. It says then that there was a change
//! where there was none, and whoever waits looks again.

use muesli_core::{Address, Nanos, SmallBytes, SpaceId};

use crate::certified::message::command::{ReadKey, ReadRange};
use crate::certified::state::CertifiedData;
use crate::certified::state::watches::{AskedWatch, WatchSwitches};
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
        let switches = WatchSwitches {
            compares: self.switches.keeps(ShardedSwitch::ComparesWatches),
            counts_deletions: self.switches.keeps(ShardedSwitch::CountsDeletions),
        };
        let data = CertifiedData { spaces: &self.spaces, objects: &self.objects };
        let asked = AskedWatch { watcher: (from, request), reads, ranges };
        let at = (cx.now(), &cx.settings.limits);
        if !asked.keep(&mut self.watches, data, switches, at) {
            cx.send(from, Message::Changed { request, clock: self.clock });
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
            cx.send(coordinator, Message::Changed { request, clock: self.clock });
        }
    }

    /// Drops watches that nobody has asked for again.
    pub(in crate::sharded::participant) fn drop_watches(&mut self, cx: &Context<'_>) {
        if let Some(until) = cx.now().0.checked_sub(cx.settings.in_doubt_after.0) {
            self.watches.drop_asked_until(Nanos(until));
        }
    }
}
