//! The first phase at a participant: locks, validation, proposal; and the one step that does all
//! of it where a transaction has no other participant.

mod entry;

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::parts::listed::Listed;
use muesli_core::parts::locks::LockWord;
use muesli_core::parts::versions::Handle;
use muesli_core::ranges::KeyRange;
use muesli_core::{Abort, Address, Catalog, Nanos, SmallBytes, SpaceId, Timestamp, TxnId};

use super::Participant;
use super::casting::VotedOn;
use super::waits::{Conflict, WaitCheck, WaitState};
use crate::two_phase::VariantState;
use crate::two_phase::message::{Message, Prepare, Record, RepositoryVote, Vote};
use crate::two_phase::policy::{FamilySwitch, LockWaits, TreeSwitch};
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Key, Snapshot, ValidationResult, Variant, shown_votes};

/// A key that is written, and what with.
type Write = (SpaceId, SmallBytes, Option<SmallBytes>);

pub(in crate::two_phase) const NO_HANDLE: Handle = Handle::NONE;

pub(in crate::two_phase) use entry::Restored;

impl<V: Variant> Participant<V> {
    pub(in crate::two_phase) fn on_prepare(
        &mut self,
        from: Address,
        prepare: Arc<Prepare<V>>,
        cx: &mut Context<'_, V>,
    ) {
        let txn = prepare.txn;
        let is_client = cx.catalog.is_client(txn.node);
        if !self.table.is_current(txn, prepare.settled_below) {
            if is_client && self.table.is_of_earlier_incarnation(txn) {
                self.tell_superseded(from, txn, cx);
            }
            return; // Late: everybody knows how it ended.
        }
        if is_client {
            self.table.observe(txn.node, cx.now());
        }
        if let Some(vote) = self.table.known_vote(txn) {
            self.vote(from, txn, vote, cx); // Repeated: the answer was lost, or is on its way.
            return;
        }
        if self.waiting_prepares.has(txn) {
            return;
        }
        assert!(!self.table.is_settled(txn), "{txn} is settled, and is to be prepared");
        let reached = self.time.reached(&prepare.snapshot);
        if is_client
            && self.switches.keeps(FamilySwitch::RefusesForgotten)
            && self.table.may_be_forgotten(txn, reached)
        {
            // Not for ever: nothing is known of it, and nothing need be.
            self.vote(from, txn, Vote::No(Abort::Forgotten), cx);
            return;
        }
        if let Some(reason) = prepare.judge_size(&cx.settings.limits) {
            self.vote_no(from, &prepare, reason, cx);
            return;
        }
        match self.check(&prepare, cx) {
            WaitCheck::Blocked => self.wait_for_locks(from, prepare, cx),
            WaitCheck::Refused(reason) => self.vote_no(from, &prepare, reason, cx),
            WaitCheck::Free(validation) => self.vote_yes(from, prepare, validation, cx),
        }
    }

    /// Another process has come with the number of a client, and a later incarnation: this one's
    /// transactions end here, and it is told so. What is not known of earlier incarnations is
    /// refused for good, remembered or not.
    fn tell_superseded(&mut self, from: Address, txn: TxnId, cx: &mut Context<'_, V>) {
        let vote = self.table.known_vote(txn).unwrap_or(Vote::No(Abort::Superseded));
        self.vote(from, txn, vote, cx);
    }

    /// Says how this repository voted, or how the transaction ended, once that is stable. Nothing
    /// else that is said tells of a vote, so nothing else waits for one.
    pub(super) fn vote(&mut self, to: Address, txn: TxnId, vote: Vote<V>, cx: &mut Context<'_, V>) {
        let (repository, committed) = (self.id, self.time.committed());
        let prepared = matches!(vote, Vote::Yes(_));
        assert_eq!(self.table.owner(txn).is_some(), prepared, "what {txn} is said to be");
        let are_about = shown_votes::are_about_something::<V>(cx.catalog);
        let about = if are_about { self.table.about(txn) } else { None };
        // What is not remembered may be followed by another vote, and decides nothing.
        let lasts = !matches!(vote, Vote::No(Abort::Forgotten | Abort::Superseded));
        let issuer = cx.settings.issuer.filter(|_| lasts && cx.catalog.shows_votes(to));
        let mut ballot = RepositoryVote { repository, vote, about, tag: 0 };
        ballot.tag = issuer.map_or(0, |it| ballot.vouched(it, txn, &mut self.vouched_bytes));
        let RepositoryVote { vote, about, tag, .. } = ballot;
        cx.send_when_logged(to, Message::Vote { txn, repository, vote, committed, about, tag });
    }

