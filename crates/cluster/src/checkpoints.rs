//! Checkpoints, taken while the loop goes on: a piece a turn is handed to a thread that writes it.
//!
//! One begins when the log has grown by as much as the configuration says, and by at least as much
//! as the last checkpoint was long, so that writing checkpoints never costs more than writing the
//! log. Its pieces may hold what later records did: it is published only when the log is stable
//! as far as they know it. Then the log is cut before it.

use muesli_core::{Checkpoint, Nanos, Readiness};
use muesli_log::CheckpointStream;
use muesli_log::checkpoint::streaming::Offered;

use crate::log::{Log, LogFailure};
use crate::loop_state::LoopState;

/// A piece has about so many bytes: a turn does not become long by it.
const PIECE_BYTES: usize = 32 << 10;

/// Where one cannot begin now, it is tried again after so long: to try may cost something.
const AGAIN_AFTER: Nanos = Nanos::from_millis(100);

/// A checkpoint that is not on the disk yet.
pub(crate) struct CheckpointUnderWay {
    checkpoint: Checkpoint,
    stream: CheckpointStream,
    /// A piece that the thread had no room for.
    waiting: Option<Vec<u8>>,
    /// All pieces were taken.
    complete: bool,
    /// The stream has everything.
    finished: bool,
}

impl LoopState {
    /// Begins a checkpoint where one is due, or goes on with the one under way.
    ///
    /// # Errors
    /// The disk failed.
    pub fn go_on_with_checkpoint(&mut self) -> Result<(), LogFailure> {
        let Some(mut under_way) = self.checkpoint.take() else { return self.begin_checkpoint() };
        if let Some(outcome) = under_way.stream.outcome() {
            let published = outcome.map_err(|error| LogFailure(error.to_string()))?;
            if let Some(log) = &mut self.outside.log {
                log.published(&published);
            }
            self.outside.counts.checkpoints += 1;
            return Ok(());
        }
        if under_way.finished || self.hand_over(&mut under_way)? {
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
        self.checkpoint = stream.map(|stream| CheckpointUnderWay {
            checkpoint,
            stream,
            waiting: None,
            complete: false,
            finished: false,
        });
        Ok(())
    }

    /// Hands over the next piece, or says that there are no more once the participants are ready
    /// and the log is stable enough. False: the checkpoint is void, and is given up.
    fn hand_over(&mut self, under_way: &mut CheckpointUnderWay) -> Result<bool, LogFailure> {
        let CheckpointUnderWay { checkpoint, stream, waiting, complete, finished } = under_way;
        let mut piece = waiting.take().unwrap_or_default();
        let more = !piece.is_empty()
            || !*complete && self.machine.checkpoint_piece(checkpoint, PIECE_BYTES, &mut piece);
        if more {
            match stream.offer(piece) {
                Offered::Taken | Offered::Failed => {} // Why it failed is its outcome.
                Offered::Full(piece) => *waiting = Some(piece),
            }
            return Ok(true);
        }
        *complete = true;
        let Some(log) = &mut self.outside.log else { return Ok(true) };
        match self.machine.checkpoint_readiness(checkpoint) {
            Readiness::Void => return Ok(false),
            Readiness::Waits => return Ok(true),
            Readiness::Ready => {}
        }
        let stable = log.stable()?;
        if checkpoint.needs().is_some_and(|needs| needs <= stable) {
            *finished = stream.finish();
        }
        Ok(true)
    }
}
