//! Versions that nobody reads any more: when they go.

use super::Participant;
use crate::two_phase::message::Record;
use crate::two_phase::time::Time;
use crate::two_phase::{Context, Variant, VariantState};

/// At most so many replaced versions are looked at in one go.
const COLLECT_BUDGET: usize = 1024;

impl<V: Variant> Participant<V> {
    /// Snapshots below `low` are not read any more. Once in a while the log is told, so that a
    /// replay need not keep all versions since the checkpoint; nobody waits for that.
    pub(in crate::two_phase) fn raise_low(&mut self, low: &V::Snapshot, cx: &mut Context<'_, V>) {
        if self.steps_since_low >= self.pace.log_low_after {
            self.steps_since_low = 0;
            cx.log_lazily(|| Record::Low { low: low.clone() });
        }
        self.drop_below(low, cx);
        self.report_memory(cx);
        self.forget_silent_clients(cx);
    }

    pub(in crate::two_phase) fn drop_below(&mut self, low: &V::Snapshot, cx: &mut Context<'_, V>) {
        let low_here = self.time.collect(low);
        self.unneeded = self.unneeded.max(self.time.collectable(low_here));
        self.protocol_state.collect(low);
        self.collect(cx);
    }

    fn collect(&mut self, cx: &mut Context<'_, V>) {
        if self.whereabouts.lacks_owners() {
            return; // Deletions tell what others say of earlier from what they say of later.
        }
        let low = self.unneeded;
        for versions in self.spaces.all_mut() {
            cx.effects.maintenance.collected += versions.collect(low, COLLECT_BUDGET);
        }
    }

    /// Collects garbage once in a while, as commits in one step go by, and counts what is held.
    #[inline]
    pub(in crate::two_phase) fn count_step(&mut self, cx: &mut Context<'_, V>) {
        self.steps_since_collect += 1;
        self.steps_since_low = self.steps_since_low.saturating_add(1);
        if self.steps_since_collect >= self.pace.collect_after || self.has_moved_much() {
            self.steps_since_collect = 0;
            self.collect(cx);
            self.report_memory(cx);
        }
    }
}
