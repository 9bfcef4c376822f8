//! The database handle, and the sessions that it is of.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

use muesli_core::client::Task;
use muesli_core::{
    Abort, Catalog, LevelRole, Nanos, Procedures, SpaceOptions, Staleness, Timestamp, Traffic,
    TxnLevel, TxnOptions,
};

use crate::data::space::Origin;
use crate::database::compacted::Compacted;
use crate::dispatch::access::LoopAccess;
use crate::dispatch::report::Report;
use crate::error::Error;
use crate::nesting_choice::NestingChoice;
use crate::retry::Retry;
use crate::session::orphans::Orphans;
use crate::session::token::{Carried, CausalContext};

/// A transaction may be open for so long, unless told otherwise.
pub(crate) const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// A database, in one session: what this handle commits it reads afterwards, and what it has
/// read it never un-reads. Clones share the session; [`session`](Db::session) begins another one.
///
/// All sessions of an opened or connected database see what any of them was told: once a commit is
/// answered to one handle, every transaction that begins afterwards through another one sees it.
/// [`token`](Db::token) carries that to other processes, [`independent`](Db::independent) does
/// without.
///
/// A session knows of what was answered. A transaction whose future is dropped before its commit is
/// asked for is aborted. Dropped later, it is decided as if somebody waited: the session learns of
/// it then, and [`settle`](Db::settle) waits for that. A commit that ends in [`Error::Unknown`] may
/// take effect at any later time, and the session's next transactions may see it or not.
///
/// A body that panics aborts its transaction, and the panic goes on at whoever awaits
/// [`transact`](Db::transact), as if the body ran there.
#[derive(Clone)]
pub struct Db {
    pub(crate) inner: Arc<Inner>,
    session: Arc<Session>,
    pub(crate) options: TxnOptions,
    pub(crate) timeout: Duration,
    /// How its transactions' children are run is left to this.
    pub(crate) choice: Option<NestingChoice>,
    /// Whether its transactions can have checkpoints.
    pub(crate) checkpoints: bool,
}

pub(crate) struct Inner {
    pub database: u64,
    /// Whose spaces its transactions use.
    pub origin: Origin,
    /// The procedures that it knows by name.
    pub procedures: Procedures,
    pub catalog: RwLock<Arc<Catalog>>,
    pub retry: Retry,
    sessions: AtomicU64,
    pub(crate) next_loop: AtomicUsize,
    conflicts: [AtomicU64; Abort::ALL.len()],
    /// Why a delayed action could not be left to its turn, the last time.
    pub(crate) footprint_violation: Mutex<Option<String>>,
    pub driver: Option<Box<dyn LoopDriver>>,
}

