//! A database, as the Python class `Database` has it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use muesli::blocking::StateCaller;
use muesli::{Class, Db, Error, Fragment, Outcome, Place, ProcedureId, Retry, SmallBytes};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::errors::{ConflictError, TransactionId, TransactionTimeoutError, misuse, raised};
use crate::forks::ForkedProcess;
use crate::history;
use crate::opening::space_options;
use crate::transaction::{EndedBy, Transaction};
use crate::values::codec::Codec;
use crate::values::space::Space;
use crate::waiting::sleep;

/// A database that is open; its handles share it.
pub struct OpenDatabase {
    db: Db,
    process: ForkedProcess,
    retry: Retry,
    closed: AtomicBool,
    /// How many attempts of bodies met a conflict.
    conflicts: AtomicU64,
    /// Where what transactions did is written at the end, if it is recorded.
    record: Option<PathBuf>,
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        // To close it would wait for threads that this process does not have.
        if !self.process.is_current() {
            std::mem::forget(self.db.clone());
        }
    }
}

/// A fragment of a call: the procedure's name and version, the key where it runs, and arguments.
pub type FragmentParts = (String, u32, Py<Space>, Vec<u8>, Vec<u8>);

/// A handle of a database, with options of its own.
#[pyclass(frozen, weakref, module = "muesli._native")]
pub struct Core {
    shared: Arc<OpenDatabase>,
    db: Db,
    timeout: Duration,
}

#[pymethods]
impl Core {
    /// A space, with codecs; made if there is none, where `index` says how its keys are found.
    #[pyo3(signature = (name, key, value, index=None))]
    fn space(
        &self,
        py: Python<'_>,
        name: String,
        key: Py<Codec>,
        value: Py<Codec>,
        index: Option<&str>,
    ) -> PyResult<Space> {
        self.check()?;
        let space = match (self.db.space(&name), index) {
            (Err(_), Some(index)) => {
                let options = space_options(index)?;
                py.detach(|| self.db.create_space(&name, options))
            }
            (found, _) => found,
        };
        Ok(Space::new(space.map_err(raised)?, name, key, value))
    }

    /// The names of all spaces.
    fn spaces(&self) -> PyResult<Vec<String>> {
        self.check()?;
        let catalog = self.db.catalog();
        let names = catalog.spaces().iter().map(|space| space.name.clone());
        Ok(names.filter(|name| !name.starts_with("muesli.")).collect())
    }

    /// Begins a transaction.
    fn begin(&self, py: Python<'_>) -> PyResult<Transaction> {
        Running::refuse(&self.shared)?;
        Transaction::begin(py, self, EndedBy::Owner)
    }

    /// Runs a body in a transaction, again after a conflict.
    fn run(
        &self,
        py: Python<'_>,
        body: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let _running = Running::begin(&self.shared)?;
        let (mut attempts, mut began) = (0, None);
        loop {
            let tx = Bound::new(py, Transaction::begin(py, self, EndedBy::Runner)?)?;
            match self.attempt(py, &tx, body, (args, kwargs))? {
                AttemptEnd::Committed(answer) => return Ok(answer),
                AttemptEnd::Conflict(error) => {
                    attempts += 1;
                    let began = *began.get_or_insert_with(Instant::now);
                    self.pause_after(py, attempts, began, error)?;
                }
            }
        }
    }

    /// A handle whose transactions only read.
    fn read_only(&self) -> Core {
        self.with(self.db.read_only())
    }

    /// A handle whose transactions are strictly serializable.
    fn strict(&self) -> Core {
        self.with(self.db.strict())
    }

    /// A handle whose transactions only read, and see at least what was committed so long ago.
    fn at_most_stale(&self, seconds: f64) -> PyResult<Core> {
        Ok(self.with(self.db.at_most_stale(duration(seconds)?)))
    }

    /// A handle whose readers take the nearest copy.
    fn follower_reads(&self) -> Core {
        self.with(self.db.follower_reads())
    }

    /// A handle in a session of its own.
    fn session(&self) -> Core {
        self.with(self.db.session())
    }

