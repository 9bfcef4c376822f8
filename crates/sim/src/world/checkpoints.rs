//! When hosts begin checkpoints: at drawn moments.

use super::{Event, World};
use crate::time::Span;

impl World {
    /// Draws when each host begins its next checkpoint.
    pub(super) fn schedule_checkpoints(&mut self) {
        for place in 0..self.engines.len() {
            let seed = self.seed.split("checkpoints").nth(place as u64);
            self.checkpoint_chances.push(seed.stream());
            self.schedule_checkpoint(place);
        }
    }

    fn schedule_checkpoint(&mut self, place: usize) {
        let Some(every) = self.checkpoint_every else { return };
        let wait = self.checkpoint_chances[place].between(1, 2 * every.as_nanos());
        self.queue.push(self.now + Span::from_nanos(wait), Event::Checkpoint(place));
    }

    /// Time for a host to begin a checkpoint, if it is up and none is under way.
    pub(super) fn begin_checkpoint(&mut self, place: usize) {
        let random = &mut self.checkpoint_chances[place];
        let begun = self.engines[place].host.borrow_mut().begin_checkpoint(random);
        if let Some(covers) = begun {
            self.trace_node(place, "checkpoint", [covers, 0, 0]);
            self.wake(place);
        }
        self.schedule_checkpoint(place);
    }
}
