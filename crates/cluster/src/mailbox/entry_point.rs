//! What other threads see of a loop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use muesli_core::client::Task;
use muesli_core::{NodeId, Traffic};

use crate::mailbox::pipe::PipeEnd;
use crate::mailbox::signal::Signal;
use crate::spaces::map::Map;
use crate::spaces::parts::SpaceParts;
use crate::spaces::register::Register;
use crate::spaces::row_reader::Read;

/// Work for a loop: makes the task that does it.
pub type Job = Box<dyn FnOnce() -> Task + Send>;

/// So many jobs from other threads may wait for a loop; further ones wait to be handed over.
const JOBS_MAX: usize = 1 << 16;

/// Something that another thread asks of a loop's driver.
pub(crate) enum Command {
    /// There is to be this space; the answer is why not, if not.
    CreateSpace(SpaceParts, mpsc::Sender<Option<String>>),
    /// Another server's map.
    Map(Map),
    /// A name of somebody to be dialled was looked up.
    Found {
        /// The number of the target.
        number: usize,
        /// Its address, as it was asked for.
        address: String,
        /// Where that leads to.
        found: Result<SocketAddr, String>,
    },
    /// The register of spaces was read, as it was said to have grown.
    SpacesRead(Read),
    /// The register of spaces makes no sense: servers are to look at it.
    DoubtSpaces,
    /// These are the spaces now; the answer is why not, if not.
    Register(Register, mpsc::Sender<Option<String>>),
}

/// How a loop stands, as others may know.
#[derive(Debug, Default)]
pub(crate) struct ClientStatus {
    /// The map, once it is known.
    pub map: Option<Map>,
    /// The servers that are connected.
    pub up: BTreeSet<NodeId>,
    /// The last reason why somebody could not be connected to.
    pub trouble: Option<String>,
    /// Why the loop gave up, if it did.
    pub failed: Option<String>,
    /// Why a client's timestamp lease was lost, if it was.
    pub lost_lease: Option<String>,
}

/// The way into a loop from other threads.
pub(crate) struct EntryPoint {
    pub jobs: ArrayQueue<Job>,
    pub commands: Mutex<Vec<Command>>,
    /// Pipes that other loops of the process have made, which are not open here yet.
    pipes: Mutex<Vec<PipeEnd>>,
    pub signal: Arc<Signal>,
    /// As of the last turn that wrote something.
    pub traffic: Mutex<Traffic>,
    stop: AtomicBool,
    /// Nobody takes jobs any more.
    shut: AtomicBool,
    status: Mutex<ClientStatus>,
    changed: Condvar,
}

impl EntryPoint {
    pub fn new(signal: Arc<Signal>) -> EntryPoint {
        EntryPoint {
            jobs: ArrayQueue::new(JOBS_MAX),
            commands: Mutex::new(Vec::new()),
            pipes: Mutex::default(),
            signal,
            traffic: Mutex::default(),
            stop: AtomicBool::new(false),
            shut: AtomicBool::new(false),
            status: Mutex::new(ClientStatus::default()),
            changed: Condvar::new(),
        }
    }

    /// Asks something of the loop's driver.
    pub fn command(&self, command: Command) {
        self.commands.lock().unwrap_or_else(|broken| broken.into_inner()).push(command);
        self.signal.raise();
    }

    /// Hands over the loop's end of a pipe.
    pub fn hand_over(&self, end: PipeEnd) {
        self.pipes.lock().unwrap_or_else(|broken| broken.into_inner()).push(end);
        self.signal.raise();
    }

    /// The pipes that were handed over.
    pub fn take_pipes(&self) -> Vec<PipeEnd> {
        std::mem::take(&mut *self.pipes.lock().unwrap_or_else(|broken| broken.into_inner()))
    }

    /// Tells the loop to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.signal.raise();
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Takes no more jobs. Those that wait are dropped, and whoever waits for them is told.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
        self.drop_jobs();
    }

    fn drop_jobs(&self) {
        while let Some(job) = self.jobs.pop() {
            // What a job holds is the user's, and may panic as it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
        }
    }

    pub fn status(&self) -> MutexGuard<'_, ClientStatus> {
        self.status.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Changes the standing and tells those who wait for that.
    pub fn change(&self, change: impl FnOnce(&mut ClientStatus)) {
        change(&mut self.status());
        self.changed.notify_all();
    }

    /// Waits until `enough` of the standing, for at most so long; the standing then.
    pub fn wait_until(
        &self,
        at_most: Duration,
        enough: impl Fn(&ClientStatus) -> bool,
    ) -> MutexGuard<'_, ClientStatus> {
        let deadline = Instant::now() + at_most;
        let mut status = self.status();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if enough(&status) || left.is_zero() {
                return status;
            }
            let waited = self.changed.wait_timeout(status, left);
            status = waited.unwrap_or_else(|broken| broken.into_inner()).0;
        }
    }

    /// Hands a job over; back if the loop takes no more.
    pub fn submit(&self, mut job: Job) -> Result<(), Job> {
        loop {
            if self.shut.load(Ordering::SeqCst) {
                return Err(job);
            }
            match self.jobs.push(job) {
                Ok(()) => break,
                Err(back) => job = back,
            }
            self.signal.raise();
            std::thread::yield_now(); // Back-pressure: the loop has more work than it can hold.
        }
        self.signal.raise();
        if self.shut.load(Ordering::SeqCst) {
            self.drop_jobs(); // It came after the loop had looked for the last time.
        }
        Ok(())
    }
}

/// Lives as long as a loop: dropped, nobody waits for it any more.
pub(crate) struct LoopThreadAlive(pub Arc<EntryPoint>);

impl Drop for LoopThreadAlive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.change(|status| status.failed = Some("the client panicked".to_owned()));
        }
        self.0.stop();
        self.0.shut();
    }
}
