//! A node gets back what its log holds, at its start.
//!
//! LogReading, checking and decoding a record take about as long as applying it. So a thread reads
//! the log and hands over decoded records, some hundred at a time, and whoever starts the node
//! applies them. What is under way between the two is bounded; the order is that of the log.
//!
//! Either side may find that the log makes no sense. The reader says where; if a piece of a
//! checkpoint cannot be restored, the reader notices by its next step that nobody listens any more,
//! and the reason is put into its error.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Builder};

use muesli_core::RecoverableMachine;
use muesli_core::machine::{Decoding, Records};
use muesli_log::{Disk, LogError, Opened, Options, Progress, Replay, Sequence, Writer};

/// The kind of a protocol's records in the log.
pub(crate) const RECORD: u8 = 1;
/// So many records are handed over at once.
const RECORDS: usize = 256;
/// So many hand-overs may wait for whoever applies them.
const STEPS_MAX: usize = 8;

/// A node that has not started, to which a log is replayed.
pub(crate) struct Replaying<'a> {
    pub machine: &'a mut dyn RecoverableMachine,
    pub notice: fn(&str),
}

/// What a log held.
pub(crate) struct Replayed<D: Disk> {
    pub writer: Writer<D>,
    pub opened: Opened,
    /// Of records after the checkpoint.
    pub bytes: u64,
}

/// What the reader hands over.
enum ReplayStep {
    Piece(Vec<u8>),
    Records(Records),
}

impl Replaying<'_> {
    /// Opens the log on `disk`, and applies all of it.
    ///
    /// # Errors
    /// It cannot be read, or makes no sense.
    pub fn open<D: Disk>(&mut self, disk: D, options: Options) -> Result<Replayed<D>, LogError> {
        let ((writer, opened), bytes) =
            self.run(move |reading| muesli_log::open(disk, options, reading), |read| &read.1)?;
        Ok(Replayed { writer, opened, bytes })
    }

    /// Applies what the log on `disk` holds, from its newest checkpoint on or from the one that
    /// covers the records up to `from`. Changes nothing there.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read<D: Disk + Sync>(
        &mut self,
        disk: &D,
        owner: u64,
        from: Option<Sequence>,
    ) -> Result<Opened, LogError> {
        let read = move |reading: &mut LogReading| muesli_log::read(disk, owner, from, reading);
        self.run(read, |opened| opened).map(|(opened, _)| opened)
    }

    /// Reads a log on a thread of its own, and applies what it holds; with how many bytes of
    /// records these were.
    fn run<T: Send>(
        &mut self,
        read: impl FnOnce(&mut LogReading) -> Result<T, LogError> + Send,
        opened: impl FnOnce(&T) -> &Opened,
    ) -> Result<(T, u64), LogError> {
        let notice = self.notice;
        thread::scope(|scope| {
            let (sender, steps) = sync_channel(STEPS_MAX);
            let mut reading =
                LogReading { steps: sender, decoding: self.machine.decoding(), notice, bytes: 0 };
            let run = move || {
                let read = read(&mut reading)?;
                // If nobody listens any more, it is told why by whoever does not.
                let _ = reading.hand_over();
                Ok((read, reading.bytes))
            };
            let reader = Builder::new().name("muesli-replay".to_owned()).spawn_scoped(scope, run);
            let reader = reader.map_err(no_thread)?;
            let applied = self.apply_all(steps);
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (read, applied) {
                (Err(LogError::Refused { file, sequence, .. }), Err(reason)) => {
                    Err(LogError::Refused { file, sequence, reason })
                }
                (Ok((read, _)), Err(reason)) => {
                    let sequence = opened(&read).checkpoint.unwrap_or_default();
                    let file = muesli_log::checkpoint::name(sequence);
                    Err(LogError::Refused { file, sequence, reason })
                }
                (read, _) => read,
            }
        })
    }

    /// Applies what is handed over until there is no more, or something cannot be applied.
    fn apply_all(&mut self, steps: Receiver<ReplayStep>) -> Result<(), String> {
        for step in steps {
            match step {
                ReplayStep::Piece(piece) => {
                    let restored = self.machine.restore(&piece);
                    restored.map_err(|error| format!("a piece of the checkpoint: {error}"))?;
                }
                ReplayStep::Records(records) => self.machine.replay(records),
            }
        }
        Ok(())
    }
}

fn no_thread(error: std::io::Error) -> LogError {
    LogError::Io { action: "start a thread for", file: String::new(), source: Arc::new(error) }
}

/// Decodes records, and gathers them.
struct LogReading {
    steps: SyncSender<ReplayStep>,
    decoding: Box<dyn Decoding>,
    notice: fn(&str),
    /// Of records, so far.
    bytes: u64,
}

impl LogReading {
    fn hand_over(&mut self) -> Result<(), String> {
        let records = self.decoding.take();
        self.send(ReplayStep::Records(records))
    }

    fn send(&self, step: ReplayStep) -> Result<(), String> {
        self.steps.send(step).map_err(|_| "what came before it could not be applied".to_owned())
    }
}

impl Replay for LogReading {
    fn piece(&mut self, piece: &[u8]) -> Result<(), String> {
        self.send(ReplayStep::Piece(piece.to_vec()))
    }

    fn record(&mut self, _: Sequence, kind: u8, payload: &[u8]) -> Result<(), String> {
        if kind != RECORD {
            return Err(format!("there is no record of kind {kind}"));
        }
        self.decoding.decode(payload).map_err(|error| error.to_string())?;
        self.bytes += payload.len() as u64;
        if self.decoding.count() == RECORDS { self.hand_over() } else { Ok(()) }
    }

    fn checkpoint_progress(&mut self, bytes: u64, of: u64) {
        let percent = (100 * bytes).checked_div(of).unwrap_or_default();
        (self.notice)(&format!("reading the checkpoint: {} MiB, {percent} %", bytes >> 20));
    }

    fn progress(&mut self, progress: Progress) {
        let Progress { bytes, of, records } = progress;
        let (bytes, of) = (bytes >> 20, of >> 20);
        (self.notice)(&format!("replaying the log: {bytes} of {of} MiB, {records} records"));
    }
}

#[cfg(test)]
#[path = "replaying_tests.rs"]
mod tests;
