//! The coordinator's reads as clients ask for them: directly where a replica lives on the same
//! node, else by [`remote_requests`](super::remote_requests).

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::parts::locator::Static;
use muesli_core::parts::transaction::{ReadEntry, TransactionSets};
use muesli_core::parts::watermark::Bound;
use muesli_core::{
    Abort, Catalog, Failure, Here, RepositoryId, Role, SmallBytes, SpaceId, Step, Txn,
};
use smallvec::smallvec;

use super::Coordinator;
use super::asked::{AskedKeys, OperationKind};
use super::slot::Slot;
use crate::two_phase::message::Found;
use crate::two_phase::participant::Participant;
use crate::two_phase::time::Snapshot;
use crate::two_phase::{Context, NotServed, Reading, TwoPhase, Variant};

impl<V: Variant> Slot<V> {
    /// Whether what is read is kept, to be validated at the commit.
    #[inline]
    pub fn keeps_reads(&self) -> bool {
        V::POLICIES.validation.has_reads()
            && (!self.options.read_only
                || self.options.strict
                || V::POLICIES.validation.has_readers())
    }

    /// Takes a version into the read set. An update that reads a stale one cannot commit, unless
    /// stale reads are suffered.
    #[inline(always)]
    pub fn note(&mut self, read: ReadEntry, newest: bool, suffered: bool) -> Result<(), Abort> {
        let lost = !suffered || self.options.strict;
        if !newest && !self.sets.writes.is_empty() && lost {
            return Err(Abort::StaleRead);
        }
        if self.keeps_reads() {
            self.sets.reads.push(read);
        }
        Ok(())
    }

    /// What is read of a key, now that `found` was found: where reads are made at no snapshot,
    /// that is what was read of it before.
    #[inline]
    pub fn repeated(&mut self, space: SpaceId, key: &SmallBytes, found: Found) -> Found {
        if V::POLICIES.reading.has_snapshots() {
            return found;
        }
        self.seen.entry((space, key.clone())).or_insert(found).clone()
    }

    /// Whether a read that does not see the newest version moves the snapshot to the present. It
    /// does where every read is forwarded; elsewhere in a child of an update, which could not
    /// commit, and of which a part may stand.
    #[inline]
    pub fn forwards(&self, suffered: bool) -> bool {
        let in_child = || {
            let suffered = suffered && !self.options.strict;
            self.sets.depth() > 0 && !self.sets.writes.is_empty() && !suffered
        };
        V::POLICIES.reading.can_move()
            && self.snapshot.is_some()
            && (V::POLICIES.reading.is_forwarded() || in_child())
    }

    /// How it reads now.
    #[inline]
    fn reading(&self, reader: V::Reader) -> Reading<V> {
        let (snapshot, first) = (self.reads_at().clone(), self.snapshot.is_none());
        Reading { snapshot, first, here: true, reader }
    }

    /// Whether a read at `repository` need not wait for another one to be answered.
    #[inline]
    pub fn may_read_at(&self, repository: RepositoryId) -> bool {
        V::POLICIES.reading.is_side_by_side() && self.moving.is_none()
            || self.fixing.is_none()
            || self.is_fixed_at(repository)
    }

    /// Whether a read at `repository` leaves the snapshot as it is.
    #[inline]
    pub fn is_fixed_at(&self, repository: RepositoryId) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.is_fixed_at(repository))
    }

    /// A repository has answered at `snapshot`.
    #[inline]
    pub fn learn(&mut self, snapshot: V::Snapshot) {
        if V::POLICIES.reading.is_side_by_side() {
            self.answers = self.answers.wrapping_add(1);
        }
        match &mut self.snapshot {
            Some(known) => known.learn(&snapshot),
            unknown => {
                let snapshot = unknown.insert(snapshot);
                if V::POLICIES.reading.is_side_by_side() {
                    // The parts that it does not fix are at least there, unless a member lies.
                    snapshot.join(&self.base);
                }
            }
        }
    }
}

/// How a key was read on the coordinator's own node.
enum Local {
    Value(Option<SmallBytes>),
    /// It lives elsewhere, or must wait: ask by a request.
    Ask,
    Failed(Abort),
}

impl<V: Variant> Coordinator<V> {
    #[inline(always)]
    pub(in crate::two_phase) fn on_get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Step<Option<SmallBytes>> {
        match self.read_locally(txn, space, key, &mut here, cx) {
            Ok(Local::Value(value)) => Step::Done(Ok(value)),
            Ok(Local::Failed(reason)) => {
                self.abort(txn, &Failure::Aborted(reason), cx);
                Step::Done(Err(Failure::Aborted(reason)))
            }
            Ok(Local::Ask) => {
                let keys = smallvec![(0, space, key.clone())];
                Step::Wait(self.ask_keys(txn, OperationKind::Get(None), keys, &here, cx))
            }
            Err(failure) => Step::Done(Err(failure)),
        }
    }

