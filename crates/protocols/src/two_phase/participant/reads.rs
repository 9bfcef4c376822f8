//! Reads at a replica: the clock passes the snapshot, then locks are looked at, then versions.
//! `looks` has those of versions alone, of what was read before.

use muesli_core::parts::locks::LockWord;
use muesli_core::parts::versions::{Handle, Version, Versions};
use muesli_core::ranges::KeyRange;
use muesli_core::{Address, Nanos, SmallBytes, SpaceId, Timestamp};

use super::Participant;
use super::waits::reads::WaitingRead;
use super::whereabouts::range_entries::{RangeEntry, range_entries};
use crate::two_phase::VariantState;
use crate::two_phase::message::moves::{KnownCopy, MovedRow, Redirect, WhereKeysMove};
use crate::two_phase::message::{
    Found, Message, Mostly, ReadReply, ReadRequest, ReadWants, ScanReply, ScanRequest,
};
use crate::two_phase::policy::{FamilySwitch, TreeSwitch};
use crate::two_phase::time::{NotServed, Reading, Snapshot, Time};
use crate::two_phase::{Context, Variant};

mod looks;

/// Rows of a scan, and the last key that was looked at where the range goes on.
type Page = (Vec<(SmallBytes, Found)>, Option<SmallBytes>);

/// How a key of this node was read.
pub(in crate::two_phase) struct ReadHere<'a, S> {
    pub snapshot: S,
    pub handle: Handle,
    pub version: Version<'a>,
    /// Whether a writer holds the key's lock.
    pub locked: bool,
    /// As in [`Found`].
    pub collected: Timestamp,
}

impl<S> ReadHere<'_, S> {
    /// As [`Found::recorded`].
    pub fn recorded(&self) -> Timestamp {
        self.version.at.max(self.collected)
    }

    /// Whether a copy of a version is what was found, and has a value.
    fn shows(&self, version: Timestamp, compares: bool) -> bool {
        self.version.value.is_some() && (self.version.at == version || !compares)
    }
}

impl<V: Variant> Participant<V> {
    /// Whether a read of an entry at `snapshot` must wait: it is locked by a writer that may come
    /// to lie inside the snapshot. In SCORe one that was proposed a later timestamp ends up later.
    #[inline]
    pub(super) fn must_wait(&self, space: SpaceId, handle: Handle, snapshot: &V::Snapshot) -> bool {
        if !V::POLICIES.reading.has_snapshots() {
            return false; // The newest version there is, whoever is about to replace it.
        }
        let versions = self.versions(space).expect("the space has this handle");
        let lock = versions.lock(handle);
        let blocks = |owner| {
            let holder = self.table.get(owner);
            if let Some(place) = holder.decided.as_ref().filter(|_| self.orders_waits()) {
                return self.switches.keeps(FamilySwitch::ReadsWait)
                    && V::Time::version_of(place) <= snapshot.at();
            }
            self.time.blocks(
                &self.protocol_state,
                (&holder.prepare.snapshot, &holder.yes),
                snapshot,
            )
        };
        match lock.exclusive_owner() {
            Some(owner) => blocks(owner),
            None => self.is_closed(lock) && self.delayers(space, handle).any(blocks),
        }
    }

    /// Reads a key for a coordinator on the same node.
    #[inline(always)]
    pub(in crate::two_phase) fn read_here(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        reading: Reading<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ReadHere<'_, V::Snapshot>, NotServed> {
        let snapshot = self.time.serve(&reading, cx)?;
        let reader = reading.reader;
        cx.effects.work.reads += 1;
        cx.effects.work.validated += V::read_timestamps(1);
        self.space(space, cx);
        let committed = self.time.committed();
        self.protocol_state.note_read((space, key), &snapshot, &committed, reader, cx.now());
        let versions = self.versions(space).expect("made above");
        let read = self.time.read(versions, space, key, &snapshot);
        if V::keys_move(cx.catalog) && read.is_none_or(|(.., it)| it.value.is_none()) {
            let lock = read.map_or_else(LockWord::default, |(_, lock, _)| lock);
            if let Some(why) = self.elsewhere((space, key), lock, cx.catalog) {
                return Err(why);
            }
        }
        let Some((handle, lock, version)) = read else {
            let (handle, version) = (Handle::NONE, Version::ABSENT);
            let collected = self.collected(versions, key, version, &snapshot);
            return Ok(ReadHere { snapshot, handle, version, locked: false, collected });
        };
        let locked = self.is_closed(lock);
        if locked && self.must_wait(space, handle, &snapshot) {
            return Err(NotServed::Blocked);
        }
        let collected = self.collected(versions, key, version, &snapshot);
        let snapshot = self.fixed_by(reading.first, snapshot, version.at);
        Ok(ReadHere { snapshot, handle, version, locked, collected })
    }

