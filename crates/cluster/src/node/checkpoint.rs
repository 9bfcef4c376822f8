//! One checkpoint, from its beginning until it is on the disk: its pieces go from the node to the
//! thread that writes them.

use muesli_core::{AnyMachine, Checkpoint, Readiness};
use muesli_log::checkpoint::streaming::Offered;
use muesli_log::{CheckpointStream, LogError, Published};

use crate::storage::log::{Log, LogFailure};

/// A piece has about so many bytes: a turn does not become long by it.
const PIECE_BYTES: usize = 32 << 10;

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

impl CheckpointUnderWay {
    /// A checkpoint that has just begun, of which nothing was written.
    pub fn new(checkpoint: Checkpoint, stream: CheckpointStream) -> CheckpointUnderWay {
        CheckpointUnderWay { checkpoint, stream, waiting: None, complete: false, finished: false }
    }

    /// Whether it is on the disk, or why it could not be written; `None`: it is under way.
    pub fn outcome(&mut self) -> Option<Result<Published, LogError>> {
        self.stream.outcome()
    }

    /// Hands over the next piece of the node's, or says that there are no more once the
    /// participants are ready and the log is stable enough. False: the checkpoint is void, and is
    /// given up.
    ///
    /// # Errors
    /// The log failed.
    pub fn hand_over(
        &mut self,
        machine: &mut dyn AnyMachine,
        log: Option<&mut Box<dyn Log>>,
    ) -> Result<bool, LogFailure> {
        if self.finished {
            return Ok(true);
        }
        let CheckpointUnderWay { checkpoint, stream, waiting, complete, finished } = self;
        let mut piece = waiting.take().unwrap_or_default();
        let more = !piece.is_empty()
            || !*complete && machine.checkpoint_piece(checkpoint, PIECE_BYTES, &mut piece);
        if more {
            match stream.offer(piece) {
                Offered::Taken | Offered::Failed => {} // Why it failed is its outcome.
                Offered::Full(piece) => *waiting = Some(piece),
            }
            return Ok(true);
        }
        *complete = true;
        let Some(log) = log else { return Ok(true) };
        match machine.checkpoint_readiness(checkpoint) {
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
