//! A running transaction, as its body sees it.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, OnceLock};

use muesli_core::client::{self, Engine};
use muesli_core::{Abort, Catalog, Nanos, Operation, Txn};

use crate::data::space::{Origin, Space};
use crate::database::handle::Db;
use crate::error::Error;
use crate::nesting_choice::Choosing;
use crate::recording::Recording;
use crate::retry::Retry;
use crate::transaction::detour::{AccessWatcher, Detour};
use crate::transaction::level_objects::LevelObjects;

/// The handle of a running transaction: reads see the transaction's snapshot and its own writes;
/// writes are buffered until it commits.
///
/// Operations of one transaction may run side by side, so they take the handle by shared
/// reference. It stays with the body: what a transaction does, it does before it ends.
#[derive(Debug)]
pub struct Tx {
    pub(crate) database: u64,
    /// Whose spaces it uses.
    pub(crate) origin: Origin,
    pub(crate) txn: Txn,
    /// Set where operations do not go straight to the loop that polls this.
    pub(crate) detour: Option<Box<Detour>>,
    /// The first conflict that an operation met: the transaction cannot commit any more, whatever
    /// error its body makes of that.
    conflict: OnceLock<Error>,
    /// What it has of the objects of its transaction, where that has opened some.
    pub(crate) objects: OnceLock<LevelObjects>,
    /// Which level of its transaction it is; 0: the transaction itself.
    pub(crate) level: u32,
    /// What keeps its operations from a call to the loop that polls them: see [`TxFlags`].
    way: AtomicU8,
    /// How its children are run again.
    pub(crate) retry: Retry,
    /// Where that is chosen, how its children are run.
    pub(crate) choosing: Option<Arc<Choosing>>,
    /// Where it waits for a change: when its body is to be run again even without one, in
    /// nanoseconds; zero: never.
    alarm: AtomicU64,
    /// Whether it is a level of its own, or a part of one, that has written.
    has_written: AtomicBool,
}

/// What keeps operations of a [`Tx`] from a call to the loop that polls them.
pub(crate) struct TxFlags;

impl TxFlags {
    /// The transaction lives on another loop, or a layer watches its accesses.
    const DETOUR: u8 = 1;
    /// A child is open.
    const CHILD: u8 = 2;
    /// It was undone.
    const UNDONE: u8 = 4;
    /// A part of it has failed, and is not undone.
    const FAILED_PART: u8 = 8;
}

/// The future of a body that may be polled on any thread.
///
/// Bodies are async closures, `async move |tx| { .. }`, and nothing needs to be said of their
/// futures, as long as the closure is written where it is used. Code that takes bodies of others,
/// and whose own future is to be [`Send`] (a task of a multi-threaded executor), cannot say of an
/// `impl AsyncFn(&Tx) -> ..` that its futures are. It takes functions that give this instead:
///
/// ```
/// use muesli::{BodyFuture, Db, Error, Tx};
///
/// async fn twice<T: Send + 'static>(
///     db: &Db,
///     body: impl for<'a> Fn(&'a Tx) -> BodyFuture<'a, T> + Clone + Send + Sync + 'static,
/// ) -> Result<(T, T), Error> {
///     let again = body.clone();
///     let first = db.transact(async move |tx| body(tx).await).await?;
///     Ok((first, db.transact(async move |tx| again(tx).await).await?))
/// }
///
/// fn is_send(_: impl Send) {}
/// fn show(db: &'static Db) {
///     is_send(twice(db, |_| Box::pin(async { Ok(1) })));
/// }
/// ```
pub type BodyFuture<'a, T, E = Error> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

impl Tx {
    /// A transaction of the loop that polls this.
    #[inline]
    pub(crate) fn at(database: u64, origin: Origin, txn: Txn, retry: Retry) -> Tx {
        let (conflict, objects, way) = (OnceLock::new(), OnceLock::new(), AtomicU8::new(0));
        let (detour, level, choosing) = (None, 0, None);
        let (alarm, has_written) = (AtomicU64::new(0), AtomicBool::new(false));
        Tx {
            database,
            origin,
            txn,
            detour,
            conflict,
            objects,
            level,
            way,
            retry,
            choosing,
            alarm,
            has_written,
        }
    }

