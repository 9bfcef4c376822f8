//! The log as a loop uses it: records are appended in memory, and a thread of the log's own writes
//! and syncs them.
//!
//! Why a thread: a sync takes hundreds of microseconds, in which a loop runs hundreds of
//! transactions. Handing a batch over wakes the thread, some 15 µs where it slept; under load it
//! does not sleep, but finds the next batch gathered when it has synced one. The loop never waits:
//! the lock it takes covers the exchange of two buffers. A caller that has nothing to do while the
//! disk works needs no thread, and uses the [`Writer`] itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::batch::Batch;
use crate::disk::Disk;
use crate::error::LogError;
use crate::sequence::Sequence;
use crate::writer::Writer;

/// When nothing came for so long after a batch, a mark says that the batch was stable.
const IDLE_MARK_AFTER: Duration = Duration::from_millis(20);

/// A log with a thread that syncs it.
#[derive(Debug)]
pub struct Log {
    /// Appended and not handed over.
    batch: Batch,
    shared: Arc<LogShared>,
    thread: Option<JoinHandle<()>>,
    backlog_max: usize,
}

#[derive(Debug)]
struct LogShared {
    state: Mutex<LogState>,
    /// There is work for the thread.
    work: Condvar,
    /// The thread has done some.
    progress: Condvar,
    /// As in the state, to be looked at without the lock.
    stable: AtomicU64,
    syncs: AtomicU64,
    /// Up to here the log was truncated.
    truncated: AtomicU64,
}

#[derive(Debug)]
struct LogState {
    /// Handed over and not taken by the thread.
    pending: Batch,
    /// Bytes that the thread is writing.
    writing: usize,
    truncate: Option<Sequence>,
    /// A new segment is to be begun behind what is handed over.
    rotate: bool,
    closing: bool,
    /// Up to here records are to be made stable; those behind are only written.
    asked: Sequence,
    stable: Sequence,
    /// The end of the thread: an error, or [`LogError::Closed`].
    ended: Option<LogError>,
}

impl Log {
    /// Starts the thread. After every sync, and when the log fails, it calls `wake`, which should
    /// do no more than tell the loop to [look](Self::stable).
    ///
    /// # Errors
    /// The system does not give a thread.
    pub fn start<D: Disk>(
        writer: Writer<D>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Log, LogError> {
        let (stable, backlog_max) = (writer.stable(), writer.options().backlog_bytes);
        let state = LogState {
            pending: Batch::after(stable),
            writing: 0,
            truncate: None,
            rotate: false,
            closing: false,
            asked: stable,
            stable,
            ended: None,
        };
        let shared = Arc::new(LogShared {
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            stable: AtomicU64::new(stable.0),
            syncs: AtomicU64::new(0),
            truncated: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("muesli-log".to_owned());
        let thread = thread.spawn(move || theirs.run(writer, wake));
        let thread = thread.map_err(LogError::io("start a thread for", ""))?;
        let batch = Batch::after(stable);
        Ok(Log { batch, shared, thread: Some(thread), backlog_max })
    }

    /// Appends a record; see [`Batch::append`]. It goes to the disk with the next
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// It is too long.
    pub fn append(
        &mut self,
        kind: u8,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Sequence, LogError> {
        self.batch.append(kind, payload)
    }

    /// Hands everything appended to the thread, which makes all that it was given stable: once a
    /// turn of the loop. Does not wait for the disk. Returns whether the log is congested: more
    /// waits than [`Options::backlog_bytes`](crate::Options::backlog_bytes), and the loop should
    /// take no new work.
    ///
    /// # Errors
    /// The log has failed. Nothing that is not [stable](Self::stable) ever will be.
    pub fn flush(&mut self) -> Result<bool, LogError> {
        self.hand_over(true)
    }

    /// As [`flush`](Self::flush), for a thread that only writes: it becomes stable with what is
    /// flushed next.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn write(&mut self) -> Result<bool, LogError> {
        self.hand_over(false)
    }

    fn hand_over(&mut self, syncs: bool) -> Result<bool, LogError> {
        let (last, mut is_new) = (self.batch.last(), !self.batch.is_empty());
        let mut state = self.shared.lock();
        state.check()?;
        if is_new {
            state.pending.absorb(&mut self.batch);
        }
        if syncs && state.asked < last {
            state.asked = last;
            is_new = true;
        }
        let congested = state.backlog() > self.backlog_max;
        drop(state);
        if is_new {
            self.shared.work.notify_one();
        }
        Ok(congested)
    }

    /// The last record that is stable.
    #[inline]
    pub fn stable(&self) -> Sequence {
        Sequence(self.shared.stable.load(Ordering::Acquire))
    }

    /// How many batches were written and synced.
    pub fn syncs(&self) -> u64 {
        self.shared.syncs.load(Ordering::Relaxed)
    }

    /// The last record appended.
    #[inline]
    pub fn appended(&self) -> Sequence {
        self.batch.last()
    }

    /// Why the log does not go on, if it does not.
    pub fn failure(&self) -> Option<LogError> {
        self.shared.lock().ended.clone()
    }

    /// Hands over what was appended and waits until all of it is stable.
    ///
    /// # Errors
    /// The log has failed.
    pub fn sync(&mut self) -> Result<Sequence, LogError> {
        self.flush()?;
        let last = self.batch.last();
        let mut state = self.shared.lock();
        while state.stable < last {
            state.check()?;
            state = self.shared.wait(&self.shared.progress, state);
        }
        Ok(state.stable)
    }

    /// A checkpoint covers the records up to `upto`: the segments that hold nothing else go, soon.
    pub fn truncate(&self, upto: Sequence) {
        let mut state = self.shared.lock();
        state.truncate = state.truncate.max(Some(upto));
        drop(state);
        self.shared.work.notify_one();
    }

    /// Up to where the log was [truncated](Self::truncate) since it was opened; `wake` is called
    /// when it was.
    pub fn truncated(&self) -> Sequence {
        Sequence(self.shared.truncated.load(Ordering::Acquire))
    }

    /// Flushes, and begins a new segment behind: all that was appended is in segments that a
    /// checkpoint of it lets [go](Self::truncate).
    ///
    /// # Errors
    /// The log has failed.
    pub fn rotate(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.shared.lock().rotate = true;
        self.shared.work.notify_one();
        Ok(())
    }

    /// Makes everything appended stable and ends the log, so that a later start finds it closed.
    ///
    /// # Errors
    /// The log has failed.
    pub fn close(mut self) -> Result<Sequence, LogError> {
        let flushed = self.flush();
        self.stop();
        flushed?;
        let state = self.shared.lock();
        match state.check() {
            Err(LogError::Closed) => Ok(state.stable),
            Err(error) => Err(error),
            Ok(()) => unreachable!("a thread that has ended says how"),
        }
    }

    /// Lets the thread write what it was given, and waits for its end.
    fn stop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so, and left the log failed.
            let _ = thread.join();
        }
    }
}

impl Drop for Log {
    /// What was not flushed is lost; what was is written.
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

impl LogShared {
    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        until: &Condvar,
        state: MutexGuard<'a, LogState>,
    ) -> MutexGuard<'a, LogState> {
        until.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn run<D: Disk>(&self, writer: Writer<D>, wake: impl Fn()) {
        let ended = self.write_until_closed(writer, &wake);
        let mut state = self.lock();
        state.ended = Some(ended);
        drop(state);
        self.progress.notify_all();
        wake();
    }

