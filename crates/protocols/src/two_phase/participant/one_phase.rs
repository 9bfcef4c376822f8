//! Both phases in one step, where one repository on the coordinator's node is all of a
//! transaction's footprint.

use muesli_core::limits::writes_bytes;
use muesli_core::parts::transaction::{TransactionSets, WriteEntry};
use muesli_core::parts::versions::Handle;
use muesli_core::{Abort, Decision, SmallBytes, SpaceId, Timestamp};

use super::Participant;
use super::prepare::NO_HANDLE;
use super::waits::Conflict;
use crate::two_phase::VariantState;
use crate::two_phase::message::Record;
use crate::two_phase::policy::TreeSwitch;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, ValidationResult, Variant};

/// What spares a transaction work because no other one can be in its way.
#[derive(Clone, Copy, Debug)]
pub(in crate::two_phase) struct Alone {
    /// Everything it read was newest and free of writers' locks when the repository had counted
    /// so many [changes](Participant::changes). If there was none since, that is so still.
    pub since: Option<u64>,
    /// No other transaction runs anywhere: what is replaced is read by nobody any more.
    pub on_the_node: bool,
}

impl<V: Variant> Participant<V> {
    /// Both phases in one step, for a transaction that this repository alone takes part in.
    /// `None`: it must take the long way, to wait for locks.
    #[inline(always)]
    pub(in crate::two_phase) fn commit_here(
        &mut self,
        sets: &mut TransactionSets,
        mut validation: ValidationResult<V::Snapshot>,
        alone: Alone,
        reader: V::Reader,
        cx: &mut Context<'_, V>,
    ) -> Option<Result<V::Place, Abort>> {
        if cx.settings.memory.is_full() && sets.writes.iter().any(|write| write.value.is_some()) {
            return Some(Err(Abort::OutOfMemory));
        }
        let touched = sets.reads.len() + sets.writes.len();
        cx.effects.work.validated += touched as u64 + V::read_timestamps(touched);
        let reads_nothing = sets.reads.is_empty() && sets.scans.is_empty();
        validation.has_read = !reads_nothing;
        if !reads_nothing && self.time.is_too_old(&validation.snapshot) {
            return Some(Err(Abort::SnapshotTooOld));
        }
        let validates = self.keeps(TreeSwitch::Validates);
        let unchanged = alone.since == Some(self.changes) || !validates;
        for read in sets.reads.iter().take(if unchanged { 0 } else { usize::MAX }) {
            let (space, key) = (read.space, &read.key);
            let entry = (space, read.handle, key, read.version);
            match self.check_read(entry, &mut validation, || sets.own(space, key).is_some(), cx) {
                Ok(()) => {}
                Err(Conflict::Refused(reason)) => return Some(Err(reason)),
                Err(Conflict::Blocked(_)) => return None,
            }
        }
        for range in sets.scans.iter().filter(|_| validates) {
            let is_written = |space, key: &SmallBytes| sets.own(space, key).is_some();
            let seen = |space, key: &SmallBytes| sets.version_read(space, key);
            match self.check_scan(range, &mut validation, is_written, seen, cx) {
                Ok(()) => {}
                Err(Conflict::Refused(reason)) => return Some(Err(reason)),
                Err(Conflict::Blocked(_)) => return None,
            }
        }
        for write in &mut sets.writes {
            if !self.ranges.is_empty() && self.ranges.blocks(None, write.space, &write.key) {
                return None;
            }
            if !self.has_key(write.space, &write.key, cx.catalog) {
                return None;
            }
            if self.is_kept_from((write.space, &write.key), reader, cx.now()) {
                return Some(Err(Abort::Locked));
            }
            let versions = self.space(write.space, cx);
            let mut newest = Timestamp::ZERO;
            match versions.look(write.handle, &write.key) {
                Some((handle, _, lock))
                    if !lock.is_free()
                        && (!V::POLICIES.locking.may_lock_at_writes()
                            || !self.encounters.has(reader, (write.space, handle))) =>
                {
                    return None;
                }
                Some((handle, head, _)) => (write.handle, newest) = (handle, head),
                None => write.handle = NO_HANDLE,
            }
            self.protocol_state.note_write(
                (write.space, &write.key),
                newest,
                reader,
                &mut validation,
            );
        }
        let yes = self.time.yes_alone(&validation, cx.settings.logging)?;
        match self.time.decide_alone(&self.protocol_switches, yes) {
            Decision::Commit(place) => {
                self.protocol_state.note_passed(reader);
                self.install_here(sets, &place, alone.on_the_node, cx);
                Some(Ok(place))
            }
            Decision::Abort(reason) => Some(Err(reason)),
        }
    }

    #[inline(always)]
    fn install_here(
        &mut self,
        sets: &mut TransactionSets,
        place: &V::Place,
        alone: bool,
        cx: &mut Context<'_, V>,
    ) {
        self.changes += 1;
        cx.log(|| {
            let write = |w: &WriteEntry| (w.space, w.key.clone(), w.value.clone());
            Record::Committed { at: place.clone(), writes: sets.writes.iter().map(write).collect() }
        });
        let at = V::Time::version_of(place);
        cx.effects.work.installed += sets.writes.len() as u64;
        for write in &mut sets.writes {
            let versions = self.space(write.space, cx);
            let handle = match write.handle {
                NO_HANDLE => versions.find_or_create(NO_HANDLE, &write.key),
                handle => handle,
            };
            // Only where the clock does not pass what ends here.
            let is_below =
                !self.keeps(TreeSwitch::ClocksPassEnds) && self.is_newer((write.space, handle), at);
            let versions = self.space(write.space, cx);
            match write.value.take() {
                value if is_below => {
                    self.install_below((write.space, handle), value, at, cx);
                }
                Some(value) if alone => versions.overwrite(handle, value, at),
                value => versions.install(handle, value, at),
            }
            self.protocol_state.note_written((write.space, &write.key), place);
        }
        if self.is_watched() {
            for write in &sets.writes {
                self.tell_watchers(write.space, &write.key, cx);
            }
        }
        for read in &sets.reads {
            self.protocol_state.note_read_by((read.space, &read.key), place);
        }
        for range in &sets.scans {
            self.protocol_state.note_scanned_by(range, place);
        }
        if alone {
            self.time.applied_alone(place);
        }
        self.time.applied(place, sets.writes.iter().map(|write| (write.space, &write.key)));
        self.time.rest();
        self.note_moved(sets.written_bytes());
        self.count_step(cx);
    }

    /// The log has such a commit.
    pub(in crate::two_phase) fn replay_committed(
        &mut self,
        place: &V::Place,
        writes: Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>,
        cx: &mut Context<'_, V>,
    ) {
        let at = V::Time::version_of(place);
        self.time.applied(place, writes.iter().map(|(space, key, _)| (*space, key)));
        self.note_moved(writes_bytes(&writes));
        for (space, key, value) in writes {
            let versions = self.space(space, cx);
            let handle = versions.find_or_create(Handle::NONE, &key);
            // What a checkpoint has already was installed before the key's turn in it came.
            if at > versions.newest(handle).at {
                versions.install(handle, value, at);
            }
        }
        self.count_step(cx);
    }
}
