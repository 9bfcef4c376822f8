//! How much memory a repository holds, and what it does where old versions take too much.
//!
//! An open snapshot keeps the versions that it may still read. Where those that were replaced take
//! more than the process allows, the repository serves no snapshot below a point that it has passed
//! while they grew from half of that: transactions that read below it are told that their snapshot
//! is too old, and may run again. This needs no agreement: a repository may refuse old snapshots
//! whenever it likes.

use super::Variant;
use super::participant::{Context, Participant};
use super::time::Time;

impl<V: Variant> Participant<V> {
    /// Tells the process what is held here, and drops old versions where there are too many.
    pub(super) fn report_memory(&mut self, cx: &Context<'_, V>) {
        let (memory, now) = (&cx.settings.memory, self.spaces.held());
        memory.report(self.held, now);
        self.held = now;
        let old = memory.held().old;
        if old <= memory.old_limit / 2 {
            self.next_low = None;
            return;
        }
        let committed = self.time.committed();
        let mark = self.next_low.get_or_insert_with(|| committed.clone()).clone();
        if old > memory.old_limit {
            self.next_low = Some(committed);
            self.drop_below(&mark);
            let left = self.spaces.held();
            memory.report(self.held, left);
            self.held = left;
        }
    }
}
