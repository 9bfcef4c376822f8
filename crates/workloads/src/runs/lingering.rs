//! A client that leaves a transaction open for longer than its snapshot is kept for.
//!
//! # The problem
//! The transactions of workloads take milliseconds. No snapshot is held for so long that its lease
//! ends, unless a fault keeps its node silent; so most searches would never see what comes of that.
//!
//! # The idea
//! One client more begins a transaction, reads, waits until no repository has to keep the versions
//! of its snapshot any more, and reads the same again. Its second reads give the same, or the
//! transaction fails because its snapshot is too old: the judge of the history sees to it. It
//! writes nothing, and nobody counts it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use muesli::{Db, Error, Range, Transaction};
use muesli_core::catalog::Index;

use crate::workload::AnyWorkload;

/// So many rows of each ordered space are read.
const ROWS: usize = 3;

/// The client. Its transactions stay open for `open`; it ends after the one during which `stop`
/// was set.
pub(crate) async fn linger(
    db: Db,
    workload: &dyn AnyWorkload,
    open: Duration,
    stop: Rc<Cell<bool>>,
) {
    while !stop.get() {
        // What becomes of it is in the history.
        let _ = one(&db, workload, open).await;
    }
}

async fn one(db: &Db, workload: &dyn AnyWorkload, open: Duration) -> Result<(), Error> {
    let tx = db.begin().await?;
    read(db, workload, &tx).await?;
    db.sleep(open).await?;
    read(db, workload, &tx).await?;
    tx.commit().await
}

async fn read(db: &Db, workload: &dyn AnyWorkload, tx: &Transaction) -> Result<(), Error> {
    for (name, options) in workload.spaces(db.catalog_of_keys().repositories()) {
        if options.index == Index::Ordered {
            tx.scan(db.space(name)?, Range::all().limit(ROWS)).await?;
        }
    }
    Ok(())
}
