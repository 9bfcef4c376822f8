//! Transactions whose parts no inverse is known of: as open children they lock the rows that they
//! use, and what they wrote is put back.
//!
//! So the whole transaction is isolated as a flat one is, if all its accesses are in parts: what
//! is none otherwise is one here, too ([`NestingPlan::rest`]).

use std::ops::Deref;

use muesli::open_nesting::{NestingLimits, OpenNesting, OpenTx};
use muesli::{Db, Error, Tx};
use muesli_core::NodeId;

use crate::nesting::{NestingPlan, open_layer};
use crate::parameters::{Parameter, ParameterKind};
use crate::workload::{transact, transact_nested};

/// What workloads take whose parts are undone by the rows that they wrote.
pub const NESTING_BY_ROWS: Parameter = Parameter::new(
    "nesting",
    "flat",
    ParameterKind::Choice(&["flat", "closed", "checkpoints", "open", "auto"]),
    "Whether parts of a transaction are run again with all of it (flat), as children (closed), \
     from a checkpoint before each of them (checkpoints), or committed at once, under locks on \
     the rows that they use, which are put back if it is aborted (open); or as is found to be \
     the better of flat and closed (auto).",
);

/// Rows that the parts of one transaction use, and so many parts at most.
const LOCKS: usize = 100_000;
/// Bytes of the rows that one part writes.
const PUT_BACK_BYTES: usize = 1 << 20;

/// A running transaction with parts.
#[derive(Clone, Copy, Debug)]
pub struct PartsTx<'a> {
    tx: &'a Tx,
    /// Where parts are open children.
    open: Option<&'a OpenTx>,
}

impl PartsTx<'_> {
    /// Whether its parts are open children, and all that it does is to be in parts.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

impl Deref for PartsTx<'_> {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        self.tx
    }
}

impl<'a> From<&'a Tx> for PartsTx<'a> {
    /// One that is a part itself.
    fn from(tx: &'a Tx) -> PartsTx<'a> {
        PartsTx { tx, open: None }
    }
}

/// The handle for transactions with parts.
#[derive(Clone, Debug)]
pub struct PartsDb {
    db: Db,
    layer: Option<OpenNesting>,
}

impl Deref for PartsDb {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

impl PartsDb {
    /// As [`transact`](crate::workload::transact).
    pub async fn transact<T>(
        &self,
        body: impl AsyncFn(PartsTx<'_>) -> Result<T, Error>,
    ) -> (Result<T, Error>, u32) {
        match &self.layer {
            Some(layer) => {
                let open = async |tx: &OpenTx| body(PartsTx { tx, open: Some(tx) }).await;
                transact_nested(&self.db, layer, open).await
            }
            None => transact(&self.db, async |tx: &Tx| body(PartsTx::from(tx)).await).await,
        }
    }
}

impl NestingPlan {
    /// Whether what is to be delayed is: not before rows that are to be put back.
    pub fn delays(&self, wanted: bool) -> bool {
        wanted && !self.may_be_open()
    }

    /// The handle for transactions of a node's clients at one place of the workload.
    ///
    /// # Errors
    /// The layer's space is not there.
    pub fn parts_handle(
        &self,
        node: NodeId,
        db: &Db,
        place: &'static str,
    ) -> Result<PartsDb, Error> {
        Ok(PartsDb { db: self.handle(node, db, place), ..self.whole_handle(db)? })
    }

    /// The same for transactions that have no parts.
    ///
    /// # Errors
    /// As there.
    pub fn whole_handle(&self, db: &Db) -> Result<PartsDb, Error> {
        let limits = NestingLimits {
            children: LOCKS,
            locks: LOCKS,
            argument_bytes: PUT_BACK_BYTES,
            ..Default::default()
        };
        let layer = || {
            let layer = open_layer::layer(self, db)?.limits(limits);
            Ok::<_, Error>(self.broken().into_iter().fold(layer, OpenNesting::without))
        };
        let layer = self.may_be_open().then(layer).transpose()?;
        Ok(PartsDb { db: db.clone(), layer })
    }

    /// Runs a part of a transaction.
    ///
    /// # Errors
    /// As the part.
    pub async fn part<T>(
        &self,
        tx: PartsTx<'_>,
        part: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match tx.open {
            Some(open) => {
                let child = async |child: &OpenTx| part(child).await;
                open.open_atomic((), child).with_row_locks().await
            }
            None => self.run(tx.tx, part).await,
        }
    }

    /// Runs what is no part, unless all that a transaction does has to be in parts.
    ///
    /// # Errors
    /// As what is run.
    pub async fn rest<T>(
        &self,
        tx: PartsTx<'_>,
        rest: impl AsyncFn(&Tx) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match tx.is_open() {
            true => self.part(tx, rest).await,
            false => rest(tx.tx).await,
        }
    }
}
