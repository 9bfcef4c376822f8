//! What a plan is made of: values, each from those before it, and statements that use them.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use muesli_core::{SmallBytes, Stop, UnitPart};

use super::table::TableUnit;

/// A value whose type its users know.
pub(super) type Erased = Arc<dyn Any + Send + Sync>;
/// The number of a value in its plan.
pub(super) type NodeId = usize;
/// The number of a scope: what is in the body of one `when` or `each`.
pub(super) type ScopeId = usize;

/// A value of a plan: an argument, a column, what a step reads, or what follows from those. A key
/// is made of such values, and a closure sees those that it is given.
pub struct PlanValue<T> {
    pub(super) node: NodeId,
    types: PhantomData<fn() -> T>,
}

impl<T> Clone for PlanValue<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PlanValue<T> {}

impl<T> fmt::Debug for PlanValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.node)
    }
}

impl<T> PlanValue<T> {
    pub(super) fn of(node: NodeId) -> PlanValue<T> {
        PlanValue { node, types: PhantomData }
    }
}

/// Makes a value from the arguments.
pub(super) type FromArguments = Box<dyn Fn(&dyn Any) -> Erased + Send + Sync>;
/// Makes a value from another one.
pub(super) type FromOne = Box<dyn Fn(&Erased) -> Erased + Send + Sync>;
/// Makes a value from the arguments and others.
pub(super) type FromMany = Box<dyn Fn(&dyn Any, &[Erased]) -> Erased + Send + Sync>;
/// Decides by the arguments and other values.
pub(super) type Test = Box<dyn Fn(&dyn Any, &[Erased]) -> bool + Send + Sync>;
/// Makes a row as it is stored from the arguments and others.
pub(super) type MakeRow =
    Box<dyn Fn(&dyn Any, &[Erased]) -> Result<SmallBytes, Stop> + Send + Sync>;
/// Makes a row from what is there; nothing: there is to be none.
pub(super) type ChangeRow = Box<
    dyn Fn(&dyn Any, Option<&SmallBytes>, &[Erased]) -> Result<Option<SmallBytes>, Stop>
        + Send
        + Sync,
>;
/// Makes a value of rows as they are stored.
pub(super) type DecodeRow = fn(Option<&SmallBytes>) -> Result<Erased, Stop>;
/// Makes a value of the rows of a range.
pub(super) type DecodeRows = fn(&[(SmallBytes, SmallBytes)]) -> Result<Erased, Stop>;
/// Makes a list of values of one type.
pub(super) type Gather = fn(Vec<Erased>) -> Erased;
/// Takes a list apart.
pub(super) type TakeApart = fn(&Erased) -> Vec<Erased>;

/// A table as steps name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRef {
    pub name: &'static str,
    pub unit: TableUnit,
    pub parts: &'static [UnitPart],
}

/// A part of a key.
#[derive(Clone, Copy)]
pub(super) struct KeyPart {
    pub node: NodeId,
    pub encode: fn(&Erased, &mut Vec<u8>),
}

/// A key, or the first parts of one.
#[derive(Clone)]
pub(super) struct KeyOf {
    pub table: TableRef,
    pub parts: Vec<KeyPart>,
}

impl KeyOf {
    /// The parts that say where the key is: none where the table is everywhere.
    pub fn unit(&self) -> &[KeyPart] {
        match self.table.unit {
            TableUnit::Key => &self.parts,
            TableUnit::Unit { columns, .. } => &self.parts[..columns.min(self.parts.len())],
            TableUnit::Everywhere => &[],
        }
    }
}

/// Which rows of a range.
pub(super) struct RangeOf {
    pub key: KeyOf,
    /// The first value of the next column, and the first one after it.
    pub between: Option<(KeyPart, KeyPart)>,
    pub limit: Option<usize>,
    pub reverse: bool,
}

/// How a value comes about.
pub(super) enum ValueOrigin {
    Argument(FromArguments),
    Constant(Erased),
    Field {
        of: NodeId,
        get: FromOne,
    },
    /// The element of the list that is walked.
    Item,
    /// Its place in the list, from 0.
    Place,
    Computed {
        inputs: Vec<NodeId>,
        make: FromMany,
    },
    Read {
        key: KeyOf,
        decode: DecodeRow,
        shared: bool,
    },
    Scan {
        range: RangeOf,
        decode: DecodeRows,
    },
    /// What the body of an `each` gave for every element, or that of a `when` if it ran.
    Gathered,
}

/// A value of a plan, with all that is derived of it.
pub(super) struct PlanNode {
    /// As explanations call it.
    pub name: String,
    pub origin: ValueOrigin,
    /// In whose body it is.
    pub scope: ScopeId,
    /// Who has it.
    pub home: ValueHome,
    /// Whether it follows from the arguments alone.
    pub is_argument: bool,
    /// The step that gives it, where one does.
    pub step: Option<usize>,
    /// The units whose holders tell all others what it follows from.
    pub shared: Vec<usize>,
    /// Whether what is shared for it is of other units for each element of a list.
    pub is_shared_apart: bool,
    /// The steps that find what it follows from.
    pub found_by: Vec<usize>,
}

/// Which participants have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueHome {
    /// All of them.
    All,
    /// Those that hold a unit, by its number in the plan.
    At(usize),
    /// Parts of it are at several units.
    Scattered,
}

/// Where a step is: the value of some columns in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitOf {
    /// The domain; of keys that are placed one by one, the table's name.
    pub domain: &'static str,
    pub nodes: Vec<NodeId>,
    /// As explanations call it.
    pub text: String,
}

/// What a plan does, one after the other.
pub(super) enum Statement {
    /// A value comes about.
    Value(NodeId),
    Write {
        step: usize,
        key: KeyOf,
        inputs: Vec<NodeId>,
        make: MakeRow,
    },
    Update {
        step: usize,
        key: KeyOf,
        inputs: Vec<NodeId>,
        change: ChangeRow,
    },
    Delete {
        step: usize,
        key: KeyOf,
    },
    When {
        scope: ScopeId,
        inputs: Vec<NodeId>,
        test: Test,
        body: Vec<Statement>,
        gives: Option<Given>,
    },
    Each {
        scope: ScopeId,
        list: NodeId,
        take_apart: TakeApart,
        item: NodeId,
        place: NodeId,
        body: Vec<Statement>,
        gives: Option<Given>,
    },
    Refuse {
        inputs: Vec<NodeId>,
        test: Test,
        reason: &'static str,
        /// Whether one participant has all that the others are told for it, and so refuses for all
        /// where they vote.
        has_holder: bool,
    },
}

/// What a body gives to those behind it.
pub(super) struct Given {
    /// In the body.
    pub from: NodeId,
    /// Behind it.
    pub to: NodeId,
    pub gather: Gather,
}
