//! What becomes of something that need not be done before the commit.

use crate::actions::{Action, ActionCode};
use crate::bytes::SmallBytes;
use crate::delay::Delay;
use crate::options::Settings;
use crate::outcome::Failure;
use crate::procedure::{Procedure, ProcedureFn, ProcedureId};

/// What becomes of a delayed action.
#[derive(Clone, Copy, Debug)]
pub enum Deferral {
    /// It is done when the transaction commits. Where its answer was asked for, it is the one of
    /// this number, from 0.
    Deferred(u32),
    /// The caller is to read the key, run this, and write what it gives.
    Now(ActionCode),
    /// The caller is to run this procedure, on what the transaction reads and writes.
    Run(ProcedureFn),
}

impl PartialEq for Deferral {
    fn eq(&self, other: &Deferral) -> bool {
        match (self, other) {
            (Deferral::Deferred(a), Deferral::Deferred(b)) => a == b,
            (Deferral::Now(a), Deferral::Now(b)) => a == b,
            (Deferral::Run(a), Deferral::Run(b)) => std::ptr::fn_addr_eq(*a, *b),
            (Deferral::Deferred(_) | Deferral::Now(_) | Deferral::Run(_), _) => false,
        }
    }
}

impl Eq for Deferral {}

/// How something is done at once that might have been delayed.
///
/// # Errors
/// There is no action or procedure of that name.
pub fn at_once(delay: &Delay, settings: &Settings) -> Result<Deferral, Failure> {
    match delay {
        Delay::Action(_, _, action) => known_action(action, settings).map(Deferral::Now),
        Delay::Call(id, ..) => known_procedure(id, settings).map(|it| Deferral::Run(it.run)),
    }
}

/// The procedure of that name and version.
///
/// # Errors
/// There is none.
pub fn known_procedure<'a>(
    id: &ProcedureId,
    settings: &'a Settings,
) -> Result<&'a Procedure, Failure> {
    settings.procedures.get(id).ok_or_else(|| {
        let known: Vec<_> = settings.procedures.ids().map(ToString::to_string).collect();
        Failure::Procedure(format!("there is no procedure {id}; there are: {}", known.join(", ")))
    })
}

/// The function of an action.
///
/// # Errors
/// There is none of that name.
pub fn known_action(action: &Action, settings: &Settings) -> Result<ActionCode, Failure> {
    settings.actions.get(&action.name).ok_or_else(|| {
        let text = |name: &SmallBytes| String::from_utf8_lossy(name.as_slice()).into_owned();
        let known: Vec<_> = settings.actions.names().map(text).collect();
        let name = text(&action.name);
        Failure::Space(format!("there is no action `{name}`; there are: {}", known.join(", ")))
    })
}
