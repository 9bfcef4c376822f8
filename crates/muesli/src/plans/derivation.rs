//! What follows from a plan as it is written down: who has each value, where each step is, and what
//! cannot be in one round.
//!
//! A value is had by *all* participants if it follows from the arguments, from tables that are
//! everywhere, or from what is shared; else by those that hold one unit, which the first columns of
//! the key name that it was read by. Units are compared as they are written: two steps are at one
//! unit if the same values name it in the same domain. A step may use what all have, and what its
//! own unit has; so may the conditions and lists that it is under, by which it happens at all.

use std::collections::BTreeSet;

use muesli_core::Refuses;

use super::error::PlannedProcedureError;
use super::nodes::{KeyOf, NodeId, PlanNode, ScopeId, UnitOf, ValueHome, ValueOrigin};
use super::table::TableUnit;

/// A condition, or a list that is walked.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub by: Vec<NodeId>,
}

/// A step, as explanations have it.
#[derive(Clone, Debug)]
pub(super) struct StepOf {
    /// What it does, with its key.
    pub text: String,
    pub home: ValueHome,
    pub table: &'static str,
    pub is_everywhere: bool,
    pub writes: bool,
    /// The unit whose holders tell all others what it finds.
    pub shared_at: Option<usize>,
    /// What it uses beside its key.
    pub inputs: Vec<NodeId>,
    /// The steps that find what it needs: for its key, its inputs, and what is around it.
    pub needs: Vec<usize>,
}

/// A refusal.
#[derive(Clone, Debug)]
pub(super) struct RefusalOf {
    pub reason: &'static str,
    pub refuses: Refuses,
    pub home: ValueHome,
    pub inputs: Vec<NodeId>,
}

/// All that is known of a plan.
pub(super) struct Derivation {
    pub procedure: String,
    pub nodes: Vec<PlanNode>,
    pub units: Vec<UnitOf>,
    pub steps: Vec<StepOf>,
    pub refusals: Vec<RefusalOf>,
    pub errors: Vec<PlannedProcedureError>,
    /// The scope that each scope is in.
    parents: Vec<ScopeId>,
    /// The scopes that are open, each with what it is under.
    open: Vec<(ScopeId, Option<Guard>)>,
}

impl Derivation {
    pub fn new(procedure: &str) -> Derivation {
        Derivation {
            procedure: procedure.to_owned(),
            nodes: Vec::new(),
            units: Vec::new(),
            steps: Vec::new(),
            refusals: Vec::new(),
            errors: Vec::new(),
            parents: vec![0],
            open: vec![(0, None)],
        }
    }

    pub fn name(&self, node: NodeId) -> &str {
        &self.nodes[node].name
    }

    pub fn node_home(&self, node: NodeId) -> ValueHome {
        self.nodes[node].home
    }

    fn scope(&self) -> ScopeId {
        self.open.last().expect("the plan itself is a scope").0
    }

    /// Begins a body under a guard.
    pub fn enter(&mut self, guard: Guard) -> ScopeId {
        let scope = self.parents.len();
        self.parents.push(self.scope());
        self.open.push((scope, Some(guard)));
        scope
    }

    pub fn leave(&mut self) {
        self.open.pop();
        assert!(!self.open.is_empty(), "the plan itself is a scope");
    }

    /// Whether a scope is another one, or in it.
    pub fn is_within(&self, mut scope: ScopeId, outer: ScopeId) -> bool {
        while scope != outer && scope != 0 {
            scope = self.parents[scope];
        }
        scope == outer
    }

    /// A value, or the one that is known already; and whether it is new. Arguments, constants and
    /// fields are what their names say.
    pub fn node(
        &mut self,
        name: String,
        origin: ValueOrigin,
        home: ValueHome,
        by: &[NodeId],
    ) -> (NodeId, bool) {
        let is_named = matches!(
            origin,
            ValueOrigin::Argument(_) | ValueOrigin::Constant(_) | ValueOrigin::Field { .. }
        );
        let is_same = |node: &PlanNode| {
            let alike = match (&node.origin, &origin) {
                (ValueOrigin::Argument(_), ValueOrigin::Argument(_))
                | (ValueOrigin::Constant(_), ValueOrigin::Constant(_)) => true,
                (ValueOrigin::Field { of, .. }, ValueOrigin::Field { of: other, .. }) => {
                    of == other
                }
                _ => false,
            };
            alike && node.name == name
        };
        let known = self.nodes.iter().position(|node| is_named && is_same(node));
        if let Some(known) = known.filter(|it| self.is_within(self.scope(), self.nodes[*it].scope))
        {
            return (known, false);
        }
        (self.fresh(name, origin, home, by), true)
    }

