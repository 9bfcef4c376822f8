//! What an open child hands to its scope.

use serde::Serialize;

use super::layer::NestingLimits;
use super::locks::LockMode;
use super::rows::{HandlerCall, HeldLock};
use crate::error::Error;
use crate::transaction::tx::Tx;

/// The abstract lock that an open child begins with: `()` for none, or its name and its mode.
#[derive(Debug)]
pub struct OpenLock(Option<(Vec<u8>, LockMode)>);

impl From<()> for OpenLock {
    fn from((): ()) -> OpenLock {
        OpenLock(None)
    }
}

impl<I: AsRef<[u8]>> From<(I, &LockMode)> for OpenLock {
    fn from((id, mode): (I, &LockMode)) -> OpenLock {
        OpenLock(Some((id.as_ref().to_vec(), mode.clone())))
    }
}

/// How an open child is run.
#[derive(Debug, Default)]
pub(super) struct ChildPlan {
    pub locks: Vec<(HeldLock, LockMode)>,
    /// Locks that the body may take.
    pub expected: Vec<Vec<u8>>,
    pub handlers: Handlers,
    pub without_compensation: bool,
    /// The rows that it uses are locked, and what it writes can be put back.
    pub locks_rows: bool,
    pub fault: Option<Error>,
}

/// The handlers of an open child.
#[derive(Clone, Debug, Default)]
pub(super) struct Handlers {
    pub on_abort: Option<HandlerCall>,
    pub on_commit: Option<HandlerCall>,
}

impl ChildPlan {
    pub fn beginning_with(OpenLock(lock): OpenLock) -> ChildPlan {
        let held = |(id, mode)| (HeldLock { id, hold: false }, mode);
        ChildPlan { locks: lock.map(held).into_iter().collect(), ..ChildPlan::default() }
    }

    pub fn lock(&mut self, id: &[u8], mode: &LockMode, hold: bool) {
        self.locks.push((HeldLock { id: id.to_vec(), hold }, mode.clone()));
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
        to.wake_at(of.alarm());
    }
}
