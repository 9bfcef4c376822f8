//! What the body of a transaction with open children has: of the outermost one, of an open child,
//! and of a closed child of either.

pub(in crate::open_nesting) mod body;
mod closed;
mod concluding;
mod locking;
mod parts;
mod row_locks;

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use muesli_core::Abort;
use serde::Serialize;

use super::ahead::ReadAhead;
use super::handed::{Handlers, call, pass_conflict};
use super::layer::Layer;
use super::level::NestingLevel;
use super::locks::LockMode;
use super::rows::{FoundRows, HandlerCall, HeldLock, ScopeRow, scope_key};
use super::scope::{NestingScope, TakenLock};
use crate::error::Error;
use crate::transaction::tx::Tx;

pub(super) use concluding::Conclusion;

/// A running transaction that may have open children: the one that
/// [`Db::transact_nested`](crate::Db::transact_nested) runs, an open child, or a
/// [closed child](Self::nested) of one of these. It is a [`Tx`] with more to it, and is passed
/// where that is asked for.
#[derive(Debug)]
pub struct OpenTx {
    /// Its accesses are watched.
    tx: Tx,
    /// The same transaction, for the layer's own rows.
    raw: Tx,
    pub(super) layer: Layer,
    /// What its own open children belong to.
    pub(super) scope: Arc<NestingScope>,
    /// What it accesses itself: a closed child of the scope's transaction is a level of its own.
    pub(super) level: Arc<NestingLevel>,
    handed: Mutex<Handed>,
    /// Rows of the layer that were read while its body ran, or that of the open child which it is
    /// within.
    ahead: Arc<ReadAhead>,
    /// So many open children of it are running.
    running: AtomicUsize,
    /// It is no transaction of its own, but a part of the one that it was to be an open child of.
    is_inline: bool,
    /// It is, or is within, an open child that locks rows, or a part that was to be one.
    pub(super) locks_rows: bool,
}

#[derive(Debug, Default)]
struct Handed {
    handlers: Handlers,
    locks: Vec<TakenLock>,
    /// Commit handlers of parts, in their order.
    of_parts: Vec<HandlerCall>,
    /// Rows of locks that parts have read while their bodies ran.
    found: FoundRows,
}

impl Deref for OpenTx {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl Borrow<Tx> for OpenTx {
    fn borrow(&self) -> &Tx {
        &self.tx
    }
}

/// Counts an open child that is running.
pub(super) struct RunningChild<'a>(&'a AtomicUsize);

impl Drop for RunningChild<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OpenTx {
    pub(super) fn new(tx: &Tx, layer: &Layer, scope: &Arc<NestingScope>) -> OpenTx {
        OpenTx {
            tx: tx.watched(scope.level.clone()),
            raw: tx.at_home(),
            layer: layer.clone(),
            scope: scope.clone(),
            level: scope.level.clone(),
            handed: Mutex::default(),
            ahead: Arc::default(),
            running: AtomicUsize::new(0),
            is_inline: false,
            locks_rows: scope.level.locks_rows(),
        }
    }

    /// An open child of it begins. They may run side by side; what runs beside a closed child could
    /// not be told from what ran within it.
    ///
    /// # Errors
    /// A closed child of it is open, or it was undone.
    pub(super) fn begin_open(&self) -> Result<RunningChild<'_>, Error> {
        self.tx.takes_operations()?;
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(RunningChild(&self.running))
    }

    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.handed.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Takes an abstract lock in this mode, held from this child's commit until the transaction
    /// ends that it is of. Locks that this one's ancestors hold are not in its way. No lock is
    /// waited for: where another transaction holds it in a mode that does not go with this one,
    /// what holds locks here is compensated and run again, as [`transact`](crate::Db::transact)
    /// does after a conflict.
    ///
    /// # Errors
    /// [`Error::LockRefused`], which the body is to return; [`Error::Nesting`] where this is no
    /// open child, or another matrix is used for the lock; what [`Tx`] says.
    pub async fn acquire_lock(&self, id: impl AsRef<[u8]>, mode: &LockMode) -> Result<(), Error> {
        self.take(HeldLock { id: id.as_ref().to_vec(), hold: false }, mode).await
    }

    /// As [`acquire_lock`](Self::acquire_lock) and
    /// [`OpenAtomic::hold_lock`](super::OpenAtomic::hold_lock).
    ///
    /// # Errors
    /// As there.
    pub async fn hold_lock(&self, id: impl AsRef<[u8]>, mode: &LockMode) -> Result<(), Error> {
        self.take(HeldLock { id: id.as_ref().to_vec(), hold: true }, mode).await
    }

    /// As [`OpenAtomic::on_abort`](super::OpenAtomic::on_abort), for what only the body
    /// knows: the last one counts.
    ///
    /// # Errors
    /// [`Error::Codec`]: the arguments cannot be serialized.
    pub fn on_abort<A: Serialize + ?Sized>(&self, name: &str, arguments: &A) -> Result<(), Error> {
        self.handed().handlers.on_abort = Some(call(name, arguments)?);
        Ok(())
    }

    /// As [`OpenAtomic::on_commit`](super::OpenAtomic::on_commit), for what only the body
    /// knows: the last one counts.
    ///
    /// # Errors
    /// [`Error::Codec`]: the arguments cannot be serialized.
    pub fn on_commit<A: Serialize + ?Sized>(&self, name: &str, arguments: &A) -> Result<(), Error> {
        self.handed().handlers.on_commit = Some(call(name, arguments)?);
        Ok(())
    }

    /// Tells others, who may be waiting for its locks, that the transaction is alive: it makes
    /// progress without an open child that commits. Of no use before the first of these has.
    ///
    /// # Errors
    /// What [`Db::transact`](crate::Db::transact) says.
    pub async fn keep_alive(&self) -> Result<(), Error> {
        let (rows, key) = (self.layer.nesting.rows, scope_key(self.scope.id));
        let raise = async |tx: &Tx| {
            let Some(mut row) = rows.read::<ScopeRow>(tx, key.clone()).await? else {
                return Ok(());
            };
            row.progress += 1;
            rows.write(tx, key.clone(), &row).await
        };
        self.layer.db.transact_here(raise).await
    }

    /// The transaction is to be run again.
    fn ended_by_others(&self, scope: &NestingScope) -> Error {
        let error = Error::Conflict { reason: Abort::Abandoned, attempts: 1 };
        scope.doom(&error);
        error
    }

    /// Passes a conflict to the handle that commits.
    pub(super) fn pass_conflict(&self, to: &Tx) {
        pass_conflict(&self.tx, to);
    }
}
