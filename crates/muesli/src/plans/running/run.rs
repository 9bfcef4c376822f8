//! One participant's share of a plan: the steps whose keys are of its partition.
//!
//! A step of another partition is passed over, and so is all that needs what it finds: a value that
//! is elsewhere is neither a row nor the absence of one, and no function of the application's ever
//! sees it. Where something is to be written here and a value for it is missing all the same, the
//! protocol did not tell what is shared, and the participant stops before it has changed anything.

use std::any::Any;
use std::sync::Arc;

use muesli_core::sabotage::Broken;
use muesli_core::{Scan, SmallBytes, SpaceId, Stop, Store};

use super::evaluation::{Evaluation, FoundValues, ValueSlot};
use super::tracing::StepTracer;
use crate::plans::nodes::{
    Erased, Given, KeyOf, NodeId, RangeOf, ScopeId, Statement, TakeApart, ValueOrigin,
};
use crate::plans::procedure_plan::ProcedurePlan;

muesli_core::sabotage::breakable! {
    /// What running a plan keeps to. Broken, each shows tests something to notice.
    enum PlanSwitch {
        /// Who needs what a step elsewhere finds does nothing.
        ElsewhereIsNotAbsent = "elsewhere_is_not_absent",
        /// Who is to write by what it was not told stops.
        UntoldStops = "untold_stops",
    }
}

/// Runs a participant's share; what it answers, where it knows that.
pub(in crate::plans) fn run(
    plan: &ProcedurePlan,
    store: &mut dyn Store,
    arguments: &dyn Any,
    broken: Broken<PlanSwitch>,
) -> Result<Option<SmallBytes>, Stop> {
    let values = Evaluation::new(plan, arguments);
    let tracer = StepTracer::begin(&plan.derived.procedure);
    let mut run = PlanRun { store, values, spaces: Vec::new(), broken, tracer };
    let ended = run.all(&plan.statements);
    if let Some(tracer) = run.tracer.take() {
        tracer.end(&plan.derived.procedure);
    }
    ended?;
    match run.values.get(plan.answer) {
        ValueSlot::Known(answer) => (plan.encode_answer)(answer).map(Some),
        ValueSlot::Elsewhere | ValueSlot::Untold(_) | ValueSlot::Unset => Ok(None),
    }
}

struct PlanRun<'a> {
    store: &'a mut dyn Store,
    values: Evaluation<'a>,
    /// Those that were looked for.
    spaces: Vec<(&'static str, SpaceId)>,
    broken: Broken<PlanSwitch>,
    /// Where steps are noted, if somebody traces them.
    tracer: Option<StepTracer>,
}

impl<'a> PlanRun<'a> {
    fn all(&mut self, statements: &'a [Statement]) -> Result<(), Stop> {
        statements.iter().try_for_each(|statement| self.one(statement))
    }

    fn one(&mut self, statement: &'a Statement) -> Result<(), Stop> {
        match statement {
            Statement::Value(node) => match self.values.follow(*node) {
                true => Ok(()),
                false => self.read(*node),
            },
            Statement::Write { step, key, inputs, make } => {
                let Some((space, at)) = self.written(*step, key)? else { return Ok(()) };
                let found = self.needed(*step, inputs)?;
                let row = make(self.values.arguments, &found)?;
                self.note(*step, key, &at);
                self.store.put(space, at, Some(row))
            }
            Statement::Update { step, key, inputs, change } => {
                let Some((space, at)) = self.written(*step, key)? else { return Ok(()) };
                let found = self.needed(*step, inputs)?;
                self.note(*step, key, &at);
                let before = self.store.get(space, &at)?;
                let after = change(self.values.arguments, before.as_ref(), &found)?;
                if before.is_some() || after.is_some() {
                    self.store.put(space, at, after)?;
                }
                Ok(())
            }
            Statement::Delete { step, key } => match self.written(*step, key)? {
                Some((space, at)) => {
                    self.note(*step, key, &at);
                    self.store.put(space, at, None)
                }
                None => Ok(()),
            },
            Statement::When { scope, inputs, test, body, gives } => {
                let body = (*scope, &body[..]);
                self.when(inputs, |values, found| test(values, found), body, gives.as_ref())
            }
            Statement::Each { scope, list, take_apart, item, place, body, gives } => {
                let body = (*scope, &body[..]);
                self.each(*list, *take_apart, (*item, *place), body, gives.as_ref())
            }
            Statement::Refuse { inputs, test, reason, has_holder } => {
                self.refuse(inputs, |values, found| test(values, found), reason, *has_holder)
            }
        }
    }

