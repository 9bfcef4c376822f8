//! Why a body did not end well, where its own type of errors is kept elsewhere.

use std::any::Any;

use crate::error::Error;

/// What is known of a body that did not end well by who does not know its types.
#[derive(Debug)]
pub(crate) enum BodyFailure {
    /// It returned an error of its own, which is kept elsewhere.
    Own,
    /// It returned an error of the database, or was ended by one.
    Database(Error),
}

impl BodyFailure {
    /// Of a body that returned this.
    pub fn of<E: 'static>(error: &E) -> BodyFailure {
        match (error as &dyn Any).downcast_ref::<Error>() {
            Some(error) => BodyFailure::Database(error.clone()),
            None => BodyFailure::Own,
        }
    }

    /// The database's error, if it is one.
    pub fn database(&self) -> Option<&Error> {
        match self {
            BodyFailure::Own => None,
            BodyFailure::Database(error) => Some(error),
        }
    }
}

impl From<Error> for BodyFailure {
    fn from(error: Error) -> BodyFailure {
        BodyFailure::Database(error)
    }
}
