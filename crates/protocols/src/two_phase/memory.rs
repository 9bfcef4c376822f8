//! How much memory a repository holds, and what it does where old versions take too much.
//!
//! An open snapshot keeps the versions that it may still read. Where those that were replaced take
//! more than the process allows, the repository serves no snapshot below a point that it has passed
//! while they grew from half of that: transactions that read below it are told that their snapshot
//! is too old, and may run again. This needs no agreement: a repository may refuse old snapshots
//! whenever it likes.

use std::fmt;

use muesli_core::memory::Held;
use muesli_core::{Nanos, Settings};

use super::Variant;
use super::participant::{Context, Participant};
use super::time::Time;

/// What a repository has reported of its memory.
#[derive(Clone)]
pub(super) struct Reported<S> {
    held: Held,
    /// Up to where versions go first, should old ones take too much.
    next_low: Option<S>,
}

impl<S> Reported<S> {
    pub fn new() -> Reported<S> {
        Reported { held: Held::default(), next_low: None }
    }
}

/// Not shown: when something was counted last makes no state another one.
impl<S> fmt::Debug for Reported<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reported")
    }
}

impl<V: Variant> Participant<V> {
    /// Nothing is held here any more.
    pub(super) fn take_back_report(&mut self, settings: &Settings) {
        settings.memory.report(self.reported.held, Held::default());
        self.reported.held = Held::default();
    }

    /// Tells the process what is held here, and drops old versions where there are too many.
    pub(super) fn report_memory(&mut self, cx: &Context<'_, V>) {
        let (memory, now) = (&cx.settings.memory, self.held());
        memory.report(self.reported.held, now);
        self.reported.held = now;
        let old = memory.held().old;
        if old <= memory.old_limit / 2 {
            self.reported.next_low = None;
            return;
        }
        let committed = self.time.committed();
        let mark = self.reported.next_low.get_or_insert_with(|| committed.clone()).clone();
        if old > memory.old_limit {
            self.reported.next_low = Some(committed);
            self.drop_below(&mark);
            let left = self.held();
            memory.report(self.reported.held, left);
            self.reported.held = left;
        }
    }

    /// Keys and versions, and what is remembered of transactions.
    fn held(&self) -> Held {
        let spaces = self.spaces.held();
        Held { all: spaces.all + self.table.bytes() as u64, ..spaces }
    }

    /// What is remembered of clients from now on is remembered at this time.
    pub(super) fn tell_time(&mut self, cx: &Context<'_, V>) {
        if cx.catalog.visiting_coordinators {
            self.table.tell_time(cx.now());
        }
    }

    /// Once in a while: of clients that were silent for long, what nobody asks for.
    pub(super) fn forget_silent_clients(&mut self, cx: &Context<'_, V>) {
        if !cx.catalog.visiting_coordinators {
            return;
        }
        self.table.forget_retired(cx.now(), cx.settings.snapshot_lease);
        if cx.now() < self.forgets_at {
            return;
        }
        let lease = cx.settings.client_lease;
        self.forgets_at = cx.now() + Nanos(lease.0 / 8);
        let is_client = |node| cx.catalog.is_client(node);
        let kept = self.rules.keeps_commits_of_silent;
        self.table.forget_silent(cx.now() - lease, kept, is_client);
    }

    /// How many coordinators are known here.
    pub fn known_coordinators(&self) -> usize {
        self.table.known()
    }
}
