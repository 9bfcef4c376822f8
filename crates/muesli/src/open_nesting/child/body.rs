//! Bodies that may have open children, without their types: what runs them is compiled once, and
//! not for each of them.

use std::cell::Cell;
use std::pin::Pin;

use crate::bodies::failure::BodyFailure;
use crate::error::Error;
use crate::open_nesting::child::OpenTx;

/// A run of a body, which keeps what that returns.
pub(in crate::open_nesting) type BodyRun<'a> =
    Pin<Box<dyn Future<Output = Result<(), BodyFailure>> + 'a>>;

/// A body of any type.
pub(in crate::open_nesting) trait AnyBody {
    /// Runs it once. What it returned before is dropped.
    fn run<'a>(&'a self, tx: &'a OpenTx) -> BodyRun<'a>;

    /// Drops what it returned: its caller is not told, and it may hold something that the next run
    /// needs.
    fn forget(&self);
}

/// A body, and what its last run returned.
pub(in crate::open_nesting) struct KeptBody<'b, F, T, E> {
    body: &'b F,
    returned: Cell<Option<Result<T, E>>>,
}

impl<'b, F, T, E: From<Error>> KeptBody<'b, F, T, E> {
    pub fn new(body: &'b F) -> KeptBody<'b, F, T, E> {
        KeptBody { body, returned: Cell::new(None) }
    }

    /// What it returns to its caller, after runs of it that ended so.
    pub fn end(&self, ended: Result<(), BodyFailure>) -> Result<T, E> {
        match ended {
            Err(BodyFailure::Database(error)) => Err(error.into()),
            Ok(()) | Err(BodyFailure::Own) => self.returned.take().expect("it has returned"),
        }
    }
}

impl<F, T, E> AnyBody for KeptBody<'_, F, T, E>
where
    F: AsyncFn(&OpenTx) -> Result<T, E>,
    E: From<Error> + 'static,
{
    fn run<'a>(&'a self, tx: &'a OpenTx) -> BodyRun<'a> {
        self.forget();
        Box::pin(async move {
            let returned = (self.body)(tx).await;
            let ended = returned.as_ref().map(drop).map_err(BodyFailure::of);
            self.returned.set(Some(returned));
            ended
        })
    }

    fn forget(&self) {
        drop(self.returned.take());
    }
}
