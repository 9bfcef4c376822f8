//! A checkpoint written beside a running loop: the loop hands over pieces as it makes them, and a
//! thread of the checkpoint's own writes and syncs them.
//!
//! It is not the log's thread, because the last sync of a checkpoint may take long, and commits
//! must not wait for it. The pieces between loop and thread are bounded: a loop that is told to
//! wait goes on with its turns and offers the piece again.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

use crate::checkpoint::{CheckpointWriter, Published};
use crate::disk::Disk;
use crate::error::LogError;
use crate::sequence::Sequence;

/// So many pieces may be under way to the thread.
const PIECES_MAX: usize = 8;

/// A checkpoint under way. Dropping it gives the checkpoint up.
#[derive(Debug)]
pub struct CheckpointStream {
    /// `None` once all pieces were handed over.
    pieces: Option<SyncSender<StreamStep>>,
    outcome: Receiver<Result<Published, LogError>>,
}

#[derive(Debug)]
enum StreamStep {
    Piece(Vec<u8>),
    Finish,
}

/// What became of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is taken.
    Taken,
    /// The thread is behind: offer this again later.
    Full(Vec<u8>),
    /// The checkpoint has failed: look at its [outcome](CheckpointStream::outcome).
    Failed,
}

impl CheckpointStream {
    /// Starts the thread of a checkpoint that covers the records up to `covers`, all of which must
    /// be stable before [`finish`](Self::finish).
    ///
    /// # Errors
    /// The system does not give a thread.
    pub fn start<D: Disk>(
        disk: D,
        owner: u64,
        covers: Sequence,
        keep: usize,
    ) -> Result<CheckpointStream, LogError> {
        let (pieces, steps) = sync_channel(PIECES_MAX);
        let (tell, outcome) = channel();
        let thread = thread::Builder::new().name("muesli-checkpoint".to_owned());
        let spawned = thread.spawn(move || {
            let done = write(disk, owner, covers, keep, &steps);
            if let Some(done) = done.transpose() {
                // Whoever gave the checkpoint up does not listen.
                let _ = tell.send(done);
            }
        });
        spawned.map_err(LogError::io("start a thread for", ""))?;
        Ok(CheckpointStream { pieces: Some(pieces), outcome })
    }

    /// Offers a piece. Does not wait for the disk.
    pub fn offer(&mut self, piece: Vec<u8>) -> Offered {
        let Some(pieces) = &self.pieces else { return Offered::Failed };
        match pieces.try_send(StreamStep::Piece(piece)) {
            Ok(()) => Offered::Taken,
            Err(TrySendError::Full(StreamStep::Piece(piece))) => Offered::Full(piece),
            Err(TrySendError::Full(StreamStep::Finish) | TrySendError::Disconnected(_)) => {
                Offered::Failed
            }
        }
    }

    /// All pieces were handed over: publishes the checkpoint. False if the thread is behind: call
    /// again later.
    pub fn finish(&mut self) -> bool {
        let Some(pieces) = &self.pieces else { return true };
        match pieces.try_send(StreamStep::Finish) {
            Err(TrySendError::Full(_)) => false,
            Ok(()) | Err(TrySendError::Disconnected(_)) => {
                self.pieces = None;
                true
            }
        }
    }

    /// How the checkpoint ended, once, if it has.
    pub fn outcome(&mut self) -> Option<Result<Published, LogError>> {
        self.outcome.try_recv().ok()
    }

    /// Gives the checkpoint up, and waits until its thread has let go of the files.
    pub fn abandon(mut self) {
        self.pieces = None;
        while self.outcome.recv().is_ok() {}
    }

    /// Waits for the end, after [`finish`](Self::finish).
    ///
    /// # Errors
    /// The checkpoint could not be written, or was never finished.
    pub fn wait(mut self) -> Result<Published, LogError> {
        while !self.finish() {
            thread::yield_now();
        }
        self.outcome.recv().unwrap_or(Err(LogError::Closed))
    }
}

/// The thread: `None` if the checkpoint was given up.
fn write<D: Disk>(
    disk: D,
    owner: u64,
    covers: Sequence,
    keep: usize,
    steps: &Receiver<StreamStep>,
) -> Result<Option<Published>, LogError> {
    let mut writer = CheckpointWriter::begin(disk, owner, covers, keep)?;
    for step in steps {
        match step {
            StreamStep::Piece(piece) => writer.piece(&piece)?,
            StreamStep::Finish => return writer.finish().map(Some),
        }
    }
    writer.abandon();
    Ok(None)
}
