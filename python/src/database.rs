//! A database, as the Python class `Database` has it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use muesli::blocking::StateCaller;
use muesli::{Class, Db, Error, Fragment, Outcome, Place, ProcedureId, Retry, SmallBytes};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::bodies::attempts::Attempts;
use crate::bodies::running::{Running, refuse_within_body};
use crate::callers::DatabaseCaller;
use crate::errors::{TransactionId, misuse, raised, runs_again};
use crate::forks::ForkedProcess;
use crate::history;
use crate::opening::space_options;
use crate::transaction::{EndedBy, Transaction};
use crate::values::codec::Codec;
use crate::values::space::Space;
use crate::waiting::{sleep, wait};

/// A database that is open; its handles share it.
pub struct OpenDatabase {
    /// There until it is dropped.
    db: Option<Db>,
    process: ForkedProcess,
    retry: Retry,
    closed: AtomicBool,
    /// How many attempts of bodies met a conflict.
    conflicts: AtomicU64,
    /// Where what transactions did is written at the end, if it is recorded.
    record: Option<PathBuf>,
}

/// The databases that may be open.
static OPENED: Mutex<Vec<Weak<OpenDatabase>>> = Mutex::new(Vec::new());

/// The lock is held for moments, with the interpreter's lock held.
fn opened_databases() -> MutexGuard<'static, Vec<Weak<OpenDatabase>>> {
    OPENED.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// The databases of this process that are open.
#[pyfunction]
pub fn opened() -> Vec<Core> {
    let opened: Vec<_> = opened_databases().iter().filter_map(Weak::upgrade).collect();
    opened.into_iter().filter(|it| it.process.is_current()).filter_map(Core::of).collect()
}

impl OpenDatabase {
    /// The process that has its loops.
    pub fn process(&self) -> ForkedProcess {
        self.process
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        let mut db = self.db.take();
        // To close it would wait for threads that this process does not have.
        if !self.process.is_current() {
            return std::mem::forget(db);
        }
        // Threads of Python may be in the way of its end; an interpreter that ends has none.
        let _ = Python::try_attach(|py| py.detach(|| drop(db.take())));
    }
}

/// A fragment of a call: the procedure's name and version, the key where it runs, and arguments.
pub type FragmentParts = (String, u32, Py<Space>, Vec<u8>, Vec<u8>);

