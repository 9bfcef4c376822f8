//! What plans touch, row by row, where somebody asks for it: a trace to find a placement by.
//!
//! Which step finds what another one needs follows from the plan; here it becomes which row. A
//! thread traces the plans that run on it, so a simulation that is run on it is traced whole.

use std::cell::RefCell;

use muesli_core::{SmallBytes, UnitPart};

use crate::plans::derivation::Derivation;
use crate::plans::nodes::TableRef;
use crate::plans::table::TableUnit;

/// A row that a plan touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedRow {
    /// The table.
    pub table: &'static str,
    /// By what its rows are placed.
    pub unit: TableUnit,
    /// The shapes of its key's columns.
    pub parts: &'static [UnitPart],
    /// The key.
    pub key: SmallBytes,
    /// Whether it is written.
    pub writes: bool,
    /// The places, in the run, of those rows by which it is known that it is touched, where it is,
    /// and what is written.
    pub needs: Vec<usize>,
}

/// A run of a plan by one participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedRun {
    /// The procedure.
    pub procedure: String,
    /// What it touched, in its order.
    pub rows: Vec<TracedRow>,
}

thread_local! {
    static TRACED: RefCell<Option<Vec<TracedRun>>> = const { RefCell::new(None) };
}

/// Does something, and tells what the plans touched that were run meanwhile by this thread.
pub fn traced<R>(act: impl FnOnce() -> R) -> (R, Vec<TracedRun>) {
    let before = TRACED.replace(Some(Vec::new()));
    let done = act();
    (done, TRACED.replace(before).unwrap_or_default())
}

/// Notes the steps of one run.
pub(super) struct StepTracer {
    rows: Vec<TracedRow>,
    /// The rows of each step that was taken, each time that it was.
    taken: Vec<(usize, Vec<usize>)>,
}

impl StepTracer {
    /// One for a run, if this thread traces.
    pub fn begin() -> Option<StepTracer> {
        let is_on = TRACED.with_borrow(Option::is_some);
        is_on.then(|| StepTracer { rows: Vec::new(), taken: Vec::new() })
    }

    /// A step touches these keys.
    pub fn note(&mut self, plan: &Derivation, step: usize, table: TableRef, keys: &[&SmallBytes]) {
        let first = self.rows.len();
        let needs = self.needed(plan, step);
        let writes = plan.steps[step].writes;
        let TableRef { name, unit, parts } = table;
        self.rows.extend(keys.iter().map(|key| TracedRow {
            table: name,
            unit,
            parts,
            key: SmallBytes::clone(key),
            writes,
            needs: needs.clone(),
        }));
        self.taken.push((step, (first..self.rows.len()).collect()));
    }

    /// The rows that a step needs: of a step around it, those of the last time; of one in another
    /// body, all.
    fn needed(&self, plan: &Derivation, step: usize) -> Vec<usize> {
        let mut needs = Vec::new();
        for needed in &plan.steps[step].needs {
            let is_around = plan.is_within(plan.steps[step].scope, plan.steps[*needed].scope);
            let times = self.taken.iter().rev().filter(|(taken, _)| taken == needed);
            let times = times.take(if is_around { 1 } else { usize::MAX });
            needs.extend(times.flat_map(|(_, rows)| rows.iter().copied()));
        }
        needs.sort_unstable();
        needs
    }

    /// The run is over.
    pub fn end(self, procedure: &str) {
        let run = TracedRun { procedure: procedure.to_owned(), rows: self.rows };
        TRACED.with_borrow_mut(|all| all.iter_mut().for_each(|all| all.push(run.clone())));
    }
}
