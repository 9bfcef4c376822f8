//! Reads at a replica: the clock passes the snapshot, then locks are looked at, then versions.

use muesli_core::parts::locks::KeyRange;
use muesli_core::parts::versions::{Handle, Version};
use muesli_core::{Address, SmallBytes, SpaceId, Timestamp};

use super::Variant;
use super::message::{
    Found, Message, Mostly, ReadReply, ReadRequest, Record, ScanReply, ScanRequest,
};
use super::participant::{Context, Participant};

/// A ceiling is raised by so many steps at once, so that it is seldom logged.
const CEILING_STEPS: u64 = 1 << 20;

/// A read that waits for a lock.
#[derive(Clone, Debug)]
pub(super) enum WaitingRead<V: Variant> {
    Keys(ReadRequest<V>),
    Range(Box<ScanRequest<V>>),
}

/// How a transaction reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<V: Variant> {
    /// The snapshot, or for a first read the least it may be.
    pub snapshot: Timestamp,
    /// Whether this read fixes the snapshot.
    pub first: bool,
    pub reader: V::Reader,
}

/// How a key of this node was read.
pub(super) struct ReadHere<'a> {
    pub snapshot: Timestamp,
    pub handle: Handle,
    pub version: Version<'a>,
    /// Whether a writer holds the key's lock.
    pub locked: bool,
}

/// Why a read was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotServed {
    /// A lock holder may come to lie inside the snapshot: wait.
    Blocked,
    /// The versions that the snapshot needs may be gone.
    TooOld,
    /// A key is over the limit.
    TooLarge,
}

impl<V: Variant> Participant<V> {
    /// Fixes the snapshot of a first read, and makes sure that everything proposed from now on is
    /// later. This comes before any lock is looked at, and in one step with it.
    #[inline(always)]
    pub(super) fn serve_at(
        &mut self,
        snapshot: Timestamp,
        first: bool,
        cx: &mut Context<'_, V>,
    ) -> Result<Timestamp, NotServed> {
        // A first read is free to begin at the watermark, so it is never too old.
        let at = if first { snapshot.max(self.clock.committed()).max(self.low) } else { snapshot };
        if !V::SNAPSHOTS {
            return Ok(at);
        }
        if at < self.low {
            return Err(NotServed::TooOld);
        }
        if self.rules.reads_raise {
            self.clock.serve(at);
            if at > self.clock.committed() {
                self.clock.hear(at);
                if self.queue.is_empty() || !self.rules.catch_up_when_idle {
                    self.clock.catch_up();
                }
            }
            if cx.settings.logging && at > self.ceiling {
                self.raise_ceiling(at, cx);
            }
        }
        Ok(at)
    }

    fn raise_ceiling(&mut self, at: Timestamp, cx: &mut Context<'_, V>) {
        self.ceiling = at.after(CEILING_STEPS, self.id);
        let at = self.ceiling;
        cx.log(|| Record::Ceiling { at });
    }

    /// Whether a read of an entry at `snapshot` must wait: it is locked by a writer that may come
    /// to lie inside the snapshot. In SCORe one that was proposed a later timestamp ends up later.
    #[inline]
    fn must_wait(&self, space: SpaceId, handle: Handle, snapshot: Timestamp) -> bool {
        let versions = self.versions(space).expect("the space has this handle");
        let Some(owner) = versions.lock(handle).exclusive_owner() else { return false };
        let inside = if self.rules.waits_by_proposal {
            let holder = self.table.get(owner);
            V::blocks(&self.keeper, holder.prepare.snapshot, holder.yes, snapshot)
        } else {
            self.clock.committed() < snapshot
        };
        V::SNAPSHOTS && self.rules.reads_wait && inside
    }

