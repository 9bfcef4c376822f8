//! A plan as a whole, and the procedures that are plans.

use std::fmt;

use muesli_core::{Catalog, ProcedureId, Refuses, SmallBytes, Stop};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::builder::PlanBuilder;
use super::derivation::Derivation;
use super::error::PlannedProcedureError;
use super::inputs::PlanRow;
use super::nodes::{Erased, KeyOf, NodeId, PlanValue, Statement, ValueOrigin};

/// A procedure that is a plan: its steps say by which keys they are, and all that procedures
/// declare is derived of them.
pub trait PlannedProcedure: 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its version, from 1.
    const VERSION: u32 = 1;
    /// What it is given.
    type Arguments: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What it gives.
    type Answer: PlanRow;

    /// Writes the plan down; what it answers.
    fn plan(plan: &mut PlanBuilder<Self::Arguments>) -> PlanValue<Self::Answer>;
}

/// A plan with all that is derived of it.
pub struct ProcedurePlan {
    pub(super) derived: Derivation,
    pub(super) statements: Vec<Statement>,
    pub(super) answer: NodeId,
    pub(super) encode_answer: fn(&Erased) -> Result<SmallBytes, Stop>,
}

impl fmt::Debug for ProcedurePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ProcedurePlan");
        shown.field("procedure", &self.derived.procedure).finish_non_exhaustive()
    }
}

fn encode_answer<T: PlanRow>(answer: &Erased) -> Result<SmallBytes, Stop> {
    let answer = answer.downcast_ref::<T>().expect("an answer of the plan's type");
    let bytes = postcard::to_stdvec(&Some(answer));
    bytes.map(SmallBytes::from).map_err(|error| Stop::Faulty(error.to_string()))
}

impl ProcedurePlan {
    /// The plan of a procedure, whether it can be in one round or not.
    pub fn of<P: PlannedProcedure>() -> ProcedurePlan {
        let mut plan = PlanBuilder::new(P::NAME);
        let answer = P::plan(&mut plan).node;
        let (mut derived, statements) = plan.finish();
        derived.conclude(answer);
        ProcedurePlan { derived, statements, answer, encode_answer: encode_answer::<P::Answer> }
    }

    /// Why it cannot be in one round; nothing: it can.
    pub fn errors(&self) -> &[PlannedProcedureError] {
        &self.derived.errors
    }

    /// Whether it never writes.
    pub fn is_read_only(&self) -> bool {
        self.derived.is_read_only()
    }

    /// Whether it may refuse, and by what.
    pub fn refuses(&self) -> Refuses {
        self.derived.refuses()
    }

    /// All tables that it names, and what is wrong with how a database deals them.
    pub(super) fn check_tables(&self, catalog: &Catalog) -> Result<(), Stop> {
        for key in self.keys() {
            let table = key.table;
            let space = catalog.space_named(table.name).and_then(|space| catalog.space(space));
            let Some(space) = space else { continue }; // Said by who looks for it.
            if let Some(text) = table.unit.differs(table.parts, &space.options.partitioning) {
                return Err(Stop::Faulty(format!("space `{}` {text}", table.name)));
            }
        }
        Ok(())
    }

    fn keys(&self) -> Vec<&KeyOf> {
        let mut keys: Vec<&KeyOf> = Vec::new();
        for node in &self.derived.nodes {
            match &node.origin {
                ValueOrigin::Read { key, .. } => keys.push(key),
                ValueOrigin::Scan { range, .. } => keys.push(&range.key),
                _ => {}
            }
        }
        written(&self.statements, &mut keys);
        keys
    }
}

/// The keys that statements write, those in bodies, too.
fn written<'a>(statements: &'a [Statement], keys: &mut Vec<&'a KeyOf>) {
    for statement in statements {
        match statement {
            Statement::Write { key, .. }
            | Statement::Update { key, .. }
            | Statement::Delete { key, .. } => keys.push(key),
            Statement::When { body, .. } | Statement::Each { body, .. } => written(body, keys),
            Statement::Value(_) | Statement::Refuse { .. } => {}
        }
    }
}

/// Its name and version, as a node knows it by.
pub fn id_of<P: PlannedProcedure>() -> ProcedureId {
    ProcedureId { name: P::NAME.into(), version: P::VERSION }
}