    pub(in crate::two_phase) fn vote_yes(
        &mut self,
        from: Address,
        prepare: Arc<Prepare<V>>,
        validation: ValidationResult<V::Snapshot>,
        cx: &mut Context<'_, V>,
    ) {
        let (txn, writes) = (prepare.txn, !prepare.writes.is_empty());
        let yes = self.time.yes(txn, writes, validation);
        self.protocol_state.note_passed(prepare.reader);
        let voted_on = VotedOn::of(&prepare);
        cx.log_lazily(|| Record::Prepared { prepare: prepare.clone(), at: yes.clone() });
        self.enter_prepared(prepare, yes.clone(), cx.now(), None, cx);
        self.set_sweep_timer(cx);
        if self.is_watched() {
            self.tell_who_waits(txn, cx);
        }
        self.cast(from, voted_on, Ok(yes), cx);
        if self.has_moved_much() {
            self.report_memory(cx);
        }
    }

    pub(in crate::two_phase) fn vote_no(
        &mut self,
        from: Address,
        prepare: &Prepare<V>,
        reason: Abort,
        cx: &mut Context<'_, V>,
    ) {
        if !self.keeps(TreeSwitch::LocksHaveOwners) {
            self.release_by_key(prepare, cx);
        }
        self.refuse(prepare.txn, reason, cx);
        if reason == Abort::Moved {
            self.tell_where(from, prepare, cx);
        }
        self.cast(from, VotedOn::of(prepare), Err(reason), cx);
    }

    /// Looks, and changes nothing.
    pub(in crate::two_phase) fn check(
        &mut self,
        prepare: &Prepare<V>,
        cx: &mut Context<'_, V>,
    ) -> WaitCheck<V::Snapshot> {
        if let Some(reason) = self.lacks_capacity(prepare, cx) {
            return WaitCheck::Refused(reason);
        }
        if !self.keeps(TreeSwitch::Validates) {
            return WaitCheck::Free(ValidationResult::new(
                prepare.snapshot.clone(),
                prepare.strict,
            ));
        }
        cx.effects.work.validated += (prepare.reads.len() + prepare.writes.len()) as u64;
        assert!(self.table.owner(prepare.txn).is_none(), "{} is prepared", prepare.txn);
        if V::keys_move(cx.catalog) && !self.has_all_to_write(prepare, cx.catalog) {
            return WaitCheck::Refused(Abort::Moved);
        }
        let (reader, now) = (prepare.reader, cx.now());
        if prepare.writes.iter().any(|it| self.is_kept_from((it.0, &it.1), reader, now)) {
            return WaitCheck::Refused(Abort::Locked);
        }
        let reads_nothing = prepare.reads.is_empty() && prepare.scans.is_empty();
        if !reads_nothing && self.time.is_too_old(&prepare.snapshot) {
            // What proves it stale may be collected.
            return WaitCheck::Refused(Abort::SnapshotTooOld);
        }
        let mut validation = ValidationResult::new(prepare.snapshot.clone(), prepare.strict);
        validation.has_read = !reads_nothing;
        let mut way = self.no_wait();
        let written = Listed::new(&prepare.writes);
        let writes = |space, key: &SmallBytes| {
            let is = |it: &Write| it.0 == space && it.1 == *key;
            written.contains(is, |it| (it.0, &it.1).cmp(&(space, key)))
        };
        for (space, key, version) in &prepare.reads {
            let read = (*space, NO_HANDLE, key, *version);
            match self.check_read(read, &mut validation, || writes(*space, key), cx) {
                Ok(()) => {}
                Err(Conflict::Blocked(at)) => self.meet(prepare, at, &mut way),
                Err(Conflict::Refused(reason)) => return WaitCheck::Refused(reason),
            }
        }
        let seen = seen_rows(prepare);
        let seen = |space, key: &SmallBytes| seen.get(&(space, key)).copied();
        for range in &prepare.scans {
            match self.check_scan(range, &mut validation, writes, seen, cx) {
                Ok(()) => {}
                Err(Conflict::Blocked(at)) => self.meet(prepare, at, &mut way),
                Err(Conflict::Refused(reason)) => return WaitCheck::Refused(reason),
            }
        }
        if !self.keeps(TreeSwitch::BlindWritersPass) && self.writes_behind(prepare, cx) {
            return WaitCheck::Refused(Abort::StaleRead);
        }
        self.check_writes(prepare, &mut validation, &mut way, cx);
        match self.check_delayed(prepare, &mut validation, &mut way, cx) {
            Ok(()) => self.check_dry_run(prepare, way.check(validation), cx),
            Err(reason) => WaitCheck::Refused(reason),
        }
    }

