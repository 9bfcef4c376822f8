//! The end of a scope, by its client or by somebody else.
//!
//! Each step is a transaction that looks at the row of the scope, so that any number of clients may
//! be at it at once and each step is done once: its end is decided; handlers run, each in one
//! transaction with the removal of its record; when none is left, the locks go with the row.

pub(super) mod partial;

use std::pin::Pin;

use super::handed::pass_conflict;
use super::layer::counts::count;
use super::layer::{Layer, NestingSwitch};
use super::locks::LockRow;
use super::rows::{
    ChildRecord, HandlerCall, KnownRow, OpenScopes, ScopeEnd, ScopeId, ScopeRow, end_key, lock_key,
    open_key, scope_key,
};
use super::scope::NestingScope;
use crate::database::handle::Db;
use crate::error::Error;
use crate::time::nanos;
use crate::transaction::tx::Tx;

/// What is known of a scope by who finishes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finish {
    /// Whether its client does.
    own: bool,
    /// Whether open children of it are known to have committed.
    has_children: bool,
    /// Whether no transaction of the scope is under way any more: nobody can come late, so that
    /// no row has to tell that it was aborted.
    certain: bool,
    /// Within how many others it is finished.
    depth: usize,
}

impl Finish {
    /// The scope of somebody else.
    pub const OTHERS: Finish = Finish { own: false, has_children: false, certain: false, depth: 0 };

    /// The scope of a client's own.
    pub fn own(scope: &NestingScope) -> Finish {
        let (has_children, certain) = (scope.children() > 0, scope.is_certain());
        Finish { own: true, has_children, certain, depth: 0 }
    }

    /// A scope within it.
    fn within(self) -> Finish {
        Finish { own: false, has_children: false, depth: self.depth + 1, ..self }
    }
}

impl Error {
    /// Why a scope could not be finished.
    fn unfinished(scope: ScopeId, why: Error) -> Error {
        match why {
            unfinished @ Error::Unfinished { .. } => unfinished,
            error => Error::Unfinished { scope: scope.to_string(), why: error.to_string() },
        }
    }
}

/// A scope whose end is decided.
struct DecidedScope {
    end: ScopeEnd,
    /// What it has left to be done; `None`: nothing.
    row: Option<ScopeRow>,
    /// Open children of its that have open children, and have not ended.
    open: Vec<ScopeId>,
}

