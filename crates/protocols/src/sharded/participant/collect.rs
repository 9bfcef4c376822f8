//! Old versions, and how they go: when nobody reads here at a timestamp that could see them, nor
//! may come with one that a member of another shard gave a while ago.

use muesli_core::Nanos;
use muesli_core::memory::Held;

use super::ShardMember;
use crate::certified::message::command::CallsEnd;
use crate::sharded::Context;
use crate::sharded::message::command::end_of;

/// So many versions of a space are looked at in one step.
const COLLECTED_AT_ONCE: usize = 4096;
/// A deletion that some snapshot does not see takes about so many bytes, and so does a transaction.
const DELETION_BYTES: usize = 100;
const TRANSACTION_BYTES: usize = 500;
/// The clock is remembered for so many moments at most.
const MOMENTS: u64 = 16;

impl ShardMember {
    /// Collects versions once so many transactions have ended.
    pub(super) fn collect_sometimes(&mut self, cx: &mut Context<'_>) {
        if self.uncollected >= cx.settings.pace.collect_after {
            self.collect(cx);
        }
    }

    /// Forgets what no snapshot sees.
    pub(super) fn collect(&mut self, cx: &mut Context<'_>) {
        self.uncollected = 0;
        self.readers.expire(cx.now(), cx.settings);
        let memory = &cx.settings.memory;
        if memory.held().old > memory.old_limit {
            // What nobody reads yet goes first.
            match self.fresh.oldest(cx.now()) {
                Some(_) => self.fresh.clear(),
                None => self.readers.drop_oldest(),
            }
        }
        let oldest = self.readers.oldest().unwrap_or(self.clock);
        let fresh = self.fresh.oldest(cx.now()).unwrap_or(self.clock);
        let low = oldest.min(self.clock_a_while_ago(cx)).min(fresh).max(self.forgotten);
        assert!(low <= self.clock, "snapshots below {low} are too old, of {}", self.clock);
        assert!(low >= self.forgotten, "{low} is forgotten already");
        self.forgotten = low;
        let seen_by_all = end_of(low);
        self.deletions.forget(seen_by_all);
        for store in self.spaces.all_mut() {
            let collected = store.collect(seen_by_all, COLLECTED_AT_ONCE);
            cx.effects.environment.maintenance.collected += collected;
        }
        self.report_memory(cx);
    }

    /// The clock as it was when a snapshot may have been given out, at another member, that is not
    /// known here yet.
    fn clock_a_while_ago(&mut self, cx: &Context<'_>) -> u64 {
        let (now, while_) = (cx.now(), cx.settings.in_doubt_after);
        let step = Nanos(while_.0 / MOMENTS);
        if self.earlier_clocks.back().is_none_or(|(at, _)| *at + step <= now) {
            self.earlier_clocks.push_back((now, self.clock));
        }
        while self.earlier_clocks.get(1).is_some_and(|(at, _)| *at + while_ <= now) {
            self.earlier_clocks.pop_front();
        }
        match self.earlier_clocks.front() {
            Some((at, clock)) if *at + while_ <= now => {
                assert!(*clock <= self.clock, "the clock was at {clock}, and goes back");
                *clock
            }
            _ => 0,
        }
    }

    fn report_memory(&mut self, cx: &mut Context<'_>) {
        let mut now = self.spaces.held();
        let deletions = (self.deletions.len() * DELETION_BYTES) as u64;
        let calls: usize = self.calls.values().map(CallsEnd::bytes).sum();
        let transactions = self.transactions.iter().map(|(_, it)| it.prepared.command.bytes());
        let transactions: usize = transactions.map(|bytes| bytes + TRANSACTION_BYTES).sum();
        let more = deletions + (calls + transactions) as u64;
        now = Held { all: now.all + more, old: now.old + deletions };
        assert!(now.old <= now.all, "{} bytes are old, of {} in all", now.old, now.all);
        cx.settings.memory.report(self.reported, now);
        self.reported = now;
    }
}