    /// Whether a key is kept for another transaction than this one, for now.
    #[inline]
    pub(super) fn is_kept_from(&self, key: Key<'_>, reader: V::Reader, now: Nanos) -> bool {
        self.protocol_state.is_kept_from(key, reader, now)
            && self.switches.keeps(FamilySwitch::YieldsToOlder)
    }

    /// What may go wrong in the turn of a transaction that may prepare now is tried.
    fn check_dry_run(
        &mut self,
        prepare: &Prepare<V>,
        found: WaitCheck<V::Snapshot>,
        cx: &mut Context<'_, V>,
    ) -> WaitCheck<V::Snapshot> {
        if !prepare.delays() || !matches!(found, WaitCheck::Free(_)) {
            return found;
        }
        match self.try_delayed(prepare, cx) {
            Ok(()) => found,
            Err(reason) => {
                self.send_violation(prepare.txn, &reason, cx);
                WaitCheck::Refused(Abort::FootprintViolation)
            }
        }
    }

    /// Whether the locks of what it writes are free, and where the past is closed.
    fn check_writes(
        &mut self,
        prepare: &Prepare<V>,
        validation: &mut ValidationResult<V::Snapshot>,
        way: &mut WaitState,
        cx: &mut Context<'_, V>,
    ) {
        cx.effects.work.validated += V::read_timestamps(prepare.writes.len());
        let has_intervals = self.has_intervals();
        for (space, key, _) in &prepare.writes {
            let versions = self.space(*space, cx);
            let found = versions.find(key);
            let locked = found.filter(|&handle| !can_write(versions.lock(handle), has_intervals));
            let head = found.map_or(Timestamp::ZERO, |handle| versions.newest(handle).at);
            let is_own = |handle: &Handle| self.encounters.has(prepare.reader, (*space, *handle));
            if let Some(handle) =
                locked.filter(|it| !V::POLICIES.locking.may_lock_at_writes() || !is_own(it))
            {
                self.meet(prepare, (*space, handle), way);
            }
            self.meet_ranges(prepare, (*space, key), way);
            self.protocol_state.note_write((*space, key), head, prepare.reader, validation);
        }
    }

    /// Whether a read version is still the newest, and nobody is about to replace it. Where the
    /// protocol suffers stale reads of keys that are not written, they go into the standing.
    #[inline(always)]
    pub(in crate::two_phase) fn check_read(
        &mut self,
        (space, handle, key, version): (SpaceId, Handle, &SmallBytes, Timestamp),
        validation: &mut ValidationResult<V::Snapshot>,
        is_written: impl Fn() -> bool,
        cx: &Context<'_, V>,
    ) -> Result<(), Conflict> {
        let switches = self.switches;
        let tolerant = self.tolerates(validation);
        self.space(space, cx);
        if !self.has_key(space, key, cx.catalog) {
            return Err(Abort::StaleRead.into()); // Who moved it has written it.
        }
        let versions = self.versions(space).expect("made above");
        let found = versions.look(handle, key);
        let installed = found.map_or(Timestamp::ZERO, |(_, newest, _)| newest);
        let newest = self.protocol_state.newest((space, key), installed);
        let is_current = self.time.is_current((space, key), newest, version, &validation.snapshot)
            && (newest == version || self.may_differ((space, key), cx.catalog));
        let Some((handle, _, lock)) = found else {
            let stale = switches.keeps(FamilySwitch::Validate) && !is_current;
            return if stale { Err(Abort::StaleRead.into()) } else { Ok(()) };
        };
        let closed = self.is_closed(lock);
        let seen = if switches.keeps(FamilySwitch::JudgedBySnapshot) {
            validation.snapshot.at()
        } else {
            version
        };
        if switches.keeps(FamilySwitch::LockReads) && closed && tolerant {
            self.check_missed((space, handle, key), (lock, seen), validation, &is_written)?;
        }
        if switches.keeps(FamilySwitch::Validate) && !is_current {
            if !tolerant || is_written() {
                return Err(Abort::StaleRead.into());
            }
            return self.note_missed((space, key), seen, validation);
        }
        if switches.keeps(FamilySwitch::LockReads) && closed && !tolerant {
            return Err(self.writer_at((space, handle)));
        }
        Ok(())
    }

