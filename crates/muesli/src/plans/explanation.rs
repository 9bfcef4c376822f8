//! What is derived of a plan, for people and programs.

use std::fmt;

use muesli_core::Refuses;
use serde::Serialize;

use super::nodes::ValueHome;
use super::procedure_plan::{PlannedProcedure, ProcedurePlan};

/// What is derived of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanExplanation {
    /// The procedure.
    pub procedure: String,
    /// Its version.
    pub version: u32,
    /// How its participants agree.
    pub class: &'static str,
    /// Why.
    pub because: String,
    /// Whether it never writes.
    pub read_only: bool,
    /// Whether it refuses: `never`, `alike` or `alone`.
    pub refuses: &'static str,
    /// The units that it touches, as the plan writes them.
    pub units: Vec<String>,
    /// What its participants tell each other.
    pub shared: Vec<String>,
    /// Its steps.
    pub steps: Vec<StepExplanation>,
    /// Why it may refuse.
    pub refusals: Vec<RefusalExplanation>,
    /// Why it cannot be in one round.
    pub errors: Vec<String>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepExplanation {
    /// What it does.
    pub step: String,
    /// Where.
    pub at: String,
    /// What it uses beside its key.
    pub uses: Vec<String>,
}

/// A refusal of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusalExplanation {
    /// What it says.
    pub reason: String,
    /// Whether all participants refuse `alike`, or one `alone`.
    pub refuses: &'static str,
    /// Who knows what it goes by.
    pub at: String,
    /// By what it is decided.
    pub uses: Vec<String>,
}

fn name_of_refusal(refuses: Refuses) -> &'static str {
    match refuses {
        Refuses::Never => "never",
        Refuses::Alike => "alike",
        Refuses::Alone => "alone",
    }
}

impl PlanExplanation {
    /// That of a procedure.
    pub fn of<P: PlannedProcedure>() -> PlanExplanation {
        PlanExplanation::of_plan(&ProcedurePlan::of::<P>(), P::VERSION)
    }

    fn of_plan(plan: &ProcedurePlan, version: u32) -> PlanExplanation {
        let derived = &plan.derived;
        let names = |nodes: &[usize]| -> Vec<String> {
            nodes.iter().map(|node| derived.name(*node).to_owned()).collect()
        };
        let step = |step: &super::derivation::StepOf| StepExplanation {
            step: step.text.trim_end_matches(',').to_owned(),
            at: match (step.home, step.is_everywhere, step.writes) {
                (ValueHome::All, true, true) => "every repository".to_owned(),
                (home, ..) => derived.place_text(home),
            },
            uses: names(&step.inputs),
        };
        let refusal = |it: &super::derivation::RefusalOf| RefusalExplanation {
            reason: it.reason.to_owned(),
            refuses: name_of_refusal(it.refuses),
            at: derived.place_text(it.home),
            uses: names(&it.inputs),
        };
        let (class, because) = class_of(plan);
        let shared = derived.steps.iter().filter(|step| step.shared_at.is_some());
        PlanExplanation {
            procedure: derived.procedure.clone(),
            version,
            class,
            because,
            read_only: plan.is_read_only(),
            refuses: name_of_refusal(plan.refuses()),
            units: derived.units.iter().map(|unit| unit.text.clone()).collect(),
            shared: shared.map(|step| step.text.trim_end_matches(',').to_owned()).collect(),
            steps: derived.steps.iter().map(step).collect(),
            refusals: derived.refusals.iter().map(refusal).collect(),
            errors: plan.errors().iter().map(ToString::to_string).collect(),
        }
    }
}

/// How the participants of a plan agree, and why.
fn class_of(plan: &ProcedurePlan) -> (&'static str, String) {
    let derived = &plan.derived;
    let units: Vec<_> = derived.units.iter().map(|unit| &*unit.text).collect();
    if !plan.errors().is_empty() {
        return ("not one round", format!("{} reasons below", plan.errors().len()));
    }
    let spans_all = derived.steps.iter().any(|step| step.is_everywhere && step.writes);
    if units.len() <= 1 && !spans_all {
        let only = units.first().copied().unwrap_or("tables that are everywhere");
        return ("single", format!("all steps are at {only}"));
    }
    let several = match spans_all {
        true => "a table that is everywhere is written".to_owned(),
        false => format!("{} units ({})", units.len(), units.join(", ")),
    };
    match plan.refuses() {
        Refuses::Never => ("single or independent", format!("{several}; it never refuses")),
        Refuses::Alike => {
            ("single or independent", format!("{several}; all participants refuse alike"))
        }
        Refuses::Alone => {
            ("single or coordinated", format!("{several}; one of them may refuse alone"))
        }
    }
}

impl fmt::Display for PlanExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} v{}: {}", self.procedure, self.version, self.class)?;
        writeln!(f, "  {}", self.because)?;
        let reads = if self.read_only { "reads only" } else { "writes" };
        writeln!(f, "  {reads}, refuses {}", self.refuses)?;
        for StepExplanation { step, at, uses } in &self.steps {
            write!(f, "  {step}: at {at}")?;
            if !uses.is_empty() {
                write!(f, ", by {}", uses.join(", "))?;
            }
            writeln!(f)?;
        }
        for RefusalExplanation { reason, refuses, at, uses } in &self.refusals {
            writeln!(f, "  refuses {refuses} (\"{reason}\"): at {at}, by {}", uses.join(", "))?;
        }
        for shared in &self.shared {
            writeln!(f, "  told to all participants: {shared}")?;
        }
        for error in &self.errors {
            writeln!(f, "  not one round: {error}")?;
        }
        Ok(())
    }
}
