//! What workloads with open children have in common: the layer, and that nothing of it stays.

use std::time::Duration;

use muesli::open_nesting::{NestingRows, OpenNesting};
use muesli::{Db, Error, Index, SpaceOptions};

use super::NestingPlan;
use crate::check::Check;

impl NestingPlan {
    /// The space of the layer, where it needs one.
    pub(crate) fn space(&self) -> Option<(&'static str, SpaceOptions)> {
        let ordered = SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() };
        self.may_be_open().then_some((SPACE, ordered))
    }
}

/// The space of the layer.
const SPACE: &str = "open nesting";

/// At the end nobody runs any more who could make progress.
const IDLE: Duration = Duration::from_millis(20);
/// So often it is tried to finish what clients left that have vanished.
const TRIES: usize = 50;

/// The layer of a workload, without its handlers.
pub(crate) fn layer(plan: &NestingPlan, db: &Db) -> Result<OpenNesting, Error> {
    Ok(OpenNesting::new(db.space(SPACE)?).patience(plan.patience))
}

/// After a run: finishes what clients left that have vanished, and looks that nothing stays of it.
pub(crate) async fn check_finished(nesting: &OpenNesting, db: &Db) -> Result<Check, Error> {
    let (mut rows, mut left, mut failed) = (nesting.rows(db).await?, 0, None);
    for _ in 0..TRIES {
        if rows.scopes + rows.locks == 0 {
            break;
        }
        match nesting.finish_abandoned(db, IDLE).await {
            Ok(finished) => left += finished,
            Err(error @ Error::Unfinished { .. }) => failed = Some(error),
            Err(error) => return Err(error),
        }
        rows = nesting.rows(db).await?;
    }
    let NestingRows { scopes, locks, ends } = rows;
    let why = failed.map_or_else(String::new, |error| format!("; {error}"));
    let details = format!(
        "{left} left by clients, of others {ends} remembered, {scopes} transactions and {locks} \
         locks stay{why}"
    );
    Ok(Check { name: "open children are ended", ok: scopes + locks == 0, details })
}
