//! What a node tells the others of the nesting models, by a task beside its transactions.
//!
//! The task begins with a transaction, sleeps until it is time to tell of a slot, and ends when no
//! transaction runs any more: so what slow transactions do is told in time as well, none of which
//! begins or ends for many slots. What is left to be told then, the next task tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use muesli_core::client;

use super::PoolReport;
use super::exchange::{ExchangeResult, NextReport, RowExchange, exchange};
use super::member::ReportTime;
use crate::nesting_choice::NestingChoice;

/// What the task of a choice does next; dropped, there is none.
struct ReportTask {
    choice: NestingChoice,
    database: u64,
    is_over: bool,
}

/// An exchange, whose end the choice is told in any case.
struct RunningExchange {
    choice: NestingChoice,
    database: u64,
    found: Arc<Mutex<Option<ExchangeResult>>>,
    is_committed: bool,
}

/// Begins the task of a choice in a database, if nodes choose together and there is none.
pub(in crate::nesting_choice) fn begin(
    choice: &NestingChoice,
    database: u64,
    exchanges: impl FnOnce() -> Option<Box<dyn RowExchange>>,
) {
    let Some(row) = &choice.row else { return };
    {
        let mut state = choice.state();
        if state.reports || !state.policy.as_ref().is_some_and(|it| it.pools()) {
            return;
        }
        state.reports = true;
    }
    // Before there is a reason to end: dropped, it says that there is no task.
    let mut task = ReportTask { choice: choice.clone(), database, is_over: false };
    if let Some(exchanges) = exchanges() {
        exchanges.begin_reports(row, Box::new(move || task.next()));
    }
}

impl ReportTask {
    fn next(&mut self) -> NextReport {
        let Some(now) = client::with(self.database, |engine| engine.now()) else {
            return NextReport::Nothing;
        };
        let mut state = self.choice.state();
        let time = state.policy.as_mut().map_or(ReportTime::Never, |it| it.report(now));
        state.note_decision();
        match time {
            ReportTime::Now(report) => {
                drop(state);
                self.exchange(report)
            }
            ReportTime::After(length) => NextReport::After(Duration::from_nanos(length)),
            ReportTime::Never => {
                // From now on a transaction that begins is to begin another task.
                (state.reports, self.is_over) = (false, true);
                NextReport::Nothing
            }
        }
    }

    fn exchange(&self, report: PoolReport) -> NextReport {
        let found = Arc::new(Mutex::new(None));
        let (choice, database) = (self.choice.clone(), self.database);
        let finds = found.clone();
        let running = RunningExchange { choice, database, found, is_committed: false };
        let change = move |bytes: Option<&[u8]>| {
            let (after, bytes) = exchange(bytes, &report)?;
            *finds.lock().unwrap_or_else(|broken| broken.into_inner()) = Some(after);
            Ok(bytes)
        };
        NextReport::Exchange(Box::new(change), Box::new(move |it| running.ended(it)))
    }
}

impl Drop for ReportTask {
    fn drop(&mut self) {
        if !self.is_over {
            self.choice.state().reports = false;
        }
    }
}

impl RunningExchange {
    fn ended(mut self, is_committed: bool) {
        self.is_committed = is_committed;
    }
}

impl Drop for RunningExchange {
    fn drop(&mut self) {
        let found = self.found.lock().unwrap_or_else(|broken| broken.into_inner()).take();
        let now = client::with(self.database, |engine| engine.now());
        let mut state = self.choice.state();
        if let Some(policy) = &mut state.policy {
            let now = now.unwrap_or(policy.counted());
            policy.exchanged(now, found.filter(|_| self.is_committed));
        }
        state.note_decision();
    }
}
