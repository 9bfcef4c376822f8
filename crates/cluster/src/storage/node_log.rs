//! A node's log with the checkpoints beside it, as the loop that runs the node keeps them: a
//! server's loop, or one of an embedded database.
//!
//! Checkpoints are taken while the loop goes on: a piece a tick is handed to a thread that writes
//! it. One begins when the log has grown by as much as the configuration says, and by at least as
//! much as the last checkpoint was long, so that writing checkpoints never costs more than writing
//! the log. Its pieces may hold what later records did: it is published only when the log is stable
//! as far as they know it. Then the log is cut before it.

use muesli_core::{Checkpoint, Encode, LogPosition, Nanos, Readiness, RecoverableMachine, Role};
use muesli_log::checkpoint::streaming::Offered;
use muesli_log::{CheckpointStream, Sequence};

use crate::storage::log::{Log, LogFailure, MemoryLog};

/// A piece has about so many bytes: a tick does not become long by it.
const PIECE_BYTES: usize = 32 << 10;
/// Where a checkpoint cannot begin now, it is tried again after so long: to try may cost something.
const AGAIN_AFTER: Nanos = Nanos::from_millis(100);

/// A node's log, and the checkpoint under way. Dropped, it waits until the checkpoint's thread has
/// let go of the files, which belong to whoever locks them next.
///
/// Invariant: nothing is asked for beyond what the node has logged.
pub struct NodeLog {
    log: Box<dyn Log>,
    /// Why the log cannot be relied on any more: nothing that waits for it leaves.
    failure: Option<LogFailure>,
    /// Up to where a sync was asked for.
    asked: LogPosition,
    /// So much waits for the disk that no new work should be taken.
    congested: bool,
    checkpoint: Option<CheckpointUnderWay>,
    /// A checkpoint could not begin, and is not tried before.
    checkpoint_again: Nanos,
    compaction: Compaction,
}

/// How far the log is with being made as short as it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compaction {
    /// It is not to be.
    None,
    /// The next checkpoint is to stand alone.
    Wanted,
    /// The checkpoint under way is to.
    UnderWay,
    /// It is there, and the records that it covers go, up to this one.
    Truncating(Sequence),
}

impl std::fmt::Debug for NodeLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeLog").field("asked", &self.asked).finish_non_exhaustive()
    }
}

/// A checkpoint that is not on the disk yet.
struct CheckpointUnderWay {
    checkpoint: Checkpoint,
    stream: CheckpointStream,
    /// A piece that the thread had no room for.
    waiting: Option<Vec<u8>>,
    /// All pieces were taken.
    complete: bool,
    /// The stream has everything.
    finished: bool,
}

impl NodeLog {
    /// A log of a node that has replayed it, and has not started.
    pub fn new(log: Box<dyn Log>) -> NodeLog {
        NodeLog {
            log,
            failure: None,
            asked: LogPosition(0),
            congested: false,
            checkpoint: None,
            checkpoint_again: Nanos(0),
            compaction: Compaction::None,
        }
    }

    /// Appends a record of the node's. If that fails, [`settle`](Self::settle) tells.
    pub fn append(&mut self, role: Role, record: &dyn Encode) {
        if self.failure.is_none() {
            self.failure = self.log.append(role, record).err();
        }
    }

    /// Begins to make stable what something waits for, of all that was `logged`. Up to where the
    /// log is stable now; `None`: nothing waits.
    ///
    /// # Errors
    /// The log failed: nothing that waits may leave, and the node must stop.
    pub fn settle(
        &mut self,
        waits_for: Option<LogPosition>,
        logged: LogPosition,
    ) -> Result<Option<LogPosition>, LogFailure> {
        self.check()?;
        if waits_for.is_some_and(|after| after > self.asked) || self.congested {
            self.sync(logged)?;
        }
        waits_for.map(|_| self.log.stable()).transpose()
    }

