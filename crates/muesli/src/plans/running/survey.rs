//! What is known of a call of a plan from its arguments alone: where it has fragments, what it may
//! touch, and what its participants tell each other.
//!
//! The statements are walked as in a run, with the values that follow from the arguments. Where a
//! condition does not, its body counts; where a list does not, its body is walked once for an
//! element that is not known. It takes time in proportion to the lists of the arguments, which
//! clients make as long as they like.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use muesli_core::{Footprint, LocatedKey, SmallBytes, SpaceId, Stop, Touched};

use super::evaluation::{Evaluation, FoundValues, ValueSlot};
use crate::plans::nodes::{Erased, Given, KeyOf, NodeId, Statement, ValueOrigin};
use crate::plans::procedure_plan::ProcedurePlan;
use crate::plans::table::TableUnit;

/// So many statements are walked: lists within lists may be long.
const STATEMENTS_MAX: u64 = 1 << 18;

/// What is known of a call.
#[derive(Debug, Default)]
pub(in crate::plans) struct PlanSurvey {
    pub places: Vec<LocatedKey>,
    pub touched: Footprint,
    pub shared: Vec<(SpaceId, SmallBytes)>,
}

/// Finds the number of a space.
pub(in crate::plans) type FindSpace<'a> = &'a dyn Fn(&str) -> Result<SpaceId, Stop>;

/// What is known of a call with these arguments.
pub(in crate::plans) fn survey(
    plan: &ProcedurePlan,
    find: FindSpace<'_>,
    arguments: &dyn Any,
) -> Result<PlanSurvey, Stop> {
    let (values, found, walked) = (Evaluation::new(plan, arguments), PlanSurvey::default(), 0);
    let (places, touched) = (BTreeSet::new(), BTreeSet::new());
    let mut surveyor = CallSurveyor { find, values, found, walked, places, touched };
    surveyor.all(&plan.statements)?;
    Ok(surveyor.found)
}

struct CallSurveyor<'a> {
    find: FindSpace<'a>,
    values: Evaluation<'a>,
    found: PlanSurvey,
    walked: u64,
    /// What was found already: places, and what is touched, by whether it is written and whether
    /// it is more than a key.
    places: BTreeSet<LocatedKey>,
    touched: BTreeSet<(SpaceId, SmallBytes, bool, bool)>,
}

impl<'a> CallSurveyor<'a> {
    fn all(&mut self, statements: &'a [Statement]) -> Result<(), Stop> {
        statements.iter().try_for_each(|statement| self.one(statement))
    }

    fn one(&mut self, statement: &'a Statement) -> Result<(), Stop> {
        self.walked += 1;
        if self.walked > STATEMENTS_MAX {
            let text = format!("a call has more than {STATEMENTS_MAX} steps");
            return Err(Stop::Faulty(text));
        }
        match statement {
            Statement::Value(node) => self.value(*node),
            Statement::Write { key, .. } | Statement::Delete { key, .. } => self.key(key, true),
            Statement::Update { key, .. } => self.key(key, true),
            Statement::When { inputs, test, body, gives, .. } => {
                let runs = match self.values.found(inputs) {
                    FoundValues::Known(found) => Some(test(self.values.arguments, &found)),
                    FoundValues::Elsewhere | FoundValues::Untold(_) => None,
                };
                if runs != Some(false) {
                    self.all(body)?;
                }
                self.give(gives.as_ref(), |values, given| match (runs, values.get(given.from)) {
                    (Some(false), _) => ValueSlot::Known((given.gather)(Vec::new())),
                    (Some(true), ValueSlot::Known(value)) => {
                        ValueSlot::Known((given.gather)(vec![value.clone()]))
                    }
                    _ => ValueSlot::Elsewhere,
                });
                Ok(())
            }
            Statement::Each { list, take_apart, item, place, body, gives, .. } => {
                let elements = match self.values.found(&[*list]) {
                    FoundValues::Known(found) => Some(take_apart(&found[0])),
                    FoundValues::Elsewhere | FoundValues::Untold(_) => None,
                };
                self.each(elements, (*item, *place), body, gives.as_ref())
            }
            Statement::Refuse { .. } => Ok(()),
        }
    }

