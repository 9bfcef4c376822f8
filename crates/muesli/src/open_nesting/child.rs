//! An open child: what its body has, and what it hands to its scope when it commits.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use muesli_core::{Abort, SmallBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ahead::ReadAhead;
use super::handed::{Handlers, OpenNested, call, lock_name, pass_conflict};
use super::layer::{Layer, NestingSwitch};
use super::locks::{LockMode, LockRow};
use super::rows::{
    ChildRecord, FoundRows, HandlerCall, HeldLock, KnownRow, OpenScopes, ScopeEnd, ScopeRow,
    decode, end_key, lock_key, open_key, scope_key,
};
use super::scope::NestingScope;
use crate::error::Error;
use crate::transaction::detour::AccessWatcher;
use crate::transaction::tx::Tx;

/// A running transaction that may have open children: the one that
/// [`Db::transact_nested`](crate::Db::transact_nested) runs, or an open child. It is a [`Tx`] with
/// more to it, and is passed where that is asked for.
#[derive(Debug)]
pub struct OpenTx {
    /// Its accesses are watched.
    tx: Tx,
    /// The same transaction, for the layer's own rows.
    raw: Tx,
    pub(super) layer: Layer,
    /// What its own open children belong to.
    pub(super) scope: Arc<NestingScope>,
    handed: Mutex<Handed>,
    /// Rows of the layer that were read while its body ran.
    ahead: ReadAhead,
    /// It is no transaction of its own, but a part of the one that it was to be an open child of.
    is_inline: bool,
}

#[derive(Debug, Default)]
struct Handed {
    handlers: Handlers,
    locks: Vec<HeldLock>,
    /// Commit handlers of parts, in their order.
    of_parts: Vec<HandlerCall>,
}

impl Deref for OpenTx {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl OpenTx {
    pub(super) fn new(tx: &Tx, layer: &Layer, scope: &Arc<NestingScope>) -> OpenTx {
        let watcher: Arc<dyn AccessWatcher> = scope.level.clone();
        OpenTx {
            tx: tx.watched(watcher),
            raw: tx.at_home(),
            layer: layer.clone(),
            scope: scope.clone(),
            handed: Mutex::default(),
            ahead: ReadAhead::default(),
            is_inline: false,
        }
    }

