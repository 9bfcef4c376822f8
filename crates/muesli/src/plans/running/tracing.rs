//! What plans touch, row by row, where somebody asks for it: a trace to find a placement by.
//!
//! Which step finds what another one needs follows from the plan; here it becomes which row. A
//! range in which nothing is found is noted as well, by the columns that name it: the call went
//! where it is, and what follows may need to know that it is empty. A thread traces the plans that
//! run on it, so a simulation that is run on it is traced whole.

use std::cell::RefCell;
use std::collections::BTreeMap;

use muesli_core::{SmallBytes, UnitPart};

use crate::plans::derivation::Derivation;
use crate::plans::nodes::{KeyOf, ScopeId};
use crate::plans::table::TableUnit;

/// A row that a plan touched, or a range in which it found none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedRow {
    /// The table.
    pub table: &'static str,
    /// By what its rows are placed.
    pub unit: TableUnit,
    /// The shapes of its key's columns.
    pub parts: &'static [UnitPart],
    /// The key; of an empty range its first columns.
    pub key: SmallBytes,
    /// How many leading columns the step names: of a range fewer than its rows have.
    pub named: usize,
    /// Which of these follow from the arguments alone, a bit for each, the first the lowest.
    pub by_arguments: u16,
    /// Whether it is written.
    pub writes: bool,
    /// The places, in the run, of those rows by which it is known that it is touched, where it is,
    /// and what is written. Of the rows of a range the first one stands for all.
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

/// What was traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedRuns {
    /// The runs, in the order in which they ended.
    pub runs: Vec<TracedRun>,
    /// How many rows they have.
    pub rows: usize,
    /// How many runs are left out, as there would have been too many rows.
    pub left_out: u64,
}

/// What a thread has traced, how many rows it keeps, and of which procedures none.
struct ThreadTrace {
    runs: TracedRuns,
    rows_most: usize,
    apart: &'static [&'static str],
}

thread_local! {
    static TRACED: RefCell<Option<ThreadTrace>> = const { RefCell::new(None) };
}

/// Does something, and notes what the plans touched that this thread ran meanwhile: so many rows
/// at most, and whole runs. Of the procedures called like those `apart` nothing is noted.
pub fn traced<R>(
    rows_most: usize,
    apart: &'static [&'static str],
    act: impl FnOnce() -> R,
) -> (R, TracedRuns) {
    let begun = ThreadTrace { runs: TracedRuns::default(), rows_most, apart };
    let before = TRACED.replace(Some(begun));
    let done = act();
    (done, TRACED.replace(before).map(|it| it.runs).unwrap_or_default())
}

/// A step as it was taken once.
struct TakenStep {
    /// The bodies that it was in, each with which run of the body it was.
    within: Vec<(ScopeId, u32)>,
    /// The first row that it touched.
    row: usize,
}

/// Notes the steps of one run.
pub(super) struct StepTracer {
    rows: Vec<TracedRow>,
    /// By the number of the step, in the order in which they were taken.
    taken: BTreeMap<usize, Vec<TakenStep>>,
    /// The bodies that are being run, and how many runs of bodies there were.
    open: Vec<(ScopeId, u32)>,
    bodies: u32,
}

impl StepTracer {
    /// One for a run of a procedure, if this thread traces it.
    pub fn begin(procedure: &str) -> Option<StepTracer> {
        let is_traced = |trace: &ThreadTrace| !trace.apart.contains(&procedure);
        let is_on = TRACED.with_borrow(|trace| trace.as_ref().is_some_and(is_traced));
        is_on.then(|| StepTracer {
            rows: Vec::new(),
            taken: BTreeMap::new(),
            open: Vec::new(),
            bodies: 0,
        })
    }

    /// The body of a condition or of an element of a list is run.
    pub fn enter(&mut self, scope: ScopeId) {
        self.bodies += 1;
        self.open.push((scope, self.bodies));
    }

    /// It was.
    pub fn leave(&mut self) {
        self.open.pop();
    }

    /// A step touches these keys, of which there is one at least.
    pub fn note(&mut self, plan: &Derivation, step: usize, key: &KeyOf, keys: &[&SmallBytes]) {
        let (first, needs) = (self.rows.len(), self.needed(plan, step));
        let known = key.parts.iter().enumerate().take(u16::BITS as usize);
        let known = known.filter(|(_, part)| plan.nodes[part.node].is_argument);
        let by_arguments = known.fold(0, |bits, (column, _)| bits | 1 << column);
        self.rows.extend(keys.iter().map(|at| TracedRow {
            table: key.table.name,
            unit: key.table.unit,
            parts: key.table.parts,
            key: SmallBytes::clone(at),
            named: key.parts.len(),
            by_arguments,
            writes: plan.steps[step].writes,
            needs: needs.clone(),
        }));
        let taken = TakenStep { within: self.open.clone(), row: first };
        self.taken.entry(step).or_default().push(taken);
    }

    /// The rows that a step needs, in their order: those of steps in the same run of each body that
    /// both are in. Bodies are run one after the other, so these were taken last.
    fn needed(&self, plan: &Derivation, step: usize) -> Vec<usize> {
        let is_of_this_run = |taken: &&TakenStep| {
            let mut bodies = taken.within.iter().zip(&self.open);
            bodies.all(|(its, own)| its.0 != own.0 || its.1 == own.1)
        };
        let needed = plan.steps[step].needs.iter().filter_map(|needed| self.taken.get(needed));
        let found = needed.flat_map(|taken| taken.iter().rev().take_while(is_of_this_run));
        let mut rows: Vec<usize> = found.map(|taken| taken.row).collect();
        rows.sort_unstable();
        rows
    }

    /// The run is over.
    pub fn end(self, procedure: &str) {
        TRACED.with_borrow_mut(|trace| {
            let Some(ThreadTrace { runs, rows_most, .. }) = trace else { return };
            if runs.left_out > 0 || runs.rows + self.rows.len() > *rows_most {
                runs.left_out += 1;
                return;
            }
            runs.rows += self.rows.len();
            runs.runs.push(TracedRun { procedure: procedure.to_owned(), rows: self.rows });
        });
    }
}