    /// A handle whose transactions may be open for so long.
    fn timeout(&self, seconds: f64) -> PyResult<Core> {
        let timeout = duration(seconds)?;
        Ok(Core { timeout, ..self.with(self.db.timeout(timeout)) })
    }

    /// Runs a one-round transaction of these fragments; the bytes that each answered.
    fn invoke(&self, py: Python<'_>, fragments: Vec<FragmentParts>) -> PyResult<Vec<Py<PyBytes>>> {
        self.check()?;
        Running::refuse(&self.shared)?;
        let fragments = fragments_of(fragments);
        let invoked = py.detach(|| self.db.blocking().invoke(Class::Auto, fragments));
        let results = invoked.map_err(raised)?.results;
        Ok(results.iter().map(|bytes| PyBytes::new(py, bytes.as_slice()).unbind()).collect())
    }

    /// What has become of a transaction whose outcome was unknown.
    fn outcome(&self, py: Python<'_>, transaction: &TransactionId) -> PyResult<&'static str> {
        self.check()?;
        let outcome = py.detach(|| self.db.blocking().outcome(transaction.0));
        Ok(match outcome.map_err(raised)? {
            Outcome::Committed(_) => "committed",
            Outcome::Aborted(_) => "aborted",
            Outcome::NotKnown(_) => "unknown",
        })
    }

    /// How many attempts of bodies met a conflict.
    fn conflicts(&self) -> u64 {
        self.shared.conflicts.load(Ordering::Relaxed)
    }

    /// A number for the database, unlike that of each other one that is open.
    #[getter]
    fn number(&self) -> usize {
        Arc::as_ptr(&self.shared) as usize
    }

    /// How long to wait, in seconds, after so many attempts; an error: it was tried too often.
    fn retry_pause(&self, attempts: u32, error: Bound<'_, PyAny>) -> PyResult<f64> {
        match self.pause(attempts) {
            Some(pause) => Ok(pause.as_secs_f64()),
            None => Err(PyErr::from_value(error)),
        }
    }

    /// Makes the files of a database in a folder as short as they can be; their bytes before and
    /// after.
    fn compact(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.check()?;
        let compacted = py.detach(|| self.db.compact()).map_err(raised)?;
        Ok((compacted.before, compacted.after))
    }

    /// Closes the database, and writes what was recorded.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.process.check()?;
        self.shared.closed.store(true, Ordering::Relaxed);
        py.detach(|| {
            let catalog = self.shared.db.catalog();
            let reports = self.shared.db.close();
            match &self.shared.record {
                Some(path) if !reports.is_empty() => history::write(&reports, &catalog, path),
                _ => Ok(()),
            }
        })
    }
}

/// How an attempt ended that may be followed by another one.
enum AttemptEnd {
    Committed(Py<PyAny>),
    Conflict(PyErr),
}

impl Core {
    /// A database that was opened.
    pub fn new(db: Db, retry: Retry, timeout: Duration, record: Option<PathBuf>) -> Core {
        let process = ForkedProcess::current();
        let (closed, conflicts) = (AtomicBool::new(false), AtomicU64::new(0));
        let shared = OpenDatabase { db: db.clone(), process, retry, closed, conflicts, record };
        let shared = Arc::new(shared);
        Core { shared, db, timeout }
    }

