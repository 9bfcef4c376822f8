//! The values of a plan as it is run, or as far as the arguments say them.

use std::any::Any;

use muesli_core::SmallBytes;

use crate::plans::nodes::{Erased, KeyPart, NodeId, ValueOrigin};
use crate::plans::procedure_plan::ProcedurePlan;

/// What is known of a value.
#[derive(Clone)]
pub(in crate::plans) enum ValueSlot {
    /// Not yet, or not where it is looked at.
    Unset,
    /// Another participant has it; or, before a run, only a run finds it.
    Elsewhere,
    /// It follows from this, of which all participants were to be told, and were not.
    Untold(NodeId),
    /// This.
    Known(Erased),
}

/// What is known of several values.
pub(in crate::plans) enum FoundValues {
    /// These.
    Known(Vec<Erased>),
    /// One of them is at another participant.
    Elsewhere,
    /// All participants were to be told of this one, and were not.
    Untold(NodeId),
}

/// The values of one run.
pub(in crate::plans) struct Evaluation<'a> {
    pub plan: &'a ProcedurePlan,
    pub arguments: &'a dyn Any,
    slots: Vec<ValueSlot>,
}

impl<'a> Evaluation<'a> {
    pub fn new(plan: &'a ProcedurePlan, arguments: &'a dyn Any) -> Evaluation<'a> {
        let slots = vec![ValueSlot::Unset; plan.derived.nodes.len()];
        Evaluation { plan, arguments, slots }
    }

    pub fn set(&mut self, node: NodeId, slot: ValueSlot) {
        self.slots[node] = slot;
    }

    pub fn get(&self, node: NodeId) -> &ValueSlot {
        &self.slots[node]
    }

    /// What is known of these values.
    pub fn found(&self, nodes: &[NodeId]) -> FoundValues {
        let mut all = Vec::with_capacity(nodes.len());
        let mut untold = None;
        for node in nodes {
            match &self.slots[*node] {
                ValueSlot::Known(value) => all.push(value.clone()),
                ValueSlot::Elsewhere | ValueSlot::Unset => return FoundValues::Elsewhere,
                ValueSlot::Untold(node) => untold = Some(*node),
            }
        }
        untold.map_or(FoundValues::Known(all), FoundValues::Untold)
    }

    /// The first parts of a key, as far as they are known; and whether these are all.
    pub fn key(&self, parts: &[KeyPart]) -> (SmallBytes, bool) {
        let mut bytes = Vec::with_capacity(24);
        for part in parts {
            match &self.slots[part.node] {
                ValueSlot::Known(value) => (part.encode)(value, &mut bytes),
                ValueSlot::Elsewhere | ValueSlot::Untold(_) | ValueSlot::Unset => {
                    return (bytes.into(), false);
                }
            }
        }
        (bytes.into(), true)
    }

    /// Works out a value that follows from others; false: a read gives it.
    pub fn follow(&mut self, node: NodeId) -> bool {
        let slot = match &self.plan.derived.nodes[node].origin {
            ValueOrigin::Argument(get) => ValueSlot::Known(get(self.arguments)),
            ValueOrigin::Constant(value) => ValueSlot::Known(value.clone()),
            ValueOrigin::Field { of, get } => match &self.slots[*of] {
                ValueSlot::Known(value) => ValueSlot::Known(get(value)),
                ValueSlot::Untold(node) => ValueSlot::Untold(*node),
                ValueSlot::Elsewhere | ValueSlot::Unset => ValueSlot::Elsewhere,
            },
            ValueOrigin::Computed { inputs, make } => match self.found(inputs) {
                FoundValues::Known(found) => ValueSlot::Known(make(self.arguments, &found)),
                FoundValues::Elsewhere => ValueSlot::Elsewhere,
                FoundValues::Untold(node) => ValueSlot::Untold(node),
            },
            ValueOrigin::Item | ValueOrigin::Place | ValueOrigin::Gathered => return true,
            ValueOrigin::Read { .. } | ValueOrigin::Scan { .. } => return false,
        };
        self.slots[node] = slot;
        true
    }
}
