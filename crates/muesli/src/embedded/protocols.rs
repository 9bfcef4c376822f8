//! Which protocols an embedded database can have: those of the product, and what was registered.
//!
//! The embedded driver knows the type of its protocol, so that its operations are calls. What a
//! program registers is therefore compiled once more, where it is registered.

use std::sync::{Arc, RwLock};

use muesli_core::Protocol;
use muesli_core::machine::has_validators;
use muesli_protocols::{Choice, NAMES, choose};

use super::Start;
use crate::Db;
use crate::error::Error;
use crate::options::Options;

/// Starts a database under a protocol of known type.
type StartAs = Arc<dyn Fn(Start<'_>) -> Result<Db, Error> + Send + Sync>;

/// What the program has registered, in the order of their registration.
static REGISTERED: RwLock<Vec<(&'static str, StartAs)>> = RwLock::new(Vec::new());

/// The names that [`Options::protocol`](crate::Options::protocol) takes: those of the product, and
/// then what the program has [registered](register_protocol).
pub fn protocol_names() -> Vec<&'static str> {
    let registered = REGISTERED.read().expect("nobody panics while registering");
    NAMES.iter().copied().chain(registered.iter().map(|(name, _)| *name)).collect()
}

/// Whether a protocol can be had with these options, before anything is on the disk.
pub(super) fn judge_options<P: Protocol>(
    options: &Options,
    switches: &P::Switches,
) -> Result<(), Error> {
    let name = &options.protocol;
    if options.masters > 0 && !P::has_masters(switches) {
        let having = with_masters().join(", ");
        let error = format!("protocol `{name}` has no masters; these have: {having}");
        return Err(Error::Options(error));
    }
    if options.tree.is_some() && !has_validators::<P>(switches) {
        return Err(Error::Options(format!("protocol `{name}` goes by no tree")));
    }
    if options.shards.is_some() && !P::has_shards(switches) {
        return Err(Error::Options(format!("protocol `{name}` has no shards")));
    }
    let mut spaces = options.spaces.iter();
    let judged = spaces.try_for_each(|(name, it)| it.judge_everywhere(name, P::KEEPS_EVERYWHERE));
    judged.map_err(Error::Options)
}

/// The protocols of the product whose masters may be on loops of their own.
fn with_masters() -> Vec<&'static str> {
    struct MastersQuestion;
    impl Choice for MastersQuestion {
        type Output = bool;

        fn chosen<P: Protocol>(self, switches: P::Switches) -> bool {
            P::has_masters(&switches)
        }
    }
    NAMES
        .iter()
        .copied()
        .filter(|name| choose(name, MastersQuestion).is_ok_and(|has| has))
        .collect()
}

/// Registers a protocol under a name of its own, with its switches as `switches` say, for as long
/// as the process runs: databases of this process can have it, embedded and served, and so can
/// simulations, searches and benchmarks.
///
/// # Errors
/// The name is taken, or is none: small letters, digits and hyphens are allowed.
pub fn register_protocol<P: Protocol>(
    name: &'static str,
    switches: P::Switches,
) -> Result<(), Error> {
    #[cfg(feature = "cluster")]
    muesli_registry::register::<P>(name, switches.clone())
        .map_err(|error| Error::Options(error.to_string()))?;
    #[cfg(not(feature = "cluster"))]
    if protocol_names().contains(&name) {
        return Err(Error::Options(format!("there is a protocol `{name}` already")));
    }
    let start: StartAs = Arc::new(move |start: Start<'_>| start.chosen::<P>(switches.clone()));
    REGISTERED.write().expect("nobody panics while registering").push((name, start));
    Ok(())
}

/// Starts a database under the protocol called `name`.
pub(super) fn start_named(name: &str, start: Start<'_>) -> Result<Db, Error> {
    let start = match choose(name, start) {
        Ok(started) => return started,
        Err(start) => start,
    };
    let registered = REGISTERED.read().expect("nobody panics while registering");
    let found = registered.iter().find(|(known, _)| *known == name);
    let start_as = found.map(|(_, start_as)| Arc::clone(start_as));
    drop(registered);
    let unknown = || {
        let known = protocol_names().join(", ");
        Error::Options(format!("there is no protocol `{name}`; there are: {known}"))
    };
    start_as.ok_or_else(unknown)?(start)
}
