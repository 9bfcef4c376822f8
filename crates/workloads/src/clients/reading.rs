//! Reading many rows after a run, to check them.

use std::collections::BTreeMap;

use muesli::plans::PlanTable;
use muesli::procedures::Bytes;
use muesli::procedures::builtin::{Ranged, Scan};
use muesli::{Db, Error, Key, Place, SmallBytes, Space, Tx, TypedSpace};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// So many rows are read in one transaction.
const CHUNK: usize = 500;

/// Reads many keys, some in each transaction.
///
/// # Errors
/// What the database says.
pub(crate) async fn read_many(
    db: &Db,
    space: Space,
    keys: &[SmallBytes],
) -> Result<Vec<Option<SmallBytes>>, Error> {
    let strict = db.strict().read_only();
    let mut values = Vec::with_capacity(keys.len());
    for chunk in keys.chunks(CHUNK) {
        let read = async |tx: &Tx| tx.get_many(space, chunk.iter().cloned()).await;
        values.extend(strict.transact_here(read).await?);
    }
    Ok(values)
}

/// So many rows are read by one procedure.
const PAGE: usize = 1_000;

/// All rows that are at a place and whose keys begin like this, by procedures.
///
/// # Errors
/// What the database says.
pub(crate) async fn rows_at<K: Key, V: Serialize + DeserializeOwned>(
    db: &Db,
    space: TypedSpace<K, V>,
    at: &Place,
    prefix: &SmallBytes,
) -> Result<Vec<(K, V)>, Error> {
    let (mut rows, mut from) = (Vec::new(), prefix.clone());
    loop {
        let (lo, hi) = (Bytes(from), prefix.prefix_end().map(Bytes));
        let ranged = Ranged { space: space.raw(), lo, hi, reverse: false, limit: PAGE as u64 };
        let page = db.execute::<Scan>(at.clone(), &ranged).await?;
        for (key, value) in &page {
            let decoded = postcard::from_bytes(value.0.as_slice());
            let value = decoded.map_err(|error| Error::Codec(error.to_string()))?;
            rows.push((K::decoded(key.0.as_slice())?, value));
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE => from = last.0.successor(),
            _ => return Ok(rows),
        }
    }
}

/// The rows that a repository has of a table that is everywhere.
///
/// # Errors
/// What the database says.
pub(crate) async fn copy_at<K: Key + Ord, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    at: &Place,
) -> Result<BTreeMap<K, V>, Error> {
    let space = db.space(table.name)?.typed();
    Ok(rows_at(db, space, at, &SmallBytes::EMPTY).await?.into_iter().collect())
}

/// The rows of a table that belong to a unit, by the first columns of their keys.
///
/// # Errors
/// What the database says.
pub(crate) async fn rows_of<K: Key, V: Serialize + DeserializeOwned>(
    db: &Db,
    table: PlanTable<K, V>,
    unit: impl Key,
) -> Result<Vec<(K, V)>, Error> {
    let (space, first) = (db.space(table.name)?, unit.encoded());
    rows_at(db, space.typed(), &space.place(first.clone()), &first).await
}
