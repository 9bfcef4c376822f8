//! What plans are written with, and what is derived of each step as it is written down.

use std::any::{Any, type_name};
use std::fmt::{Debug, Display};
use std::ops::Add;
use std::sync::Arc;

use muesli_core::{Refuses, SmallBytes};

use super::derivation::{Derivation, Guard};
use super::inputs::{
    Inputs, KeyValues, LeadingColumns, PlanRow, arguments_of, decode_row, decode_rows, decoded,
    encoded, erased, gather_list, gather_one, key_of, part, shown, take_apart,
};
use super::nodes::{
    Erased, Gather, Given, KeyOf, KeyPart, NodeId, PlanValue, RangeOf, Statement, ValueHome,
    ValueOrigin,
};
use super::table::{KeyColumn, KeyColumns, PlanTable};

/// Writes a plan down, step by step: a procedure with arguments of type `A`.
///
/// Each step is one of keys that are made of [values](PlanValue), and what it does with rows is a
/// function, which sees the arguments and the values that it is given, and nothing else.
pub struct PlanBuilder<A> {
    pub(super) derived: Derivation,
    /// The statements of the bodies that are being written, the innermost last.
    bodies: Vec<Vec<Statement>>,
    arguments: std::marker::PhantomData<fn(A)>,
}

impl<A> Debug for PlanBuilder<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanBuilder").field("procedure", &self.derived.procedure).finish()
    }
}

/// Rows of a table in a range, as a step of a plan asks for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowRange {
    limit: Option<usize>,
    reverse: bool,
}

impl RowRange {
    /// All of them.
    pub const ALL: RowRange = RowRange { limit: None, reverse: false };

    /// The first ones.
    pub const fn first(limit: usize) -> RowRange {
        RowRange { limit: Some(limit), reverse: false }
    }

    /// The last ones, the very last first.
    pub const fn last(limit: usize) -> RowRange {
        RowRange { limit: Some(limit), reverse: true }
    }
}

