//! What a snapshot shows that may still be undone.

use std::collections::BTreeMap;

use muesli_core::SmallBytes;
use serde::de::DeserializeOwned;

use super::OpenNesting;
use crate::data::byte_range::Range;
use crate::error::Error;
use crate::open_nesting::rows::{END, SCOPE, ScopeEnd, ScopeId, ScopeRow, decode, scope_of};
use crate::transaction::tx::Tx;

impl OpenNesting {
    /// The arguments of all compensations by this handler that would be run if the transactions
    /// with open children that have not committed were aborted, as this transaction sees them. It
    /// sees what those open children did, too: without that, what it has read is what committed
    /// transactions left.
    ///
    /// For transactions that read so much that locks for it would be in everybody's way: they take
    /// none, read what they want and this in one snapshot, and compute what would be there after
    /// the compensations. Two ranges of the layer's space are read, so that a transaction which
    /// writes conflicts with every open child. It is asked in a transaction that has no open
    /// children.
    ///
    /// # Errors
    /// [`Error::Codec`]: somebody else wrote the arguments, or the rows; what [`Tx`] says.
    pub async fn undecided<A: DeserializeOwned>(
        &self,
        tx: &Tx,
        handler: &str,
    ) -> Result<Vec<A>, Error> {
        let space = self.rows.space;
        let scopes = tx.scan(space, Range::prefix([SCOPE])).await?;
        let ends = tx.scan(space, Range::prefix([END])).await?;
        let end = |(key, row): &(SmallBytes, SmallBytes)| {
            Ok::<(ScopeId, ScopeEnd), Error>((scope_of(key)?, decode(key, row)?))
        };
        let ends: BTreeMap<ScopeId, ScopeEnd> = ends.iter().map(end).collect::<Result<_, _>>()?;
        let mut undecided = Vec::new();
        for (key, row) in &scopes {
            if ends.get(&scope_of(key)?) == Some(&ScopeEnd::Committed) {
                continue;
            }
            let row: ScopeRow = decode(key, row)?;
            let calls = row.records.iter().filter_map(|record| record.on_abort.as_ref());
            for call in calls.filter(|call| call.name == handler) {
                undecided.push(postcard::from_bytes(&call.arguments).map_err(|error| {
                    let text = format!("arguments of handler `{handler}`: {error}");
                    Error::Codec(text)
                })?);
            }
        }
        Ok(undecided)
    }
}
