//! Commands and what they come after, where members agree on that.

pub(crate) mod execution_order;

use std::fmt;

use muesli_core::wire_struct;

use crate::command::Command;
use crate::id_set::IdSet;

/// A command and its dependencies; no command: it is to be nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OrderedAfter {
    /// What it says.
    pub command: Option<Command>,
    /// What conflicts with it and may come before it.
    pub dependencies: IdSet,
}

impl OrderedAfter {
    /// What is proposed for a command that cannot have been committed.
    pub(crate) fn nothing() -> OrderedAfter {
        OrderedAfter { command: None, dependencies: IdSet::new() }
    }
}

impl fmt::Debug for OrderedAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(_) => write!(f, "after {:?}", self.dependencies.iter().collect::<Vec<_>>()),
            None => f.write_str("nothing"),
        }
    }
}

wire_struct!(OrderedAfter { command: Option<Command>, dependencies: IdSet });
