//! Abstract locks: taken by open children, and looked at where there are none.

use crate::error::Error;
use crate::open_nesting::child::OpenTx;
use crate::open_nesting::handed::{lock_name, pass_conflict};
use crate::open_nesting::layer::{Layer, NestingSwitch};
use crate::open_nesting::locks::{LockMode, LockRow};
use crate::open_nesting::rows::{HeldLock, ScopeId, lock_key};
use crate::open_nesting::scope::TakenLock;
use crate::transaction::tx::Tx;

impl Layer {
    /// For tests: what must not be done, locks that a child takes after its commit.
    pub(in crate::open_nesting) async fn take_locks_late(
        &self,
        scope: ScopeId,
        asked: Vec<(Vec<u8>, LockMode)>,
    ) {
        if asked.is_empty() {
            return;
        }
        let rows = self.nesting.rows;
        let take = async |tx: &Tx| {
            for (id, mode) in &asked {
                let key = lock_key(id);
                let row: Option<LockRow> = rows.read(tx, key.clone()).await?;
                let mut row = row.unwrap_or_else(|| LockRow::free(mode));
                row.add(scope, mode);
                rows.write(tx, key, &row).await?;
            }
            Ok(())
        };
        let _ = self.until_done(take).await;
    }
}

impl OpenTx {
    pub(super) async fn take(&self, lock: HeldLock, mode: &LockMode) -> Result<(), Error> {
        let taken = self.take_lock(&lock, mode).await;
        pass_conflict(&self.raw, &self.tx);
        taken?;
        let HeldLock { id, hold } = lock;
        self.handed().locks.push(TakenLock { id, modes: mode.bit(), hold });
        Ok(())
    }

    async fn take_lock(&self, lock: &HeldLock, mode: &LockMode) -> Result<(), Error> {
        let nesting = &self.layer.nesting;
        if self.is_inline {
            nesting.limits.check_lock(&lock.id)?;
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
        nesting.limits.check_lock(&lock.id)?;
        if *mode == LockMode::read() && !nesting.holds(NestingSwitch::LockReads) {
            return Ok(());
        }
        let (rows, key) = (nesting.rows, lock_key(&lock.id));
        self.level.note_lock(&key)?;
        let row = self.read(&key).await?;
        let mut row = row.unwrap_or_else(|| LockRow::free(mode));
        let conflict = row.conflict(mode, &scope.chain_ids()).map_err(|error| {
            let text = format!("abstract lock `{}`: {error}", name());
            self.scope.level.blame(Error::Nesting(text))
        })?;
        if let Some(holder) = conflict.filter(|_| nesting.holds(NestingSwitch::CheckLocks)) {
            let error = Error::LockRefused { lock: name(), holder: holder.to_string() };
            self.scope.refuse(holder, &error);
            return Err(error);
        }
        if !nesting.holds(NestingSwitch::LockInCommit) {
            self.scope.ask_for(&lock.id, mode);
        } else if row.add(scope.id, mode) {
            rows.write(&self.raw, key, &row).await?;
        }
        Ok(())
    }

    /// Parts take no lock: they are isolated by their transaction, where nobody else holds a lock
    /// that they asked for who has committed something of which it is not known whether it stays.
    /// That this is so are reads of the transaction like any other: of locks that were known when
    /// their parts began, while these ran, and one for all others when its body has ended, well or
    /// not.
    ///
    /// # Errors
    /// [`Error::LockRefused`]: it is to be run again. [`Error::Nesting`]; what
    /// [`Tx`](crate::Tx) says.
    pub(in crate::open_nesting) async fn look_at_locks(&self) -> Result<(), Error> {
        let mut asked = self.scope.take_asked();
        self.layer.nesting.limits.check_scope(0, asked.len())?;
        if self.scope.take_asked_for_rows() {
            asked.append(&mut self.row_locks(&self.level.used_rows())?);
        }
        if asked.is_empty() || self.tx.conflict().is_some() {
            return Ok(());
        }
        let mut found = std::mem::take(&mut self.handed().found);
        let keys = asked.iter().map(|(id, _)| lock_key(id));
        let unknown = keys.filter(|key| !found.has(key)).collect();
        let read = self.layer.nesting.rows.read_all(&self.raw, unknown).await;
        pass_conflict(&self.raw, &self.tx);
        found.append(read?);
        // One lock may be asked for in two modes.
        for (id, mode) in &asked {
            let Some(row) = found.look::<LockRow>(&lock_key(id))? else { continue };
            let conflict = row.conflict(mode, &[]).map_err(|error| {
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
}
