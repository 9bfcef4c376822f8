//! Certification (Turcu 2015, algorithm 16, corrected): whether a commit takes effect, from nothing
//! but the commits before it in the order, and so at all sites alike.

use muesli_broadcast::MemberId;
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Decision, RepositoryId, Timestamp};

use super::CertifiedSite;
use crate::certified::Context;
use crate::certified::message::command::{BroadcastCommit, CertifiedCommand};
use crate::certified::message::objects::{key_object, range_object};
use crate::certified::state::{CertificationSwitches, CertifiedData};
use crate::certified::switches::CertifiedSwitch;

impl CertifiedSite {
    /// Whether a commit whose turn it is takes effect, and at which version.
    pub(super) fn certify(&self, leader: MemberId, commit: &BroadcastCommit) -> Decision {
        let command = &commit.command;
        let objection = self.data().objection(command, self.certification());
        let is_refused = || self.claimed.refuses(command, commit.claim());
        match objection.or_else(|| is_refused().then_some(Abort::Locked)) {
            Some(reason) => Decision::Abort(reason),
            None => {
                let counter = self.counter_of(command);
                assert!(counter > 0, "version zero is none");
                Decision::Commit(Timestamp::new(counter, RepositoryId(leader.0)))
            }
        }
    }

    /// What is kept of keys.
    pub(super) fn data(&self) -> CertifiedData<'_> {
        CertifiedData { spaces: &self.spaces, objects: &self.objects }
    }

    /// Which rules of certification hold.
    pub(super) fn certification(&self) -> CertificationSwitches {
        CertificationSwitches {
            validates: self.switches.keeps(CertifiedSwitch::Validates),
            validates_ranges: self.switches.keeps(CertifiedSwitch::ValidatesRanges),
            counts_deletions: self.switches.keeps(CertifiedSwitch::CountsDeletions),
        }
    }

    /// The counter of a commit's versions: above all that it conflicts with by a key, which all
    /// sites have applied before it.
    fn counter_of(&self, command: &CertifiedCommand) -> u64 {
        let reads = command.reads.iter().map(|read| key_object(read.space, &read.key));
        let writes = command.writes.iter().map(|(space, key, _)| key_object(*space, key));
        self.counter_above(command.after, reads.chain(writes))
    }

    /// A counter that is this one at least, and above those of these objects and of the last cut.
    pub(super) fn counter_above(&self, after: u64, objects: impl Iterator<Item = u64>) -> u64 {
        let last = objects.map(|object| self.objects.of(object).last).max().unwrap_or(0);
        assert!(last <= self.counter, "a version at {last}, of {}", self.counter);
        let cut = self.cuts.order.last();
        let is_behind = self.switches.keeps(CertifiedSwitch::NumbersBehindCuts);
        after.max(last + 1).max(if is_behind { cut + 1 } else { 0 })
    }

    /// Makes the versions of a commit, but for those that a checkpoint has brought.
    pub(super) fn apply(&mut self, command: CertifiedCommand, at: Timestamp, cx: &mut Context<'_>) {
        let counter = at.counter();
        assert!(!command.writes.is_empty(), "{} writes nothing, and is applied", command.txn);
        self.clock += 1;
        self.counter = self.counter.max(counter);
        let (mut keys, mut deletions) = (Vec::with_capacity(command.writes.len()), Vec::new());
        for (space, key, value) in command.writes {
            let object = key_object(space, &key);
            self.objects.write(object, counter);
            if value.is_none() {
                let within = range_object(space, &key);
                deletions.extend([object, within]);
                self.objects.delete(object);
                self.objects.delete(within);
            }
            let store = self.spaces.get_or_make(space, cx.catalog);
            let handle = store.find_or_create(Handle::NONE, &key);
            let is_there = store.newest(handle).at >= at;
            assert!(!is_there || self.is_restored, "{at} comes after a newer version of a key");
            if !is_there {
                store.install(handle, value, at);
            }
            if !self.watches.is_empty() {
                self.tell_watchers(space, &key, cx);
            }
            keys.push((space, key));
        }
        assert!(deletions.len() <= 2 * keys.len(), "{} deletions", deletions.len());
        self.recent.insert(self.clock, at, keys, deletions);
        self.uncollected += 1;
    }
}
