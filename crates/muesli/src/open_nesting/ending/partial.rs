//! The end of a part of a scope: a closed child was undone, with the open children within it.
//!
//! Which of the scope's records are theirs tell the numbers: no other open child ran meanwhile.
//! They are compensated as those of a scope that is aborted, newest first, each in one transaction
//! with the removal of its record; the scope's end stays undecided. Then the locks go that nobody
//! took before. Which these are only the client knows, and only the client does this: if it stops
//! in the middle, whoever finishes the scope aborts all of it, and finds what is left in the row.

use super::Finish;
use crate::error::Error;
use crate::open_nesting::layer::counts::count;
use crate::open_nesting::layer::{Layer, NestingSwitch};
use crate::open_nesting::locks::LockRow;
use crate::open_nesting::rows::{
    KnownRow, OpenScopes, ScopeEnd, ScopeId, ScopeRow, end_key, lock_key, open_key, scope_key,
};
use crate::open_nesting::scope::{LeftLock, NestingScope, ScopeMark};
use crate::transaction::tx::Tx;

impl Layer {
    /// Undoes what the open children of a running scope did from a mark on; false: somebody has
    /// ended the scope, and does that.
    ///
    /// # Errors
    /// [`Error::Unfinished`]: not all of it could be done.
    pub async fn undo_from(&self, scope: &NestingScope, from: ScopeMark) -> Result<bool, Error> {
        assert!(scope.is_certain_within(), "nothing of it is under way: {scope:?}");
        let done = self.undo_all_from(scope, from).await;
        done.map_err(|error| Error::unfinished(scope.id, error))
    }

    async fn undo_all_from(&self, scope: &NestingScope, from: ScopeMark) -> Result<bool, Error> {
        let (id, from, left) = (scope.id, from.children, scope.without_from(from));
        let has_row = scope.children() > 0;
        let look = async |tx: &Tx| self.look_at_running(tx, id, has_row).await;
        let running = self.until_done(look).await?;
        let Some((mut row, open)) = running else { return Ok(false) };
        let certain = true; // Its own transaction looks whether it was ended by others.
        let within = Finish { own: false, has_children: false, certain, depth: 1 };
        for child in open {
            self.finish(child, within).await?;
        }
        let early = !self.nesting.holds(NestingSwitch::ReleaseLast);
        if early {
            self.until_done(async |tx| self.release_left(tx, id, &left).await).await?;
        }
        while let Some(at) = self.next_from(&row, from) {
            let record = &row.records[at];
            if let Some(child) = record.scope {
                self.finish(child, within).await?;
            }
            let number = record.number;
            let db = self.db_for_handlers(id, ScopeEnd::Aborted);
            let step = async |tx: &Tx| self.step_back(tx, id, from, number).await;
            let Some((left, has_run)) = self.until_done_on(&db, step).await? else {
                return Ok(false);
            };
            row = left;
            if has_run {
                count(&self.nesting.counters.compensations);
            }
        }
        if row.records.iter().all(|record| record.number < from) && left.is_empty() {
            return Ok(true);
        }
        self.until_done(async |tx| self.end_part(tx, id, from, &left).await).await
    }

    /// A scope's row, which it has where a child of its committed, and its open children that have
    /// open children; `None`: it was ended.
    async fn look_at_running(
        &self,
        tx: &Tx,
        id: ScopeId,
        has_row: bool,
    ) -> Result<Option<(ScopeRow, Vec<ScopeId>)>, Error> {
        let keys = vec![scope_key(id), end_key(id), open_key(id)];
        let mut found = self.nesting.rows.read_all(tx, keys).await?;
        let OpenScopes(open) = found.row(&open_key(id))?.unwrap_or_default();
        let row: Option<ScopeRow> = found.row(&scope_key(id))?;
        let end: Option<ScopeEnd> = found.row(&end_key(id))?;
        let is_running = end.is_none() && (row.is_some() || !has_row);
        Ok(is_running.then(|| (row.unwrap_or_default(), open)))
    }

    /// Which record from a number on is to be worked on next.
    fn next_from(&self, row: &ScopeRow, from: u64) -> Option<usize> {
        let first = row.records.partition_point(|record| record.number < from);
        let records = row.records[first..].to_vec();
        let part = ScopeRow { records, ..ScopeRow::default() };
        self.next(&part, ScopeEnd::Aborted).map(|at| first + at)
    }

    /// Runs the compensation of a record, if it is still the next one, and removes it. What is left
    /// of the scope, and whether there was a compensation; `None`: the scope was ended.
    async fn step_back(
        &self,
        tx: &Tx,
        id: ScopeId,
        from: u64,
        number: u64,
    ) -> Result<Option<(ScopeRow, bool)>, Error> {
        let Some((mut row, _)) = self.look_at_running(tx, id, true).await? else { return Ok(None) };
        let at = self.next_from(&row, from).filter(|at| row.records[*at].number == number);
        let Some(at) = at else { return Ok(Some((row, false))) };
        let record = row.records.remove(at);
        row.progress += 1;
        self.nesting.rows.write(tx, scope_key(id), &row).await?;
        if let Some(call) = &record.on_abort {
            self.run(tx, call).await?;
        }
        Ok(Some((row, record.on_abort.is_some())))
    }

    /// Nothing of the part is left to be compensated: its records go, and the locks that were taken
    /// in it; false: the scope was ended.
    async fn end_part(
        &self,
        tx: &Tx,
        id: ScopeId,
        from: u64,
        left: &[LeftLock],
    ) -> Result<bool, Error> {
        let Some((mut row, _)) = self.look_at_running(tx, id, true).await? else {
            return Ok(false);
        };
        assert_eq!(self.next_from(&row, from), None, "nobody else adds records: {row:?}");
        row.records.retain(|record| record.number < from);
        row.locks.retain_mut(|held| {
            let Some(lock) = left.iter().find(|lock| lock.id == held.id) else { return true };
            held.hold = lock.hold;
            lock.modes != 0
        });
        row.progress += 1;
        row.assert_invariants();
        self.nesting.rows.write(tx, scope_key(id), &row).await?;
        self.release_left(tx, id, left).await?;
        Ok(true)
    }

    /// Leaves a scope with these modes of its locks.
    async fn release_left(&self, tx: &Tx, id: ScopeId, left: &[LeftLock]) -> Result<(), Error> {
        let rows = self.nesting.rows;
        let keys = left.iter().map(|lock| lock_key(&lock.id)).collect();
        let mut found = rows.read_all(tx, keys).await?;
        for lock in left {
            let key = lock_key(&lock.id);
            let KnownRow::Row(Some(mut row)) = found.take::<LockRow>(&key)? else { continue };
            row.keep_modes(id, lock.modes);
            match row.is_free() {
                true => rows.delete(tx, key).await?,
                false => rows.write(tx, key, &row).await?,
            }
        }
        Ok(())
    }
}
