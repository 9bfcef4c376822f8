//! Reads at a replica: the clock passes the snapshot, then locks are looked at, then versions.

use muesli_core::parts::locks::KeyRange;
use muesli_core::parts::versions::{Handle, Version};
use muesli_core::{Address, SmallBytes, SpaceId, Timestamp};

use super::Variant;
use super::message::{Found, Message, Mostly, ReadReply, ReadRequest, ScanReply, ScanRequest};
use super::participant::{Context, Participant};
use super::time::{Snapshot, Time};

/// A read that waits for a lock.
#[derive(Clone, Debug)]
pub(super) enum WaitingRead<V: Variant> {
    Keys(ReadRequest<V>),
    Range(Box<ScanRequest<V>>),
}

/// How a transaction reads.
#[derive(Clone, Debug)]
pub struct Reading<V: Variant> {
    /// The snapshot, or for a first read the least it may be.
    pub snapshot: V::Snapshot,
    /// Whether this read fixes the snapshot.
    pub first: bool,
    /// Whether the coordinator is on the same node, and asks by a call.
    pub here: bool,
    /// Who reads.
    pub reader: V::Reader,
}

/// How a key of this node was read.
pub(super) struct ReadHere<'a, S> {
    pub snapshot: S,
    pub handle: Handle,
    pub version: Version<'a>,
    /// Whether a writer holds the key's lock.
    pub locked: bool,
}

/// Why a read was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// What the snapshot needs is not decided, or not applied: wait.
    Blocked,
    /// The versions that the snapshot needs may be gone.
    TooOld,
    /// A key is over the limit.
    TooLarge,
}

impl<V: Variant> Participant<V> {
    /// Whether a read of an entry at `snapshot` must wait: it is locked by a writer that may come
    /// to lie inside the snapshot. In SCORe one that was proposed a later timestamp ends up later.
    #[inline]
    fn must_wait(&self, space: SpaceId, handle: Handle, snapshot: &V::Snapshot) -> bool {
        let versions = self.versions(space).expect("the space has this handle");
        let lock = versions.lock(handle);
        let blocks = |owner| {
            let holder = self.table.get(owner);
            if let Some(place) = holder.decided.as_ref().filter(|_| self.orders_waits()) {
                return self.rules.reads_wait && V::Time::version_of(place) <= snapshot.at();
            }
            self.time.blocks(&self.keeper, (&holder.prepare.snapshot, &holder.yes), snapshot)
        };
        match lock.exclusive_owner() {
            Some(owner) => blocks(owner),
            None => self.is_closed(lock) && self.delayers(space, handle).any(blocks),
        }
    }

    /// Reads a key for a coordinator on the same node.
    #[inline(always)]
    pub(super) fn read_here(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        reading: Reading<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ReadHere<'_, V::Snapshot>, NotServed> {
        let snapshot = self.time.serve(&reading, cx)?;
        let reader = reading.reader;
        cx.effects.work.reads += 1;
        cx.effects.work.validated += V::stamps(1);
        self.space(space, cx);
        let committed = self.time.committed();
        V::note_read(&mut self.keeper, (space, key), &snapshot, &committed, reader);
        let versions = self.versions(space).expect("made above");
        let read = self.time.read(versions, space, key, &snapshot);
        let Some((handle, lock, version)) = read else {
            let (handle, version) = (Handle::NONE, Version::ABSENT);
            return Ok(ReadHere { snapshot, handle, version, locked: false });
        };
        let locked = self.is_closed(lock);
        if locked && self.must_wait(space, handle, &snapshot) {
            return Err(NotServed::Blocked);
        }
        Ok(ReadHere { snapshot, handle, version, locked })
    }

    /// Reads keys for a coordinator on the same node, and hands each to `take`; those handed over
    /// before one that cannot be read do not count.
    #[inline(always)]
    pub(super) fn read_all_here(
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
        cx.effects.work.validated += V::stamps(keys.len());
        self.space(space, cx);
        let committed = self.time.committed();
        for key in keys {
            V::note_read(&mut self.keeper, (space, key), &snapshot, &committed, reader);
        }
        let versions = self.versions(space).expect("made above");
        for (place, key) in keys.iter().enumerate() {
            if key.len() > cx.settings.limits.key_bytes {
                return Err(NotServed::TooLarge);
            }
            let (handle, version, locked) = match self.time.read(versions, space, key, &snapshot) {
                None => (Handle::NONE, Version::ABSENT, false),
                Some((handle, lock, version)) => {
                    let locked = self.is_closed(lock);
                    if locked && self.must_wait(space, handle, &snapshot) {
                        return Err(NotServed::Blocked);
                    }
                    (handle, version, locked)
                }
            };
            let snapshot = snapshot.clone();
            take(place, ReadHere { snapshot, handle, version, locked });
        }
        Ok(snapshot)
    }