    /// What a condition or a list is around, each time.
    fn body(&mut self, (scope, body): (ScopeId, &'a [Statement])) -> Result<(), Stop> {
        if let Some(tracer) = &mut self.tracer {
            tracer.enter(scope);
        }
        let ended = self.all(body);
        if let Some(tracer) = &mut self.tracer {
            tracer.leave();
        }
        ended
    }

    /// Notes that a step touches a key.
    fn note(&mut self, step: usize, key: &KeyOf, at: &SmallBytes) {
        if let Some(tracer) = &mut self.tracer {
            tracer.note(&self.values.plan.derived, step, key, &[at]);
        }
    }

    /// Notes that a value is read of these keys, all at once; or that none were found where it
    /// looked.
    fn note_read(&mut self, node: NodeId, key: &KeyOf, at: &[&SmallBytes]) {
        let derived = &self.values.plan.derived;
        let Some(step) = derived.nodes[node].step else { return };
        match (&mut self.tracer, at) {
            (None, _) => {}
            (Some(tracer), []) => {
                let (asked, _) = self.values.key(&key.parts);
                tracer.note(derived, step, key, &[&asked]);
            }
            (Some(tracer), at) => tracer.note(derived, step, key, at),
        }
    }

    fn space(&mut self, name: &'static str) -> Result<SpaceId, Stop> {
        if let Some((_, space)) = self.spaces.iter().find(|(known, _)| *known == name) {
            return Ok(*space);
        }
        let space = self.store.space(name)?;
        self.spaces.push((name, space));
        Ok(space)
    }

    /// Whether what these columns name is of this participant's partition.
    fn is_here(&mut self, key: &KeyOf, writes: bool) -> Result<bool, Stop> {
        let space = self.space(key.table.name)?;
        let (unit, is_known) = self.values.key(key.unit());
        assert!(is_known, "a unit of `{}` does not follow from the arguments", key.table.name);
        Ok(self.store.is_here(space, &unit, writes))
    }

    /// Where a step writes; nothing: elsewhere.
    fn written(&mut self, step: usize, key: &KeyOf) -> Result<Option<(SpaceId, SmallBytes)>, Stop> {
        if !self.is_here(key, true)? {
            return Ok(None);
        }
        let (at, is_known) = self.values.key(&key.parts);
        if !is_known {
            return Err(self.untold(step, None));
        }
        Ok(Some((self.space(key.table.name)?, at)))
    }

    /// What a step that is here needs.
    fn needed(&mut self, step: usize, inputs: &[NodeId]) -> Result<Vec<Erased>, Stop> {
        match self.values.found(inputs) {
            FoundValues::Known(found) => Ok(found),
            FoundValues::Elsewhere => Err(self.untold(step, None)),
            FoundValues::Untold(node) => Err(self.untold(step, Some(node))),
        }
    }

    fn untold(&self, step: usize, node: Option<NodeId>) -> Stop {
        let derived = &self.values.plan.derived;
        let text = &derived.steps[step].text;
        let column = node.map_or("a value of another repository", |node| derived.name(node));
        Stop::Faulty(format!(
            "{text} needs `{column}`, which participants are to tell each other, and this protocol \
             has them vote instead: under `granola-passing` and those that replicate everything it \
             runs"
        ))
    }

    fn read(&mut self, node: NodeId) -> Result<(), Stop> {
        let plan = self.values.plan;
        let slot = match &plan.derived.nodes[node].origin {
            ValueOrigin::Read { key, decode, shared: true } => {
                let (at, is_known) = self.values.key(&key.parts);
                let space = self.space(key.table.name)?;
                self.note_read(node, key, &[&at]);
                match is_known.then(|| self.store.shared(space, &at)).transpose()?.flatten() {
                    Some(found) => ValueSlot::Known(decode(found.as_ref())?),
                    None => ValueSlot::Untold(node),
                }
            }
            ValueOrigin::Read { key, decode, shared: false } => match self.found_here(node, key)? {
                Some((space, at)) => {
                    self.note_read(node, key, &[&at]);
                    ValueSlot::Known(decode(self.store.get(space, &at)?.as_ref())?)
                }
                None if self.broken.keeps(PlanSwitch::ElsewhereIsNotAbsent) => ValueSlot::Elsewhere,
                None => ValueSlot::Known(decode(None)?),
            },
            ValueOrigin::Scan { range, decode } => match self.scan(node, range)? {
                Some(rows) => {
                    let keys: Vec<&SmallBytes> = rows.iter().map(|(key, _)| key).collect();
                    self.note_read(node, &range.key, &keys);
                    ValueSlot::Known(decode(&rows)?)
                }
                None => ValueSlot::Elsewhere,
            },
            _ => return Ok(()),
        };
        self.values.set(node, slot);
        Ok(())
    }

    /// The key that a step reads; nothing: elsewhere.
    fn found_here(
        &mut self,
        node: NodeId,
        key: &KeyOf,
    ) -> Result<Option<(SpaceId, SmallBytes)>, Stop> {
        if !self.is_here(key, false)? {
            return Ok(None);
        }
        let space = self.space(key.table.name)?;
        match self.values.key(&key.parts) {
            (at, true) => Ok(Some((space, at))),
            // What is everywhere may be read by what one participant knows alone.
            (_, false) if key.unit().is_empty() => Ok(None),
            (_, false) => {
                let step = self.values.plan.derived.nodes[node].step.unwrap_or_default();
                Err(self.untold(step, None))
            }
        }
    }

    fn scan(
        &mut self,
        node: NodeId,
        range: &RangeOf,
    ) -> Result<Option<Vec<(SmallBytes, SmallBytes)>>, Stop> {
        let Some((space, first)) = self.found_here(node, &range.key)? else { return Ok(None) };
        let end = first.prefix_end();
        let (lo, hi) = match &range.between {
            None => (first, end),
            Some((from, to)) => {
                let step = self.values.plan.derived.nodes[node].step.unwrap_or_default();
                let mut ends = Vec::with_capacity(2);
                for part in [from, to] {
                    let mut parts = range.key.parts.clone();
                    parts.push(*part);
                    match self.values.key(&parts) {
                        (at, true) => ends.push(at),
                        (_, false) => return Err(self.untold(step, Some(part.node))),
                    }
                }
                let hi = ends.pop();
                (ends.pop().unwrap_or(first), hi)
            }
        };
        let (reverse, limit) = (range.reverse, range.limit.unwrap_or(usize::MAX));
        self.store.scan(&Scan { space, lo, hi, reverse, limit }).map(Some)
    }

    fn when(
        &mut self,
        inputs: &[NodeId],
        test: impl FnOnce(&dyn Any, &[Erased]) -> bool,
        body: (ScopeId, &'a [Statement]),
        gives: Option<&Given>,
    ) -> Result<(), Stop> {
        let slot = match self.values.found(inputs) {
            FoundValues::Known(found) => {
                let runs = test(self.values.arguments, &found);
                if runs {
                    self.body(body)?;
                }
                gives.map(|given| match (runs, self.values.get(given.from)) {
                    (false, _) => ValueSlot::Known((given.gather)(Vec::new())),
                    (true, ValueSlot::Known(value)) => {
                        ValueSlot::Known((given.gather)(vec![value.clone()]))
                    }
                    (true, ValueSlot::Untold(node)) => ValueSlot::Untold(*node),
                    (true, _) => ValueSlot::Elsewhere,
                })
            }
            FoundValues::Elsewhere => Some(ValueSlot::Elsewhere),
            FoundValues::Untold(node) => return self.stop_untold(node),
        };
        if let (Some(given), Some(slot)) = (gives, slot) {
            self.values.set(given.to, slot);
        }
        Ok(())
    }

    /// What follows was to be decided by what was not told.
    fn stop_untold(&self, node: NodeId) -> Result<(), Stop> {
        match self.broken.keeps(PlanSwitch::UntoldStops) {
            true => {
                let step = self.values.plan.derived.nodes[node].step.unwrap_or_default();
                Err(self.untold(step, Some(node)))
            }
            false => Ok(()),
        }
    }

    fn each(
        &mut self,
        list: NodeId,
        take_apart: TakeApart,
        (item, place): (NodeId, NodeId),
        body: (ScopeId, &'a [Statement]),
        gives: Option<&Given>,
    ) -> Result<(), Stop> {
        let elements = match self.values.found(&[list]) {
            FoundValues::Known(found) => take_apart(&found[0]),
            FoundValues::Elsewhere => {
                if let Some(given) = gives {
                    self.values.set(given.to, ValueSlot::Elsewhere);
                }
                return Ok(());
            }
            FoundValues::Untold(node) => return self.stop_untold(node),
        };
        let mut given_values = Vec::with_capacity(elements.len());
        let mut missing = None;
        for (number, element) in (0_u64..).zip(elements) {
            self.values.set(item, ValueSlot::Known(element));
            self.values.set(place, ValueSlot::Known(Arc::new(number)));
            self.body(body)?;
            match gives.map(|given| self.values.get(given.from)) {
                Some(ValueSlot::Known(value)) => given_values.push(value.clone()),
                Some(ValueSlot::Untold(node)) => {
                    missing = missing.or(Some(ValueSlot::Untold(*node)))
                }
                Some(_) => missing = Some(ValueSlot::Elsewhere),
                None => {}
            }
        }
        if let Some(given) = gives {
            let all = missing.unwrap_or_else(|| ValueSlot::Known((given.gather)(given_values)));
            self.values.set(given.to, all);
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        inputs: &[NodeId],
        test: impl FnOnce(&dyn Any, &[Erased]) -> bool,
        reason: &'static str,
        has_holder: bool,
    ) -> Result<(), Stop> {
        match self.values.found(inputs) {
            FoundValues::Known(found) if test(self.values.arguments, &found) => Ok(()),
            FoundValues::Known(_) => Err(Stop::Refused(reason.into())),
            // Who has them looks.
            FoundValues::Elsewhere => Ok(()),
            FoundValues::Untold(_) if has_holder => Ok(()),
            FoundValues::Untold(node) => self.stop_untold(node),
        }
    }
}
