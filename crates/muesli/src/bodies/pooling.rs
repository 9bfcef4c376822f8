//! The transactions by which a node exchanges what it knows of nesting models with the others.

use std::time::Duration;

use muesli_core::client::{AnswerFuture, Task};
use muesli_core::{TxnOptions, client};

use crate::database::handle::Db;
use crate::error::Error;
use crate::nesting_choice::{
    ChoosingHandle, NestingChoice, NextReport, PoolRow, RowChange, RowExchange,
};
use crate::time::nanos;
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

    fn exchanges(&self) -> Option<Box<dyn RowExchange>> {
        // Where nothing can be written there is nobody to choose with.
        (!self.is_alone()).then(|| Box::new(self.clone()) as Box<dyn RowExchange>)
    }
}

impl RowExchange for Db {
    fn begin_reports(&self, row: &PoolRow, mut next: Box<dyn FnMut() -> NextReport + Send>) {
        let (row, database) = (row.clone(), self.inner.database);
        let mut own = self.independent().timeout(TIMEOUT);
        // As strict as what it chooses for: a history of strict transactions has these, too.
        own.options = TxnOptions { strict: self.options.strict, ..TxnOptions::default() };
        let own = own.downgrade();
        let mut reports = async move || {
            loop {
                match next() {
                    NextReport::Exchange(change, end) => match own.upgrade() {
                        Some(db) => end(exchange(&db, &row, change).await.is_ok()),
                        None => return,
                    },
                    NextReport::After(length) => {
                        let op = client::with(database, |engine| engine.sleep(nanos(length)));
                        let Some(op) = op else { return };
                        if AnswerFuture::new(database, op).await.is_err() {
                            return;
                        }
                    }
                    NextReport::Nothing => return,
                }
            }
        };
        let make = move || Box::pin(async move { reports().await }) as Task;
        client::with(database, |engine| engine.spawn(Box::new(make)));
    }
}

/// Changes a row in a transaction of its own.
async fn exchange(db: &Db, row: &PoolRow, change: RowChange) -> Result<(), Error> {
    let body = async |tx: &Tx| {
        let read = tx.get(row.space, row.key.as_bytes()).await?;
        if let Some(bytes) = change(read.as_ref().map(|it| it.as_slice()))? {
            tx.put(row.space, row.key.as_bytes(), bytes).await?;
        }
        Ok::<_, Error>(())
    };
    db.transact_here(body).await
}