/// The way into the loops of an embedded database from other threads.
pub(crate) trait LoopDriver: Send + Sync {
    /// How many loops there are.
    fn loops(&self) -> usize;
    /// Whether sessions may be run by several coordinators: of several loops, or of several
    /// connections that share what they are told.
    fn has_several_coordinators(&self) -> bool {
        self.loops() > 1
    }
    /// The state of a loop, where a thread that is none can be in it.
    fn access(&self, home: usize) -> Option<&dyn LoopAccess> {
        let _ = home;
        None
    }
    /// Hands a job to a loop; back if that has stopped.
    fn submit(&self, home: usize, job: Job) -> Result<(), Job>;
    /// Keeps one more space where the data last, before any loop knows of it.
    ///
    /// # Errors
    /// It is not kept: there is to be no such space.
    fn keep_space(&self, name: &str, options: &SpaceOptions) -> Result<(), Error> {
        let _ = (name, options);
        Ok(())
    }
    /// Whether the database is opened for reading only, and nobody can write to it meanwhile.
    fn is_alone(&self) -> bool {
        false
    }
    /// Makes what is kept of the database as short as it can be.
    ///
    /// # Errors
    /// It is not kept here, or only read; or the disk failed.
    fn compact(&self) -> Result<Compacted, Error> {
        let what = "a cluster is compacted by its servers: `compact` is for a database in a folder";
        Err(Error::Options(what.to_owned()))
    }
    /// Tells every loop of a newer catalog.
    fn reconfigure(&self, catalog: &Arc<Catalog>);
    /// The catalog, where others than this process change it.
    fn catalog(&self) -> Option<Arc<Catalog>> {
        None
    }
    /// The catalog by which keys are dealt, where others than this process change it.
    fn catalog_of_keys(&self) -> Option<Arc<Catalog>> {
        None
    }
    /// Makes a space, where others than this process decide on it.
    fn make_space(&self, db: &Db, name: &str, options: &SpaceOptions) -> Option<Result<(), Error>> {
        let _ = (db, name, options);
        None
    }
    /// How many messages the loops have sent each other, as of their last turns.
    fn messages(&self) -> u64;
    /// How often they have sent some, all that there were for one destination together.
    fn packets(&self) -> u64;
    /// Why the loops have stopped, where nobody has closed them.
    fn failure(&self) -> Option<Error> {
        None
    }
    /// What this process has said to servers, where there are some.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    /// Stops the loops; what they leave behind.
    fn close(&self) -> Vec<Report>;
}

/// Work for a loop: makes the task that does it.
pub(crate) type Job = Box<dyn FnOnce() -> Task + Send>;

struct Session {
    id: u64,
    context: Arc<CausalContext>,
    /// The largest timestamp that this session was told of itself.
    own: AtomicU64,
    orphans: Orphans,
}

static DATABASES: AtomicU64 = AtomicU64::new(1);

/// A number for a database, unique in the process.
pub(crate) fn next_database() -> u64 {
    DATABASES.fetch_add(1, Ordering::Relaxed)
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("session", &self.session.id).finish_non_exhaustive()
    }
}

impl Db {
    /// A database that is this process's own.
    pub(crate) fn of_process(
        database: u64,
        catalog: Arc<Catalog>,
        how: (Retry, Procedures),
        driver: Option<Box<dyn LoopDriver>>,
    ) -> Db {
        Db::new((database, Origin::process(database)), catalog, how, driver)
    }

    pub(crate) fn new(
        (database, origin): (u64, Origin),
        catalog: Arc<Catalog>,
        (retry, procedures): (Retry, Procedures),
        driver: Option<Box<dyn LoopDriver>>,
    ) -> Db {
        // Histories of several databases of a process tell their sessions apart.
        let first_session = driver.as_ref().map_or(0, |_| database << 32);
        let (sessions, next_loop) = (AtomicU64::new(first_session), AtomicUsize::new(0));
        let catalog = RwLock::new(catalog);
        let (conflicts, footprint_violation) = (Default::default(), Mutex::default());
        let inner = Arc::new(Inner {
            database,
            origin,
            procedures,
            catalog,
            retry,
            sessions,
            next_loop,
            conflicts,
            footprint_violation,
            driver,
        });
        let several = inner.driver.as_ref().is_some_and(|driver| driver.has_several_coordinators());
        let context = Arc::new(CausalContext::new(0, several.then(Carried::default)));
        Db::in_new_session(inner, TxnOptions::default(), TRANSACTION_TIMEOUT, context)
    }

    /// A handle for client tasks that a driver of its own polls, such as the simulator: its
    /// operations work only there.
    pub fn for_driver(database: u64, catalog: Arc<Catalog>, retry: Retry) -> Db {
        Db::of_process(database, catalog, (retry, Procedures::default()), None)
    }

    fn in_new_session(
        inner: Arc<Inner>,
        options: TxnOptions,
        timeout: Duration,
        context: Arc<CausalContext>,
    ) -> Db {
        // A session begins with all that its context was told.
        let own = AtomicU64::new(context.seen());
        let id = inner.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Arc::new(Session { id, context, own, orphans: Orphans::default() });
        Db { inner, session, options, timeout, choice: None, checkpoints: false }
    }