    fn write_until_closed<D: Disk>(&self, mut writer: Writer<D>, wake: &impl Fn()) -> LogError {
        let mut batch = Batch::after(writer.stable());
        let mut marked = true;
        loop {
            let mut state = self.lock();
            while state.is_idle() {
                if marked || !writer.is_synced() {
                    state = self.wait(&self.work, state);
                    continue;
                }
                let waited = self.work.wait_timeout(state, IDLE_MARK_AFTER);
                let (since, pause) = waited.unwrap_or_else(PoisonError::into_inner);
                state = since;
                if pause.timed_out() && state.is_idle() {
                    drop(state);
                    if let Err(error) = writer.mark() {
                        return error;
                    }
                    marked = true;
                    state = self.lock();
                }
            }
            if state.closing && state.pending.is_empty() {
                drop(state);
                let closed = writer.close().map(|stable| self.tell(stable));
                return closed.err().unwrap_or(LogError::Closed);
            }
            batch.absorb(&mut state.pending);
            marked &= batch.is_empty();
            state.writing = batch.waiting();
            let (truncate, rotate) = (state.truncate.take(), std::mem::take(&mut state.rotate));
            let (before, syncs) = (state.stable, state.asked > state.stable);
            drop(state);
            let written = match syncs {
                true => writer.write(&mut batch),
                false => writer.write_unsynced(&mut batch),
            };
            let written = if rotate { written.and_then(|_| writer.rotate()) } else { written };
            let stable = match written {
                Ok(stable) => stable,
                Err(error) => return error,
            };
            self.tell(stable);
            if stable > before {
                wake();
            }
            if let Some(upto) = truncate {
                if let Err(error) = writer.truncate(upto) {
                    return error;
                }
                self.truncated.fetch_max(upto.0, Ordering::AcqRel);
                wake();
            }
        }
    }

    fn tell(&self, stable: Sequence) {
        let mut state = self.lock();
        if stable > state.stable {
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        (state.stable, state.writing) = (stable, 0);
        self.stable.store(stable.0, Ordering::Release);
        drop(state);
        self.progress.notify_all();
    }
}

impl LogState {
    fn is_idle(&self) -> bool {
        let is_stable = self.asked <= self.stable;
        let is_asked = self.truncate.is_some() || self.rotate || self.closing;
        self.pending.is_empty() && is_stable && !is_asked
    }

    fn backlog(&self) -> usize {
        self.pending.waiting() + self.writing
    }

    fn check(&self) -> Result<(), LogError> {
        self.ended.clone().map_or(Ok(()), Err)
    }
}
