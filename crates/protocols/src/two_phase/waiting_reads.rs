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
//! [`READS_MAX`] of them at most. One that is dropped too early is asked for again; a read changes
//! nothing that others rest on, so it may be dropped at any moment.

use std::collections::BTreeMap;

use muesli_core::{Address, Nanos};

use super::Variant;
use super::message::{ReadRequest, ScanRequest};
use super::participant::{Context, Participant};

/// So many reads wait at a repository.
pub(super) const READS_MAX: usize = 65_536;

/// A read that waits.
#[derive(Clone, Debug)]
pub(super) enum WaitingRead<V: Variant> {
    Keys(ReadRequest<V>),
    Range(Box<ScanRequest<V>>),
}

/// The reads that wait, by coordinator and request number, with the time at which each was last
/// asked for.
#[derive(Clone, Debug)]
pub(super) struct WaitingReads<V: Variant> {
    reads: BTreeMap<(Address, u64), (Nanos, WaitingRead<V>)>,
}

impl<V: Variant> Default for WaitingReads<V> {
    fn default() -> WaitingReads<V> {
        WaitingReads { reads: BTreeMap::new() }
    }
}

impl<V: Variant> WaitingReads<V> {
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    pub fn len(&self) -> usize {
        self.reads.len()
    }
}

impl<V: Variant> Participant<V> {
    /// Keeps a read until it can be served. Where too many wait it is not kept, and its coordinator
    /// asks again.
    pub(super) fn keep_waiting(
        &mut self,
        (from, request): (Address, u64),
        asked: Nanos,
        read: WaitingRead<V>,
        cx: &mut Context<'_, V>,
    ) {
        let known = self.waiting_reads.reads.contains_key(&(from, request));
        if !known && self.waiting_reads.len() >= READS_MAX {
            return;
        }
        self.waiting_reads.reads.insert((from, request), (asked, read));
        assert!(self.waiting_reads.len() <= READS_MAX, "waiting reads have a bound");
        self.set_sweep_timer(cx);
    }

    /// Reads that waited look again, in the order of who asked.
    pub(super) fn retry_waiting_reads(&mut self, cx: &mut Context<'_, V>) {
        for ((from, _), (asked, read)) in std::mem::take(&mut self.waiting_reads.reads) {
            match read {
                WaitingRead::Keys(request) => self.read_or_wait(from, request, asked, cx),
                WaitingRead::Range(request) => self.scan_or_wait(from, request, asked, cx),
            }
        }
    }

    /// Drops reads that nobody has asked for again.
    pub(super) fn drop_waiting_reads(&mut self, cx: &Context<'_, V>) {
        let (now, patience) = (cx.now(), cx.settings.in_doubt_after);
        self.waiting_reads.reads.retain(|_, (asked, _)| *asked + patience > now);
    }
}
