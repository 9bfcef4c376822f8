//! Reading many rows after a run, to check them.

use muesli::{Db, Error, SmallBytes, Space, Tx};

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
