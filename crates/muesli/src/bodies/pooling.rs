//! The transaction by which a node exchanges what it knows of nesting models with the others.

use std::time::Duration;

use muesli_core::client::Task;
use muesli_core::{TxnOptions, client};

use crate::database::handle::Db;
use crate::error::Error;
use crate::nesting_choice::{ChoosingHandle, NestingChoice, PoolRow, RowChange, RowExchange};
use crate::transaction::tx::Tx;

/// How long an exchange may take.
const TIMEOUT: Duration = Duration::from_secs(2);

impl ChoosingHandle for Db {
    fn choice(&self) -> Option<&NestingChoice> {
        self.choice.as_ref()
    }

    fn database(&self) -> u64 {
        self.inner.database
    }

    fn exchanges(&self) -> Box<dyn RowExchange> {
        Box::new(self.clone())
    }
}

impl RowExchange for Db {
    fn begin_exchange(&self, row: &PoolRow, change: RowChange, then: Box<dyn FnOnce(bool) + Send>) {
        let (row, database) = (row.clone(), self.inner.database);
        let mut db = self.session().timeout(TIMEOUT);
        (db.choice, db.checkpoints, db.options) = (None, false, TxnOptions::default());
        let exchange = async move || {
            let body = async |tx: &Tx| {
                let read = tx.get(row.space, row.key.as_bytes()).await?;
                if let Some(bytes) = change(read.as_ref().map(|it| it.as_slice()))? {
                    tx.put(row.space, row.key.as_bytes(), bytes).await?;
                }
                Ok::<_, Error>(())
            };
            then(db.transact_here(body).await.is_ok());
        };
        let make = move || Box::pin(async move { exchange().await }) as Task;
        client::with(database, |engine| engine.spawn(Box::new(make)));
    }
}
