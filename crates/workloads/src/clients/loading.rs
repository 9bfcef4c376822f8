//! Writing the first data of a workload, in large transactions, each repeated until it is sure.
//!
//! Sessions may read snapshots as old as they like, from before other sessions' commits. So the
//! loader ends with a mark, and each client begins by reading it strictly: what its session reads
//! afterwards is not older than the mark, and the mark not older than the data.

use std::cell::Cell;

use muesli::procedures::Bytes;
use muesli::procedures::builtin::{PutMissing, Rows};
use muesli::{Abort, Db, Error, SmallBytes, Space, Tx};

/// At most so many keys are written in one transaction.
const BATCH: usize = 500;

/// No more keys are written in a transaction that writes so many bytes of values.
pub const BATCH_BYTES: usize = 1 << 20;

/// So many transactions that load are under way at a time.
pub const SIDE_BY_SIDE: usize = 8;

/// The space with the mark.
pub const SPACE: &str = "loaded";

const MARK: &str = "mark";

/// So often a client looks for the mark, each time with as many attempts as a transaction has: with
/// the default pauses some minutes.
const LOOKS_MAX: u32 = 1_000;

/// Sets the mark. Called by the session that has loaded the data.
///
/// # Errors
/// What the database says, unless trying again can help.
pub async fn mark_loaded(db: &Db) -> Result<(), Error> {
    let space = db.space(SPACE)?;
    insist(async || {
        let body = async |tx: &Tx| {
            tx.get(space, MARK).await?;
            tx.put(space, MARK, "").await
        };
        db.transact_here(body).await
    })
    .await
}

/// Whether the data were loaded before, by another run perhaps.
///
/// # Errors
/// What the database says, unless trying again can help.
pub async fn is_loaded(db: &Db) -> Result<bool, Error> {
    let Ok(space) = db.space(SPACE) else { return Ok(false) };
    let (strict, found) = (db.strict(), &Cell::new(false));
    let look = async |tx: &Tx| {
        found.set(tx.get(space, MARK).await?.is_some());
        Ok(())
    };
    insist(async || strict.transact_here(look).await).await?;
    Ok(found.get())
}

/// Waits until this session sees the data. The loader knows that its mark is committed before the
/// repositories that hold it do: one that is cut off learns it when the fault is over, and until
/// then a reader there finds no mark. A protocol that promises less than a strict order may not
/// show the mark at once either. So it is looked for again and again, with the pauses between
/// attempts of a transaction.
///
/// # Errors
/// What the database says, unless trying again can help; there is no mark after so many looks.
pub async fn see_loaded(db: &Db) -> Result<(), Error> {
    let (space, strict, absent) = (db.space(SPACE)?, db.strict(), &Cell::new(false));
    let look = async |tx: &Tx| {
        absent.set(tx.get(space, MARK).await?.is_none());
        let again = Error::Conflict { reason: Abort::StaleRead, attempts: 1 };
        if absent.get() { Err(again) } else { Ok(()) }
    };
    let looks = &Cell::new(0);
    insist(async || match strict.transact_here(look).await {
        Err(Error::Conflict { .. })
            if absent.get() && looks.replace(looks.get() + 1) >= LOOKS_MAX =>
        {
            Err(Error::Codec("the data were not loaded".to_owned()))
        }
        done => done,
    })
    .await
}

/// Does it until it is done, or cannot be.
pub async fn insist(act: impl AsyncFn() -> Result<(), Error>) -> Result<(), Error> {
    loop {
        match act().await {
            Err(Error::Conflict { .. } | Error::Timeout { .. } | Error::Unknown { .. }) => {}
            done => return done,
        }
    }
}

/// Writes those of `rows` whose keys are absent.
///
/// # Errors
/// What the database says, unless trying again can help.
pub async fn write_missing(
    db: &Db,
    space: Space,
    rows: impl Iterator<Item = (SmallBytes, SmallBytes)>,
) -> Result<(), Error> {
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let batch = next_batch(&mut rows, |(_, value)| value.len());
        // What is already there is left alone, so that repeating is harmless.
        insist(async || write_batch(db, space, &batch).await).await?;
    }
    Ok(())
}

/// The same by procedures, each batch at the repository of its first key, where all must live.
///
/// # Errors
/// What the database says, unless trying again can help.
pub async fn put_missing(
    db: &Db,
    space: Space,
    rows: impl Iterator<Item = (SmallBytes, SmallBytes)>,
) -> Result<(), Error> {
    let mut rows = rows.map(|(key, value)| (Bytes(key), Some(Bytes(value)))).peekable();
    while let Some((first, _)) = rows.peek() {
        let place = space.place(first.0.clone());
        let of_row = |(_, value): &(_, Option<Bytes>)| value.as_ref().map_or(0, |it| it.0.len());
        let batch = Rows { space, rows: next_batch(&mut rows, of_row) };
        insist(async || db.execute::<PutMissing>(place.clone(), &batch).await).await?;
    }
    Ok(())
}

/// The rows of the next transaction, at least one where there is one.
fn next_batch<R>(rows: &mut impl Iterator<Item = R>, bytes_of: impl Fn(&R) -> usize) -> Vec<R> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Some(row) = rows.next() else { break };
        bytes += bytes_of(&row);
        batch.push(row);
    }
    batch
}

async fn write_batch(
    db: &Db,
    space: Space,
    batch: &[(SmallBytes, SmallBytes)],
) -> Result<(), Error> {
    db.transact_here(async |tx| {
        let there = tx.get_many(space, batch.iter().map(|(key, _)| key.clone())).await?;
        for ((key, value), _) in batch.iter().zip(&there).filter(|(_, there)| there.is_none()) {
            tx.put(space, key.clone(), value.clone()).await?;
        }
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_in_rows_and_in_bytes() {
        let batches = |rows: usize, bytes: usize| {
            let mut rows = std::iter::repeat_n(bytes, rows);
            let batch = std::iter::from_fn(|| Some(next_batch(&mut rows, |it| *it).len()));
            batch.take_while(|it| *it > 0).collect::<Vec<_>>()
        };
        assert_eq!(batches(1_200, 1_000), [500, 500, 200]);
        assert_eq!(batches(25, 100_000), [11, 11, 3]);
        assert_eq!(batches(2, 2 * BATCH_BYTES), [1, 1]);
        assert_eq!(batches(0, 1), [0; 0]);
    }
}
