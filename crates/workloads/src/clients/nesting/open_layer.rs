//! What workloads with open children have in common: the layer, and that nothing of it stays.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use muesli::open_nesting::{NestingCounts, NestingRows, OpenNesting};
use muesli::{Db, Error, Index, SpaceOptions};

use super::NestingPlan;
use crate::check::Check;

impl NestingPlan {
    /// The space of the layer, where it needs one.
    pub(crate) fn space(&self) -> Option<(&'static str, SpaceOptions)> {
        let ordered = SpaceOptions { index: Index::Ordered, ..SpaceOptions::default() };
        self.may_be_open().then_some((SPACE, ordered))
    }

    /// After a run, where open children lock rows: finishes what clients left that have vanished,
    /// and looks that nothing stays.
    ///
    /// # Errors
    /// What the database says.
    pub(crate) async fn check_ended(&self, db: &Db) -> Result<Option<Check>, Error> {
        if !self.may_be_open() {
            return Ok(None);
        }
        check_finished(&layer(self, db)?, db).await.map(Some)
    }
}

/// The layers of a workload's clients, which count together.
#[derive(Debug, Default)]
pub(super) struct CountedLayers(Mutex<Option<OpenNesting>>);

impl CountedLayers {
    fn first(&self) -> MutexGuard<'_, Option<OpenNesting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, layer: OpenNesting) -> OpenNesting {
        let mut first = self.first();
        match &*first {
            Some(first) => layer.counting_with(first),
            None => first.insert(layer).clone(),
        }
    }

    /// What they have counted; `None`: there are none.
    pub fn counts(&self) -> Option<NestingCounts> {
        self.first().as_ref().map(OpenNesting::counts)
    }

    /// That in words.
    pub fn notes(&self) -> Vec<String> {
        let Some(counts) = self.counts().filter(|counts| counts.children > 0) else {
            return Vec::new();
        };
        let NestingCounts { children, refused, compensations, commit_handlers, .. } = counts;
        let mut notes = vec![format!(
            "open children: {children} committed, {refused} locks refused, {compensations} \
             compensations and {commit_handlers} commit handlers run, {} transactions of others \
             finished",
            counts.taken_over
        )];
        let times = [("committed", &counts.committed), ("aborted", &counts.aborted)];
        for (which, times) in times.into_iter().filter(|(_, times)| times.attempts > 0) {
            let each = |time: Duration| time.as_secs_f64() * 1e3 / times.attempts as f64;
            notes.push(format!(
                "{} attempts {which}, {:.2} ms each: {:.2} in bodies of open children, {:.2} in \
                 their commits, {:.2} in those that were run again, {:.2} until locks were \
                 released, {:.2} besides",
                times.attempts,
                each(times.all),
                each(times.bodies),
                each(times.commits),
                each(times.lost),
                each(times.ending),
                each(times.own())
            ));
        }
        let aborted: Vec<_> =
            (1..).zip(counts.aborted_by).filter(|(_, times)| *times > 0).collect();
        if !aborted.is_empty() {
            let each = aborted.iter().map(|(child, times)| format!("{child}: {times}"));
            let each = each.collect::<Vec<_>>().join(", ");
            notes.push(format!(
                "aborted by a lock refused to the open child of this number: {each}"
            ));
        }
        notes
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
    Ok(plan.counted.add(OpenNesting::new(db.space(SPACE)?).patience(plan.patience)))
}

/// After a run: finishes what clients left that have vanished, and looks that nothing stays of it.
pub(crate) async fn check_finished(nesting: &OpenNesting, db: &Db) -> Result<Check, Error> {
    let (mut rows, mut left, mut failed) = (nesting.rows(db).await?, 0, None);
    for _ in 0..TRIES {
        if rows.scopes + rows.locks + rows.parents == 0 {
            break;
        }
        match nesting.finish_abandoned(db, IDLE).await {
            Ok(finished) => left += finished,
            Err(error @ Error::Unfinished { .. }) => failed = Some(error),
            Err(error) => return Err(error),
        }
        rows = nesting.rows(db).await?;
    }
    let NestingRows { scopes, locks, parents, ends } = rows;
    let why = failed.map_or_else(String::new, |error| format!("; {error}"));
    let details = format!(
        "{left} left by clients, of others {ends} remembered, {scopes} transactions and {locks} \
         locks stay{why}"
    );
    Ok(Check { name: "open children are ended", ok: scopes + locks + parents == 0, details })
}
