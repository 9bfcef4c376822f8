//! The exceptions, by what there is to do about them.

use muesli::{Error, ErrorKind, TxnId};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    muesli,
    MuesliError,
    PyException,
    "What a database answers instead of a result; the base of all exceptions of this package."
);
create_exception!(
    muesli,
    ConflictError,
    MuesliError,
    "Other transactions were in the way. Nothing was changed; run it again later."
);
create_exception!(
    muesli,
    UnknownOutcomeError,
    MuesliError,
    "The transaction may or may not have taken effect: ask `Database.outcome`, or read it."
);
create_exception!(
    muesli,
    LimitError,
    MuesliError,
    "Something is larger than allowed. Nothing was changed."
);
create_exception!(
    muesli,
    UnavailableError,
    MuesliError,
    "The database, or a part of it, does not answer, is full or overloaded."
);
create_exception!(muesli, ClosedError, UnavailableError, "The database is closed.");
create_exception!(
    muesli,
    TransactionTimeoutError,
    MuesliError,
    "The transaction was open for longer than its timeout. Nothing was changed."
);
create_exception!(
    muesli,
    RefusedError,
    MuesliError,
    "A procedure refused, or a body gave up. Nothing was changed."
);
create_exception!(
    muesli,
    AnswerLostError,
    MuesliError,
    "The transaction committed; what its procedures answered was lost."
);
create_exception!(
    muesli,
    DataError,
    MuesliError,
    "Stored bytes are not what the space's codec expects."
);
create_exception!(
    muesli,
    MisuseError,
    MuesliError,
    "The call itself cannot be: the program is to be changed."
);
create_exception!(
    muesli,
    ForkedError,
    MisuseError,
    "The database was opened by the process that this one was forked from."
);

/// Which transaction an outcome is unknown of, for `Database.outcome`.
#[pyclass(frozen, module = "muesli")]
pub struct TransactionId(pub TxnId);

#[pymethods]
impl TransactionId {
    fn __repr__(&self) -> String {
        format!("<TransactionId {}>", self.0)
    }
}

/// Whether a body is run again that met this: another attempt may well commit.
pub fn runs_again(error: &Error) -> bool {
    match error {
        Error::Conflict { reason, .. } => reason.is_retryable(),
        other => other.kind() == ErrorKind::Conflict && other.is_retryable(),
    }
}

/// The exception of an error.
pub fn raised(error: Error) -> PyErr {
    let (text, retryable) = (error.to_string(), error.is_retryable());
    let raised = match &error {
        Error::Closed => ClosedError::new_err(text),
        other => match other.kind() {
            ErrorKind::Conflict => ConflictError::new_err(text),
            ErrorKind::Unknown => UnknownOutcomeError::new_err(text),
            ErrorKind::Limit => LimitError::new_err(text),
            ErrorKind::Unavailable => UnavailableError::new_err(text),
            ErrorKind::Timeout => TransactionTimeoutError::new_err(text),
            ErrorKind::Rollback => RefusedError::new_err(text),
            ErrorKind::AnswerLost => AnswerLostError::new_err(text),
            ErrorKind::Data => DataError::new_err(text),
            ErrorKind::Misuse => MisuseError::new_err(text),
            _ => MuesliError::new_err(text),
        },
    };
    let noted = Python::attach(|py| {
        let value = raised.value(py);
        value.setattr("retryable", retryable)?;
        match error {
            Error::Unknown { txn, .. } => value.setattr("transaction", TransactionId(txn)),
            _ => Ok(()),
        }
    });
    noted.err().unwrap_or(raised)
}

/// The program is to be changed, as this text says.
pub fn misuse(text: impl Into<String>) -> PyErr {
    MisuseError::new_err(text.into())
}