    /// A part of its transaction, in place of an open child.
    pub(super) fn inlined(tx: &Tx, of: &OpenTx) -> OpenTx {
        OpenTx { is_inline: true, ..OpenTx::new(tx, &of.layer, &of.scope) }
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

    /// As [`acquire_lock`](Self::acquire_lock) and [`OpenNested::hold`].
    ///
    /// # Errors
    /// As there.
    pub async fn hold_lock(&self, id: impl AsRef<[u8]>, mode: &LockMode) -> Result<(), Error> {
        self.take(HeldLock { id: id.as_ref().to_vec(), hold: true }, mode).await
    }

    /// As [`OpenNested::on_abort`], for what only the body knows: the last one counts.
    ///
    /// # Errors
    /// [`Error::Codec`]: the arguments cannot be serialized.
    pub fn on_abort<A: Serialize + ?Sized>(&self, name: &str, arguments: &A) -> Result<(), Error> {
        self.handed().handlers.on_abort = Some(call(name, arguments)?);
        Ok(())
    }

    /// As [`OpenNested::on_commit`], for what only the body knows: the last one counts.
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

    async fn take(&self, lock: HeldLock, mode: &LockMode) -> Result<(), Error> {
        let taken = self.take_lock(&lock, mode).await;
        pass_conflict(&self.raw, &self.tx);
        taken?;
        self.handed().locks.push(lock);
        Ok(())
    }

    async fn take_lock(&self, lock: &HeldLock, mode: &LockMode) -> Result<(), Error> {
        if self.is_inline {
            self.layer.nesting.limits.check_lock(&lock.id)?;
            self.scope.ask_for(&lock.id, mode);
            return Ok(());
        }
        let name = || lock_name(&lock.id);
        let Some(scope) = &self.scope.parent else {
            return Err(Error::Nesting(format!(
                "abstract lock `{}` is to be taken by an open child, not by the transaction itself",
                name()
            )));
        };
        self.layer.nesting.limits.check_lock(&lock.id)?;
        let (rows, key) = (self.layer.nesting.rows, lock_key(&lock.id));
        self.scope.level.note_lock(&key)?;
        let row = self.read(&key).await?;
        let mut row = row.unwrap_or_else(|| LockRow::free(mode));
        let conflict = row.conflict(mode, &scope.chain_ids()).map_err(|error| {
            let text = format!("abstract lock `{}`: {error}", name());
            self.scope.level.blame(Error::Nesting(text))
        })?;
        if let Some(holder) =
            conflict.filter(|_| self.layer.nesting.holds(NestingSwitch::CheckLocks))
        {
            let error = Error::LockRefused { lock: name(), holder: holder.to_string() };
            self.scope.refuse(holder, &error);
            return Err(error);
        }
        if row.add(scope.id, mode) {
            rows.write(&self.raw, key, &row).await?;
        }
        Ok(())
    }

    /// Parts take no lock: they are isolated by their transaction, where nobody else holds a lock
    /// that they asked for who has committed something of which it is not known whether it stays.
    /// That this is so is a read of the transaction like any other, one for all locks, when its
    /// body has ended, well or not.
    ///
    /// # Errors
    /// [`Error::LockRefused`]: it is to be run again. [`Error::Nesting`]; what [`Tx`] says.
    pub(super) async fn look_at_locks(&self) -> Result<(), Error> {
        let asked = self.scope.take_asked();
        if asked.is_empty() || self.tx.conflict().is_some() {
            return Ok(());
        }
        self.layer.nesting.limits.check_scope(0, asked.len())?;
        let space = self.layer.nesting.rows.space;
        let keys: Vec<_> = asked.iter().map(|(id, _)| lock_key(id)).collect();
        let found = self.raw.get_many(space, keys.clone()).await;
        pass_conflict(&self.raw, &self.tx);
        for ((row, key), (id, mode)) in found?.into_iter().zip(keys).zip(&asked) {
            let Some(row) = row else { continue };
            let conflict = decode::<LockRow>(&key, &row)?.conflict(mode, &[]).map_err(|error| {
                let text = format!("abstract lock `{}`: {error}", lock_name(id));
                self.scope.level.blame(Error::Nesting(text))
            })?;
            let holds = self.layer.nesting.holds(NestingSwitch::CheckLocks);
            if let Some(holder) = conflict.filter(|_| holds) {
                let (lock, holder_name) = (lock_name(id), holder.to_string());
                let error = Error::LockRefused { lock, holder: holder_name };
                self.scope.refuse(holder, &error);
                self.scope.doom(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The body of a part has ended well: its commit handler, if it has one.
    ///
    /// # Errors
    /// A lock is held by others, or it is over a limit.
    pub(super) async fn conclude_part(&self, how: &OpenNested) -> Result<Vec<HandlerCall>, Error> {
        self.scope.check()?;
        self.tx.check_parts()?;
        for (lock, mode) in &how.locks {
            self.take(lock.clone(), mode).await?;
        }
        let (handlers, mut calls) = {
            let mut handed = self.handed();
            (handed.handlers.clone(), std::mem::take(&mut handed.of_parts))
        };
        let on_commit = handlers.on_commit.or_else(|| how.handlers.on_commit.clone());
        let handlers = Handlers { on_abort: None, on_commit };
        self.layer.nesting.limits.check_handlers(&handlers)?;
        calls.extend(handlers.on_commit);
        Ok(calls)
    }

    /// Takes over the commit handlers of a part.
    pub(super) fn take_of_part(&self, mut calls: Vec<HandlerCall>) {
        self.handed().of_parts.append(&mut calls);
    }

    /// The body of the outermost transaction has ended well, and its parts have commit handlers:
    /// they are written with what it wrote, for whoever runs them.
    async fn write_of_parts(&self, calls: Vec<HandlerCall>) -> Result<(), Error> {
        let (rows, id) = (self.layer.nesting.rows, self.scope.id);
        let mut row = ScopeRow::default();
        for call in calls {
            let on_commit = Some(call);
            row.push(ChildRecord { number: 0, on_abort: None, on_commit, scope: None });
        }
        self.layer.nesting.limits.check_scope(row.next_number, 0)?;
        rows.write(&self.raw, scope_key(id), &row).await?;
        rows.write(&self.raw, end_key(id), &ScopeEnd::Committed).await?;
        self.scope.touch();
        Ok(())
    }

    /// Runs the body of an open child. Meanwhile the rows are read that its end looks at: those of
    /// its scope, and of the locks that are known now.
    pub(super) async fn run_body<T, E>(
        &self,
        how: &OpenNested,
        body: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        E: From<Error>,
    {
        let keys = self.keys_ahead(how)?;
        self.ahead.ask(&keys);
        let (mut body, mut reading) = (pin!(body), pin!(self.read_ahead(keys)));
        let mut read = None;
        let done = poll_fn(|cx| {
            let done = body.as_mut().poll(cx);
            if done.is_pending()
                && read.is_none()
                && let Poll::Ready(ended) = reading.as_mut().poll(cx)
            {
                read = Some(ended);
            }
            done
        });
        let done = done.await?;
        let read = match read {
            Some(read) => read,
            None => reading.await,
        };
        pass_conflict(&self.raw, &self.tx);
        read?;
        Ok(done)
    }

    /// The rows that a child's end looks at, as far as they are known when it begins.
    fn keys_ahead(&self, how: &OpenNested) -> Result<Vec<SmallBytes>, Error> {
        let scope = self.scope.parent.as_deref().expect("an open child is of a scope");
        let mut keys = vec![scope_key(scope.id)];
        keys.extend(scope.chain().map(|scope| end_key(scope.id)));
        if scope.children() == 0 {
            keys.extend(scope.parent.iter().map(|parent| open_key(parent.id)));
        }
        let expected = how.expected.iter().map(Vec::as_slice);
        let locks: BTreeSet<_> =
            how.locks.iter().map(|(lock, _)| &*lock.id).chain(expected).collect();
        let limits = &self.layer.nesting.limits;
        limits.check_scope(0, locks.len())?;
        for lock in locks {
            limits.check_lock(lock)?;
            keys.push(lock_key(lock));
        }
        Ok(keys)
    }

    async fn read_ahead(&self, keys: Vec<SmallBytes>) -> Result<(), Error> {
        let read = self.layer.nesting.rows.read_all(&self.raw, keys).await;
        let (found, ended) = match read {
            Ok(found) => (found, Ok(())),
            Err(error) => (FoundRows::default(), Err(error)),
        };
        self.ahead.answer(found);
        ended
    }

    /// A row of the layer, from what was read ahead, once, or else now.
    async fn read<T: DeserializeOwned>(&self, key: &SmallBytes) -> Result<Option<T>, Error> {
        match self.ahead.take(key).await? {
            KnownRow::Row(row) => Ok(row),
            KnownRow::NotRead => self.layer.nesting.rows.read(&self.raw, key.clone()).await,
        }
    }

    /// The body has ended well: what goes to the scope is written.
    ///
    /// # Errors
    /// A lock was refused, the scope was ended by others, or it is over a limit.
    pub(super) async fn conclude(&self, how: &OpenNested) -> Result<Conclusion, Error> {
        self.check()?;
        for (lock, mode) in &how.locks {
            self.take(lock.clone(), mode).await?;
        }
        let concluded = self.hand_over(how).await;
        pass_conflict(&self.raw, &self.tx);
        let concluded = concluded?;
        self.check()?;
        Ok(concluded)
    }

    /// # Errors
    /// Why it is not to commit, whatever its body made of that.
    fn check(&self) -> Result<(), Error> {
        self.scope.check()?;
        self.tx.check_parts()?;
        if !self.scope.is_certain_within() {
            // A child of its was dropped as it committed: whether it did is not known.
            return Err(self.ended_by_others(&self.scope));
        }
        self.scope.refused().map_or(Ok(()), |(_, error)| Err(error))
    }

    async fn hand_over(&self, how: &OpenNested) -> Result<Conclusion, Error> {
        let (rows, limits) = (self.layer.nesting.rows, &self.layer.nesting.limits);
        let scope = self.scope.parent.as_deref().expect("an open child is of a scope");
        let mut ended = None;
        for around in scope.chain() {
            let end: Option<ScopeEnd> = self.read(&end_key(around.id)).await?;
            ended = end.map(|_| around.id).or(ended);
        }
        if let Some(ended) = ended {
            // All within it is to be run again with it, and not alone.
            let within = scope.chain().take_while(|around| around.id != ended);
            within.for_each(|around| drop(self.ended_by_others(around)));
            let ended =
                scope.chain().find(|around| around.id == ended).expect("it is of the chain");
            return Err(self.ended_by_others(ended));
        }
        let row: Option<ScopeRow> = self.read(&scope_key(scope.id)).await?;
        if row.is_none() && scope.children() > 0 {
            return Err(self.ended_by_others(scope));
        }
        if row.is_none()
            && let Some(parent) = &scope.parent
        {
            let open = self.read::<OpenScopes>(&open_key(parent.id)).await?.unwrap_or_default();
            limits.check_scope(open.0.len() as u64 + 1, 0)?;
            let add = |scopes: &mut Vec<_>| scopes.push(scope.id);
            rows.change_open(&self.raw, parent.id, open, add).await?;
        }
        let fresh =
            || ScopeRow { parent: scope.parent.as_ref().map(|it| it.id), ..ScopeRow::default() };
        let mut row = row.unwrap_or_else(fresh);
        let (mut handlers, locks) = {
            let handed = self.handed();
            (handed.handlers.clone(), handed.locks.clone())
        };
        handlers.on_abort = handlers.on_abort.or_else(|| how.handlers.on_abort.clone());
        handlers.on_commit = handlers.on_commit.or_else(|| how.handlers.on_commit.clone());
        limits.check_handlers(&handlers)?;
        let mut conclusion = Conclusion {
            locks: !locks.is_empty(),
            held: locks.iter().filter(|lock| lock.hold).map(|lock| lock.id.clone()).collect(),
            is_compensated: handlers.on_abort.is_some(),
        };
        let own = (self.scope.children() > 0).then_some(self.scope.id);
        if let Some(own) = own {
            self.write_end(own, NestingSwitch::CheckEnd).await?;
            for id in self.scope.held() {
                row.hold(&HeldLock { id, hold: false });
                conclusion.locks = true;
            }
        }
        locks.iter().for_each(|lock| row.hold(lock));
        let Handlers { on_abort, on_commit } = handlers;
        row.push(ChildRecord { number: 0, on_abort, on_commit, scope: own });
        limits.check_scope(row.next_number, row.locks.len())?;
        rows.write(&self.raw, scope_key(scope.id), &row).await?;
        Ok(conclusion)
    }

    /// The body of the outermost transaction has ended well; whether it is to be sealed by another
    /// transaction, as it has accessed nothing itself.
    ///
    /// # Errors
    /// The scope was ended by others.
    pub(super) async fn conclude_root(&self) -> Result<bool, Error> {
        self.check()?;
        let calls = std::mem::take(&mut self.handed().of_parts);
        if !calls.is_empty() {
            let written = self.write_of_parts(calls).await;
            pass_conflict(&self.raw, &self.tx);
            return written.map(|()| false);
        }
        if self.scope.children() == 0 {
            return Ok(false);
        }
        if self.scope.level.is_untouched() {
            return Ok(true);
        }
        let written = self.write_end(self.scope.id, NestingSwitch::CheckEnd).await;
        pass_conflict(&self.raw, &self.tx);
        written.map(|()| false)
    }

    /// Commits a scope with this transaction.
    async fn write_end(&self, id: super::rows::ScopeId, check: NestingSwitch) -> Result<(), Error> {
        let (rows, key) = (self.layer.nesting.rows, end_key(id));
        if self.layer.nesting.holds(check)
            && rows.read::<ScopeEnd>(&self.raw, key.clone()).await?.is_some()
        {
            return Err(self.ended_by_others(&self.scope));
        }
        rows.write(&self.raw, key, &ScopeEnd::Committed).await
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

/// What a child has handed over, for its scope to know once it has committed.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub locks: bool,
    pub held: Vec<Vec<u8>>,
    pub is_compensated: bool,
}
