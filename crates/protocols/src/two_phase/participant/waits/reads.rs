//! Reads that wait for a lock, or for what their snapshot needs.
//!
//! # The problem
//! A read that cannot be served yet waits at the repository. Its coordinator may die, or give up,
//! or ask another replica: then nobody wants the answer any more, and no message says so.
//!
//! # The idea
//! A coordinator that still waits asks again after
//! [`retry_after`](muesli_core::Settings::retry_after), at each replica in turn. So a read is kept
//! for [`in_doubt_after`](muesli_core::Settings::in_doubt_after) since it was last asked for, and
//! [`READS_MAX`] of them at most, with as many bytes together as a transaction may have. Of a read
//! of many keys only the first page is kept, which is all that it would be answered with; its
//! coordinator asks for the rest then, as always. One that is dropped too early is asked for again;
//! a read changes nothing that others rest on, so it may be dropped at any moment.

use std::collections::BTreeMap;

use muesli_core::limits::{range_bytes, read_bytes};
use muesli_core::{Address, Limits, Nanos, SmallBytes, SpaceId};

use crate::two_phase::message::{ReadRequest, ScanRequest};
use crate::two_phase::participant::Participant;
use crate::two_phase::{Context, Variant};

/// So many reads wait at a repository.
pub(in crate::two_phase) const READS_MAX: usize = 65_536;

/// What a read that waits counts beside its keys.
const READ_BYTES: usize = 64;

/// A read that waits.
#[derive(Clone, Debug)]
pub(in crate::two_phase) enum WaitingRead<V: Variant> {
    Keys(ReadRequest<V>),
    Range(Box<ScanRequest<V>>),
}

impl<V: Variant> WaitingRead<V> {
    /// How many bytes it counts towards the limit of all that wait.
    fn bytes(&self) -> usize {
        let bytes = match self {
            WaitingRead::Keys(request) => request.keys.iter().map(|(_, key)| read_bytes(key)).sum(),
            WaitingRead::Range(request) => {
                range_bytes(&request.range) + request.partitions.len() * size_of::<u16>()
            }
        };
        READ_BYTES + bytes
    }

    /// Its coordinator's number for the answer.
    fn request(&self) -> u64 {
        match self {
            WaitingRead::Keys(request) => request.request,
            WaitingRead::Range(request) => request.request,
        }
    }

    /// Without what it would not be answered with: keys beyond those of a page.
    fn first_page(mut self, limits: &Limits) -> WaitingRead<V> {
        if let WaitingRead::Keys(request) = &mut self {
            let mut bytes = 0;
            let fits = |(_, key): &&(SpaceId, SmallBytes)| {
                let has_capacity = bytes < limits.page_bytes;
                bytes += key.len();
                has_capacity
            };
            let most = request.keys.iter().take(limits.page_rows).take_while(fits).count();
            assert!(most > 0 || request.keys.is_empty(), "a page has one key at least");
            if most < request.keys.len() {
                request.keys = request.keys.drain(..most).collect();
            }
        }
        self
    }
}

/// The reads that wait, by coordinator and request number, with the time at which each was last
/// asked for.
///
/// Invariants: there are at most [`READS_MAX`], each under its own number, and `bytes` is what they
/// count.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct WaitingReads<V: Variant> {
    reads: BTreeMap<(Address, u64), (Nanos, WaitingRead<V>)>,
    /// How many bytes these count.
    bytes: usize,
}

impl<V: Variant> Default for WaitingReads<V> {
    fn default() -> WaitingReads<V> {
        WaitingReads { reads: BTreeMap::new(), bytes: 0 }
    }
}

impl<V: Variant> WaitingReads<V> {
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether this coordinator's request waits.
    pub fn has(&self, key: &(Address, u64)) -> bool {
        self.reads.contains_key(key)
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.reads.len() <= READS_MAX, "{} reads wait", self.reads.len());
        let bytes: usize = self.reads.values().map(|(_, read)| read.bytes()).sum();
        assert_eq!(self.bytes, bytes, "bytes of reads that wait");
        for ((_, number), (_, read)) in &self.reads {
            assert_eq!(read.request(), *number, "the number of a read that waits");
        }
    }

    /// Keeps one until it can be served, in place of an earlier copy of it; false: there are too
    /// many already.
    fn keep(
        &mut self,
        key: (Address, u64),
        (asked, read): (Nanos, WaitingRead<V>),
        bytes_max: usize,
    ) -> bool {
        let bytes = read.bytes();
        let before = self.reads.get(&key).map(|(_, read)| read.bytes());
        assert!(before.is_none_or(|before| before <= self.bytes), "a read that was not counted");
        let others = self.bytes - before.unwrap_or_default();
        let is_much = others > 0 && others.saturating_add(bytes) > bytes_max;
        if is_much || before.is_none() && self.len() >= READS_MAX {
            return false;
        }
        self.reads.insert(key, (asked, read));
        self.bytes = others + bytes;
        assert!(self.reads.len() <= READS_MAX, "waiting reads have a bound");
        true
    }

    /// Drops those that were asked for last at or before a time.
    fn drop_asked_until(&mut self, until: Nanos) {
        let dropped = self.reads.extract_if(.., |_, (asked, _)| *asked <= until);
        let freed = dropped.map(|(_, (_, read))| read.bytes()).sum::<usize>();
        assert!(freed <= self.bytes, "reads that were not counted");
        self.bytes -= freed;
    }
}

impl<V: Variant> Participant<V> {
    /// How many reads wait for locks, or for what their snapshots need.
    pub fn waiting_reads(&self) -> usize {
        self.waiting_reads.len()
    }

    /// How many bytes these count.
    pub fn waiting_read_bytes(&self) -> usize {
        self.waiting_reads.bytes
    }

    /// Keeps a read until it can be served. Where too many wait it is not kept, and its coordinator
    /// asks again.
    pub(in crate::two_phase) fn keep_waiting(
        &mut self,
        key: (Address, u64),
        asked: Nanos,
        read: WaitingRead<V>,
        cx: &mut Context<'_, V>,
    ) {
        let limits = &cx.settings.limits;
        let read = (asked, read.first_page(limits));
        if self.waiting_reads.keep(key, read, limits.transaction_bytes) {
            self.set_sweep_timer(cx);
        }
    }

    /// Reads that waited look again, in the order of who asked.
    pub(in crate::two_phase) fn retry_waiting_reads(&mut self, cx: &mut Context<'_, V>) {
        for ((from, _), (asked, read)) in std::mem::take(&mut self.waiting_reads).reads {
            match read {
                WaitingRead::Keys(request) => self.read_or_wait(from, request, asked, cx),
                WaitingRead::Range(request) => self.scan_or_wait(from, request, asked, cx),
            }
        }
    }

    /// Drops reads that nobody has asked for again.
    pub(in crate::two_phase) fn drop_waiting_reads(&mut self, cx: &Context<'_, V>) {
        let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
        if let Some(until) = now.0.checked_sub(patience.0) {
            self.waiting_reads.drop_asked_until(Nanos(until));
            self.forget_awaited();
        }
    }
}