    /// Reads a key for a coordinator on the same node.
    #[inline(always)]
    pub(super) fn read_here(
        &mut self,
        space: SpaceId,
        key: &SmallBytes,
        reading: Reading<V>,
        cx: &mut Context<'_, V>,
    ) -> Result<ReadHere<'_>, NotServed> {
        let Reading { snapshot, first, reader } = reading;
        let snapshot = self.serve_at(snapshot, first, cx)?;
        cx.effects.work.reads += 1;
        self.space(space, cx);
        V::note_read(&mut self.keeper, (space, key), snapshot, self.clock.committed(), reader);
        let versions = self.versions(space).expect("made above");
        let Some((handle, lock, version)) = versions.read(key, seen_at::<V>(snapshot)) else {
            let (handle, version) = (Handle::NONE, Version::ABSENT);
            return Ok(ReadHere { snapshot, handle, version, locked: false });
        };
        if lock.is_exclusive() && self.must_wait(space, handle, snapshot) {
            return Err(NotServed::Blocked);
        }
        Ok(ReadHere { snapshot, handle, version, locked: lock.is_exclusive() })
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
        mut take: impl FnMut(usize, ReadHere<'_>),
    ) -> Result<Timestamp, NotServed> {
        let Reading { snapshot, first, reader } = reading;
        let snapshot = self.serve_at(snapshot, first, cx)?;
        cx.effects.work.reads += keys.len() as u64;
        self.space(space, cx);
        let committed = self.clock.committed();
        for key in keys {
            V::note_read(&mut self.keeper, (space, key), snapshot, committed, reader);
        }
        let versions = self.versions(space).expect("made above");
        for (place, key) in keys.iter().enumerate() {
            if key.len() > cx.settings.limits.key_bytes {
                return Err(NotServed::TooLarge);
            }
            let (handle, version, locked) = match versions.read(key, seen_at::<V>(snapshot)) {
                None => (Handle::NONE, Version::ABSENT, false),
                Some((handle, lock, version)) => {
                    let locked = lock.is_exclusive();
                    if locked && self.must_wait(space, handle, snapshot) {
                        return Err(NotServed::Blocked);
                    }
                    (handle, version, locked)
                }
            };
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
                let (committed, found) = (self.clock.committed(), Mostly::new());
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
    ) -> Result<ReadReply, NotServed> {
        let snapshot = self.serve_at(request.snapshot, request.first, cx)?;
        let mut found = Mostly::with_capacity(request.keys.len());
        let reading = Reading { snapshot, first: false, reader: request.reader };
        for (space, key) in &request.keys {
            let read = self.read_here(*space, key, reading, cx)?;
            found.push(Found::from(read.version));
        }
        let (request, committed) = (request.request, self.clock.committed());
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
                let (committed, rows, complete) = (self.clock.committed(), Vec::new(), true);
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
    ) -> Result<ScanReply, NotServed> {
        let snapshot = self.serve_at(request.snapshot, request.first, cx)?;
        let space = request.range.space;
        self.space(space, cx);
        let committed = self.clock.committed();
        V::note_scan(&mut self.keeper, &request.range, snapshot, committed, request.reader);
        let (rows, complete) = self.rows_at(request, snapshot, cx)?;
        cx.effects.work.reads += rows.len() as u64;
        let (request, snapshot) = (request.request, Some(snapshot));
        let committed = self.clock.committed();
        Ok(ScanReply { request, snapshot, committed, rows, complete })
    }

    /// The rows that a scan sees, deleted ones without a value, and whether it saw the range to
    /// its end.
    fn rows_at(
        &self,
        request: &ScanRequest<V>,
        snapshot: Timestamp,
        cx: &Context<'_, V>,
    ) -> Result<(Vec<(SmallBytes, Found)>, bool), NotServed> {
        let KeyRange { space, lo, hi } = &request.range;
        let versions = self.versions(*space).expect("made before");
        let (mut rows, mut live) = (Vec::new(), 0);
        let mut entries = versions.range(lo, hi.as_ref());
        loop {
            let next = if request.reverse { entries.next_back() } else { entries.next() };
            let Some((key, handle)) = next else { return Ok((rows, true)) };
            let wanted = request.partitions.len() == cx.catalog.repositories()
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
            let version = versions.at(handle, seen_at::<V>(snapshot));
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

/// Where versions are looked for in a read at `snapshot`.
#[inline]
fn seen_at<V: Variant>(snapshot: Timestamp) -> Timestamp {
    if V::SNAPSHOTS { snapshot } else { Timestamp::MAX }
}

impl From<Version<'_>> for Found {
    fn from(version: Version<'_>) -> Found {
        Found { version: version.at, value: version.value.cloned(), newest: version.newest }
    }
}