impl<A: 'static> PlanBuilder<A> {
    pub(super) fn new(procedure: &str) -> PlanBuilder<A> {
        let derived = Derivation::new(procedure);
        let arguments = std::marker::PhantomData;
        PlanBuilder { derived, bodies: vec![Vec::new()], arguments }
    }

    pub(super) fn finish(mut self) -> (Derivation, Vec<Statement>) {
        let statements = self.bodies.pop().unwrap_or_default();
        assert!(self.bodies.is_empty(), "a body of the plan is open");
        (self.derived, statements)
    }

    fn state(&mut self, statement: Statement) {
        self.bodies.last_mut().expect("a body is being written").push(statement);
    }

    fn value<T>(
        &mut self,
        name: String,
        origin: ValueOrigin,
        home: ValueHome,
        by: &[NodeId],
    ) -> PlanValue<T> {
        let (node, is_new) = self.derived.node(name, origin, home, by);
        if is_new {
            self.state(Statement::Value(node));
        }
        PlanValue::of(node)
    }

    /// A value of the arguments, under the name that explanations have for it; a name stands for
    /// one value. The macro [`arg!`](crate::arg) names a field as it is written.
    pub fn arg<T: Send + Sync + 'static>(&mut self, name: &str, get: fn(&A) -> T) -> PlanValue<T> {
        let made = Box::new(move |all: &dyn Any| erased(get(arguments_of::<A>(all))));
        self.value(name.to_owned(), ValueOrigin::Argument(made), ValueHome::All, &[])
    }

    /// A constant.
    pub fn constant<T: Debug + Send + Sync + 'static>(&mut self, value: T) -> PlanValue<T> {
        let name = format!("{value:?}{}", type_name::<T>());
        self.value(name, ValueOrigin::Constant(erased(value)), ValueHome::All, &[])
    }

    /// A part of a value, under the name of its column: of one value, a name stands for one part.
    pub fn field<T, U>(&mut self, of: PlanValue<T>, column: &str, get: fn(&T) -> U) -> PlanValue<U>
    where
        T: Send + Sync + 'static,
        U: Send + Sync + 'static,
    {
        let made = Box::new(move |value: &Erased| erased(get(shown::<T>(value))));
        let name = format!("{}.{column}", self.derived.name(of.node));
        let home = self.derived.node_home(of.node);
        self.value(name, ValueOrigin::Field { of: of.node, get: made }, home, &[of.node])
    }

    /// A number and so much.
    pub fn plus<N>(&mut self, of: PlanValue<N>, by: N) -> PlanValue<N>
    where
        N: Add<Output = N> + Copy + Display + Send + Sync + 'static,
    {
        let made = Box::new(move |value: &Erased| erased(*shown::<N>(value) + by));
        let name = format!("{}+{by}", self.derived.name(of.node));
        let home = self.derived.node_home(of.node);
        self.value(name, ValueOrigin::Field { of: of.node, get: made }, home, &[of.node])
    }

    /// What a function makes of values, under a name.
    pub fn compute<I: Inputs, T: Send + Sync + 'static>(
        &mut self,
        name: &str,
        inputs: I,
        make: fn(&A, I::Values) -> T,
    ) -> PlanValue<T>
    where
        I::Values: 'static,
    {
        let nodes = inputs.nodes();
        let home = self.derived.combined(&format!("what makes `{name}`"), &nodes);
        let made = Box::new(move |all: &dyn Any, found: &[Erased]| {
            erased(make(arguments_of::<A>(all), I::values(found)))
        });
        let origin = ValueOrigin::Computed { inputs: nodes.clone(), make: made };
        self.value(name.to_owned(), origin, home, &nodes)
    }

    /// Nothing, as an answer.
    pub fn nothing(&mut self) -> PlanValue<()> {
        self.constant(())
    }

    /// Reads a row.
    pub fn read<K: KeyColumns, V: PlanRow>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
    ) -> PlanValue<Option<V>> {
        self.read_as(table, key, false)
    }

    /// Reads a row as it was before the transaction, and has all participants told of it.
    pub fn shared<K: KeyColumns, V: PlanRow>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
    ) -> PlanValue<Option<V>> {
        self.read_as(table, key, true)
    }

    fn read_as<K: KeyColumns, V: PlanRow>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
        shared: bool,
    ) -> PlanValue<Option<V>> {
        let key = key_of(table, &key);
        let (step, home) = self.derived.reading(&key, shared, "read");
        let by: Vec<_> = key.parts.iter().map(|part| part.node).collect();
        let origin = ValueOrigin::Read { key, decode: decode_row::<V>, shared };
        let value = self.value(format!("{}#{step}", table.name), origin, home, &by);
        self.derived.gives(step, value.node);
        value
    }

    /// Reads the rows of a table whose keys begin with these columns, in their order.
    pub fn scan<K, V, P>(
        &mut self,
        table: PlanTable<K, V>,
        first: P,
        range: RowRange,
    ) -> PlanValue<Vec<(K, V)>>
    where
        K: KeyColumns + Send + Sync,
        V: PlanRow,
        P: KeyValues<Columns: LeadingColumns<K>>,
    {
        self.scan_range(table, key_of(table, &first), None, range)
    }

    /// The same, of which the next column is from one value on and below another one.
    pub fn scan_between<K, V, P, T>(
        &mut self,
        table: PlanTable<K, V>,
        first: P,
        (from, to): (PlanValue<T>, PlanValue<T>),
        range: RowRange,
    ) -> PlanValue<Vec<(K, V)>>
    where
        K: KeyColumns + Send + Sync,
        V: PlanRow,
        P: KeyValues<Columns: LeadingColumns<K>>,
        T: KeyColumn,
    {
        let between = Some((part(from), part(to)));
        self.scan_range(table, key_of(table, &first), between, range)
    }

    fn scan_range<K: KeyColumns + Send + Sync, V: PlanRow>(
        &mut self,
        table: PlanTable<K, V>,
        key: KeyOf,
        between: Option<(KeyPart, KeyPart)>,
        RowRange { limit, reverse }: RowRange,
    ) -> PlanValue<Vec<(K, V)>> {
        let mut whole = key.clone();
        whole.parts.extend(between.iter().flat_map(|(from, to)| [*from, *to]));
        let (step, home) = self.derived.scanning(&key, &whole);
        let by: Vec<_> = whole.parts.iter().map(|part| part.node).collect();
        let range = RangeOf { key, between, limit, reverse };
        let origin = ValueOrigin::Scan { range, decode: decode_rows::<K, V> };
        let value = self.value(format!("{}#{step}", table.name), origin, home, &by);
        self.derived.gives(step, value.node);
        value
    }

    /// Writes a row, whatever was there.
    pub fn write<K: KeyColumns, V: PlanRow, I: Inputs>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
        inputs: I,
        make: fn(&A, I::Values) -> V,
    ) where
        I::Values: 'static,
    {
        self.put("write", key_of(table, &key), inputs, make);
    }

    /// Writes a row of a key that has none, as the application sees to.
    pub fn insert<K: KeyColumns, V: PlanRow, I: Inputs>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
        inputs: I,
        make: fn(&A, I::Values) -> V,
    ) where
        I::Values: 'static,
    {
        self.put("insert", key_of(table, &key), inputs, make);
    }

    fn put<V: PlanRow, I: Inputs>(
        &mut self,
        what: &str,
        key: KeyOf,
        inputs: I,
        make: fn(&A, I::Values) -> V,
    ) where
        I::Values: 'static,
    {
        let nodes = inputs.nodes();
        let step = self.derived.writing(what, &key, &nodes);
        let make = Box::new(move |all: &dyn Any, found: &[Erased]| {
            encoded(&make(arguments_of::<A>(all), I::values(found)))
        });
        self.state(Statement::Write { step, key, inputs: nodes, make });
    }

    /// Changes a row: a function makes the new one of what is there, if anything; nothing: there is
    /// to be none.
    pub fn update<K: KeyColumns, V: PlanRow, I: Inputs>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
        inputs: I,
        change: fn(&A, Option<V>, I::Values) -> Option<V>,
    ) where
        I::Values: 'static,
    {
        let (key, nodes) = (key_of(table, &key), inputs.nodes());
        let step = self.derived.writing("update", &key, &nodes);
        let change = Box::new(move |all: &dyn Any, row: Option<&SmallBytes>, found: &[Erased]| {
            let row = row.map(decoded::<V>).transpose()?;
            let changed = change(arguments_of::<A>(all), row, I::values(found));
            changed.as_ref().map(encoded).transpose()
        });
        self.state(Statement::Update { step, key, inputs: nodes, change });
    }

    /// Deletes a row, if there is one.
    pub fn delete<K: KeyColumns, V: PlanRow>(
        &mut self,
        table: PlanTable<K, V>,
        key: impl KeyValues<Columns = K>,
    ) {
        let key = key_of(table, &key);
        let step = self.derived.writing("delete", &key, &[]);
        self.state(Statement::Delete { step, key });
    }

    /// Refuses the transaction unless a function of values says yes.
    pub fn refuse_unless<I: Inputs>(
        &mut self,
        reason: &'static str,
        inputs: I,
        test: fn(&A, I::Values) -> bool,
    ) where
        I::Values: 'static,
    {
        let nodes = inputs.nodes();
        let home = self.derived.combined("what decides on a refusal", &nodes);
        let refuses = if home == ValueHome::All { Refuses::Alike } else { Refuses::Alone };
        self.derived.refusing(reason, refuses, home, &nodes);
        let test = Box::new(move |all: &dyn Any, found: &[Erased]| {
            test(arguments_of::<A>(all), I::values(found))
        });
        // Where participants vote, who tells the others what decides refuses for all; but not by
        // what somebody else has.
        let has_holder = self.derived.has_holder(&nodes, home);
        self.state(Statement::Refuse { inputs: nodes, test, reason, has_holder });
    }

    /// Does what follows where a function of values says yes. Whoever does any of it must have
    /// them.
    pub fn when<I: Inputs>(
        &mut self,
        inputs: I,
        test: fn(&A, I::Values) -> bool,
        body: impl FnOnce(&mut PlanBuilder<A>),
    ) where
        I::Values: 'static,
    {
        self.when_body(inputs, test, |plan| {
            body(plan);
            None
        });
    }

    /// The same, where the body gives a value.
    pub fn when_some<I: Inputs, T: Send + Sync + 'static>(
        &mut self,
        inputs: I,
        test: fn(&A, I::Values) -> bool,
        body: impl FnOnce(&mut PlanBuilder<A>) -> PlanValue<T>,
    ) -> PlanValue<Option<Arc<T>>>
    where
        I::Values: 'static,
    {
        let to = self.when_body(inputs, test, |plan| {
            let from = body(plan).node;
            Some((from, gather_one::<T>))
        });
        PlanValue::of(to.expect("the body gives a value"))
    }

    fn when_body<I: Inputs>(
        &mut self,
        inputs: I,
        test: fn(&A, I::Values) -> bool,
        body: impl FnOnce(&mut PlanBuilder<A>) -> Option<(NodeId, Gather)>,
    ) -> Option<NodeId>
    where
        I::Values: 'static,
    {
        let nodes = inputs.nodes();
        self.derived.combined("the condition of a `when`", &nodes);
        let guard = Guard { by: nodes.clone() };
        let (body, given, scope) = self.body(guard, body);
        let gives = given.map(|(from, gather)| self.given(from, scope, gather, &nodes));
        let test = Box::new(move |all: &dyn Any, found: &[Erased]| {
            test(arguments_of::<A>(all), I::values(found))
        });
        let to = gives.as_ref().map(|given| given.to);
        self.state(Statement::When { scope, inputs: nodes, test, body, gives });
        to
    }

    /// Walks a list: does what follows for each of its elements.
    pub fn each<L: Clone + Send + Sync + 'static>(
        &mut self,
        list: PlanValue<Vec<L>>,
        body: impl FnOnce(&mut PlanBuilder<A>, Element<L>),
    ) {
        self.each_body(list, |plan, element| {
            body(plan, element);
            None
        });
    }

    /// The same, where the body gives a value for each.
    pub fn map<L: Clone + Send + Sync + 'static, T: Send + Sync + 'static>(
        &mut self,
        list: PlanValue<Vec<L>>,
        body: impl FnOnce(&mut PlanBuilder<A>, Element<L>) -> PlanValue<T>,
    ) -> PlanValue<Vec<Arc<T>>> {
        let to = self.each_body(list, |plan, element| {
            let from = body(plan, element).node;
            Some((from, gather_list::<T>))
        });
        PlanValue::of(to.expect("the body gives a value"))
    }

    fn each_body<L: Clone + Send + Sync + 'static>(
        &mut self,
        list: PlanValue<Vec<L>>,
        body: impl FnOnce(&mut PlanBuilder<A>, Element<L>) -> Option<(NodeId, Gather)>,
    ) -> Option<NodeId> {
        let (by, home) = (vec![list.node], self.derived.node_home(list.node));
        let of = self.derived.name(list.node).to_owned();
        let mut nodes = (0, 0);
        let guard = Guard { by: by.clone() };
        let (body, given, scope) = self.body(guard, |plan| {
            let item = plan.derived.fresh(format!("{of}[]"), ValueOrigin::Item, home, &by);
            let place = plan.derived.fresh(format!("{of}[].place"), ValueOrigin::Place, home, &by);
            nodes = (item, place);
            body(plan, Element { item: PlanValue::of(item), place: PlanValue::of(place) })
        });
        let gives = given.map(|(from, gather)| self.given(from, scope, gather, &by));
        let to = gives.as_ref().map(|given| given.to);
        let ((item, place), list, take_apart) = (nodes, list.node, take_apart::<L>);
        self.state(Statement::Each { scope, list, take_apart, item, place, body, gives });
        to
    }

    fn body<R>(
        &mut self,
        guard: Guard,
        write: impl FnOnce(&mut PlanBuilder<A>) -> R,
    ) -> (Vec<Statement>, R, usize) {
        self.bodies.push(Vec::new());
        let scope = self.derived.enter(guard);
        let given = write(self);
        self.derived.leave();
        (self.bodies.pop().expect("just pushed"), given, scope)
    }

    fn given(&mut self, from: NodeId, scope: usize, gather: Gather, by: &[NodeId]) -> Given {
        let to = self.derived.gathered(from, scope, by);
        Given { from, to, gather }
    }
}

/// An element of a list that is walked.
#[derive(Debug)]
pub struct Element<L> {
    /// The element.
    pub item: PlanValue<L>,
    /// Its place in the list, from 0.
    pub place: PlanValue<u64>,
}

impl<L> Clone for Element<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Element<L> {}
