//! What a leaf does where it is run as the thesis prints it, or with another rule of its own
//! broken. Each is wrong: `docs/inside/protocols/hierarchy.md` says why.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::parts::locks::Owner;
use muesli_core::parts::versions::Handle;
use muesli_core::{Address, Decision, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Participant;
use crate::two_phase::message::{Found, Prepare, ReadReply, ReadRequest, Vote};
use crate::two_phase::policy::TreeSwitch;
use crate::two_phase::time::{Snapshot, Time};
use crate::two_phase::{Context, Variant, VariantState};

/// What is kept for rules that do not hold.
///
/// Invariants: nothing is kept for a rule that holds.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct AsPrinted {
    /// What reads wait for, and are answered with whatever becomes of it; by coordinator and
    /// request.
    awaited: BTreeMap<(Address, u64), Tentative>,
    /// Locks that others have released.
    unlocked: BTreeSet<(Owner, SpaceId, Handle)>,
}

/// A version of a transaction that is in doubt.
#[derive(Clone, Debug)]
struct Tentative {
    space: SpaceId,
    key: SmallBytes,
    txn: TxnId,
    proposal: Timestamp,
    value: Option<SmallBytes>,
}

impl<V: Variant> Participant<V> {
    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub(super) fn assert_as_printed(&self) {
        let AsPrinted { awaited, unlocked } = &self.as_printed;
        assert!(
            awaited.is_empty() || !self.keeps(TreeSwitch::LooksUpAgain),
            "reads keep what they wait for"
        );
        let owned = self.keeps(TreeSwitch::LocksHaveOwners);
        assert!(unlocked.is_empty() || !owned, "locks were released by others");
    }

    /// The snapshot that a first read fixes. As printed it is the version of what it found.
    #[inline]
    pub(super) fn fixed_by(
        &self,
        first: bool,
        snapshot: V::Snapshot,
        version: Timestamp,
    ) -> V::Snapshot {
        let is_printed = first && !self.keeps(TreeSwitch::SnapshotsByClocks);
        if !is_printed || version == Timestamp::ZERO {
            return snapshot;
        }
        V::Snapshot::from_lower_bound(version)
    }

    /// Whether an update writes a key that has a version above its snapshot, which as printed is
    /// refused even if it has not read that key.
    pub(super) fn writes_behind(&mut self, prepare: &Prepare<V>, cx: &Context<'_, V>) -> bool {
        assert!(!self.keeps(TreeSwitch::BlindWritersPass), "blind writers pass");
        prepare.writes.iter().any(|(space, key, _)| {
            let versions = self.space(*space, cx);
            let head = versions.find(key).map_or(Timestamp::ZERO, |it| versions.newest(it).at);
            self.protocol_state.newest((*space, key), head) > prepare.snapshot.at()
        })
    }

    /// Whether a key has a version that is not below `at`.
    pub(super) fn is_newer(&self, (space, handle): (SpaceId, Handle), at: Timestamp) -> bool {
        self.versions(space).is_some_and(|versions| versions.newest(handle).at >= at)
    }

    /// A read begins to wait: it will be answered with the first version that is in its way.
    pub(super) fn note_awaited(&mut self, from: Address, request: &ReadRequest<V>) {
        let place = (from, request.request);
        assert!(!self.keeps(TreeSwitch::LooksUpAgain), "reads look again");
        if self.as_printed.awaited.contains_key(&place) {
            return;
        }
        let found = request.keys.iter().find_map(|(space, key)| self.tentative(*space, key));
        if let Some(tentative) = found {
            self.as_printed.awaited.insert(place, tentative);
        }
    }

    /// Of reads that wait no more nothing is kept.
    pub(in crate::two_phase) fn forget_awaited(&mut self) {
        let waiting = &self.waiting_reads;
        self.as_printed.awaited.retain(|place, _| waiting.has(place));
    }

    /// The version of a key that somebody who is in doubt writes.
    fn tentative(&self, space: SpaceId, key: &SmallBytes) -> Option<Tentative> {
        let versions = self.versions(space)?;
        let handle = versions.find(key)?;
        let holder = versions.lock(handle).exclusive_owner();
        let owner = holder.or_else(|| self.delayers(space, handle).next())?;
        let holder = self.table.get(owner);
        let is_it = |it: &&(SpaceId, SmallBytes, Option<SmallBytes>)| it.0 == space && it.1 == *key;
        let written = holder.prepare.writes.iter().find(is_it)?;
        let (proposal, _) = V::Time::bounds_of(&holder.yes)?;
        assert!(holder.decided.is_none() || proposal > Timestamp::ZERO, "a version of no time");
        let (txn, value) = (holder.prepare.txn, written.2.clone());
        Some(Tentative { space, key: key.clone(), txn, proposal, value })
    }

    /// A read that waited is answered with what it has waited for.
    pub(super) fn answer_as_awaited(
        &mut self,
        from: Address,
        request: &ReadRequest<V>,
        reply: &mut ReadReply<V>,
    ) {
        let Some(it) = self.as_printed.awaited.remove(&(from, request.request)) else { return };
        let asked = |(space, key): &(SpaceId, SmallBytes)| *space == it.space && *key == it.key;
        let Some(place) = request.keys.iter().position(asked) else { return };
        let version = match self.table.known_vote(it.txn) {
            Some(Vote::Decided(Decision::Commit(place))) => V::Time::version_of(&place),
            _ => it.proposal,
        };
        if let Some(found) = reply.found.get_mut(place) {
            *found = Found { version, value: it.value, newest: true, collected: Timestamp::ZERO };
        }
    }

    /// A transaction is refused, and releases the locks of the keys that it would have had.
    pub(super) fn release_by_key(&mut self, prepare: &Prepare<V>, cx: &Context<'_, V>) {
        assert!(self.table.owner(prepare.txn).is_none(), "{} is prepared", prepare.txn);
        let read = prepare.reads.iter().map(|(space, key, _)| (*space, key));
        let written = prepare.writes.iter().map(|(space, key, _)| (*space, key));
        for (space, key) in read.chain(written) {
            let versions = self.space(space, cx);
            let Some(handle) = versions.find(key) else { continue };
            let Some(owner) = versions.lock(handle).exclusive_owner() else { continue };
            versions.lock_mut(handle).release_exclusive(owner);
            self.as_printed.unlocked.insert((owner, space, handle));
        }
    }

    /// Whether somebody else has released this lock.
    pub(super) fn was_unlocked(&mut self, owner: Owner, space: SpaceId, handle: Handle) -> bool {
        self.as_printed.unlocked.remove(&(owner, space, handle))
    }
}
