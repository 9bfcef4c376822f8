//! What clients asked for and were answered, above the transactions that it took: roots, for the
//! histories of runs that are judged.
//!
//! A workload whose transactions are operations on sets and counters keeps them here, by numbers,
//! if it is told to. Its transactions run on handles that name their root, so that the nodes'
//! records say which transactions are of it; only the client knows what the operations answered.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use muesli::Db;
use muesli_check::abstract_operations::{AbstractOperation, Named};
use muesli_check::{BuildError, History, NamedOperation, Status};
use muesli_sim::history::root_name;

use crate::tally::Ended;

/// A workload that knows what its roots did.
pub trait RecordsRoots {
    /// Where it keeps them.
    fn recorder(&self) -> &RootRecorder;
    /// What put there what structures hold at first.
    fn start(&self) -> Vec<AbstractOperation>;
    /// The name of a set or a counter, by its number.
    fn object(&self, number: u64) -> String;

    /// Adds the roots to the history of the run that they were recorded in.
    ///
    /// # Errors
    /// There are more than a history can hold.
    fn add_roots(&self, history: &mut History) -> Result<(), BuildError> {
        let (start, roots) = (self.start(), self.recorder().take());
        let mut names = ObjectNames { of: &|number| self.object(number), known: BTreeMap::new() };
        let all = roots.iter().flat_map(|root| &root.operations).chain(&start);
        all.for_each(|operation| names.learn(*operation));
        history.add_start(start.iter().map(|operation| names.named(*operation)))?;
        let roots = roots.iter().zip(1..).map(|(root, number)| {
            let operations = root.operations.iter().map(|it| names.named(*it)).collect();
            (root_name(number), root.status, operations)
        });
        history.add_roots(roots)
    }
}

/// The names of sets, counters and keys.
struct ObjectNames<'a> {
    of: &'a dyn Fn(u64) -> String,
    known: BTreeMap<(u64, Named), String>,
}

impl ObjectNames<'_> {
    fn learn(&mut self, operation: AbstractOperation) {
        let Ok(_) = operation.try_renamed(|number, what| {
            self.known.entry((number, what)).or_insert_with(|| match what {
                Named::Object => (self.of)(number),
                Named::Key => number.to_string(),
            });
            Ok::<_, Infallible>(())
        });
    }

    fn named(&self, operation: AbstractOperation) -> NamedOperation<'_> {
        let name = |number, what| Ok::<_, Infallible>(self.known[&(number, what)].as_bytes());
        let Ok(named) = operation.try_renamed(name);
        named
    }
}

/// The roots of all clients of a run.
#[derive(Debug, Default)]
pub struct RootRecorder {
    is_on: AtomicBool,
    /// Numbered from 1.
    roots: Mutex<Vec<RecordedRoot>>,
}

/// What a client asked for.
#[derive(Clone, Debug)]
struct RecordedRoot {
    /// How it ended, as far as its client was told.
    status: Status,
    /// What its last attempt did.
    operations: Vec<AbstractOperation>,
}

impl RootRecorder {
    /// From now on roots are recorded.
    pub fn switch_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Whether they are.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// A client asks for something.
    pub(crate) fn begin(&self) -> RootCall<'_> {
        if !self.is_on() {
            return RootCall { recorder: self, number: 0 };
        }
        let mut roots = self.roots();
        // One that vanishes has not been told.
        roots.push(RecordedRoot { status: Status::Unknown, operations: Vec::new() });
        let number = u32::try_from(roots.len()).expect("a run has fewer than 2^32 transactions");
        RootCall { recorder: self, number }
    }

    fn roots(&self) -> MutexGuard<'_, Vec<RecordedRoot>> {
        self.roots.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn take(&self) -> Vec<RecordedRoot> {
        std::mem::take(&mut *self.roots())
    }
}

/// A root under way.
#[derive(Debug)]
pub(crate) struct RootCall<'a> {
    recorder: &'a RootRecorder,
    /// Zero: it is not recorded.
    number: u32,
}

impl RootCall<'_> {
    /// The handle for its transactions.
    pub fn handle(&self, db: &Db) -> Db {
        match self.number {
            0 => db.clone(),
            number => db.as_root(number),
        }
    }

    /// An attempt begins: what those before it did is undone.
    pub fn begin_attempt(&self) {
        self.change(|root| root.operations.clear());
    }

    /// An operation answered.
    pub fn did(&self, operation: AbstractOperation) {
        self.change(|root| root.operations.push(operation));
    }

    /// It ended so. After an error of the database it may have committed all the same.
    pub fn end(&self, ended: &Ended) {
        self.change(|root| {
            root.status = match ended {
                Ended::Committed => Status::Committed,
                Ended::RolledBack => Status::Aborted,
                Ended::Unknown | Ended::Failed(_) => Status::Unknown,
            };
        });
    }

    fn change(&self, change: impl FnOnce(&mut RecordedRoot)) {
        if let Some(at) = (self.number as usize).checked_sub(1) {
            change(&mut self.recorder.roots()[at]);
        }
    }
}
