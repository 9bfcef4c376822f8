//! By what means the transactions of a workload reach its data: rows, or objects
//! ([`muesli::objects`]).
//!
//! What they do is the same, and so is what is checked. So the two can be set beside each other.

use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};

/// What workloads take whose data may be objects.
pub const INTERFACE: Parameter = Parameter::new(
    "interface",
    "rows",
    ParameterKind::Choice(&["rows", "objects"]),
    "Whether transactions read and write rows, or open objects and change these.",
);

/// By what means data are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Rows are read and written.
    Rows,
    /// Objects are opened and changed.
    Objects,
}

impl Interface {
    /// As the parameter says.
    pub fn new(values: &Values) -> Interface {
        match values.word("interface") {
            "objects" => Interface::Objects,
            _ => Interface::Rows,
        }
    }

    /// Whether actions may be delayed, which write rows that nobody has opened.
    ///
    /// # Errors
    /// They are to be, and data are objects.
    pub fn check_delayed(self, delayed: bool) -> Result<(), ParameterError> {
        match self {
            Interface::Objects if delayed => Err(ParameterError::Incompatible(
                "delayed=true needs interface=rows: objects are not changed by delayed actions"
                    .to_owned(),
            )),
            Interface::Objects | Interface::Rows => Ok(()),
        }
    }
}
