//! Who waits at this site for a change of what was read: told as soon as a commit is applied here
//! that changes it, whichever site it comes from.

use muesli_core::{Address, Nanos, SmallBytes, SpaceId};

use super::CertifiedSite;
use crate::certified::Context;
use crate::certified::message::Message;
use crate::certified::message::command::{ReadKey, ReadRange};
use crate::certified::state::CertifiedData;
use crate::certified::state::watches::{AskedWatch, WatchSwitches};
use crate::certified::switches::CertifiedSwitch;

impl CertifiedSite {
    /// A coordinator wants to be told of a change. It is told at once where there was one, where
    /// there is no room for its watch, and where it would be too much to look for one.
    pub(super) fn on_watch(
        &mut self,
        from: Address,
        request: u64,
        (reads, ranges): (Vec<ReadKey>, Vec<ReadRange>),
        cx: &mut Context<'_>,
    ) {
        let switches = WatchSwitches {
            compares: self.switches.keeps(CertifiedSwitch::ComparesWatches),
            counts_deletions: self.certification().counts_deletions,
        };
        let data = CertifiedData { spaces: &self.spaces, objects: &self.objects };
        let asked = AskedWatch { watcher: (from, request), reads, ranges };
        let at = (cx.now(), &cx.settings.limits);
        if !asked.keep(&mut self.watches, data, switches, at) {
            cx.send(from, Message::Changed { request });
            return;
        }
        assert!(!self.watches.is_empty(), "request {request} is watched for");
    }

    /// A key has a new version: whoever watches it is told.
    pub(super) fn tell_watchers(&mut self, space: SpaceId, key: &SmallBytes, cx: &mut Context<'_>) {
        assert!(self.spaces.get(space).is_some(), "space {} has a new version", space.0);
        for (coordinator, request) in self.watches.take(space, key) {
            cx.send(coordinator, Message::Changed { request });
        }
    }

    /// Drops watches that nobody has asked for again.
    pub(super) fn drop_watches(&mut self, cx: &Context<'_>) {
        if let Some(until) = cx.now().0.checked_sub(cx.settings.in_doubt_after.0) {
            self.watches.drop_asked_until(Nanos(until));
        }
    }
}
