//! The transaction by which a node exchanges what it knows with the others, in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use muesli_core::client::Task;
use muesli_core::{TxnOptions, client};

use super::{PoolRefusal, PoolReport, PooledComparison};
use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// What a row begins with: how the rest is written.
const FORMAT: u8 = 1;

/// How long an exchange may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Where the row of a call site is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::nesting_choice) struct PoolRow {
    pub space: Space,
    pub key: Arc<str>,
}

/// What came of an exchange.
pub(in crate::nesting_choice) type ExchangeResult =
    Result<Result<Option<PooledComparison>, PoolRefusal>, Error>;

impl PoolRow {
    /// Begins an exchange on this node; `then` is told what came of it.
    pub fn begin_exchange(
        &self,
        db: &Db,
        report: PoolReport,
        then: impl FnOnce(ExchangeResult) + Send + 'static,
    ) {
        let (row, database) = (self.clone(), db.inner.database);
        let mut db = db.session().timeout(TIMEOUT);
        (db.choice, db.checkpoints, db.options) = (None, false, TxnOptions::default());
        let exchange = async move || then(row.exchange(&db, &report).await);
        let make = move || Box::pin(async move { exchange().await }) as Task;
        client::with(database, |engine| engine.spawn(Box::new(make)));
    }

    async fn exchange(&self, db: &Db, report: &PoolReport) -> ExchangeResult {
        let exchange = async |tx: &Tx| {
            let row = tx.get(self.space, self.key.as_bytes()).await?;
            let row = match row.as_ref().map(|row| decode(row.as_slice())).transpose() {
                Ok(row) => row.flatten(),
                Err(refusal) => return Ok::<_, Error>(Err(refusal)),
            };
            let before = row.clone();
            let after = PooledComparison::after(row, report);
            if let Ok(Some(changed)) = &after
                && before.as_ref() != Some(changed)
            {
                tx.put(self.space, self.key.as_bytes(), encode(changed)?).await?;
            }
            Ok(after)
        };
        db.transact_here(exchange).await
    }
}

fn encode(comparison: &PooledComparison) -> Result<Vec<u8>, Error> {
    let bytes = postcard::to_extend(comparison, vec![FORMAT]);
    bytes.map_err(|error| Error::Codec(format!("the row of a nesting choice: {error}")))
}

/// What a row says; `None`: nothing that can be read.
///
/// # Errors
/// It was written by a program of another version.
fn decode(bytes: &[u8]) -> Result<Option<PooledComparison>, PoolRefusal> {
    match bytes.split_first() {
        Some((&FORMAT, rest)) => Ok(postcard::from_bytes(rest).ok()),
        Some(_) => Err(PoolRefusal::OtherFormat),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nesting_choice::NestingModel;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let models = vec![NestingModel::Flat, NestingModel::Closed, NestingModel::Open];
        let (now, attempt, slots) = (1_u64 << 60, Some(1_000_000), Vec::new());
        let report = PoolReport { now, number: 0, attempt, models, slots, refused: None };
        let row = PooledComparison::after(None, &report).unwrap().unwrap();
        let mut bytes = encode(&row).unwrap();
        assert!(bytes.len() < 1_000, "{}", bytes.len());
        assert_eq!(decode(&bytes), Ok(Some(row)));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Ok(None));
        assert_eq!(decode(&[]), Ok(None));
        bytes[0] += 1;
        assert_eq!(decode(&bytes), Err(PoolRefusal::OtherFormat));
    }
}
