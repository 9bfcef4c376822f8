//! Plans as nodes know them: by name and version, over bytes, with all that is declared derived.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use muesli_core::parts::execution::space_named;
use muesli_core::procedure::{AnswerType, SharesFn};
use muesli_core::sabotage::Broken;
use muesli_core::{
    Catalog, Footprint, LocatedKey, Procedure, Procedures, SmallBytes, SpaceId, Stop, Store,
};

use super::error::PlannedProcedureError;
use super::procedure_plan::{PlannedProcedure, ProcedurePlan, id_of};
use super::running::{FindSpace, PlanSurvey, run, survey};
use crate::procedures::DryRun;
use crate::procedures::encoding::{decode_answer, encode};

/// The plans of this process, one for each type: they are made once and stay.
static PLANS: RwLock<Option<HashMap<TypeId, &'static ProcedurePlan>>> = RwLock::new(None);

/// The plan of a procedure.
pub(super) fn plan_of<P: PlannedProcedure>() -> &'static ProcedurePlan {
    let id = TypeId::of::<P>();
    let known = PLANS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = known.as_ref().and_then(|all| all.get(&id)) {
        return plan;
    }
    drop(known);
    let made = ProcedurePlan::of::<P>();
    let mut all = PLANS.write().unwrap_or_else(PoisonError::into_inner);
    all.get_or_insert_default().entry(id).or_insert_with(|| &*Box::leak(Box::new(made)))
}

/// These procedures and one more that is a plan.
///
/// # Errors
/// It cannot be in one round: the first reason.
pub fn with<P: PlannedProcedure>(
    procedures: Procedures,
) -> Result<Procedures, PlannedProcedureError> {
    let plan = plan_of::<P>();
    if let Some(error) = plan.errors().first() {
        return Err(error.clone());
    }
    let shares = plan.derived.steps.iter().any(|step| step.shared_at.is_some());
    let procedure = Procedure {
        run: run_planned::<P>,
        read_only: plan.is_read_only(),
        refuses: plan.refuses(),
        footprint: Some(footprint::<P>),
        steady: false,
        shares: shares.then_some(shared::<P> as SharesFn),
        places: Some(places::<P>),
        answer: Some(AnswerType::of::<Option<P::Answer>>()),
    };
    Ok(procedures.with(P::NAME, P::VERSION, procedure))
}

fn decode<P: PlannedProcedure>(arguments: &SmallBytes) -> Result<P::Arguments, Stop> {
    postcard::from_bytes(arguments.as_slice()).map_err(|error| {
        Stop::Faulty(format!("procedure {}: these are no arguments of it: {error}", id_of::<P>()))
    })
}

pub(super) fn run_planned<P: PlannedProcedure>(
    store: &mut dyn Store,
    arguments: &SmallBytes,
) -> Result<SmallBytes, Stop> {
    let arguments = decode::<P>(arguments)?;
    let answer = run(plan_of::<P>(), store, &arguments, Broken::default())?;
    Ok(answer.unwrap_or_else(|| SmallBytes::new(&[0])))
}

fn surveyed<P: PlannedProcedure>(
    find: FindSpace<'_>,
    arguments: &SmallBytes,
) -> Result<PlanSurvey, Stop> {
    survey(plan_of::<P>(), find, &decode::<P>(arguments)? as &dyn Any)
}

pub(super) fn footprint<P: PlannedProcedure>(
    find: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Footprint, Stop> {
    surveyed::<P>(find, arguments).map(|found| found.touched)
}

pub(super) fn shared<P: PlannedProcedure>(
    find: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    arguments: &SmallBytes,
) -> Result<Vec<(SpaceId, SmallBytes)>, Stop> {
    surveyed::<P>(find, arguments).map(|found| found.shared)
}

pub(super) fn places<P: PlannedProcedure>(
    catalog: &Catalog,
    arguments: &SmallBytes,
) -> Result<Vec<LocatedKey>, Stop> {
    plan_of::<P>().check_tables(catalog)?;
    let find = |name: &str| space_named(catalog, name);
    surveyed::<P>(&find, arguments).map(|found| found.places)
}

impl DryRun {
    /// Runs a procedure that is a plan, as a participant that holds everything, held to the
    /// footprint that was derived.
    ///
    /// # Errors
    /// Why it stopped; nothing is changed then.
    pub fn run_plan<P: PlannedProcedure>(
        &mut self,
        arguments: &P::Arguments,
    ) -> Result<P::Answer, Stop> {
        let faulty = |error: crate::Error| Stop::Faulty(error.to_string());
        let arguments = encode(arguments).map_err(faulty)?;
        let known = surveyed::<P>(&|name| self.find(name), &arguments)?;
        let (declared, shared) = (Some(known.touched), known.shared);
        let read_only = plan_of::<P>().is_read_only();
        let ended =
            self.act(declared, read_only, shared, |store| run_planned::<P>(store, &arguments));
        let answer = decode_answer::<Option<P::Answer>>(&ended?).map_err(faulty)?;
        answer.ok_or_else(|| Stop::Faulty("it knows no answer".to_owned()))
    }
}