    /// The same, whose children are run as was chosen.
    #[inline]
    pub(crate) fn choosing(self, choosing: Option<&Arc<Choosing>>) -> Tx {
        Tx { choosing: choosing.cloned(), ..self }
    }

    /// A transaction of a loop of this number, which is used from elsewhere.
    pub(crate) fn remote(db: &Db, txn: Txn, home: Option<usize>) -> Tx {
        let detour = home.map(|home| Box::new(Detour::Remote(db.clone(), home)));
        let way = AtomicU8::new(if detour.is_some() { TxFlags::DETOUR } else { 0 });
        let inner = &db.inner;
        Tx { detour, way, ..Tx::at(inner.database, inner.origin, txn, inner.retry) }
    }

    /// The same transaction of the loop that polls this, whose accesses a layer watches.
    pub(crate) fn watched(&self, watcher: Arc<dyn AccessWatcher>) -> Tx {
        let (detour, way) = (Box::new(Detour::Watched(watcher)), AtomicU8::new(TxFlags::DETOUR));
        Tx { detour: Some(detour), way, ..self.at_home() }
    }

    /// This handle, of a part of a transaction whose accesses a layer watches, with another
    /// watcher.
    pub(crate) fn watched_by(self, watcher: Arc<dyn AccessWatcher>) -> Tx {
        assert!(self.watcher().is_some(), "its transaction is watched");
        Tx { detour: Some(Box::new(Detour::Watched(watcher))), ..self }
    }

    /// The same transaction of the loop that polls this, which is recorded.
    pub(crate) fn recorded(&self, recording: &Arc<Recording>) -> Tx {
        let detour = Some(Box::new(Detour::Recorded(recording.clone())));
        let way = AtomicU8::new(TxFlags::DETOUR);
        Tx { detour, way, ..self.at_home() }
    }

    /// A child of it.
    pub(crate) fn child(&self) -> Tx {
        let way = AtomicU8::new(self.way.load(Relaxed) & TxFlags::DETOUR);
        let (detour, level) = (self.detour.clone(), self.innermost() + 1);
        let objects = self.objects.get().map_or_else(OnceLock::new, |own| own.beside().into());
        Tx { detour, way, level, objects, ..self.at_home() }
    }

    /// The same level, for a part of it that uses it alone for a while.
    pub(crate) fn part(&self) -> Tx {
        Tx { level: self.level, ..self.child() }
    }

