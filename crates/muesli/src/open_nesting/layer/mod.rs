//! The layer as its users set it up: its space, its handlers, its limits.

pub(super) mod counts;
mod stops;
mod undecided;
pub(super) mod watch;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muesli_core::{LevelRole, Nanos, TxnLevel, TxnOptions, client};
use serde::de::DeserializeOwned;

use super::put_back::{PUT_BACK, put_back};
use super::rows::{HandlerCall, LayerRows, ScopeEnd, ScopeId};
use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::tx::{BodyFuture, Tx};
use counts::{LayerCounters, NestingCounts};
use stops::StopAfter;
use watch::ScopeWatch;

type HandlerFn = Arc<dyn for<'a> Fn(&'a Tx, &'a [u8]) -> BodyFuture<'a, ()> + Send + Sync>;
type WarningFn = Arc<dyn Fn(&str) + Send + Sync>;

/// After so many attempts the wait for another one grows no more.
const STAGGER_DOUBLINGS: u32 = 1;
/// It is no longer than this, in nanoseconds.
const STAGGER_MOST: u64 = 2_000_000_000;

/// How much a scope may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestingLimits {
    /// Open children that commit in one scope. Each writes the scope's row again, with what the
    /// children before it left there.
    pub children: usize,
    /// Abstract locks of one scope.
    pub locks: usize,
    /// Bytes of a lock's name.
    pub lock_bytes: usize,
    /// Bytes of a handler's arguments.
    pub argument_bytes: usize,
    /// Open children within open children.
    pub depth: usize,
}

impl Default for NestingLimits {
    fn default() -> NestingLimits {
        NestingLimits {
            children: 1_000,
            locks: 1_000,
            lock_bytes: 256,
            argument_bytes: 4_096,
            depth: 16,
        }
    }
}

/// A rule of the layer that tests break, to see it noticed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NestingSwitch {
    /// Compensations are run newest first.
    NewestFirst,
    /// Locks go after the last compensation.
    ReleaseLast,
    /// A lock that is held in a conflicting mode is refused.
    CheckLocks,
    /// A scope commits only where nobody has aborted it.
    CheckEnd,
    /// What open children did in a closed child that is undone is compensated.
    UndoParts,
    /// A child's locks are taken by its own commit. Broken, they are looked at in it, and taken by
    /// another transaction after it.
    LockInCommit,
    /// Who locks rows locks ranges of them, too.
    LockRanges,
    /// One that only looks takes its lock, too.
    LockReads,
    /// Who is refused a lock gives back those that its innermost scope holds. Broken, the child
    /// alone is run again.
    GiveBackLocks,
    /// An open child does not sleep: others may wait for locks that its transaction holds. Broken,
    /// it does.
    SleepWithoutLocks,
    /// A transaction with open children is validated with what it has read itself. Broken, it
    /// commits as one that only reads.
    ValidateRoot,
    /// A transaction whose commit failed is run again, or its caller is told. Broken, it is
    /// compensated and returns normally, as the dissertation prints it.
    TellFailedCommit,
    /// A compensation is run once. Broken, twice: by the commit that failed, and by the abort after
    /// it, as the dissertation prints it.
    CompensateOnce,
    /// Levels use keys of their own.
    SeparateLevels,
}

/// The layer for transactions with open children: [`Db::transact_nested`] takes it. Its clones
/// are one; all clients of a space must know the same handlers.
#[derive(Clone)]
pub struct OpenNesting {
    pub(super) rows: LayerRows,
    pub(super) patience: Duration,
    pub(super) limits: NestingLimits,
    handlers: BTreeMap<String, HandlerFn>,
    warning: Option<WarningFn>,
    broken: Option<NestingSwitch>,
    pub(super) stop: StopAfter,
    /// For histories: the numbers of scopes tell which root they are of.
    is_recorded: bool,
    pub(super) counters: Arc<LayerCounters>,
    pub(super) watch: Arc<Mutex<ScopeWatch>>,
}

impl fmt::Debug for OpenNesting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers: Vec<_> = self.handlers.keys().collect();
        f.debug_struct("OpenNesting").field("handlers", &handlers).finish_non_exhaustive()
    }
}