    /// A value that is new.
    pub fn fresh(
        &mut self,
        name: String,
        origin: ValueOrigin,
        home: ValueHome,
        by: &[NodeId],
    ) -> NodeId {
        self.check_scope(&format!("what makes `{name}`"), by);
        let reads = matches!(origin, ValueOrigin::Read { .. } | ValueOrigin::Scan { .. });
        let is_argument = !reads && by.iter().all(|it| self.nodes[*it].is_argument);
        let (scope, step) = (self.scope(), None);
        let ((shared, is_shared_apart), found_by) = (self.shared_by(by), self.found_by(by));
        self.nodes.push(PlanNode {
            name,
            origin,
            scope,
            home,
            is_argument,
            step,
            shared,
            is_shared_apart,
            found_by,
        });
        self.nodes.len() - 1
    }

    /// Of which units the shared values are that these follow from, and what is around them; and
    /// whether such a unit is another one for each element of a list.
    fn shared_by(&self, by: &[NodeId]) -> (Vec<usize>, bool) {
        let all: Vec<_> = by.iter().copied().chain(self.guards()).collect();
        let units = all.iter().flat_map(|node| self.nodes[*node].shared.iter().copied());
        let units = BTreeSet::from_iter(units).into_iter().collect();
        (units, all.iter().any(|node| self.nodes[*node].is_shared_apart))
    }

    /// Whether one participant that has these values, which are at `home`, has also all that the
    /// others are told for them.
    pub fn has_holder(&self, by: &[NodeId], home: ValueHome) -> bool {
        match self.shared_by(by) {
            (_, true) => false,
            (units, false) => match units[..] {
                [] => true,
                [unit] => home == ValueHome::All || home == ValueHome::At(unit),
                _ => false,
            },
        }
    }

