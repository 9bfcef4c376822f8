//! The database, in transactions of an import.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use muesli::{Db, Space, Tx};

use super::error::RdbImportError;
use super::parts::ImportPart;
use crate::keyspace::rows::{DATABASES, Id};
use crate::keyspace::scope::{Ids, KeyScope, header_row, mark_row};
use crate::keyspace::stop::CommandStop;
use crate::server::running::prepare;

/// The time, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The database that keys are imported into.
pub(super) struct ImportTarget {
    writers: Db,
    readers: Db,
    space: Space,
    /// The name under which keys are built that do not fit in one transaction: by chance, so that
    /// no key of a file or of another import has it.
    pub unfinished: Vec<u8>,
    /// The id that is given next.
    next_id: Id,
}

impl ImportTarget {
    pub fn open(db: &Db, space: &str) -> Result<ImportTarget, RdbImportError> {
        let (space, instance) = prepare(db, space)?;
        let next_id = Ids::of_instance(instance).next.get();
        let readers = db.strict().read_only();
        let unfinished = format!("muesli:import:{:016x}", fastrand::u64(..)).into_bytes();
        Ok(ImportTarget { writers: db.clone(), readers, space, unfinished, next_id })
    }

    /// Runs something as a transaction that writes.
    pub fn write<T: Send + 'static>(
        &mut self,
        body: impl AsyncFn(&KeyScope<'_>) -> Result<T, CommandStop> + Send + 'static,
    ) -> Result<T, RdbImportError> {
        let (answer, next_id) = run(&self.writers, self.space, self.next_id, body)?;
        self.next_id = next_id;
        Ok(answer)
    }

    /// Runs something as a transaction that only reads.
    pub fn read<T: Send + 'static>(
        &mut self,
        body: impl AsyncFn(&KeyScope<'_>) -> Result<T, CommandStop> + Send + 'static,
    ) -> Result<T, RdbImportError> {
        Ok(run(&self.readers, self.space, self.next_id, body)?.0)
    }

    /// Whether no database has a key.
    pub fn is_empty(&mut self) -> Result<bool, RdbImportError> {
        self.read(async move |scope| {
            for db in 0..DATABASES {
                if scope.keys(db as u8).await? > 0 {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// The keys of some parts that are there.
    pub fn existing(&mut self, parts: Vec<ImportPart>) -> Result<Vec<Vec<u8>>, RdbImportError> {
        self.read(async move |scope| {
            read_ahead(scope, &parts, false).await?;
            let mut existing = Vec::new();
            for ImportPart { db, key, .. } in parts.iter().filter(|it| it.is_first()) {
                if scope.header(*db, key).await?.is_some() {
                    existing.push(key.clone());
                }
            }
            Ok(existing)
        })
    }
}

/// Reads the headers of the keys of some parts, and whether somebody watches them, at once: what
/// reads them one by one afterwards in the same transaction need not ask for them.
pub(super) async fn read_ahead(
    scope: &KeyScope<'_>,
    parts: &[ImportPart],
    with_marks: bool,
) -> Result<(), CommandStop> {
    let mut rows = Vec::with_capacity(parts.len());
    for ImportPart { db, key, .. } in parts {
        let generation = scope.generation(*db).await?;
        rows.push(header_row(generation, key));
        rows.extend(with_marks.then(|| mark_row(generation, key)));
    }
    scope.tx.get_many(scope.space, rows).await?;
    Ok(())
}

/// Runs something as a transaction; the id that is given next then.
fn run<T: Send + 'static>(
    db: &Db,
    space: Space,
    next_id: Id,
    body: impl AsyncFn(&KeyScope<'_>) -> Result<T, CommandStop> + Send + 'static,
) -> Result<(T, Id), CommandStop> {
    db.blocking().transact(async move |tx: &Tx| {
        let ids = Ids { next: Cell::new(next_id) };
        let scope = KeyScope::new(tx, space, &ids, now_ms(), 1);
        let answer = body(&scope).await?;
        Ok((answer, ids.next.get()))
    })
}