    /// Looks whether the log goes on, where nothing waits for it.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn look(&mut self) -> Result<(), LogFailure> {
        self.check()?;
        self.log.stable().map(drop)
    }

    /// Begins to make stable all that was `logged`, whether or not anything waits for it.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn settle_all(&mut self, logged: LogPosition) -> Result<(), LogFailure> {
        self.check()?;
        if logged > self.asked { self.sync(logged) } else { Ok(()) }
    }

    /// Has all that was appended written, and leaves it to the system when it reaches the disk.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub fn write(&mut self) -> Result<(), LogFailure> {
        self.check()?;
        self.congested = self.log.write()?;
        Ok(())
    }

    fn check(&self) -> Result<(), LogFailure> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn sync(&mut self, logged: LogPosition) -> Result<(), LogFailure> {
        assert!(self.asked <= logged, "{:?} was asked for, of {logged:?}", self.asked);
        self.asked = logged;
        self.congested = self.log.sync()?;
        Ok(())
    }

    /// Up to where a sync was asked for.
    pub fn asked(&self) -> LogPosition {
        self.asked
    }

    /// Whether so much waits for the disk that no new work should be taken.
    pub fn is_congested(&self) -> bool {
        self.congested
    }

    /// Up to which record of all incarnations of the process the log is stable.
    pub fn kept(&self) -> u64 {
        self.log.kept()
    }

    /// How often something was made stable.
    pub fn syncs(&self) -> u64 {
        self.log.syncs()
    }

    /// Whether the loop should not sleep for long: there are pieces to be handed over.
    pub fn is_checkpointing(&self) -> bool {
        self.checkpoint.is_some()
    }

    /// Takes a checkpoint soon that stands alone, and lets go what it covers; whoever asks again
    /// while that is under way asks for the same.
    pub fn compact(&mut self) {
        if self.compaction == Compaction::None {
            self.compaction = Compaction::Wanted;
        }
    }

    /// Whether that was asked for and is not done.
    pub fn is_compacting(&self) -> bool {
        self.compaction != Compaction::None
    }

    /// Begins a checkpoint of the machine where one is due, or goes on with the one under way.
    /// Whether one is on the disk by this.
    ///
    /// # Errors
    /// The disk failed.
    pub fn go_on_with_checkpoint(
        &mut self,
        machine: &mut dyn RecoverableMachine,
        now: Nanos,
    ) -> Result<bool, LogFailure> {
        if let Compaction::Truncating(upto) = self.compaction
            && self.log.truncated() >= upto
        {
            self.compaction = Compaction::None;
        }
        let Some(mut under_way) = self.checkpoint.take() else {
            return self.begin_checkpoint(machine, now).map(|()| false);
        };
        if let Some(outcome) = under_way.stream.outcome() {
            let published = outcome.map_err(|error| LogFailure(error.to_string()))?;
            self.log.published(&published);
            if self.compaction == Compaction::UnderWay {
                self.compaction = Compaction::Truncating(published.truncate);
            }
            return Ok(true);
        }
        if self.hand_over(&mut under_way, machine)? {
            self.checkpoint = Some(under_way);
        } else if self.compaction == Compaction::UnderWay {
            self.compaction = Compaction::Wanted; // It was void.
        }
        Ok(false)
    }

    fn begin_checkpoint(
        &mut self,
        machine: &mut dyn RecoverableMachine,
        now: Nanos,
    ) -> Result<(), LogFailure> {
        let alone = self.compaction == Compaction::Wanted;
        if !(alone || self.log.is_checkpoint_due()) || now < self.checkpoint_again {
            return Ok(());
        }
        let Some(checkpoint) = machine.begin_checkpoint() else {
            self.checkpoint_again = now + AGAIN_AFTER;
            return Ok(());
        };
        if alone {
            self.settle_all(machine.logged())?; // What it covers is to be in files that go.
        }
        let stream = self.log.begin_checkpoint(checkpoint.covers(), alone)?;
        if alone {
            let is_under_way = stream.is_some();
            self.compaction = if is_under_way { Compaction::UnderWay } else { Compaction::None };
        }
        self.checkpoint = stream.map(|stream| CheckpointUnderWay::new(checkpoint, stream));
        Ok(())
    }

    /// Hands over the next piece of the node's, or says that there are no more once the
    /// participants are ready and the log is stable enough. False: the checkpoint is void, and is
    /// given up.
    fn hand_over(
        &mut self,
        under_way: &mut CheckpointUnderWay,
        machine: &mut dyn RecoverableMachine,
    ) -> Result<bool, LogFailure> {
        if under_way.finished || under_way.hand_over_piece(machine) {
            return Ok(true);
        }
        match machine.checkpoint_readiness(&mut under_way.checkpoint) {
            Readiness::Void => return Ok(false),
            Readiness::Waits => return Ok(true),
            Readiness::Ready => {}
        }
        let Some(needs) = under_way.checkpoint.needs() else { return Ok(true) };
        if needs > self.asked {
            self.sync(machine.logged())?;
        }
        if needs <= self.log.stable()? {
            under_way.finished = under_way.stream.finish();
        }
        Ok(true)
    }

    /// Makes stable what was logged, and ends the log. A checkpoint under way is given up.
    ///
    /// # Errors
    /// The log failed.
    pub fn close(mut self) -> Result<(), LogFailure> {
        self.abandon_checkpoint();
        let log = std::mem::replace(&mut self.log, Box::new(MemoryLog::default()));
        let closed = log.close();
        self.check().and(closed)
    }

    fn abandon_checkpoint(&mut self) {
        if let Some(under_way) = self.checkpoint.take() {
            under_way.stream.abandon();
        }
    }
}

impl Drop for NodeLog {
    fn drop(&mut self) {
        self.abandon_checkpoint();
    }
}

impl CheckpointUnderWay {
    /// A checkpoint that has just begun, of which nothing was written.
    fn new(checkpoint: Checkpoint, stream: CheckpointStream) -> CheckpointUnderWay {
        CheckpointUnderWay { checkpoint, stream, waiting: None, complete: false, finished: false }
    }

    /// Hands over the next piece; false: there are no more.
    fn hand_over_piece(&mut self, machine: &mut dyn RecoverableMachine) -> bool {
        let CheckpointUnderWay { checkpoint, stream, waiting, complete, .. } = self;
        let mut piece = waiting.take().unwrap_or_default();
        let more = !piece.is_empty()
            || !*complete && machine.checkpoint_piece(checkpoint, PIECE_BYTES, &mut piece);
        *complete |= !more;
        if more {
            match stream.offer(piece) {
                Offered::Taken | Offered::Failed => {} // Why it failed is its outcome.
                Offered::Full(piece) => *waiting = Some(piece),
            }
        }
        more
    }
}