    /// The same database in a session of its own, for another task or thread: it sees what any
    /// session was told that shares its context, as all do that come from one [`open`](Db::open) or
    /// [`connect`](Db::connect) by this call. Histories judge each session by itself.
    ///
    /// What they share costs a word of memory that all of them write. A read waits where the copy
    /// that it takes has not applied yet what another session was told.
    pub fn session(&self) -> Db {
        self.in_next_session(self.session.context.clone())
    }

    /// The same database in a session that sees at least what this one has seen so far and then
    /// goes its own way, as another process would. Its snapshots may be older than what other
    /// sessions were told is committed; those of [`strict`](Self::strict) transactions are not.
    pub fn independent(&self) -> Db {
        self.in_next_session(Arc::new(self.session.context.copy()))
    }

    /// The same database in a new session that shares what it is told with another handle, as
    /// [`session`](Self::session) does: of another connection to the same cluster, where a process
    /// has several. (The timestamps of another cluster would mean nothing here.)
    pub fn sharing(&self, with: &Db) -> Db {
        self.in_next_session(with.session.context.clone())
    }

    /// The same database and options, in another session.
    pub(crate) fn in_next_session(&self, context: Arc<CausalContext>) -> Db {
        let session = Db::in_new_session(self.inner.clone(), self.options, self.timeout, context);
        Db { choice: self.choice.clone(), checkpoints: self.checkpoints, ..session }
    }

    /// The same database in a new session that has seen this.
    #[cfg(feature = "cluster")]
    pub(crate) fn having_seen(&self, at: Timestamp) -> Db {
        self.in_next_session(Arc::new(CausalContext::new(at.0, None)))
    }

    /// The same database in a new session that has seen nothing.
    #[cfg(feature = "cluster")]
    pub(crate) fn session_anew(&self) -> Db {
        self.having_seen(Timestamp::ZERO)
    }

    /// The same session, whose transactions only read: they never abort and never validate (but for
    /// one that asked for a retry, which is run once more as a [strict](Self::strict) one).
    pub fn read_only(&self) -> Db {
        Db { options: TxnOptions { read_only: true, ..self.options }, ..self.clone() }
    }

