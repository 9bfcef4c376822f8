//! The compensation of an open child that locks rows: what it wrote is put back.

use muesli_core::{SmallBytes, SpaceId};
use serde::{Deserialize, Serialize};

use super::level::{FoundDigest, WrittenRow};
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::{BodyFuture, Tx};

/// The name of the handler; no other one may have it.
pub(super) const PUT_BACK: &str = "muesli/put back";

/// A row as it was before a child wrote it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RowToPutBack {
    space: u16,
    key: Vec<u8>,
    /// `None`: absent.
    before: Option<Vec<u8>>,
    /// What the child left there.
    left: FoundDigest,
}

impl RowToPutBack {
    /// A row that a child has written.
    ///
    /// # Panics
    /// What it left there is not known, as an action changes it: a child that locks rows has none.
    pub fn new(row: WrittenRow) -> RowToPutBack {
        let WrittenRow { key: (SpaceId(space), key), before, left } = row;
        let before = before.map(|value| value.as_slice().to_vec());
        let left = left.expect("a child that locks rows does no actions");
        RowToPutBack { space, key: key.as_slice().to_vec(), before, left }
    }
}

/// The handler.
pub(super) fn put_back<'a>(tx: &'a Tx, arguments: &'a [u8]) -> BodyFuture<'a, ()> {
    Box::pin(async move {
        let rows: Vec<RowToPutBack> = postcard::from_bytes(arguments).map_err(|error| {
            Error::Codec(format!("handler `{PUT_BACK}`: its arguments are no rows: {error}"))
        })?;
        // They are in the order of their keys.
        for rows in rows.chunk_by(|one, next| one.space == next.space) {
            let space = Space::numbered(SpaceId(rows[0].space));
            let keys = rows.iter().map(|row| SmallBytes::from(&row.key[..]));
            let found = tx.get_many(space, keys).await?;
            for (row, found) in rows.iter().zip(found) {
                row.put_back(tx, space, found.as_ref()).await?;
            }
        }
        Ok(())
    })
}

impl RowToPutBack {
    async fn put_back(
        &self,
        tx: &Tx,
        space: Space,
        found: Option<&SmallBytes>,
    ) -> Result<(), Error> {
        let key = SmallBytes::from(&self.key[..]);
        if FoundDigest::of_value(found) != self.left {
            return Err(Error::Nesting(format!(
                "key `{key:?}` of space number {} is not as the open child left it that is to be \
                 compensated, although that holds a lock on it: it was written by somebody who \
                 locks no rows; the rest can be done once it is as the child left it",
                space.id.0
            )));
        }
        match &self.before {
            Some(value) => tx.put(space, key, &value[..]).await,
            None => tx.delete(space, key).await,
        }
    }
}
