//! What an open child hands to its scope.

use serde::Serialize;

use super::layer::NestingLimits;
use super::locks::LockMode;
use super::rows::{HandlerCall, HeldLock};
use crate::error::Error;
use crate::transaction::tx::Tx;

/// How an open child is run: the locks that are taken when it commits, and what is to be done when
/// the transaction that it is of ends. Locks and handlers that depend on what the child finds are
/// given to [`OpenTx`](super::OpenTx) in its body.
#[derive(Debug, Default)]
pub struct OpenNested {
    pub(super) locks: Vec<(HeldLock, LockMode)>,
    /// Locks that the body may take.
    pub(super) expected: Vec<Vec<u8>>,
    pub(super) handlers: Handlers,
    pub(super) without_compensation: bool,
    pub(super) fault: Option<Error>,
}

/// The handlers of an open child.
#[derive(Clone, Debug, Default)]
pub(super) struct Handlers {
    pub on_abort: Option<HandlerCall>,
    pub on_commit: Option<HandlerCall>,
}

impl OpenNested {
    /// A child with no locks and no handlers.
    pub fn new() -> OpenNested {
        OpenNested::default()
    }

    /// Takes an abstract lock in this mode when the child commits. It is held until the transaction
    /// ends that the child is of.
    pub fn lock(mut self, id: impl AsRef<[u8]>, mode: &LockMode) -> OpenNested {
        self.locks.push((HeldLock { id: id.as_ref().to_vec(), hold: false }, mode.clone()));
        self
    }

    /// As [`lock`](Self::lock); and if the transaction that the child is of is an open child
    /// itself, its commit hands the lock to the transaction that it is of in turn.
    pub fn hold(mut self, id: impl AsRef<[u8]>, mode: &LockMode) -> OpenNested {
        self.locks.push((HeldLock { id: id.as_ref().to_vec(), hold: true }, mode.clone()));
        self
    }

    /// The body may [take](super::OpenTx::acquire_lock) this lock, in a mode that only it knows. It
    /// is looked at as the child begins, while the body runs, and not when it is taken: a round
    /// trip less where its row lives elsewhere.
    pub fn expect_lock(mut self, id: impl AsRef<[u8]>) -> OpenNested {
        self.expected.push(id.as_ref().to_vec());
        self
    }

    /// Registers a compensation: if the transaction that the child is of is aborted after the child
    /// has committed, the [handler](super::OpenNesting::handler) of this name is run with these
    /// arguments, in a transaction of its own, after those of later children.
    pub fn on_abort<A: Serialize + ?Sized>(mut self, name: &str, arguments: &A) -> OpenNested {
        match call(name, arguments) {
            Ok(call) => self.handlers.on_abort = Some(call),
            Err(error) => self.fault = Some(error),
        }
        self
    }

    /// Registers a commit handler: it is run when the transaction that the child is of has
    /// committed, before the locks go.
    pub fn on_commit<A: Serialize + ?Sized>(mut self, name: &str, arguments: &A) -> OpenNested {
        match call(name, arguments) {
            Ok(call) => self.handlers.on_commit = Some(call),
            Err(error) => self.fault = Some(error),
        }
        self
    }

    /// What the child writes may stay where its transaction is aborted: no
    /// [warning](super::OpenNesting::on_warning).
    pub fn without_compensation(self) -> OpenNested {
        OpenNested { without_compensation: true, ..self }
    }
}

/// A call of a handler.
///
/// # Errors
/// [`Error::Codec`]: the arguments cannot be serialized.
pub(super) fn call<A: Serialize + ?Sized>(name: &str, arguments: &A) -> Result<HandlerCall, Error> {
    let arguments = postcard::to_stdvec(arguments).map_err(|error| {
        Error::Codec(format!("arguments of handler `{name}` cannot be stored: {error}"))
    })?;
    Ok(HandlerCall { name: name.to_owned(), arguments })
}

/// The name of a lock, for people.
pub(super) fn lock_name(id: &[u8]) -> String {
    String::from_utf8_lossy(id).into_owned()
}

impl NestingLimits {
    fn over(what: &str, is: usize, limit: usize, field: &str) -> Error {
        Error::Nesting(format!(
            "open nesting: {what} is {is}, over the limit of {limit} (`NestingLimits::{field}`)"
        ))
    }

    /// # Errors
    /// [`Error::Nesting`]: it is over a limit.
    pub(super) fn check_lock(&self, id: &[u8]) -> Result<(), Error> {
        let (is, limit) = (id.len(), self.lock_bytes);
        match is > limit {
            true => Err(NestingLimits::over("the size of a lock's name", is, limit, "lock_bytes")),
            false => Ok(()),
        }
    }

    /// # Errors
    /// As above.
    pub(super) fn check_handlers(&self, handlers: &Handlers) -> Result<(), Error> {
        for call in [&handlers.on_abort, &handlers.on_commit].into_iter().flatten() {
            let (is, limit) = (call.arguments.len() + call.name.len(), self.argument_bytes);
            if is > limit {
                let what = "the size of a handler's name and arguments";
                return Err(NestingLimits::over(what, is, limit, "argument_bytes"));
            }
        }
        Ok(())
    }

    /// # Errors
    /// As above.
    pub(super) fn check_scope(&self, children: u64, locks: usize) -> Result<(), Error> {
        if locks > self.locks {
            let what = "the number of locks of a transaction";
            return Err(NestingLimits::over(what, locks, self.locks, "locks"));
        }
        if children > self.children as u64 {
            let what = "the number of open children of a transaction";
            return Err(NestingLimits::over(what, children as usize, self.children, "children"));
        }
        Ok(())
    }

    /// # Errors
    /// As above.
    pub(super) fn check_depth(&self, depth: usize) -> Result<(), Error> {
        match depth > self.depth {
            true => Err(NestingLimits::over("the depth of children", depth, self.depth, "depth")),
            false => Ok(()),
        }
    }
}

/// A conflict that a handle of the same transaction met is the transaction's.
pub(super) fn pass_conflict(of: &Tx, to: &Tx) {
    if let Some(conflict) = of.conflict() {
        to.failed(conflict);
    }
}