impl Layer {
    /// Ends a scope: decides that it is aborted, unless it committed, and does all that is to be
    /// done then.
    ///
    /// # Errors
    /// [`Error::Unfinished`]: not all of it could be done.
    pub fn finish(
        &self,
        id: ScopeId,
        how: Finish,
    ) -> Pin<Box<dyn Future<Output = Result<ScopeEnd, Error>> + '_>> {
        Box::pin(async move {
            let done = self.finish_all(id, how).await;
            done.map_err(|error| Error::unfinished(id, error))
        })
    }

    async fn finish_all(&self, id: ScopeId, how: Finish) -> Result<ScopeEnd, Error> {
        // Rows that lead back to a scope which is being finished are none of the layer's.
        self.nesting.limits.check_depth(how.depth)?;
        let decided = self.until_done(async |tx| self.decide(tx, id, how).await).await?;
        let DecidedScope { end, mut row, open } = decided;
        if end == ScopeEnd::Aborted {
            for child in open {
                self.finish(child, how.within()).await?;
            }
            if !self.nesting.holds(NestingSwitch::ReleaseLast) {
                self.until_done(async |tx| self.release_early(tx, id).await).await?;
            }
        }
        loop {
            let Some(left) = row else { return Ok(end) };
            let Some(at) = self.next(&left, end) else {
                self.until_done(async |tx| self.release(tx, id, end, how).await).await?;
                return Ok(end);
            };
            let record = &left.records[at];
            if let Some(child) = record.scope {
                self.finish(child, how.within()).await?;
            }
            let number = record.number;
            let db = self.db_for_handlers(id, end);
            let step = async |tx: &Tx| self.step(tx, id, end, number).await;
            let has_run;
            (row, has_run) = self.until_done_on(&db, step).await?;
            if has_run {
                count(match end {
                    ScopeEnd::Aborted => &self.nesting.counters.compensations,
                    ScopeEnd::Committed => &self.nesting.counters.commit_handlers,
                });
            }
        }
    }

    fn next(&self, row: &ScopeRow, end: ScopeEnd) -> Option<usize> {
        let newest_first = self.nesting.holds(NestingSwitch::NewestFirst);
        match row.next(end) {
            Some(_) if end == ScopeEnd::Aborted && !newest_first => {
                let work = |it: &ChildRecord| it.on_abort.is_some() || it.scope.is_some();
                row.records.iter().position(work)
            }
            next => next,
        }
    }

    /// Decides how a scope ended, if nobody has.
    async fn decide(&self, tx: &Tx, id: ScopeId, how: Finish) -> Result<DecidedScope, Error> {
        let rows = self.nesting.rows;
        let keys = vec![scope_key(id), end_key(id), open_key(id)];
        let mut found = rows.read_all(tx, keys).await?;
        let mut row: Option<ScopeRow> = found.row(&scope_key(id))?;
        let OpenScopes(open) = found.row(&open_key(id))?.unwrap_or_default();
        let end = match (&mut row, found.row(&end_key(id))?) {
            (None, Some(end)) => {
                if how.certain {
                    rows.delete(tx, end_key(id)).await?;
                }
                end
            }
            (Some(_), Some(end)) => end,
            // Its children were there, so somebody has finished it. Had it been aborted by one who
            // could not be certain, the end would be there still.
            (None, None) if how.has_children => ScopeEnd::Committed,
            (None, None) if how.certain || !how.own => ScopeEnd::Aborted,
            (row, None) => {
                rows.write(tx, end_key(id), &ScopeEnd::Aborted).await?;
                if let Some(row) = row {
                    row.progress += 1;
                    rows.write(tx, scope_key(id), row).await?;
                }
                ScopeEnd::Aborted
            }
        };
        Ok(DecidedScope { end, row, open })
    }

    /// Runs the handler of the next record, if it is still the one of this number, and removes it.
    /// What is left of the scope, `None` where it is gone, and whether there was a handler.
    async fn step(
        &self,
        tx: &Tx,
        id: ScopeId,
        end: ScopeEnd,
        number: u64,
    ) -> Result<(Option<ScopeRow>, bool), Error> {
        let rows = self.nesting.rows;
        let Some(mut row) = rows.read::<ScopeRow>(tx, scope_key(id)).await? else {
            return Ok((None, false));
        };
        let at = self.next(&row, end).filter(|at| row.records[*at].number == number);
        let Some(at) = at else { return Ok((Some(row), false)) };
        let record = row.records.remove(at);
        row.progress += 1;
        rows.write(tx, scope_key(id), &row).await?;
        let handler = match end {
            ScopeEnd::Aborted => record.on_abort,
            ScopeEnd::Committed => record.on_commit,
        };
        if let Some(call) = &handler {
            self.run(tx, call).await?;
            if end == ScopeEnd::Aborted && !self.nesting.holds(NestingSwitch::CompensateOnce) {
                self.run(tx, call).await?;
            }
        }
        Ok((Some(row), handler.is_some()))
    }

    /// Runs a handler, with a handle of its own: where it asks to wait for a change, that is its
    /// mistake and not a conflict of the transaction, after which that would be run again.
    async fn run(&self, tx: &Tx, call: &HandlerCall) -> Result<(), Error> {
        let own = tx.at_home();
        let ran = self.nesting.find(call)?(&own, &call.arguments).await;
        if own.conflict() == Some(Error::Retry) || ran == Err(Error::Retry) {
            return Err(Error::Nesting(format!(
                "handler `{}` asks to wait for a change (`Tx::retry`), which none may, as others \
                 wait for the locks of its scope: it goes by what it finds, or returns another \
                 error, after which it is run again when the scope is finished the next time",
                call.name
            )));
        }
        pass_conflict(&own, tx);
        ran
    }

    /// Lets the locks of a scope go, and the scope itself; nothing else is left to be done.
    async fn release(&self, tx: &Tx, id: ScopeId, end: ScopeEnd, how: Finish) -> Result<(), Error> {
        let rows = self.nesting.rows;
        let Some(row) = rows.read::<ScopeRow>(tx, scope_key(id)).await? else { return Ok(()) };
        assert_eq!(row.next(end), None, "an ended scope gets no further records: {row:?}");
        self.release_locks(tx, id, &row, end).await?;
        rows.delete(tx, scope_key(id)).await?;
        if let Some(parent) = row.parent {
            let open = rows.read::<OpenScopes>(tx, open_key(parent)).await?.unwrap_or_default();
            if open.0.contains(&id) {
                let remove = |scopes: &mut Vec<_>| scopes.retain(|open| *open != id);
                rows.change_open(tx, parent, open, remove).await?;
            }
        }
        if end == ScopeEnd::Committed || how.certain {
            rows.delete(tx, end_key(id)).await?;
        }
        Ok(())
    }

    /// Lets the locks of a scope go or hands them on.
    pub async fn release_locks(
        &self,
        tx: &Tx,
        id: ScopeId,
        row: &ScopeRow,
        end: ScopeEnd,
    ) -> Result<(), Error> {
        let rows = self.nesting.rows;
        let keys = row.locks.iter().map(|lock| lock_key(&lock.id)).collect();
        let mut found = rows.read_all(tx, keys).await?;
        for lock in &row.locks {
            let key = lock_key(&lock.id);
            // It may be named twice: anybody can write rows.
            let KnownRow::Row(Some(mut held)) = found.take::<LockRow>(&key)? else { continue };
            let heir = row.parent.filter(|_| lock.hold && end == ScopeEnd::Committed);
            held.release(id, heir);
            match held.is_free() {
                true => rows.delete(tx, key).await?,
                false => rows.write(tx, key, &held).await?,
            }
        }
        Ok(())
    }

    /// For tests: what must not be done, the locks let go before the compensations.
    async fn release_early(&self, tx: &Tx, id: ScopeId) -> Result<(), Error> {
        match self.nesting.rows.read::<ScopeRow>(tx, scope_key(id)).await? {
            Some(row) => self.release_locks(tx, id, &row, ScopeEnd::Aborted).await,
            None => Ok(()),
        }
    }

    /// Runs a step until its transaction has committed. Each looks at what is there, so that it may
    /// be run again where it is not known whether it did.
    pub async fn until_done<T>(
        &self,
        step: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.until_done_on(&self.db, step).await
    }

    /// The same, with transactions of this handle.
    async fn until_done_on<T>(
        &self,
        db: &Db,
        step: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (begun, most) = (self.now()?, nanos(self.db.timeout));
        let mut attempts = 0;
        loop {
            self.nesting.stop.step()?;
            let error = match db.transact_here(&step).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let again = error.is_retryable() || matches!(error, Error::Unknown { .. });
            if !again || self.now()?.0.saturating_sub(begun.0) > most.0 {
                return Err(error);
            }
            attempts += 1;
            self.db.pause(attempts).await?;
        }
    }
}