/// A handle of a database, with options of its own.
#[pyclass(frozen, module = "muesli._native")]
#[derive(Clone)]
pub struct Core {
    /// Dropped before what all handles share, which closes the database at the end.
    db: Db,
    shared: Arc<OpenDatabase>,
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
        let options = index.map(space_options).transpose()?;
        let space = py.detach(|| match (self.db.space(&name), options) {
            (Err(_), Some(options)) => self.db.create_space(&name, options),
            (found, _) => found,
        });
        Ok(Space::new(space.map_err(raised)?, name, key, value))
    }

    /// The names of all spaces.
    fn spaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.check()?;
        let catalog = py.detach(|| self.db.catalog());
        let names = catalog.spaces().iter().map(|space| space.name.clone());
        Ok(names.filter(|name| !name.starts_with("muesli.")).collect())
    }

    /// Begins a transaction.
    fn begin(&self, py: Python<'_>) -> PyResult<Transaction> {
        refuse_within_body(py, &self.shared)?;
        let begun = Transaction::begin(py, (self, &self.db), EndedBy::Owner, || Ok(()))?;
        begun.map_err(raised)
    }

    /// Refuses to begin a transaction within a body.
    fn refuse_within_body(&self, py: Python<'_>) -> PyResult<()> {
        refuse_within_body(py, &self.shared)
    }

    /// Runs a body in a transaction, again after a conflict.
    fn run(
        &self,
        py: Python<'_>,
        body: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let running = Running::begin(py, &self.shared)?;
        let answer = self.repeat(py, body, (args, kwargs));
        running.end(py);
        answer
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
        refuse_within_body(py, &self.shared)?;
        let invoke = self.db.invoke(Class::Auto, fragments_of(fragments));
        let results = wait(py, &mut self.caller(), invoke)?.results;
        Ok(results.iter().map(|bytes| PyBytes::new(py, bytes.as_slice()).unbind()).collect())
    }

    /// What has become of a transaction whose outcome was unknown.
    fn outcome(&self, py: Python<'_>, transaction: &TransactionId) -> PyResult<&'static str> {
        self.check()?;
        Ok(match wait(py, &mut self.caller(), self.db.outcome(transaction.0))? {
            Outcome::Committed(_) => "committed",
            Outcome::Aborted(_) => "aborted",
            Outcome::NotKnown(_) => "unknown",
        })
    }

    /// How many attempts of bodies met a conflict.
    fn conflicts(&self) -> u64 {
        self.shared.conflicts.load(Ordering::Relaxed)
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
            let catalog = self.db.catalog();
            let reports = self.db.close();
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
        let shared = Some(db.clone());
        let shared = OpenDatabase { db: shared, process, retry, closed, conflicts, record };
        let shared = Arc::new(shared);
        let mut opened = opened_databases();
        opened.retain(|it| it.strong_count() > 0);
        opened.push(Arc::downgrade(&shared));
        Core { db, shared, timeout }
    }

    /// A handle of a database that was opened before.
    fn of(shared: Arc<OpenDatabase>) -> Option<Core> {
        Some(Core { db: shared.db.clone()?, shared, timeout: Duration::MAX })
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
    pub fn caller(&self) -> DatabaseCaller {
        DatabaseCaller::new(StateCaller::new(&self.db), self.shared.clone())
    }

    /// What its handles share.
    pub fn shared(&self) -> &Arc<OpenDatabase> {
        &self.shared
    }

    /// For how long its transactions may be open.
    pub fn time_limit(&self) -> Duration {
        self.timeout
    }

    /// Counts a conflict; how long to pause after so many attempts. `None`: no more are made.
    pub fn count_conflict(&self, attempts: u32) -> Option<Duration> {
        self.shared.conflicts.fetch_add(1, Ordering::Relaxed);
        let Retry { pause, pause_max, .. } = self.shared.retry;
        let most = pause.saturating_mul(1 << attempts.min(20)).min(pause_max);
        (attempts < self.shared.retry.attempts).then(|| most.mul_f64(fastrand::f64()))
    }

    fn with(&self, db: Db) -> Core {
        Core { db, shared: self.shared.clone(), timeout: self.timeout }
    }

    /// Attempts until one commits, or is not to be tried again.
    fn repeat(
        &self,
        py: Python<'_>,
        body: &Bound<'_, PyAny>,
        with: (&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>),
    ) -> PyResult<Py<PyAny>> {
        let mut attempts = Attempts::begin();
        loop {
            match self.attempt(py, &attempts, body, with)? {
                AttemptEnd::Committed(answer) => return Ok(answer),
                AttemptEnd::Conflict(error) => sleep(py, attempts.after_conflict(self, error)?)?,
            }
        }
    }

    fn attempt(
        &self,
        py: Python<'_>,
        attempts: &Attempts,
        body: &Bound<'_, PyAny>,
        (args, kwargs): (&Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>),
    ) -> PyResult<AttemptEnd> {
        let handle = attempts.handle(self)?;
        let check = || attempts.check(self);
        let tx = match Transaction::begin(py, (self, &handle), EndedBy::Runner, check)? {
            Ok(begun) => Bound::new(py, begun)?,
            Err(error) if runs_again(&error) => return Ok(AttemptEnd::Conflict(raised(error))),
            Err(error) => return Err(raised(error)),
        };
        let first = std::iter::once(tx.clone().into_any());
        let all = PyTuple::new(py, first.chain(args.iter()).collect::<Vec<_>>())?;
        let answer = match body.call(all, kwargs) {
            Ok(answer) => answer,
            Err(error) => {
                let has_conflict = tx.get().has_conflict()?;
                // In a process that was forked in the body its error goes on, too.
                let _ = tx.get().rollback(py);
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
        match tx.get().end(py)? {
            Ok(()) => Ok(AttemptEnd::Committed(answer.unbind())),
            Err(error) if runs_again(&error) => Ok(AttemptEnd::Conflict(raised(error))),
            Err(error) => Err(raised(error)),
        }
    }
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