    pub(super) fn on_read(
        &mut self,
        from: Address,
        request: ReadRequest<V>,
        cx: &mut Context<'_, V>,
    ) {
        match self.serve_keys(&request, cx) {
            Ok(reply) => cx.send(from, Message::ReadReply(reply)),
            Err(NotServed::TooOld | NotServed::TooLarge) => {
                let request = request.request;
                let (committed, found) = (self.time.committed(), Mostly::new());
                let reply = ReadReply { request, snapshot: None, committed, found };
                cx.send(from, Message::ReadReply(reply));
            }
            Err(NotServed::Blocked) => {
                let key = (from, request.request);
                self.waiting_reads.insert(key, WaitingRead::Keys(request));
            }
        }
    }

    fn serve_keys(
        &mut self,
        request: &ReadRequest<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ReadReply<V>, NotServed> {
        let (asked, first, reader) = (request.snapshot.clone(), request.first, request.reader);
        let asked = Reading { snapshot: asked, first, here: false, reader };
        let snapshot = self.time.serve(&asked, cx)?;
        let mut found = Mostly::with_capacity(request.keys.len());
        for (space, key) in &request.keys {
            let snapshot = snapshot.clone();
            let reading = Reading { snapshot, first: false, here: false, reader };
            let read = self.read_here(*space, key, reading, cx)?;
            found.push(Found::from(read.version));
        }
        let (request, committed) = (request.request, self.time.committed());
        Ok(ReadReply { request, snapshot: Some(snapshot), committed, found })
    }

    pub(super) fn on_scan(
        &mut self,
        from: Address,
        request: Box<ScanRequest<V>>,
        cx: &mut Context<'_, V>,
    ) {
        match self.serve_range(&request, cx) {
            Ok(reply) => cx.send(from, Message::ScanReply(Box::new(reply))),
            Err(NotServed::TooOld | NotServed::TooLarge) => {
                let request = request.request;
                let (committed, rows, complete) = (self.time.committed(), Vec::new(), true);
                let reply = ScanReply { request, snapshot: None, committed, rows, complete };
                cx.send(from, Message::ScanReply(Box::new(reply)));
            }
            Err(NotServed::Blocked) => {
                let key = (from, request.request);
                self.waiting_reads.insert(key, WaitingRead::Range(request));
            }
        }
    }

    fn serve_range(
        &mut self,
        request: &ScanRequest<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ScanReply<V>, NotServed> {
        let (asked, first, reader) = (request.snapshot.clone(), request.first, request.reader);
        let asked = Reading { snapshot: asked, first, here: false, reader };
        let snapshot = self.time.serve(&asked, cx)?;
        let space = request.range.space;
        self.space(space, cx);
        let committed = self.time.committed();
        V::note_scan(&mut self.keeper, &request.range, &snapshot, &committed, reader);
        let (rows, complete) = self.rows_at(request, &snapshot, cx)?;
        cx.effects.work.reads += rows.len() as u64;
        let (request, snapshot) = (request.request, Some(snapshot));
        let committed = self.time.committed();
        Ok(ScanReply { request, snapshot, committed, rows, complete })
    }

    /// The rows that a scan sees, deleted ones without a value, and whether it saw the range to
    /// its end.
    fn rows_at(
        &self,
        request: &ScanRequest<V>,
        snapshot: &V::Snapshot,
        cx: &Context<'_, V>,
    ) -> Result<(Vec<(SmallBytes, Found)>, bool), NotServed> {
        let KeyRange { space, lo, hi } = &request.range;
        let versions = self.versions(*space).expect("made before");
        let (mut rows, mut live) = (Vec::new(), 0);
        let mut entries = versions.range(lo, hi.as_ref());
        loop {
            let next = if request.reverse { entries.next_back() } else { entries.next() };
            let Some((key, handle)) = next else { return Ok((rows, true)) };
            let wanted = request.partitions.len() == cx.catalog.partitions()
                || request.partitions.contains(&cx.catalog.partition(*space, key));
            if !wanted {
                continue;
            }
            if live == request.limit {
                return Ok((rows, false));
            }
            if self.must_wait(*space, handle, snapshot) {
                return Err(NotServed::Blocked);
            }
            let version = self.time.version(versions, *space, handle, snapshot);
            live += usize::from(version.value.is_some());
            if version.at != Timestamp::ZERO {
                rows.push((key.clone(), Found::from(version)));
            }
        }
    }

    /// Reads that waited look again, in the order of who asked.
    pub(super) fn retry_waiting_reads(&mut self, cx: &mut Context<'_, V>) {
        for ((from, _), read) in std::mem::take(&mut self.waiting_reads) {
            match read {
                WaitingRead::Keys(request) => self.on_read(from, request, cx),
                WaitingRead::Range(request) => self.on_scan(from, request, cx),
            }
        }
    }
}

impl From<Version<'_>> for Found {
    fn from(version: Version<'_>) -> Found {
        Found { version: version.at, value: version.value.cloned(), newest: version.newest }
    }
}