    /// Whether the newest version of a key may be another one than was read, and be current. Where
    /// reads are forwarded, it may only where nothing is there, and the key has other copies: of
    /// these one may have collected a deletion, and another one not yet.
    #[inline]
    fn may_differ(&self, (space, key): Key<'_>, catalog: &Catalog) -> bool {
        if !V::POLICIES.reading.is_forwarded()
            || !self.switches.keeps(FamilySwitch::ComparesExactly)
        {
            return true;
        }
        let versions = self.versions(space);
        let value = versions.and_then(|it| it.newest(it.find(key)?).value);
        catalog.replicas > 1 && value.is_none()
    }

    /// Whether stale reads go into the standing of an update.
    #[inline]
    fn tolerates(&self, validation: &ValidationResult<V::Snapshot>) -> bool {
        V::POLICIES.installing.may_time_warp()
            && !validation.strict
            && self.protocol_state.suffers_stale_reads()
    }

    /// What comes of a lock for writing on something that was read.
    pub(in crate::two_phase) fn writer_at(&self, key: (SpaceId, Handle)) -> Conflict {
        match self.waits_for_locks() && self.switches.lock_waits == LockWaits::ForAll {
            true => Conflict::Blocked(key),
            false => Conflict::Refused(Abort::Locked),
        }
    }

    /// Takes the versions of a key above `seen` into the standing.
    fn note_missed(
        &mut self,
        (space, key): (SpaceId, &SmallBytes),
        seen: Timestamp,
        validation: &mut ValidationResult<V::Snapshot>,
    ) -> Result<(), Conflict> {
        let versions = self.versions(space).expect("its key was just found");
        let Some(handle) = versions.find(key) else { return Ok(()) };
        for at in versions.above(handle, seen) {
            self.protocol_state.note_missed((space, key), at, validation)?;
        }
        Ok(())
    }

    /// Whether a scanned range is still as it was at `snapshot`, and nobody is about to change it.
    pub(in crate::two_phase) fn check_scan(
        &mut self,
        range: &KeyRange,
        validation: &mut ValidationResult<V::Snapshot>,
        is_written: impl Fn(SpaceId, &SmallBytes) -> bool,
        seen: impl Fn(SpaceId, &SmallBytes) -> Option<Timestamp>,
        cx: &mut Context<'_, V>,
    ) -> Result<(), Conflict> {
        if !self.switches.keeps(FamilySwitch::ValidateScans) {
            return Ok(());
        }
        if self.whereabouts.lacks_owners() {
            return Err(Abort::Phantom.into());
        }
        let tolerant = self.tolerates(validation);
        let space = range.space;
        self.space(space, cx);
        let versions = self.versions(space).expect("made above");
        for (key, handle) in versions.range(&range.lo, range.hi.as_ref()) {
            // What came here by a move is among the reads of whoever has seen it.
            if V::keys_move(cx.catalog) && !self.is_directory_of(space, key, cx.catalog) {
                continue;
            }
            cx.effects.work.validated += 1;
            let lock = versions.lock(handle);
            let mut locked = self.is_closed(lock);
            if tolerant && locked {
                let (lock, is_written) =
                    ((lock, validation.snapshot.at()), || is_written(space, key));
                self.check_missed((space, handle, key), lock, validation, &is_written)?;
                locked = false;
            }
            let newest = versions.newest(handle).at;
            let seen = || seen(space, key);
            let stale = self.time.is_phantom((space, key), newest, &validation.snapshot, seen);
            match (tolerant, stale, locked) {
                (_, false, false) => {}
                (true, true, _) if !is_written(space, key) => {
                    let from = validation.snapshot.at();
                    for at in versions.above(handle, from) {
                        self.protocol_state.note_missed((space, key), at, validation)?;
                    }
                }
                (_, true, _) => return Err(Abort::Phantom.into()),
                (_, false, true) => return Err(self.writer_at((space, handle))),
            }
        }
        Ok(())
    }
}

/// Whether one more transaction may be about to write a key.
#[inline]
pub(in crate::two_phase) fn can_write(lock: LockWord, has_intervals: bool) -> bool {
    lock.is_free() || has_intervals && lock.is_delayed()
}

/// The rows that a transaction scanned, among what it read, where they are validated as reads.
fn seen_rows<V: Variant>(prepare: &Prepare<V>) -> BTreeMap<(SpaceId, &SmallBytes), Timestamp> {
    if !V::POLICIES.validation.has_rows() || prepare.scans.is_empty() {
        return BTreeMap::new();
    }
    prepare.reads.iter().map(|(space, key, version)| ((*space, key), *version)).collect()
}
