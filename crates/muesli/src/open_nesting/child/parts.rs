//! Open children that are none: parts of their transaction, or closed children, as was chosen.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::bodies::failure::BodyFailure;
use crate::error::Error;
use crate::open_nesting::child::body::AnyBody;
use crate::open_nesting::child::{Handed, OpenTx};
use crate::open_nesting::handed::{ChildPlan, Handlers, pass_conflict};
use crate::open_nesting::rows::{
    ChildRecord, FoundRows, HandlerCall, ScopeEnd, ScopeRow, end_key, scope_key,
};
use crate::transaction::tx::Tx;

impl OpenTx {
    /// Runs a body as a part of this transaction, or as a closed child of it.
    pub(in crate::open_nesting) async fn run_inline(
        &self,
        how: &ChildPlan,
        body: &dyn AnyBody,
    ) -> Result<(), BodyFailure> {
        let run = async |part: &OpenTx| -> Result<(Vec<HandlerCall>, FoundRows), BodyFailure> {
            let keys = part.locks_ahead(how)?;
            let done = match keys.is_empty() {
                true => body.run(part).await,
                false => part.run_beside(keys, body.run(part)).await,
            };
            let concluded = match done {
                Ok(()) => match part.conclude_part(how).await {
                    Ok(calls) => Ok((calls, part.found_by_part())),
                    Err(error) => Err(error.into()),
                },
                Err(failure) => Err(failure),
            };
            pass_conflict(&part.raw, &part.tx);
            concluded
        };
        let made = |tx| OpenTx { locks_rows: how.locks_rows, ..self.inlined(tx) };
        let (mut calls, found) = match self.layer.reads_only() {
            true => self.tx.run_part(true, &made, &run).await?,
            false => {
                let ran = self.tx.run_child(&made, &run, false).await?;
                ran.expect("a part that does not wait passes it on")
            }
        };
        let mut handed = self.handed();
        handed.of_parts.append(&mut calls);
        // The reads are this transaction's now, and undone with it.
        handed.found.append(found);
        Ok(())
    }

    /// What a part has, in place of an open child.
    fn inlined(&self, tx: Tx) -> OpenTx {
        OpenTx { is_inline: true, ahead: Arc::default(), ..self.within(tx) }
    }

    /// The rows of locks that this part and those within it have read.
    fn found_by_part(&self) -> FoundRows {
        let mut found = std::mem::take(&mut self.handed().found);
        found.append(self.ahead.take_all());
        found
    }

    /// What a body has that is run within this transaction.
    pub(super) fn within(&self, tx: Tx) -> OpenTx {
        OpenTx {
            raw: tx.at_home(),
            tx,
            layer: self.layer.clone(),
            scope: self.scope.clone(),
            level: self.level.clone(),
            handed: Handed::default().into(),
            ahead: Arc::clone(&self.ahead),
            running: AtomicUsize::new(0),
            is_inline: self.is_inline,
            locks_rows: self.locks_rows,
        }
    }

    /// The body of a part has ended well: its commit handler, if it has one.
    ///
    /// # Errors
    /// A lock is held by others, or it is over a limit.
    async fn conclude_part(&self, how: &ChildPlan) -> Result<Vec<HandlerCall>, Error> {
        self.scope.check()?;
        self.tx.check_parts()?;
        for (lock, mode) in &how.locks {
            self.take(lock.clone(), mode).await?;
        }
        self.check_row_locks(how)?;
        if how.locks_rows {
            self.scope.ask_for_rows();
        }
        let (handlers, mut calls) = {
            let mut handed = self.handed();
            (handed.handlers.clone(), std::mem::take(&mut handed.of_parts))
        };
        let on_commit = handlers.on_commit.or_else(|| how.handlers.on_commit.clone());
        let handlers = Handlers { on_abort: None, on_commit };
        self.layer.nesting.limits.check_handlers(&handlers)?;
        if let Some(call) = handlers.on_commit.as_ref().filter(|_| self.layer.reads_only()) {
            return Err(self.level.blame(Error::Nesting(format!(
                "an open child of a read-only transaction registers the commit handler `{}`, which \
                 would have to be written: run the transaction on a handle without `read_only`",
                call.name
            ))));
        }
        calls.extend(handlers.on_commit);
        Ok(calls)
    }

    /// The body of the outermost transaction has ended well, and its parts have commit handlers:
    /// they are written with what it wrote, for whoever runs them.
    pub(super) async fn write_of_parts(&self, calls: Vec<HandlerCall>) -> Result<(), Error> {
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
}