    /// The database handle.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Refuses what a forked process asks, and what is asked of a database that is closed.
    pub fn check(&self) -> PyResult<()> {
        self.shared.process.check()?;
        match self.shared.closed.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(raised(Error::Closed)),
        }
    }

    /// Who polls futures of this thread.
    pub fn caller(&self) -> StateCaller {
        StateCaller::new(&self.db)
    }

    fn with(&self, db: Db) -> Core {
        Core { shared: self.shared.clone(), db, timeout: self.timeout }
    }

    fn attempt(
        &self,
        py: Python<'_>,
        tx: &Bound<'_, Transaction>,
        body: &Bound<'_, PyAny>,
        (args, kwargs): (&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>),
    ) -> PyResult<AttemptEnd> {
        let first = std::iter::once(tx.clone().into_any());
        let all = PyTuple::new(py, first.chain(args.iter()).collect::<Vec<_>>())?;
        let answer = match body.call(all, kwargs) {
            Ok(answer) => answer,
            Err(error) => {
                let has_conflict = tx.get().has_conflict()?;
                tx.get().rollback(py)?;
                // What a body makes of a conflict is of no interest, but for what ends programs.
                return match has_conflict && error.is_instance_of::<PyException>(py) {
                    true => Ok(AttemptEnd::Conflict(error)),
                    false => Err(error),
                };
            }
        };
        if !tx.get().is_open()? {
            return Ok(AttemptEnd::Committed(answer.unbind())); // The body has rolled it back.
        }
        match tx.get().end(py) {
            Ok(()) => Ok(AttemptEnd::Committed(answer.unbind())),
            Err(error) if is_conflict(py, &error) => Ok(AttemptEnd::Conflict(error)),
            Err(error) => Err(error),
        }
    }

    /// Pauses after a conflict, or gives up.
    fn pause_after(
        &self,
        py: Python<'_>,
        attempts: u32,
        began: Instant,
        error: PyErr,
    ) -> PyResult<()> {
        let Some(pause) = self.pause(attempts) else { return Err(error) };
        if began.elapsed() >= self.timeout {
            let text = format!(
                "the transaction met conflicts for longer than its timeout of {} ms; nothing was \
                 changed",
                self.timeout.as_millis()
            );
            return Err(TransactionTimeoutError::new_err(text));
        }
        sleep(py, pause)
    }

    /// Counts a conflict; how long to pause after so many attempts. `None`: no more are made.
    fn pause(&self, attempts: u32) -> Option<Duration> {
        self.shared.conflicts.fetch_add(1, Ordering::Relaxed);
        let Retry { pause, pause_max, .. } = self.shared.retry;
        let most = pause.saturating_mul(1 << attempts.min(20)).min(pause_max);
        (attempts < self.shared.retry.attempts).then(|| most.mul_f64(fastrand::f64()))
    }
}

/// Whether a transaction that ended so is to be run again.
fn is_conflict(py: Python<'_>, error: &PyErr) -> bool {
    let is_retryable = || error.value(py).getattr("retryable").and_then(|it| it.is_truthy());
    error.is_instance_of::<ConflictError>(py) && is_retryable().unwrap_or(false)
}

/// A time that is given in seconds.
pub fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| misuse(format!("{seconds} s: {error}")))
}

/// The fragments of a call.
pub fn fragments_of(parts: Vec<FragmentParts>) -> Vec<Fragment> {
    let fragment = |(name, version, space, key, arguments): FragmentParts| Fragment {
        procedure: ProcedureId { name: name.as_str().into(), version },
        place: Place::Key(space.get().space.id(), SmallBytes::new(&key)),
        arguments: SmallBytes::new(&arguments),
    };
    parts.into_iter().map(fragment).collect()
}

thread_local! {
    /// The databases of which a body runs on this thread.
    static RUNNING: RefCell<Vec<*const OpenDatabase>> = const { RefCell::new(Vec::new()) };
}

/// A body runs on this thread, until this is dropped.
struct Running;

impl Running {
    fn begin(database: &Arc<OpenDatabase>) -> PyResult<Running> {
        Running::refuse(database)?;
        RUNNING.with_borrow_mut(|running| running.push(Arc::as_ptr(database)));
        Ok(Running)
    }

    /// Refuses to begin another transaction within a body: it would not see what the body wrote,
    /// and might wait for the body's own.
    fn refuse(database: &Arc<OpenDatabase>) -> PyResult<()> {
        let database = Arc::as_ptr(database);
        match RUNNING.with_borrow(|running| running.contains(&database)) {
            false => Ok(()),
            true => Err(misuse(
                "a transaction's body runs on this thread, and no other transaction of the same \
                 database begins within it: use the body's own, and pass it to the functions that \
                 it calls",
            )),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| {
            let _ = running.pop();
        });
    }
}
