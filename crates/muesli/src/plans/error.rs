//! What a plan cannot be in one round, and what can be done about it.

use thiserror::Error;

/// Why a plan is no transaction of one round. Each names the step and the column.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlannedProcedureError {
    /// A value that one repository reads is needed at another one.
    #[error(
        "plan `{procedure}`: {step} at {at} needs `{column}`, which is known at {from}: the value \
         crosses. Either cut that row in two and have the half that never changes everywhere; or \
         share what is read (`shared`), so that all participants are told; or pass `{column}` as \
         an argument, and refuse where it has changed"
    )]
    Crosses {
        /// The procedure.
        procedure: String,
        /// The step that needs it.
        step: String,
        /// Where that is.
        at: String,
        /// What it needs.
        column: String,
        /// Where that is known.
        from: String,
    },
    /// Where a step is follows from what is read.
    #[error(
        "plan `{procedure}` takes two rounds: where {step} is follows from `{column}`, which is \
         not known from the arguments. Read that in a round before, pass it as an argument, and \
         refuse where a shared read finds it changed; or leave the work to those who read"
    )]
    TwoRounds {
        /// The procedure.
        procedure: String,
        /// The step.
        step: String,
        /// The value.
        column: String,
    },
    /// A key that lacks columns that say where it is.
    #[error(
        "plan `{procedure}`: {step} names {named} columns, and the unit of the table has {needed}: \
         a step is about one unit"
    )]
    Unit {
        /// The procedure.
        procedure: String,
        /// The step.
        step: String,
        /// So many columns are named.
        named: usize,
        /// So many are needed.
        needed: usize,
    },
    /// A value that is used outside of the body that it comes about in.
    #[error(
        "plan `{procedure}`: {step} uses `{column}` outside of the `when` or `each` that it comes \
         about in: let the body give it (`when_some`, `map`)"
    )]
    Scope {
        /// The procedure.
        procedure: String,
        /// The step.
        step: String,
        /// The value.
        column: String,
    },
    /// A shared read of a key that follows from what is read.
    #[error(
        "plan `{procedure}`: {step} is shared, and its key follows from `{column}`, which is not \
         known from the arguments"
    )]
    Shared {
        /// The procedure.
        procedure: String,
        /// The step.
        step: String,
        /// The value.
        column: String,
    },
    /// A table that is everywhere is read and written, or is read at a place that knows more than
    /// others.
    #[error(
        "plan `{procedure}`: {step} is of a table that is everywhere and that the plan writes: \
         what it finds there is what another fragment has written, or not yet"
    )]
    ReadAndWritten {
        /// The procedure.
        procedure: String,
        /// The step.
        step: String,
    },
    /// Nothing is touched.
    #[error("plan `{procedure}` has no step that reads or writes")]
    Empty {
        /// The procedure.
        procedure: String,
    },
}
