//! Writing the first data of a workload, in large transactions, each repeated until it is sure.

use muesli::{Db, Error, SmallBytes, Space};

/// So many keys are written in one transaction.
const BATCH: usize = 500;

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
        let batch: Vec<_> = rows.by_ref().take(BATCH).collect();
        loop {
            match write_batch(db, space, &batch).await {
                // What is already there is left alone, so that repeating is harmless.
                Err(Error::Conflict { .. } | Error::Timeout { .. } | Error::Unknown { .. }) => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
    }
    Ok(())
}

async fn write_batch(
    db: &Db,
    space: Space,
    batch: &[(SmallBytes, SmallBytes)],
) -> Result<(), Error> {
    db.transact_here(|tx| async move {
        let there = tx.get_many(space, batch.iter().map(|(key, _)| key.clone())).await?;
        for ((key, value), _) in batch.iter().zip(&there).filter(|(_, there)| there.is_none()) {
            tx.put(space, key.clone(), value.clone()).await?;
        }
        Ok(())
    })
    .await
}