    fn give(
        &mut self,
        given: Option<&Given>,
        make: impl FnOnce(&Evaluation<'_>, &Given) -> ValueSlot,
    ) {
        if let Some(given) = given {
            let slot = make(&self.values, given);
            self.values.set(given.to, slot);
        }
    }

    fn each(
        &mut self,
        elements: Option<Vec<Erased>>,
        (item, place): (NodeId, NodeId),
        body: &'a [Statement],
        gives: Option<&Given>,
    ) -> Result<(), Stop> {
        let Some(elements) = elements else {
            self.values.set(item, ValueSlot::Elsewhere);
            self.values.set(place, ValueSlot::Elsewhere);
            self.all(body)?;
            self.give(gives, |_, _| ValueSlot::Elsewhere);
            return Ok(());
        };
        let mut given_values = Some(Vec::with_capacity(elements.len()));
        for (number, element) in (0_u64..).zip(elements) {
            self.values.set(item, ValueSlot::Known(element));
            self.values.set(place, ValueSlot::Known(Arc::new(number)));
            self.all(body)?;
            match (gives.map(|given| self.values.get(given.from)), &mut given_values) {
                (Some(ValueSlot::Known(value)), Some(all)) => all.push(value.clone()),
                (Some(_), _) => given_values = None,
                (None, _) => {}
            }
        }
        self.give(gives, |_, given| match given_values {
            Some(all) => ValueSlot::Known((given.gather)(all)),
            None => ValueSlot::Elsewhere,
        });
        Ok(())
    }

    fn value(&mut self, node: NodeId) -> Result<(), Stop> {
        if self.values.follow(node) {
            return Ok(());
        }
        self.values.set(node, ValueSlot::Elsewhere);
        let plan = self.values.plan;
        match &plan.derived.nodes[node].origin {
            ValueOrigin::Read { key, shared, .. } => {
                self.key(key, false)?;
                if *shared {
                    let (at, _) = self.values.key(&key.parts);
                    let space = (self.find)(key.table.name)?;
                    self.found.shared.push((space, at));
                }
                Ok(())
            }
            ValueOrigin::Scan { range, .. } => {
                self.place(&range.key, false)?;
                let (first, is_known) = self.values.key(&range.key.parts);
                let space = (self.find)(range.key.table.name)?;
                self.touch(space, first, (false, true), is_known || !range.key.parts.is_empty());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A step of a key.
    fn key(&mut self, key: &KeyOf, writes: bool) -> Result<(), Stop> {
        self.place(key, writes)?;
        let space = (self.find)(key.table.name)?;
        let (at, is_known) = self.values.key(&key.parts);
        let is_prefix = !at.is_empty();
        self.touch(space, at, (writes, !is_known), is_prefix);
        Ok(())
    }

    /// Notes that a key is touched, or what is below a prefix, or all of a space; once.
    fn touch(
        &mut self,
        space: SpaceId,
        at: SmallBytes,
        (writes, is_range): (bool, bool),
        is_prefix: bool,
    ) {
        if !self.touched.insert((space, at.clone(), writes, is_range)) {
            return;
        }
        let touched = match is_range {
            true => range_of(space, at, is_prefix),
            false => Touched::Key(space, at),
        };
        let footprint = &mut self.found.touched;
        if writes { &mut footprint.writes } else { &mut footprint.reads }.push(touched);
    }

    fn place(&mut self, key: &KeyOf, writes: bool) -> Result<(), Stop> {
        let space = (self.find)(key.table.name)?;
        let (key, is_known) = match key.table.unit {
            TableUnit::Everywhere => (SmallBytes::EMPTY, true),
            TableUnit::Key | TableUnit::Unit { .. } => self.values.key(key.unit()),
        };
        if !is_known {
            let text = "a unit does not follow from the arguments".to_owned();
            return Err(Stop::Faulty(text));
        }
        let located = LocatedKey { space, key, writes };
        if self.places.insert(located.clone()) {
            self.found.places.push(located);
        }
        Ok(())
    }
}

fn range_of(space: SpaceId, first: SmallBytes, is_prefix: bool) -> Touched {
    match is_prefix {
        true => {
            let end = first.prefix_end();
            Touched::Range(space, first, end)
        }
        false => Touched::Space(space),
    }
}
