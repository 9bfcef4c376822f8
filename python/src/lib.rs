//! The native part of the Python package `muesli`.
//!
//! A transaction that Python runs is one that is begun and ended by hand: the interpreter runs
//! outside of the loops' states, and each operation is polled in one (`waiting`, for threads;
//! `tasks`, for tasks of asyncio).

mod bodies;
mod callers;
mod database;
mod errors;
mod forks;
mod history;
mod open_transaction;
mod opening;
mod rows;
mod tasks;
mod transaction;
mod values;
mod waiting;

use pyo3::prelude::*;

/// The native part of the package.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::bodies::task_attempts::TaskAttempts;
    #[pymodule_export]
    use crate::database::{Core, opened};
    #[pymodule_export]
    use crate::errors::{
        AnswerLostError, ClosedError, ConflictError, DataError, ForkedError, LimitError,
        MisuseError, MuesliError, RefusedError, TransactionId, TransactionTimeoutError,
        UnavailableError, UnknownOutcomeError,
    };
    #[pymodule_export]
    use crate::forks::note_fork;
    #[pymodule_export]
    use crate::history::{Verdict, check};
    #[pymodule_export]
    use crate::opening::{connect_database, open_database};
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::tasks::operation::Operation;
    #[pymodule_export]
    use crate::tasks::transaction::TaskTransaction;
    #[pymodule_export]
    use crate::tasks::wakers::end_waking;
    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::values::codec::Codec;
    #[pymodule_export]
    use crate::values::scan::Scan;
    #[pymodule_export]
    use crate::values::space::Space;

    /// Exceptions that no answer of a database was made to.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.py().get_type::<MuesliError>().setattr("retryable", false)
    }
}
