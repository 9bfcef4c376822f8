//! Checkpoints, taken while the loop goes on: a piece a turn is handed to a thread that writes it.
//!
//! One begins when the log has grown by as much as the configuration says, and by at least as much
//! as the last checkpoint was long, so that writing checkpoints never costs more than writing the
//! log. Its pieces may hold what later records did: it is published only when the log is stable
//! as far as they know it. Then the log is cut before it.

use muesli_core::Nanos;

use crate::node::checkpoint::CheckpointUnderWay;
use crate::node::loop_state::LoopState;
use crate::storage::log::{Log, LogFailure};

/// Where one cannot begin now, it is tried again after so long: to try may cost something.
const AGAIN_AFTER: Nanos = Nanos::from_millis(100);

impl LoopState {
    /// Begins a checkpoint where one is due, or goes on with the one under way.
    ///
    /// # Errors
    /// The disk failed.
    pub fn go_on_with_checkpoint(&mut self) -> Result<(), LogFailure> {
        let Some(mut under_way) = self.checkpoint.take() else { return self.begin_checkpoint() };
        if let Some(outcome) = under_way.outcome() {
            let published = outcome.map_err(|error| LogFailure(error.to_string()))?;
            if let Some(log) = &mut self.outside.log {
                log.published(&published);
            }
            self.outside.counts.checkpoints += 1;
            return Ok(());
        }
        if under_way.hand_over(&mut *self.machine, self.outside.log.as_mut())? {
            self.checkpoint = Some(under_way);
        }
        Ok(())
    }

    /// Whether the loop should not sleep for long: there are pieces to be handed over.
    pub fn is_checkpointing(&self) -> bool {
        self.checkpoint.is_some()
    }

    fn begin_checkpoint(&mut self) -> Result<(), LogFailure> {
        let now = self.now();
        let is_due = |log: &&mut Box<dyn Log>| log.is_checkpoint_due();
        let Some(log) = self.outside.log.as_mut().filter(is_due) else { return Ok(()) };
        if now < self.checkpoint_again {
            return Ok(());
        }
        let Some(checkpoint) = self.machine.begin_checkpoint() else {
            self.checkpoint_again = now + AGAIN_AFTER;
            return Ok(());
        };
        let stream = log.begin_checkpoint(checkpoint.covers())?;
        self.checkpoint = stream.map(|stream| CheckpointUnderWay::new(checkpoint, stream));
        Ok(())
    }
}