    /// Reads a replica on this node, where nothing is in the way.
    #[inline]
    pub(in crate::two_phase) fn on_peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let reader = self.reader(txn);
        let may_delay = V::delays_actions(&self.switches);
        let owner = keys.first().and_then(|key| self.owner_to_read(space, key, &here, cx));
        let Ok(slot) = self.open(txn) else { return false };
        let delays = may_delay && !slot.delays.is_empty();
        let plain = V::POLICIES.reading.has_snapshots() && slot.sets.writes.is_empty() && !delays;
        let recording = cx.effects.recorder.is_some();
        let one_repository = cx.catalog.repositories() == 1 || keys.len() == 1;
        if !plain || !one_repository || keys.len() > cx.settings.limits.page_rows {
            return false;
        }
        let Some(key) = keys.first() else { return true };
        let replica = match V::keys_move(cx.catalog) {
            true => here.first_of(owner.into_iter()),
            false => replica_here(&mut here, space, key, cx.catalog),
        };
        let Some((replica, participant)) = replica else { return false };
        if !slot.may_read_at(replica) {
            return false;
        }
        let reading = slot.reading(reader);
        let mut at = cx.at(Role::Repository(replica));
        let noting = slot.keeps_reads();
        let TransactionSets { reads, operations, .. } = &mut slot.sets;
        let (before, mark) = (reads.len(), operations.mark());
        let mut undisturbed = before == 0 || slot.undisturbed_since == Some(participant.changes);
        let mut all_newest = true;
        let read = participant.read_all_here(space, keys, reading, &mut at, |place, read| {
            out[place] = read.version.value.cloned();
            undisturbed &= read.version.newest && !read.locked;
            if V::POLICIES.reading.is_forwarded() {
                all_newest &= read.version.newest;
            }
            if recording {
                operations.read(space, &keys[place], read.recorded(), read.version.value);
            }
            if noting {
                let (handle, version) = (read.handle, read.version.at);
                let key = keys[place].clone();
                reads.push(ReadEntry { space, repository: replica, handle, key, version });
            }
        });
        let changes = participant.changes;
        let Some(snapshot) = read.ok().filter(|_| all_newest) else {
            slot.sets.reads.truncate(before);
            slot.sets.operations.rewind(mark);
            return false;
        };
        slot.learn(snapshot);
        slot.undisturbed_since = undisturbed.then_some(changes);
        if cx.settings.logging {
            slot.gate = slot.gate.max(cx.gate_of(Role::Repository(replica)));
        }
        true
    }

    /// Reads the transaction's own write, or what it has read before and must read again.
    #[inline(always)]
    fn read_known(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        cx: &mut Context<'_, V>,
    ) -> Result<Option<Local>, Failure> {
        check_size(Limit::Key, key.len(), cx.settings.limits.key_bytes)?;
        let may_delay = V::delays_actions(&self.switches);
        let slot = self.open(txn)?;
        if may_delay && !slot.delays.is_empty() && slot.delays.changes(space, key) {
            return Ok(Some(Local::Failed(Abort::FootprintViolation)));
        }
        if let Some(own) = slot.sets.own(space, key) {
            let own = own.clone();
            if cx.effects.recorder.is_some() {
                slot.sets.operations.read_own(space, key, own.as_ref());
            }
            return Ok(Some(Local::Value(own)));
        }
        if !V::POLICIES.reading.has_snapshots()
            && let Some(found) = slot.seen.get(&(space, key.clone()))
        {
            let found = found.clone();
            if cx.effects.recorder.is_some() {
                slot.sets.operations.read(space, key, found.recorded(), found.value.as_ref());
            }
            return Ok(Some(Local::Value(found.value)));
        }
        Ok(None)
    }

    /// Reads what is known of a key, or a replica on this node.
    #[inline(always)]
    fn read_locally(
        &mut self,
        txn: Txn,
        space: SpaceId,
        key: &SmallBytes,
        here: &mut Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Result<Local, Failure> {
        if let Some(known) = self.read_known(txn, space, key, cx)? {
            return Ok(known);
        }
        let suffered = V::POLICIES.installing.may_time_warp() && self.tolerates_stale_reads;
        let reader = self.reader(txn);
        let owner = self.owner_to_read(space, key, here, cx);
        let slot = self.open(txn)?;
        let replica = match V::keys_move(cx.catalog) {
            true => here.first_of(owner.into_iter()),
            false => replica_here(here, space, key, cx.catalog),
        };
        let Some((replica, participant)) = replica else { return Ok(Local::Ask) };
        if !slot.may_read_at(replica) {
            return Ok(Local::Ask);
        }
        let reading = slot.reading(reader);
        let mut at = cx.at(Role::Repository(replica));
        match participant.read_here(space, key, reading, &mut at) {
            Ok(read) if !read.version.newest && slot.forwards(suffered) => Ok(Local::Ask),
            Ok(read) => {
                let (recorded, collected) = (read.recorded(), read.collected);
                slot.learn(read.snapshot);
                slot.undisturbed_since = None; // So much is kept for the simplest way only.
                let (version, value) = (read.version, read.version.value.cloned());
                if !V::POLICIES.reading.has_snapshots() {
                    let found = Found { collected, ..Found::from(version) };
                    slot.seen.insert((space, key.clone()), found);
                }
                if cx.settings.logging {
                    slot.gate = slot.gate.max(cx.gate_of(Role::Repository(replica)));
                }
                if cx.effects.recorder.is_some() {
                    slot.sets.operations.read(space, key, recorded, value.as_ref());
                }
                let (handle, key, newest) = (read.handle, key.clone(), version.newest);
                let entry =
                    ReadEntry { space, repository: replica, handle, key, version: version.at };
                let noted = slot.note(entry, newest, suffered);
                Ok(noted.map_or_else(Local::Failed, |()| Local::Value(value)))
            }
            Err(NotServed::Blocked | NotServed::TooLarge | NotServed::Elsewhere) => Ok(Local::Ask),
            Err(NotServed::TooOld) => {
                // The next attempt begins at what this repository has come to (`learn_from`).
                self.observed.join(&participant.committed());
                Ok(Local::Failed(Abort::SnapshotTooOld))
            }
        }
    }

    pub(in crate::two_phase) fn on_get_many(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: Vec<SmallBytes>,
        mut here: Here<'_, TwoPhase<V>>,
        cx: &mut Context<'_, V>,
    ) -> Step<Vec<Option<SmallBytes>>> {
        let mut values = vec![None; keys.len()];
        let mut asked = AskedKeys::new();
        if let Err(failure) = self.open(txn) {
            return Step::Done(Err(failure));
        }
        for (place, key) in keys.into_iter().enumerate() {
            // Further ones are read in pages, also where they are here.
            let read = match place < cx.settings.limits.page_rows {
                true => self.read_locally(txn, space, &key, &mut here, cx),
                false => self.read_known(txn, space, &key, cx).map(|it| it.unwrap_or(Local::Ask)),
            };
            match read {
                Ok(Local::Value(value)) => values[place] = value,
                Ok(Local::Ask) => asked.push((place, space, key)),
                Ok(Local::Failed(reason)) => {
                    self.abort(txn, &Failure::Aborted(reason), cx);
                    return Step::Done(Err(Failure::Aborted(reason)));
                }
                Err(failure) => return Step::Done(Err(failure)),
            }
        }
        assert!(asked.len() <= values.len(), "more keys are asked for than were wanted");
        if asked.is_empty() {
            return Step::Done(Ok(values));
        }
        Step::Wait(self.ask_keys(txn, OperationKind::Many(values), asked, &here, cx))
    }
}

impl<V: Variant> Coordinator<V> {
    /// Where keys move: the repository here that a key is read at, if one has it.
    #[inline]
    fn owner_to_read(
        &self,
        space: SpaceId,
        key: &SmallBytes,
        here: &Here<'_, TwoPhase<V>>,
        cx: &Context<'_, V>,
    ) -> Option<RepositoryId> {
        match V::keys_move(cx.catalog) {
            true => self.owner_here(space, key, here, cx.catalog),
            false => None,
        }
    }
}

/// The repository here at which a key is read: the first of those that hold it.
#[inline]
fn replica_here<'h, V: Variant>(
    here: &'h mut Here<'_, TwoPhase<V>>,
    space: SpaceId,
    key: &SmallBytes,
    catalog: &Catalog,
) -> Option<(RepositoryId, &'h mut Participant<V>)> {
    if catalog.repositories() == 1 {
        return here.first_of(std::iter::once(RepositoryId(0))); // No hash is needed.
    }
    here.first_of(Static.replicas_of(catalog.partition(space, key), catalog))
}