impl OpenNesting {
    /// The layer whose rows lie in this space, which is to have an ordered index and nothing else
    /// in it.
    pub fn new(space: Space) -> OpenNesting {
        OpenNesting {
            rows: LayerRows { space },
            patience: Duration::from_secs(5),
            limits: NestingLimits::default(),
            handlers: BTreeMap::new(),
            warning: None,
            broken: None,
            stop: StopAfter::default(),
            is_recorded: false,
            counters: Arc::default(),
            watch: Arc::default(),
        }
    }

    /// Adds a handler: a transaction that a compensation or a commit handler of this name runs,
    /// with the arguments that it was given. It may be run on any client, much later, and again
    /// after a conflict; what it does takes effect once. It takes no abstract locks: it has those
    /// of the scope that it is of. Nor does it [wait](Tx::retry) for a change, as others wait for
    /// these locks: it then counts as one that could not be run.
    ///
    /// Names of handlers and of locks that begin with `muesli/` are the layer's own
    /// ([row locks](super::OpenAtomic::with_row_locks)).
    ///
    /// A handler of an older version of the program may have left its arguments, so their type
    /// must stay, as that of a stored row.
    pub fn handler<A, F>(mut self, name: &str, handler: F) -> OpenNesting
    where
        A: DeserializeOwned,
        F: for<'a> Fn(&'a Tx, A) -> BodyFuture<'a, ()> + Send + Sync + 'static,
    {
        let own = name.to_owned();
        let run: HandlerFn = Arc::new(move |tx, arguments| match postcard::from_bytes(arguments) {
            Ok(arguments) => handler(tx, arguments),
            Err(error) => {
                let text = format!("handler `{own}`: its arguments are of another type: {error}");
                Box::pin(std::future::ready(Err(Error::Codec(text))))
            }
        });
        self.handlers.insert(name.to_owned(), run);
        self
    }

    /// A scope that holds a lock that somebody asks for, and that makes no progress for so long, is
    /// taken for abandoned, and finished by who asks: aborted, unless it committed. Its client may
    /// be alive; then its transaction is run again. So this is to be longer than a transaction
    /// takes between two of its open children.
    pub fn patience(self, patience: Duration) -> OpenNesting {
        OpenNesting { patience, ..self }
    }

    /// How much a scope may hold.
    pub fn limits(self, limits: NestingLimits) -> OpenNesting {
        OpenNesting { limits, ..self }
    }

    /// Calls this with a text about each open child that wrote something, committed, and
    /// registered no compensation: most often that is a mistake.
    /// [`OpenAtomic::without_compensation`](super::OpenAtomic::without_compensation) says that it
    /// is none. And about each transaction that has committed and whose commit handlers could not
    /// all be run: that is no error of its caller's, but others wait for its locks.
    pub fn on_warning(self, warning: impl Fn(&str) + Send + Sync + 'static) -> OpenNesting {
        OpenNesting { warning: Some(Arc::new(warning)), ..self }
    }

    /// Counts together with another one.
    #[doc(hidden)]
    pub fn counting_with(self, other: &OpenNesting) -> OpenNesting {
        OpenNesting { counters: other.counters.clone(), ..self }
    }

    /// For tests: breaks a rule.
    #[doc(hidden)]
    pub fn without(self, switch: NestingSwitch) -> OpenNesting {
        OpenNesting { broken: Some(switch), ..self }
    }

    /// For tests: its client stops after so many transactions of the layer, those of open children,
    /// of the transaction itself and of its end: no further one commits.
    #[doc(hidden)]
    pub fn stopping_after(self, transactions: u64) -> OpenNesting {
        OpenNesting { stop: StopAfter::new(transactions), ..self }
    }

    /// For tests: whether its client was to do more than it could.
    #[doc(hidden)]
    pub fn has_stopped(&self) -> bool {
        self.stop.has_stopped()
    }

    /// For histories: transactions of handles that are [of a root](Db::as_root) are recorded with
    /// what they are within it, and whoever finishes a scope tells which root it was of.
    #[doc(hidden)]
    pub fn recorded(self) -> OpenNesting {
        OpenNesting { is_recorded: true, ..self }
    }

    /// What has happened so far.
    pub fn counts(&self) -> NestingCounts {
        self.counters.counts()
    }

    pub(super) fn holds(&self, switch: NestingSwitch) -> bool {
        self.broken != Some(switch)
    }

    pub(super) fn warn(&self, text: &str) {
        if let Some(warning) = &self.warning {
            warning(text);
        }
    }

    /// The handler of a call.
    ///
    /// # Errors
    /// [`Error::Nesting`]: this client knows none of the name.
    pub(super) fn find(&self, call: &HandlerCall) -> Result<HandlerFn, Error> {
        if call.name == PUT_BACK {
            return Ok(Arc::new(|tx, arguments| put_back(tx, arguments)));
        }
        self.handlers.get(&call.name).cloned().ok_or_else(|| {
            Error::Nesting(format!(
                "there is no handler `{}`: register it by `OpenNesting::handler`",
                call.name
            ))
        })
    }
}