    /// The same session, whose transactions only read, and may see the database as it was: each
    /// sees everything whose commit had been told to its client `most` before it began. Where that
    /// is on hand, it is answered near: under protocols that keep all data at several sites, by its
    /// own site alone, without asking another one. Where it is not, the transaction waits until it
    /// is. What a session was told itself is never missing in what it sees, whatever the bound;
    /// what was told to other sessions, also those that [share](Self::session) what they are told,
    /// may be.
    ///
    /// Times are those of the clock of the node that answers. A bound of more than a minute counts
    /// as a minute. Protocols whose transactions see everything anyway do as always; under others
    /// it is run as a [strict](Self::strict) one, or refused with [`Error::Unbounded`], which names
    /// those that do neither.
    ///
    /// ```
    /// # fn main() -> Result<(), muesli::Error> {
    /// use std::time::Duration;
    ///
    /// use muesli::{Db, Options, SpaceOptions};
    ///
    /// let options = Options { protocol: "alvin".to_owned(), ..Options::default() };
    /// let db = Db::open(options.space("stock", SpaceOptions::default()))?;
    /// let stock = db.space("stock")?;
    /// db.blocking().transact(async move |tx| tx.put(stock, "apples", "7").await)?;
    ///
    /// let window = db.at_most_stale(Duration::from_millis(500));
    /// let apples = window.blocking().transact(async move |tx| tx.get(stock, "apples").await)?;
    /// assert_eq!(apples.unwrap().as_slice(), b"7"); // The session has put them there itself.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Error::Unbounded`]: crate::Error::Unbounded
    pub fn at_most_stale(&self, most: Duration) -> Db {
        let most = Nanos(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
        let staleness =
            Some(Staleness { most, ..self.options.staleness.unwrap_or(Staleness::NONE) });
        Db { options: TxnOptions { read_only: true, staleness, ..self.options }, ..self.clone() }
    }

    /// The same session, whose transactions that are [to be so fresh](Self::at_most_stale) and come
    /// where there is no such snapshot do not wait for it: they fail with
    /// [`Error::NotFresh`](crate::Error::NotFresh). Others do as always: the bound is said first.
    pub fn refusing_stale(&self) -> Db {
        let staleness = self.options.staleness.map(|it| Staleness { waits: false, ..it });
        Db { options: TxnOptions { staleness, ..self.options }, ..self.clone() }
    }

    /// The same session, whose transactions look at all that they have read before a
    /// [child](crate::Tx::nested) of them is merged: what has changed by then is run again at once.
    /// Protocols of which snapshots cannot move merge without.
    pub fn validating_merges(&self) -> Db {
        Db { options: TxnOptions { validated_merges: true, ..self.options }, ..self.clone() }
    }

    /// The same session, whose writes leave objects where they are, under protocols that move what
    /// is written to who writes it (`tfa`): for who writes once what others use, as a program does
    /// that loads data. What is new goes to its place by its key.
    pub fn staying(&self) -> Db {
        Db { options: TxnOptions { stays: true, ..self.options }, ..self.clone() }
    }

    /// The same session, with strictly serializable transactions: those that only read are
    /// validated as updates are, and see everything that was committed before they began. Under
    /// `repeatable-read`, and under Granola, whose order keeps real time only as far as the
    /// servers' clocks agree, they are what all transactions are.
    pub fn strict(&self) -> Db {
        Db { options: TxnOptions { strict: true, ..self.options }, ..self.clone() }
    }

    /// The same session, whose readers take the nearest copy: where a repository is kept by a
    /// group, a member that follows may answer what only reads there, and where this process keeps
    /// a [copy](crate::Connect::caches) of it, that does. They see the database as it once was,
    /// never older than what the session has seen; what others were told a moment ago may be
    /// missing. Protocols that have no such readers do as always.
    pub fn follower_reads(&self) -> Db {
        Db { options: TxnOptions { follower_reads: true, ..self.options }, ..self.clone() }
    }

    /// The same session, whose transactions can read ranges of spaces that are found by hash, too.
    /// Each repository puts the keys of such a space in order the first time that it is asked for,
    /// which takes about as long as reading all of them, and keeps them in order from then on. That
    /// is for who lists a database; where ranges are read by a program, give its space an
    /// [ordered index](crate::Index::Ordered).
    pub fn listing(&self) -> Db {
        Db { options: TxnOptions { lists: true, ..self.options }, ..self.clone() }
    }

    /// For histories: the same session, whose transactions are recorded as parts of the root of
    /// this number, which is not zero and no other root's.
    #[doc(hidden)]
    pub fn as_root(&self, root: u32) -> Db {
        self.at_level(TxnLevel { root, role: LevelRole::Own })
    }

    /// For histories: the same session, whose transactions are this within their root.
    pub(crate) fn at_level(&self, level: TxnLevel) -> Db {
        Db { options: TxnOptions { level, ..self.options }, ..self.clone() }
    }

    /// The same session, whose transactions may be open for so long, with all attempts and the
    /// pauses between them, until their commit is asked for: then they are aborted with
    /// [`Error::TransactionTimeout`].
    /// [`Options::transaction_timeout`](crate::Options::transaction_timeout) is what holds
    /// otherwise.
    pub fn timeout(&self, after: Duration) -> Db {
        Db { timeout: after, ..self.clone() }
    }

    /// The same session, whose transactions have their children as is found to be the best: see
    /// [`nesting_choice`](crate::nesting_choice). Transactions that are run at different places of
    /// a program are to have a choice each.
    ///
    /// A child whose body returns an error, which is undone alone as a closed child, makes its
    /// transaction be run again where it is none; from then on children are closed ones here.
    pub fn choosing(&self, choice: &NestingChoice) -> Db {
        Db { choice: Some(choice.clone()), ..self.clone() }
    }

    /// The same session, whose transactions can have [checkpoints](crate::Tx::checkpoint), from
    /// which they go on after some conflicts. What such a transaction asks and is answered is kept
    /// until it ends. Transactions with [open children](Db::transact_nested) have none.
    pub fn with_checkpoints(&self) -> Db {
        Db { checkpoints: true, ..self.clone() }
    }

    pub(crate) fn txn_options(&self) -> TxnOptions {
        let seen = match self.options.staleness {
            Some(_) => self.session.own.load(Ordering::Relaxed),
            None => self.session.context.seen(),
        };
        let lower_bound = Timestamp(seen);
        TxnOptions { lower_bound, session: self.session.id, ..self.options }
    }

    pub(crate) fn seen(&self) -> u64 {
        self.session.context.seen()
    }

    pub(crate) fn orphans(&self) -> &Orphans {
        &self.session.orphans
    }

    pub(crate) fn carried(&self) -> Option<&Carried> {
        self.session.context.carried.as_ref()
    }

    /// A transaction of the session is about to begin on this loop.
    #[inline]
    pub(crate) fn arrive(&self) {
        if let Some(carried) = &self.session.context.carried {
            carried.arrive(self.inner.database);
        }
    }

    /// One has committed on this loop.
    #[inline]
    pub(crate) fn leave(&self) {
        if let Some(carried) = &self.session.context.carried {
            carried.leave(self.inner.database);
        }
    }

    pub(crate) fn see(&self, at: Timestamp) {
        self.session.context.see(at.0);
        if at.0 > self.session.own.load(Ordering::Relaxed) {
            self.session.own.fetch_max(at.0, Ordering::Relaxed);
        }
    }

    /// Whether nobody can write to the database while it is open.
    pub(crate) fn is_alone(&self) -> bool {
        self.inner.driver.as_ref().is_some_and(|driver| driver.is_alone())
    }

    /// Why a delayed action could not be left to its turn, the last time that
    /// [`transact`](Self::transact) ran a transaction again because of that. What was done at once
    /// since then is what it was declared not to do: a mistake of the program, which costs it.
    pub fn footprint_violation(&self) -> Option<String> {
        self.inner.footprint_violation.lock().unwrap_or_else(|broken| broken.into_inner()).clone()
    }

    /// How many attempts of [`transact`](Self::transact) met a conflict so far, by reason.
    pub fn conflicts(&self) -> Vec<(Abort, u64)> {
        let counts = self.inner.conflicts.iter().map(|count| count.load(Ordering::Relaxed));
        Abort::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

/// A handle for a task that sleeps most of the time: it does not keep the database open.
pub(crate) struct WeakDb {
    inner: Weak<Inner>,
    session: Arc<Session>,
    options: TxnOptions,
    timeout: Duration,
}

impl Db {
    /// The same session; its transactions have neither a choice nor checkpoints.
    pub(crate) fn downgrade(&self) -> WeakDb {
        let (inner, session) = (Arc::downgrade(&self.inner), self.session.clone());
        WeakDb { inner, session, options: self.options, timeout: self.timeout }
    }
}

impl WeakDb {
    /// The handle, as long as somebody else has the database open.
    pub(crate) fn upgrade(&self) -> Option<Db> {
        let (inner, session) = (self.inner.upgrade()?, self.session.clone());
        let WeakDb { options, timeout, .. } = *self;
        Some(Db { inner, session, options, timeout, choice: None, checkpoints: false })
    }
}

impl Inner {
    pub(crate) fn count_conflict(&self, reason: Abort) {
        self.conflicts[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
}