    /// The steps that find what these values follow from.
    fn found_by(&self, by: &[NodeId]) -> Vec<usize> {
        let mut steps: Vec<usize> =
            by.iter().flat_map(|node| self.nodes[*node].found_by.iter().copied()).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// A value is what a step gives.
    pub fn gives(&mut self, step: usize, node: NodeId) {
        self.nodes[node].step = Some(step);
        self.nodes[node].found_by = vec![step];
        if let Some(unit) = self.steps[step].shared_at {
            self.nodes[node].shared.push(unit);
        }
    }

    /// What a body gives to those behind it.
    pub fn gathered(&mut self, from: NodeId, scope: ScopeId, by: &[NodeId]) -> NodeId {
        let (name, home) = (format!("all {}", self.name(from)), self.node_home(from));
        let names_each = |derived: &Derivation, unit: &UnitOf| {
            unit.nodes.iter().any(|it| derived.is_within(derived.nodes[*it].scope, scope))
        };
        let home = match home {
            ValueHome::At(unit) if names_each(self, &self.units[unit]) => ValueHome::Scattered,
            home => home,
        };
        let guard = self.combined(&format!("what makes `{name}`"), by);
        let home = if home == ValueHome::All { guard } else { home };
        let is_argument = self.nodes[from].is_argument;
        let found_by = self.found_by(&[by, &[from]].concat());
        let node = self.fresh(name, ValueOrigin::Gathered, home, by);
        self.nodes[node].found_by = found_by;
        self.nodes[node].is_argument &= is_argument;
        self.nodes[node].step = self.nodes[from].step;
        let shared = self.nodes[from].shared.clone();
        let is_apart = shared.iter().any(|unit| names_each(self, &self.units[*unit]));
        let apart = is_apart || self.nodes[from].is_shared_apart;
        let gathered = &mut self.nodes[node];
        gathered.is_shared_apart |= apart;
        gathered.shared.extend(shared);
        gathered.shared.sort_unstable();
        gathered.shared.dedup();
        node
    }

    fn check_scope(&mut self, step: &str, inputs: &[NodeId]) {
        for input in inputs {
            if !self.is_within(self.scope(), self.nodes[*input].scope) {
                let (procedure, step) = (self.procedure.clone(), step.to_owned());
                let column = self.name(*input).to_owned();
                self.errors.push(PlannedProcedureError::Scope { procedure, step, column });
            }
        }
    }

    pub fn place_text(&self, home: ValueHome) -> String {
        match home {
            ValueHome::All => "every participant".to_owned(),
            ValueHome::At(unit) => self.units[unit].text.clone(),
            ValueHome::Scattered => "several units".to_owned(),
        }
    }

    /// Notes that somebody needs a value that others have.
    fn crosses(&mut self, step: &str, at: String, input: NodeId) {
        let (procedure, step) = (self.procedure.clone(), step.to_owned());
        let (column, from) = (self.name(input).to_owned(), self.place_text(self.node_home(input)));
        self.errors.push(PlannedProcedureError::Crosses { procedure, step, at, column, from });
    }

    /// The values that a step is under.
    fn guards(&self) -> Vec<NodeId> {
        let guards = self.open.iter().filter_map(|(_, guard)| guard.as_ref());
        guards.flat_map(|guard| guard.by.iter().copied()).collect()
    }

    /// Who has what follows from these values, and from the conditions around it.
    pub fn combined(&mut self, step: &str, inputs: &[NodeId]) -> ValueHome {
        self.check_scope(step, inputs);
        let mut home = ValueHome::All;
        for input in inputs.iter().copied().chain(self.guards()) {
            match (home, self.node_home(input)) {
                (_, ValueHome::All) => {}
                (ValueHome::All, at @ ValueHome::At(_)) => home = at,
                (at, other) if at == other && other != ValueHome::Scattered => {}
                (at, _) => self.crosses(step, self.place_text(at), input),
            }
        }
        home
    }

    /// Whether those at `at` have these values, and those of the conditions around.
    fn demand(&mut self, step: &str, at: ValueHome, inputs: &[NodeId]) {
        self.check_scope(step, inputs);
        for input in inputs.iter().copied().chain(self.guards()) {
            let home = self.node_home(input);
            if home != ValueHome::All && (home != at || home == ValueHome::Scattered) {
                self.crosses(step, self.place_text(at), input);
            }
        }
    }

    /// The unit that a key is of; `None`: it is everywhere.
    fn unit(&mut self, step: &str, key: &KeyOf) -> Option<usize> {
        let (table, parts) = (key.table, key.unit());
        let (domain, needed) = match table.unit {
            TableUnit::Everywhere => return None,
            TableUnit::Key => (table.name, table.parts.len()),
            TableUnit::Unit { domain, columns } => (domain, columns),
        };
        let nodes: Vec<_> = parts.iter().map(|part| part.node).collect();
        let (procedure, step) = (self.procedure.clone(), step.to_owned());
        if nodes.len() < needed {
            let named = nodes.len();
            self.errors.push(PlannedProcedureError::Unit { procedure, step, named, needed });
        } else if let Some(read) = nodes.iter().find(|it| !self.nodes[**it].is_argument) {
            let column = self.name(*read).to_owned();
            self.errors.push(PlannedProcedureError::TwoRounds { procedure, step, column });
        }
        let known = self.units.iter().position(|it| it.domain == domain && it.nodes == nodes);
        Some(known.unwrap_or_else(|| {
            let names: Vec<_> = nodes.iter().map(|node| self.name(*node)).collect();
            let text = format!("{domain}({})", names.join(", "));
            self.units.push(UnitOf { domain, nodes, text });
            self.units.len() - 1
        }))
    }

    fn step_text(&self, what: &str, key: &KeyOf) -> String {
        let names: Vec<_> = key.parts.iter().map(|part| self.name(part.node)).collect();
        let number = self.steps.len() + 1;
        format!("step {number}, {what} `{}`({}),", key.table.name, names.join(", "))
    }

    fn push_step(
        &mut self,
        (text, home): (String, ValueHome),
        key: &KeyOf,
        needed: &[NodeId],
    ) -> usize {
        let (table, inputs) = (key.table.name, Vec::new());
        let is_everywhere = key.table.unit == TableUnit::Everywhere;
        let needs = self.found_by(&[needed, &self.guards()].concat());
        self.steps.push(StepOf {
            text,
            home,
            table,
            is_everywhere,
            writes: false,
            shared_at: None,
            inputs,
            needs,
        });
        self.steps.len() - 1
    }

    /// A step that reads: its number, and who has what it finds.
    pub fn reading(&mut self, key: &KeyOf, shared: bool, what: &str) -> (usize, ValueHome) {
        let text = self.step_text(if shared { "shared" } else { what }, key);
        let nodes: Vec<_> = key.parts.iter().map(|part| part.node).collect();
        let unit = self.unit(&text, key);
        let home = match unit {
            Some(unit) if !shared => {
                self.demand(&text, ValueHome::At(unit), &nodes);
                ValueHome::At(unit)
            }
            unit => {
                let read = nodes.iter().find(|it| !self.nodes[**it].is_argument);
                if let (true, Some(read)) = (unit.is_some(), read) {
                    let (procedure, step) = (self.procedure.clone(), text.clone());
                    let column = self.name(*read).to_owned();
                    self.errors.push(PlannedProcedureError::Shared { procedure, step, column });
                }
                self.combined(&text, &nodes)
            }
        };
        let step = self.push_step((text, home), key, &nodes);
        self.steps[step].shared_at = unit.filter(|_| shared);
        (step, home)
    }

    /// A step that reads a range: its number, and who has what it finds.
    pub fn scanning(&mut self, key: &KeyOf, whole: &KeyOf) -> (usize, ValueHome) {
        let text = self.step_text("scan", whole);
        let nodes: Vec<_> = whole.parts.iter().map(|part| part.node).collect();
        let home = match self.unit(&text, key) {
            Some(unit) => {
                self.demand(&text, ValueHome::At(unit), &nodes);
                ValueHome::At(unit)
            }
            None => self.combined(&text, &nodes),
        };
        (self.push_step((text, home), key, &nodes), home)
    }

    /// A step that writes: its number.
    pub fn writing(&mut self, what: &str, key: &KeyOf, inputs: &[NodeId]) -> usize {
        let text = self.step_text(what, key);
        let home = self.unit(&text, key).map_or(ValueHome::All, ValueHome::At);
        let keys = key.parts.iter().map(|part| part.node);
        let all: Vec<_> = keys.chain(inputs.iter().copied()).collect();
        self.demand(&text, home, &all);
        let step = self.push_step((text, home), key, &all);
        self.steps[step].writes = true;
        self.steps[step].inputs = inputs.to_vec();
        step
    }

    pub fn refusing(
        &mut self,
        reason: &'static str,
        refuses: Refuses,
        home: ValueHome,
        inputs: &[NodeId],
    ) {
        let inputs = inputs.to_vec();
        self.refusals.push(RefusalOf { reason, refuses, home, inputs });
    }

    /// What only the whole of the plan shows.
    pub fn conclude(&mut self, answer: NodeId) {
        self.check_scope("the answer", &[answer]);
        if self.node_home(answer) == ValueHome::Scattered {
            self.crosses("the answer", "one participant".to_owned(), answer);
        }
        let procedure = self.procedure.clone();
        if self.steps.is_empty() {
            self.errors.push(PlannedProcedureError::Empty { procedure: procedure.clone() });
        }
        for step in &self.steps {
            let is_written = |other: &StepOf| other.writes && other.table == step.table;
            let reads = !step.writes && step.is_everywhere;
            if reads && self.steps.iter().any(is_written) {
                let (procedure, step) = (procedure.clone(), step.text.clone());
                self.errors.push(PlannedProcedureError::ReadAndWritten { procedure, step });
            }
        }
    }

    /// Whether it never writes.
    pub fn is_read_only(&self) -> bool {
        self.steps.iter().all(|step| !step.writes)
    }

    /// Whether it may refuse, and by what.
    pub fn refuses(&self) -> Refuses {
        let is_alone = |refusal: &RefusalOf| refusal.refuses == Refuses::Alone;
        match self.refusals.iter().any(is_alone) {
            true => Refuses::Alone,
            false if self.refusals.is_empty() => Refuses::Never,
            false => Refuses::Alike,
        }
    }
}