    /// Whether an operation is a call to the loop that polls it.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.way.load(Relaxed) == 0
    }

    /// Whether it takes operations.
    ///
    /// # Errors
    /// A child is open, or it was undone.
    #[cold]
    pub(crate) fn takes_operations(&self) -> Result<(), Error> {
        let way = self.way.load(Relaxed);
        if way & TxFlags::CHILD != 0 {
            return Err(Error::ChildOpen);
        }
        if way & TxFlags::FAILED_PART != 0 {
            return Err(self.needs_children());
        }
        let undone = self.conflict().filter(|_| way & TxFlags::UNDONE != 0);
        undone.map_or(Ok(()), Err)
    }

    /// A child of it begins.
    ///
    /// # Errors
    /// One is open, or it was undone.
    pub(crate) fn open_child(&self) -> Result<(), Error> {
        self.takes_operations()?;
        self.way.fetch_or(TxFlags::CHILD, Relaxed);
        Ok(())
    }

    /// The child of it has ended.
    pub(crate) fn close_child(&self) {
        self.way.fetch_and(!TxFlags::CHILD, Relaxed);
    }

    /// A part of it that was no child has failed: its transaction may only end without effects.
    pub(crate) fn fail_part(&self) {
        self.way.fetch_or(TxFlags::FAILED_PART, Relaxed);
    }

    /// Looks whether it may end well.
    ///
    /// # Errors
    /// A part of it has failed, so it is to be run again with children.
    pub(crate) fn check_parts(&self) -> Result<(), Error> {
        match self.way.load(Relaxed) & TxFlags::FAILED_PART {
            0 => Ok(()),
            _ => Err(self.needs_children()),
        }
    }

    /// It goes on where a part of it is to be undone, which only a child can be.
    #[cold]
    fn needs_children(&self) -> Error {
        if let Some(choosing) = &self.choosing {
            choosing.undoes();
        }
        self.failed(Error::Conflict { reason: Abort::StaleRead, attempts: 1 })
    }

    /// What it has of its transaction's objects, which it may use.
    ///
    /// # Errors
    /// A child is open, or it was undone: so no level makes a table while a child of it is open.
    pub(crate) fn objects(&self) -> Result<&LevelObjects, Error> {
        if !self.is_plain() {
            self.takes_operations()?;
        }
        Ok(self.objects.get_or_init(LevelObjects::default))
    }

    /// Where the transaction lives, if that is not the loop that polls this.
    pub(crate) fn other_loop(&self) -> Option<(&Db, usize)> {
        match self.detour.as_deref() {
            Some(Detour::Remote(db, home)) => Some((db, *home)),
            Some(Detour::Watched(_) | Detour::Recorded(_)) | None => None,
        }
    }

    /// What it has asked and was answered, if that is recorded.
    pub(crate) fn recording(&self) -> Option<&Arc<Recording>> {
        match self.detour.as_deref() {
            Some(Detour::Recorded(recording)) => Some(recording),
            Some(Detour::Remote(..) | Detour::Watched(_)) | None => None,
        }
    }

    /// Who watches its accesses.
    pub(crate) fn watcher(&self) -> Option<&dyn AccessWatcher> {
        match self.detour.as_deref() {
            Some(Detour::Watched(watcher)) => Some(&**watcher),
            Some(Detour::Remote(..) | Detour::Recorded(_)) | None => None,
        }
    }

    /// Refuses a space of another database.
    pub(crate) fn check(&self, space: Space) -> Result<(), Error> {
        match self.origin.admits(space.origin) {
            true => Ok(()),
            false => Err(Error::OtherDatabase { space: space.id.0 }),
        }
    }

    /// Why its transaction cannot commit any more, if an operation met a conflict.
    pub(crate) fn conflict(&self) -> Option<Error> {
        self.conflict.get().cloned()
    }

    /// An operation failed.
    #[cold]
    pub(crate) fn failed(&self, error: impl Into<Error>) -> Error {
        let error = error.into();
        if error.is_conflict() {
            let _ = self.conflict.set(error.clone()); // The first one counts.
        }
        if matches!(error, Error::PartialAbort { .. }) {
            self.way.fetch_or(TxFlags::UNDONE, Relaxed);
        }
        error
    }

    /// A write is asked for. Only of children it matters whether they have any.
    #[inline]
    pub(crate) fn note_write(&self) {
        if self.level > 0 {
            self.has_written.store(true, Relaxed);
        }
    }

    /// Whether this child has written.
    pub(crate) fn has_written(&self) -> bool {
        self.has_written.load(Relaxed)
    }

    /// When it is to be run again where nothing has changed until then.
    pub(crate) fn alarm(&self) -> Option<Nanos> {
        Some(Nanos(self.alarm.load(Relaxed))).filter(|at| *at > Nanos(0))
    }

    /// It is to be run again at this time, or before.
    pub(crate) fn wake_at(&self, at: Option<Nanos>) {
        let Some(at) = self.alarm().into_iter().chain(at).min() else { return };
        self.alarm.store(at.0.max(1), Relaxed);
    }

    /// Rolls back, if the transaction's loop is here and still there.
    pub(crate) fn rollback_here(&self) {
        client::with(self.database, |engine| engine.operate(Operation::rollback(self.txn)));
    }

    /// The catalog of its database, where that is to be had.
    #[cold]
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        match self.other_loop() {
            Some((db, _)) => Some(db.catalog()),
            None => self.here(|engine| engine.catalog()).ok()?.ok(),
        }
    }

    pub(crate) fn at_home(&self) -> Tx {
        let (level, choosing) = (self.level, self.choosing.clone());
        Tx { level, choosing, ..Tx::at(self.database, self.origin, self.txn, self.retry) }
    }

    #[inline]
    pub(crate) fn here<T>(&self, f: impl FnOnce(&dyn Engine) -> T) -> Result<T, Error> {
        client::with(self.database, f).ok_or(Error::Closed)
    }
}