/// The layer at work on a database.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// Whose transactions write, whatever the handle was that it came from.
    pub db: Db,
    /// That handle.
    pub given: Db,
    pub nesting: OpenNesting,
    /// The number of the root that it works for, in histories; zero: of none.
    root: u32,
}

/// So many bits of a scope's number are drawn where the others tell the root.
const DRAWN_BITS: u32 = u128::BITS - u32::BITS;

impl Layer {
    pub fn new(db: &Db, nesting: &OpenNesting) -> Layer {
        let nesting = nesting.clone();
        let mut given = db.clone();
        given.choice = None; // It is of the user's transactions.
        given.checkpoints = false; // It reads and writes rows of its own.
        let mut db = given.clone();
        let (root, level) = (db.options.level.root, TxnLevel::default());
        // What ends a scope, others wait for: it comes before those that began after the scope.
        let now = client::with(db.inner.database, |engine| engine.now());
        let tried_since = now.unwrap_or_default().max(Nanos(1));
        let (read_only, follower_reads, staleness) = (false, false, None);
        let options = TxnOptions { read_only, follower_reads, staleness, ..db.options };
        db.options = TxnOptions { tried_since, level, ..options };
        Layer { db, given, nesting, root }
    }

    /// The handle for transactions that are this within the root that the layer works for.
    pub fn db_as(&self, role: LevelRole) -> Cow<'_, Db> {
        self.db_of(self.root, role)
    }

    /// The handle for the handlers of a scope, which may be another root's.
    pub fn db_for_handlers(&self, scope: ScopeId, end: ScopeEnd) -> Cow<'_, Db> {
        let root = if self.nesting.is_recorded { (scope.0 >> DRAWN_BITS) as u32 } else { 0 };
        let role = match end {
            ScopeEnd::Aborted => LevelRole::Compensation,
            ScopeEnd::Committed => LevelRole::CommitHandler,
        };
        self.db_of(root, role)
    }

    fn db_of(&self, root: u32, role: LevelRole) -> Cow<'_, Db> {
        match root {
            0 => Cow::Borrowed(&self.db),
            root => Cow::Owned(self.db.at_level(TxnLevel { root, role })),
        }
    }

    /// Whether it runs for a handle that only reads: there, open children are parts of their
    /// transaction, on its snapshot.
    pub fn reads_only(&self) -> bool {
        self.given.options.read_only
    }

    pub fn now(&self) -> Result<Nanos, Error> {
        client::with(self.db.inner.database, |engine| engine.now()).ok_or(Error::Closed)
    }

    /// How long a transaction waits that gave its locks back, by how long the attempt took: two
    /// that want each other's locks and begin again at about the same time refuse each other again.
    pub fn stagger(&self, took: u64, attempts: u32) -> Result<Duration, Error> {
        let random = client::with(self.db.inner.database, |engine| engine.random());
        let most = took.saturating_mul(1 << attempts.min(STAGGER_DOUBLINGS)).min(STAGGER_MOST);
        Ok(Duration::from_nanos(random.ok_or(Error::Closed)? % (most + 1)))
    }

    /// The number of a new scope.
    pub fn draw(&self) -> Result<ScopeId, Error> {
        let draw = || client::with(self.db.inner.database, |engine| engine.random());
        let (high, low) = (draw().ok_or(Error::Closed)?, draw().ok_or(Error::Closed)?);
        let drawn = u128::from(high) << 64 | u128::from(low);
        Ok(ScopeId(match self.nesting.is_recorded {
            true => u128::from(self.root) << DRAWN_BITS | drawn >> u32::BITS,
            false => drawn,
        }))
    }
}
