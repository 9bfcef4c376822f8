//! Plans as they are run, and what is known of their calls before.

mod evaluation;
mod run;
mod survey;
mod tracing;

#[cfg(test)]
pub(super) use run::PlanSwitch;
pub(super) use run::run;
pub(super) use survey::{FindSpace, PlanSurvey, survey};
pub use tracing::{TracedRow, TracedRun, TracedRuns, traced};
