//! The database, in transactions of an import.

use std::cell::Cell;
use std::time::Duration;

use muesli::{Db, Space, Tx};

use super::error::{RdbImportError, shown};
use super::parts::ImportPart;
use crate::clock::now_ms;
use crate::keyspace::rows::{DATABASES, Id};
use crate::keyspace::scope::{Ids, KeyScope, header_row, mark_row};
use crate::keyspace::stop::CommandStop;
use crate::server::running::prepare;

/// An import counts in a row of this number, which no server counts in: where a lone one serves
/// clients meanwhile, they would all change one row otherwise.
const IMPORT_STRIPE: u8 = 64;
/// A transaction may take so long, with all its attempts.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The one that takes an unfinished key away may take so long.
const TIMEOUT_TO_CLEAR: Duration = Duration::from_secs(10);

/// The database that keys are imported into.
pub(super) struct ImportTarget {
    writers: Db,
    readers: Db,
    space: Space,
    /// The name under which keys are built that do not fit in one transaction: by chance, so that
    /// no key of a file or of another import has it.
    pub unfinished: Vec<u8>,
    /// The database in which it may be.
    pub unfinished_in: Option<u8>,
    /// The id that is given next.
    next_id: Id,
}

impl ImportTarget {
    pub fn open(db: &Db, space: &str) -> Result<ImportTarget, RdbImportError> {
        let (space, instance) = prepare(db, space)?;
        let next_id = Ids::of_instance(instance).next.get();
        let writers = db.timeout(TIMEOUT);
        let readers = writers.strict().read_only();
        let unfinished = format!("muesli:import:{:016x}", fastrand::u64(..)).into_bytes();
        let unfinished_in = None;
        Ok(ImportTarget { writers, readers, space, unfinished, unfinished_in, next_id })
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

    /// Takes the key away whose building was begun and cannot go on, if that succeeds; otherwise it
    /// expires.
    pub fn clear_unfinished(&mut self) {
        let Some(db) = self.unfinished_in.take() else { return };
        let unfinished = self.unfinished.clone();
        self.writers = self.writers.timeout(TIMEOUT_TO_CLEAR);
        let _ = self.write(async move |scope| {
            let mut built = scope.entry(db, &unfinished).await?;
            scope.remove(&mut built).await
        });
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

    /// The keys of some parts that are there, as they are shown.
    pub fn existing(&mut self, parts: Vec<ImportPart>) -> Result<Vec<String>, RdbImportError> {
        self.read(async move |scope| {
            read_ahead(scope, &parts, false).await?;
            let mut existing = Vec::new();
            let begun = parts.iter().filter(|it| it.is_first() && !it.is_empty());
            for ImportPart { db, key, .. } in begun {
                if scope.header(*db, key).await?.is_some() {
                    existing.push(shown(*db, key));
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
        let scope = KeyScope::new(tx, space, &ids, now_ms(), 1).in_stripe(IMPORT_STRIPE);
        let answer = body(&scope).await?;
        Ok((answer, ids.next.get()))
    })
}

#[cfg(test)]
mod tests {
    use muesli::{Options, Range};

    use super::*;
    use crate::keyspace::rows::{RowKey, tag};

    #[test]
    fn keys_are_counted_in_a_row_that_no_server_counts_in() {
        let db = Db::open(Options::default()).unwrap();
        let mut target = ImportTarget::open(&db, "redis").unwrap();
        let counted = target.write(async move |scope| {
            let mut entry = scope.entry(0, b"key").await?;
            scope.set_string(&mut entry, b"1", None).await?;
            let all = RowKey::new(tag::COUNT).number(0).done();
            let rows = scope.scan(Range::prefix(all.as_slice())).await?;
            let stripes = rows.iter().filter_map(|it| it.0.as_slice().last().copied());
            Ok((stripes.collect::<Vec<_>>(), scope.keys(0).await?))
        });
        assert_eq!(counted.unwrap(), (vec![IMPORT_STRIPE], 1));
    }
}
