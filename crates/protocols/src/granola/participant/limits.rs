//! The limits of a transaction: its coordinator refuses before anything is sent, and a participant
//! judges a request once more, since a client may run with other limits. And those of memory: what
//! a repository holds is counted once in a while, and where the process has too much, a request
//! that may write is refused as it comes. That is a vote against it like others, so all who take
//! part come to the same end, and copies stay alike; what was voted on is done, whatever it takes.

use std::fmt;

use muesli_core::memory::{Held, REPORT_BYTES};
use muesli_core::{Abort, Settings, TxnId};

use super::{Context, Participant};
use crate::granola::message::Request;

/// What a repository has told its process of its memory.
#[derive(Clone, Copy, Default)]
pub(super) struct ReportedMemory {
    held: Held,
    /// How many bytes of that are of transactions under way.
    active: usize,
    /// Transactions since.
    since: u32,
    /// Bytes installed since.
    installed: usize,
}

impl ReportedMemory {
    /// So many bytes of keys and values were installed.
    pub fn note_installed(&mut self, bytes: usize) {
        self.installed += bytes;
    }
}

/// Without the bytes that came and went since: of little, they make no state another one.
impl fmt::Debug for ReportedMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReportedMemory { held, since, .. } = self;
        out.debug_struct("Reported").field("held", held).field("since", since).finish()
    }
}

impl Participant {
    /// Why there is no room for a request, if there is none. At the limit what adds nothing is
    /// taken up all the same, as long as what is under way of that takes no more together than a
    /// transaction may, or is nothing: it may have to wait for votes of others that never come.
    pub(super) fn lacks_capacity(&self, request: &Request, cx: &Context<'_>) -> Option<Abort> {
        if !cx.settings.memory.is_full() {
            return None;
        }
        if request.may_add() {
            return Some(Abort::OutOfMemory);
        }
        let (others, most) = (self.active.adding_nothing(), cx.settings.limits.transaction_bytes);
        let is_much = others > 0 && others.saturating_add(request.held_bytes()) > most;
        is_much.then_some(Abort::Overloaded)
    }

    /// A transaction is over: once in a while what is held is counted.
    #[inline]
    pub(super) fn count_for_memory(&mut self, settings: &Settings) {
        self.reported.since += 1;
        if self.reported.since >= settings.pace.collect_after {
            self.report_memory(settings);
        } else {
            self.report_what_moved(settings);
        }
    }

    /// Counts what is held at once, where much of it came or went since that was counted.
    #[inline]
    pub(super) fn report_what_moved(&mut self, settings: &Settings) {
        let under_way = self.active.bytes().abs_diff(self.reported.active);
        if self.reported.installed >= REPORT_BYTES || under_way >= REPORT_BYTES {
            self.report_memory(settings);
        }
    }

    /// Tells the process what is held here: keys, requests under way, and ends that are kept for
    /// clients.
    pub(super) fn report_memory(&mut self, settings: &Settings) {
        let (spaces, active) = (self.spaces.held(), self.active.bytes());
        let all = spaces.all + (self.memory.bytes() + active) as u64;
        let held = Held { all, ..spaces };
        assert!(held.old <= held.all, "{} bytes are old, of {all} in all", held.old);
        settings.memory.report(self.reported.held, held);
        self.reported = ReportedMemory { held, active, since: 0, installed: 0 };
    }

    /// Nothing is held here any more.
    pub(super) fn take_back_report(&mut self, settings: &Settings) {
        settings.memory.report(self.reported.held, Held::default());
        self.reported = ReportedMemory::default();
    }

    /// What is remembered of clients from now on is remembered at this time.
    pub(super) fn set_time(&mut self, cx: &Context<'_>) {
        if cx.catalog.visiting_coordinators {
            self.memory.set_time(cx.now());
        }
    }

    /// A client is heard of, and what is kept for others for a while may be forgotten.
    pub(super) fn observe_client(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if cx.catalog.is_client(txn.node) {
            self.memory.observe_client(txn.node, cx.now());
            self.memory.forget_retired(cx.now(), cx.settings.snapshot_lease);
            self.set_silent_timer(cx);
        }
    }
}