    /// Reads keys for a coordinator on the same node, and hands each to `take`; those handed over
    /// before one that cannot be read do not count.
    #[inline(always)]
    pub(in crate::two_phase) fn read_all_here(
        &mut self,
        space: SpaceId,
        keys: &[SmallBytes],
        reading: Reading<V>,
        cx: &mut Context<'_, V>,
        mut take: impl FnMut(usize, ReadHere<'_, V::Snapshot>),
    ) -> Result<V::Snapshot, NotServed> {
        let snapshot = self.time.serve(&reading, cx)?;
        let reader = reading.reader;
        cx.effects.work.reads += keys.len() as u64;
        cx.effects.work.validated += V::read_timestamps(keys.len());
        self.space(space, cx);
        let committed = self.time.committed();
        for key in keys {
            self.protocol_state.note_read((space, key), &snapshot, &committed, reader, cx.now());
        }
        let (first, mut seen_first) = (reading.first, Timestamp::ZERO);
        let versions = self.versions(space).expect("made above");
        for (place, key) in keys.iter().enumerate() {
            if key.len() > cx.settings.limits.key_bytes {
                return Err(NotServed::TooLarge);
            }
            let (handle, version, locked) = match self.time.read(versions, space, key, &snapshot) {
                None if self.has_key(space, key, cx.catalog) => {
                    (Handle::NONE, Version::ABSENT, false)
                }
                None => return Err(NotServed::Elsewhere),
                Some((handle, lock, version)) => {
                    let locked = self.is_closed(lock);
                    if locked && self.must_wait(space, handle, &snapshot) {
                        return Err(NotServed::Blocked);
                    }
                    if version.value.is_none() && !self.has_key(space, key, cx.catalog) {
                        return Err(NotServed::Elsewhere);
                    }
                    (handle, version, locked)
                }
            };
            let collected = self.collected(versions, key, version, &snapshot);
            if place == 0 {
                seen_first = version.at;
            }
            let snapshot = snapshot.clone();
            take(place, ReadHere { snapshot, handle, version, locked, collected });
        }
        Ok(self.fixed_by(first, snapshot, seen_first))
    }

    /// For histories: the collected deletion that a read at `snapshot` saw where it found
    /// `version` of a key.
    #[inline(always)]
    fn collected(
        &self,
        versions: &Versions,
        key: &SmallBytes,
        version: Version<'_>,
        snapshot: &V::Snapshot,
    ) -> Timestamp {
        match version.at {
            Timestamp::ZERO => versions.collected(key, self.time.seen_until(snapshot)),
            _ => Timestamp::ZERO,
        }
    }

    pub(in crate::two_phase) fn on_read(
        &mut self,
        from: Address,
        request: ReadRequest<V>,
        cx: &mut Context<'_, V>,
    ) {
        self.read_or_wait(from, request, cx.now(), cx);
    }

    /// Answers a read that was asked for at `asked`, or keeps it.
    pub(in crate::two_phase) fn read_or_wait(
        &mut self,
        from: Address,
        request: ReadRequest<V>,
        asked: Nanos,
        cx: &mut Context<'_, V>,
    ) {
        match self.serve_keys(&request, cx) {
            Ok(mut reply) => {
                if !self.keeps(TreeSwitch::LooksUpAgain) {
                    self.answer_as_awaited(from, &request, &mut reply);
                }
                cx.send(from, Message::ReadReply(reply));
            }
            Err(NotServed::TooOld | NotServed::TooLarge | NotServed::Elsewhere) => {
                let request = request.request;
                let (committed, found) = (self.time.committed(), Mostly::new());
                let (moved, known) = Default::default();
                let reply = ReadReply { request, snapshot: None, committed, found, moved, known };
                cx.send(from, Message::ReadReply(reply));
            }
            Err(NotServed::Blocked) => {
                if !self.keeps(TreeSwitch::LooksUpAgain) {
                    self.note_awaited(from, &request);
                }
                let key = (from, request.request);
                self.keep_waiting(key, asked, WaitingRead::Keys(request), cx);
            }
        }
    }

    /// Reads keys until the message is full; at least the first.
    fn serve_keys(
        &mut self,
        request: &ReadRequest<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ReadReply<V>, NotServed> {
        let (asked, first, reader) = (request.snapshot.clone(), request.first, request.reader);
        let asked = Reading { snapshot: asked, first, here: false, reader };
        if request.wanted == ReadWants::Versions {
            return self.look_again(request, asked, cx);
        }
        let mut snapshot = self.time.serve(&asked, cx)?;
        let limits = cx.settings.limits;
        let checks_copies = self.switches.keeps(FamilySwitch::ChecksCopies);
        let most = request.keys.len().min(limits.page_rows);
        let forwards = request.wanted == ReadWants::NewestValues && !first;
        if forwards && self.is_behind(&request.keys[..most], &snapshot) {
            let snapshot_of_present = asked.snapshot.as_lower_bound();
            let asked = Reading { first: true, snapshot: snapshot_of_present, ..asked };
            snapshot = self.time.serve(&asked, cx)?;
        }
        let mut found = Mostly::with_capacity(most);
        let (mut moved, mut known) = (WhereKeysMove::default(), WhereKeysMove::default());
        let mut copies = request.known.iter().peekable();
        let mut bytes = 0;
        for (space, key) in request.keys.iter().take(most) {
            let place = found.len() as u32;
            let copy = copies.next_if(|copy: &&KnownCopy| copy.place == place).copied();
            let snapshot = snapshot.clone();
            let reading = Reading { snapshot, first: false, here: false, reader };
            let read = match self.read_here(*space, key, reading, cx) {
                Err(NotServed::Elsewhere) => {
                    let (to, at) = self.direct(*space, key, cx.catalog);
                    moved.push(Redirect { place, to, at });
                    found.push(Found::from(Version::ABSENT));
                    continue;
                }
                read => read?,
            };
            let is_known = copy.is_some_and(|copy| read.shows(copy.version, checks_copies));
            if let Some(copy) = copy.filter(|_| is_known) {
                let (version, value, newest) = (copy.version, None, read.version.newest);
                found.push(Found { version, value, newest, collected: Timestamp::ZERO });
                known.push(place);
                continue;
            }
            bytes += read.version.value.map_or(0, SmallBytes::len);
            found.push(Found { collected: read.collected, ..Found::from(read.version) });
            if bytes >= limits.page_bytes {
                break;
            }
        }
        assert!(!found.is_empty() || most == 0, "request {} is of no key", request.request);
        let version = found.first().map_or(Timestamp::ZERO, |it: &Found| it.version);
        let snapshot = self.fixed_by(request.first, snapshot, version);
        let (request, committed) = (request.request, self.time.committed());
        Ok(ReadReply { request, snapshot: Some(snapshot), committed, found, moved, known })
    }

    pub(in crate::two_phase) fn on_scan(
        &mut self,
        from: Address,
        request: Box<ScanRequest<V>>,
        cx: &mut Context<'_, V>,
    ) {
        self.scan_or_wait(from, request, cx.now(), cx);
    }

    /// Answers a scan that was asked for at `asked`, or keeps it.
    pub(in crate::two_phase) fn scan_or_wait(
        &mut self,
        from: Address,
        request: Box<ScanRequest<V>>,
        asked: Nanos,
        cx: &mut Context<'_, V>,
    ) {
        match self.serve_page(&request, cx) {
            Ok(reply) => cx.send(from, Message::ScanReply(Box::new(reply))),
            Err(NotServed::TooOld | NotServed::TooLarge | NotServed::Elsewhere) => {
                let request = request.request;
                let (committed, rows, seen_to) = (self.time.committed(), Vec::new(), None);
                let moved = WhereKeysMove::default();
                let reply = ScanReply { request, snapshot: None, committed, rows, seen_to, moved };
                cx.send(from, Message::ScanReply(Box::new(reply)));
            }
            Err(NotServed::Blocked) => {
                let key = (from, request.request);
                self.keep_waiting(key, asked, WaitingRead::Range(request), cx);
            }
        }
    }

    fn serve_page(
        &mut self,
        request: &ScanRequest<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ScanReply<V>, NotServed> {
        let (asked, first, reader) = (request.snapshot.clone(), request.first, request.reader);
        let asked = Reading { snapshot: asked, first, here: false, reader };
        if self.whereabouts.lacks_owners() {
            return Err(NotServed::Blocked);
        }
        let snapshot = self.time.serve(&asked, cx)?;
        self.space(request.range.space, cx);
        let mut moved = WhereKeysMove::default();
        let (mut rows, seen_to) = self.rows_at(request, &snapshot, &mut moved, cx)?;
        let committed = self.time.committed();
        let seen = request.range.seen(request.reverse, seen_to.as_ref());
        self.protocol_state.note_scan(&seen, &snapshot, &committed, reader);
        cx.effects.work.reads += rows.len() as u64;
        self.add_collected(request, &seen, &snapshot, &mut rows, cx);
        let (request, snapshot) = (request.request, Some(snapshot));
        Ok(ScanReply { request, snapshot, committed, rows, seen_to, moved })
    }

    /// The rows of a page of a scan, deleted ones without a value, and the last key that was
    /// looked at, if that was not the range's end; keys that have moved go with `moved`.
    fn rows_at(
        &self,
        request: &ScanRequest<V>,
        snapshot: &V::Snapshot,
        moved: &mut WhereKeysMove<V, MovedRow>,
        cx: &Context<'_, V>,
    ) -> Result<Page, NotServed> {
        let space = &request.range.space;
        let versions = self.versions(*space).expect("made before");
        let limits = &cx.settings.limits;
        let all = request.partitions.len() == cx.catalog.partitions();
        let (mut rows, mut live, mut bytes) = (Vec::new(), 0, 0);
        let mut seen_to: Option<&SmallBytes> = None;
        let (whereabouts, range) = (&self.whereabouts, &request.range);
        let mut entries = range_entries(versions, whereabouts, range, request.reverse, cx.catalog);
        for looked_at in 0.. {
            let Some(RangeEntry { key, handle, moved: went }) = entries.next() else {
                return Ok((rows, None));
            };
            let is_wanted = all || request.partitions.contains(&cx.catalog.partition(*space, key));
            let is_full = looked_at >= limits.page_rows || bytes >= limits.page_bytes;
            if is_full || is_wanted && live >= request.limit && looked_at > 0 {
                break;
            }
            if is_wanted && let Some((to, at)) = went {
                moved.push(MovedRow { key: key.clone(), to, at });
                (live, bytes) = (live + 1, bytes + key.len());
            } else if is_wanted && let Some(handle) = handle {
                if self.must_wait(*space, handle, snapshot) {
                    return Err(NotServed::Blocked);
                }
                let version = self.time.version(versions, *space, handle, snapshot);
                if V::keys_move(cx.catalog) && !version.newest {
                    return Err(NotServed::TooOld); // It may have been elsewhere then.
                }
                live += usize::from(version.value.is_some());
                if version.at != Timestamp::ZERO {
                    bytes += key.len() + version.value.map_or(0, SmallBytes::len);
                    rows.push((key.clone(), Found::from(version)));
                }
            }
            seen_to = Some(key);
        }
        assert!(rows.len() <= limits.page_rows, "a page of {} rows", rows.len());
        Ok((rows, seen_to.cloned()))
    }

    /// For histories: the collected deletions of the part of the range that a page has seen, as
    /// rows without a version.
    fn add_collected(
        &self,
        request: &ScanRequest<V>,
        seen: &KeyRange,
        snapshot: &V::Snapshot,
        rows: &mut Vec<(SmallBytes, Found)>,
        cx: &Context<'_, V>,
    ) {
        let versions = self.versions(seen.space).expect("made before");
        let until = self.time.seen_until(snapshot);
        let collected = versions.collected_in(&seen.lo, seen.hi.as_ref(), until);
        let is_wanted = |key: &SmallBytes| {
            request.partitions.contains(&cx.catalog.partition(seen.space, key))
                && self.has_key(seen.space, key, cx.catalog)
        };
        let row = |(key, collected): (&SmallBytes, Timestamp)| {
            (key.clone(), Found { collected, ..Found::from(Version::ABSENT) })
        };
        rows.extend(collected.filter(|(key, _)| is_wanted(key)).map(row));
    }
}

impl From<Version<'_>> for Found {
    fn from(version: Version<'_>) -> Found {
        let (value, newest) = (version.value.cloned(), version.newest);
        Found { version: version.at, value, newest, collected: Timestamp::ZERO }
    }
}
