//! Old versions, and how they go: when no transaction reads at this site that could see them. What
//! is read at other sites is of no concern (the paper goes by the oldest transaction of the whole
//! system, and compares clocks that have nothing to do with each other).

use muesli_core::Timestamp;
use muesli_core::memory::Held;

use super::CertifiedSite;
use crate::certified::Context;

/// So many versions of a space are looked at in one step.
const COLLECTED_AT_ONCE: usize = 4096;
/// A commit that some snapshot does not see takes about so many bytes.
const RECENT_BYTES: usize = 200;

impl CertifiedSite {
    /// Collects versions once so many commits are applied.
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
            self.readers.drop_oldest();
            self.cuts.forget();
        }
        let oldest = self.readers.oldest().into_iter().chain(self.oldest_given());
        let oldest = oldest.chain(self.kept_cut()).min();
        let oldest = oldest.unwrap_or(self.clock);
        self.recent.forget(oldest);
        assert!(oldest <= self.clock, "a reader of the future: {oldest}, of {}", self.clock);
        self.forgotten = self.forgotten.max(oldest);
        assert!(self.forgotten <= oldest, "{} forgotten, and {oldest} read", self.forgotten);
        let lowest = self.recent.lowest_version();
        let low = lowest.map_or(Timestamp::MAX, |lowest| Timestamp(lowest.0 - 1));
        for store in self.spaces.all_mut() {
            cx.effects.environment.maintenance.collected += store.collect(low, COLLECTED_AT_ONCE);
        }
        self.report_memory(cx);
    }

    fn report_memory(&mut self, cx: &mut Context<'_>) {
        let mut now = self.spaces.held();
        let recent = (self.recent.len() * RECENT_BYTES) as u64;
        let ends = self.ends.bytes() as u64;
        now = Held { all: now.all + recent + ends, old: now.old + recent };
        assert!(now.old <= now.all, "{} bytes are old, of {} in all", now.old, now.all);
        cx.settings.memory.report(self.reported, now);
        self.reported = now;
    }
}
