//! Ends of bodies: what a child hands to its scope, and the commit of the outermost transaction.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use muesli_core::SmallBytes;
use serde::de::DeserializeOwned;

use crate::bodies::failure::BodyFailure;
use crate::error::Error;
use crate::open_nesting::ahead::AheadEnd;
use crate::open_nesting::child::OpenTx;
use crate::open_nesting::child::body::BodyRun;
use crate::open_nesting::handed::{ChildPlan, Handlers, pass_conflict};
use crate::open_nesting::layer::NestingSwitch;
use crate::open_nesting::rows::{
    ChildRecord, FoundRows, HeldLock, KnownRow, OpenScopes, ScopeEnd, ScopeId, ScopeRow, end_key,
    lock_key, open_key, scope_key,
};
use crate::open_nesting::scope::TakenLock;

impl OpenTx {
    /// Runs the body of an open child. Meanwhile the rows are read that its end looks at: those of
    /// its scope, and of the locks that are known now.
    pub(in crate::open_nesting) async fn run_body(
        &self,
        how: &ChildPlan,
        body: BodyRun<'_>,
    ) -> Result<(), BodyFailure> {
        self.run_beside(self.keys_ahead(how)?, body).await
    }

    /// Runs a body while these rows are read.
    pub(super) async fn run_beside(
        &self,
        keys: Vec<SmallBytes>,
        mut body: BodyRun<'_>,
    ) -> Result<(), BodyFailure> {
        self.ahead.ask(&keys);
        self.level.reads_ahead(&self.ahead);
        let _ends = AheadEnd(&self.ahead);
        let mut reading = pin!(self.read_ahead(keys));
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
        let done = done.await;
        // A part that waits for a change waits for one of these rows as well.
        if done.is_err() && self.tx.conflict() != Some(Error::Retry) {
            return done;
        }
        let read = match read {
            Some(read) => read,
            None => reading.await,
        };
        done?;
        pass_conflict(&self.raw, &self.tx);
        Ok(read?)
    }

    /// The rows that a child's end looks at, as far as they are known when it begins.
    fn keys_ahead(&self, how: &ChildPlan) -> Result<Vec<SmallBytes>, Error> {
        let scope = self.scope.parent.as_deref().expect("an open child is of a scope");
        let mut keys = vec![scope_key(scope.id)];
        keys.extend(scope.chain().map(|scope| end_key(scope.id)));
        if scope.children() == 0 {
            keys.extend(scope.parent.iter().map(|parent| open_key(parent.id)));
        }
        keys.append(&mut self.locks_ahead(how)?);
        Ok(keys)
    }

    /// The rows of the locks that are known when a child begins.
    pub(super) fn locks_ahead(&self, how: &ChildPlan) -> Result<Vec<SmallBytes>, Error> {
        let expected = how.expected.iter().map(Vec::as_slice);
        let locks: BTreeSet<_> =
            how.locks.iter().map(|(lock, _)| &*lock.id).chain(expected).collect();
        let limits = &self.layer.nesting.limits;
        limits.check_scope(0, locks.len())?;
        let key = |lock: &[u8]| limits.check_lock(lock).map(|()| lock_key(lock));
        locks.into_iter().map(key).collect()
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
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        key: &SmallBytes,
    ) -> Result<Option<T>, Error> {
        match self.ahead.take(key).await? {
            KnownRow::Row(row) => Ok(row),
            KnownRow::NotRead => self.layer.nesting.rows.read(&self.raw, key.clone()).await,
        }
    }

    /// The body has ended well: what goes to the scope is written.
    ///
    /// # Errors
    /// A lock was refused, the scope was ended by others, or it is over a limit.
    pub(in crate::open_nesting) async fn conclude(
        &self,
        how: &ChildPlan,
    ) -> Result<Conclusion, Error> {
        self.undo_parts().await?;
        self.check()?;
        for (lock, mode) in &how.locks {
            self.take(lock.clone(), mode).await?;
        }
        self.lock_rows(how).await?;
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

    async fn hand_over(&self, how: &ChildPlan) -> Result<Conclusion, Error> {
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
        let is_compensated = handlers.on_abort.is_some();
        let mut taken = Vec::new();
        let own = (self.scope.children() > 0).then_some(self.scope.id);
        if let Some(own) = own {
            self.write_end(own, NestingSwitch::CheckEnd).await?;
            let passed = self.scope.held();
            taken.extend(passed.into_iter().map(|lock| TakenLock { hold: false, ..lock }));
        }
        taken.extend(locks);
        for TakenLock { id, hold, .. } in &taken {
            row.hold(&HeldLock { id: id.clone(), hold: *hold });
        }
        let Handlers { on_abort, on_commit } = handlers;
        row.push(ChildRecord { number: 0, on_abort, on_commit, scope: own });
        limits.check_scope(row.next_number, row.locks.len())?;
        rows.write(&self.raw, scope_key(scope.id), &row).await?;
        Ok(Conclusion { taken, is_compensated })
    }

    /// The body of the outermost transaction has ended well; whether it is to be sealed by another
    /// transaction, as it has accessed nothing itself.
    ///
    /// # Errors
    /// The scope was ended by others.
    pub(in crate::open_nesting) async fn conclude_root(&self) -> Result<bool, Error> {
        self.undo_parts().await?;
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
        let is_validated = self.layer.nesting.holds(NestingSwitch::ValidateRoot);
        let level = &self.scope.level;
        if level.is_untouched() || !is_validated && !level.has_written() {
            return Ok(true);
        }
        let written = self.write_end(self.scope.id, NestingSwitch::CheckEnd).await;
        pass_conflict(&self.raw, &self.tx);
        written.map(|()| false)
    }

    /// Commits a scope with this transaction.
    async fn write_end(&self, id: ScopeId, check: NestingSwitch) -> Result<(), Error> {
        let (rows, key) = (self.layer.nesting.rows, end_key(id));
        if self.layer.nesting.holds(check)
            && rows.read::<ScopeEnd>(&self.raw, key.clone()).await?.is_some()
        {
            return Err(self.ended_by_others(&self.scope));
        }
        rows.write(&self.raw, key, &ScopeEnd::Committed).await
    }
}

/// What a child has handed over, for its scope to know once it has committed.
#[derive(Debug)]
pub(in crate::open_nesting) struct Conclusion {
    pub taken: Vec<TakenLock>,
    pub is_compensated: bool,
}
