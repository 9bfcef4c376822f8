//! The table of protocols: those of the product, and those that the program has registered.

use std::sync::{Arc, RwLock};

use muesli_core::{
    AnyProtocol, LoggedRole as _, Nanos, Participant, Protocol, RepositoryId, Settings, Typed,
};
use muesli_group::{GroupSettings, Grouped, Limits};
use muesli_protocols::{Choice, NAMES, canonical_name, choose};
use thiserror::Error;

/// How groups keep repositories.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// The time between two ticks of a group's consensus; see [`GroupSettings::tick`].
    pub tick: Nanos,
    /// Whether members go on with less than a majority of memories; see
    /// [`GroupSettings::accepts_loss`].
    pub accepts_loss: bool,
    /// Limits of size and time.
    pub limits: Limits,
}

impl Default for Grouping {
    fn default() -> Grouping {
        let GroupSettings { tick, accepts_loss, limits, .. } = GroupSettings::<()>::default();
        Grouping { tick, accepts_loss, limits }
    }
}

/// A protocol that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoProtocol {
    /// There is none of this name.
    #[error("there is no protocol `{name}`; there are: {}", known.join(", "))]
    Unknown {
        /// As it was asked for.
        name: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// It replicates its data itself.
    #[error("protocol `{name}` keeps its data at several nodes by itself: it has no groups")]
    InGroups {
        /// Its name.
        name: &'static str,
    },
    /// A member of a group that is behind gets the state by a checkpoint.
    #[error("protocol `{name}` has no checkpoints, which members of groups need: it has no groups")]
    WithoutCheckpoints {
        /// Its name.
        name: &'static str,
    },
}

impl NoProtocol {
    /// There is none of this name.
    pub fn unknown(name: &str) -> NoProtocol {
        NoProtocol::Unknown { name: name.to_owned(), known: names() }
    }
}

/// A protocol that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotRegistered {
    /// The name is taken.
    #[error("there is a protocol `{0}` already")]
    Taken(&'static str),
    /// The name is none.
    #[error(
        "`{0}` is no name of a protocol: allowed are small letters, digits and hyphens, 1 to \
         {NAME_BYTES_MAX} of them"
    )]
    Name(&'static str),
}

/// The longest name of a protocol: handshakes and files carry it.
const NAME_BYTES_MAX: usize = 64;

/// Makes a protocol of known type, alone or in groups.
type Make = Arc<dyn Fn(Option<Grouping>) -> Result<Arc<dyn AnyProtocol>, NoProtocol> + Send + Sync>;

/// What the program has registered, in the order of their registration.
static REGISTERED: RwLock<Vec<(&'static str, Make)>> = RwLock::new(Vec::new());

/// The names that `--protocol` takes: those of the product, and then what was registered.
pub fn names() -> Vec<&'static str> {
    let registered = REGISTERED.read().expect("nobody panics while registering");
    NAMES.iter().copied().chain(registered.iter().map(|(name, _)| *name)).collect()
}

/// Registers a protocol under a name of its own, with its switches as `switches` say, for as long
/// as the process runs.
///
/// # Errors
/// The name is taken, or is none.
pub fn register<P: Protocol<Switches: Sync>>(
    name: &'static str,
    switches: P::Switches,
) -> Result<(), NotRegistered> {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(fits) {
        return Err(NotRegistered::Name(name));
    }
    let mut registered = REGISTERED.write().expect("nobody panics while registering");
    let mut taken = registered.iter().map(|(name, _)| *name).chain(NAMES.iter().copied());
    if taken.any(|it| it == canonical_name(name)) {
        return Err(NotRegistered::Taken(name));
    }
    registered.push((name, Arc::new(move |grouping| make::<P>(name, switches.clone(), grouping))));
    Ok(())
}

/// The protocol called `name`, with its switches as the name says; in groups where a `grouping` is
/// given.
///
/// # Errors
/// There is none of this name, or not in groups.
pub fn protocol(
    name: &str,
    grouping: Option<Grouping>,
) -> Result<Arc<dyn AnyProtocol>, NoProtocol> {
    match choose(name, Making(grouping)) {
        Ok(made) => made,
        Err(Making(grouping)) => {
            let registered = REGISTERED.read().expect("nobody panics while registering");
            let found = registered.iter().find(|(known, _)| *known == name);
            let make = found.map(|(_, make)| Arc::clone(make));
            drop(registered);
            make.ok_or_else(|| NoProtocol::unknown(name))?(grouping)
        }
    }
}

struct Making(Option<Grouping>);

impl Choice for Making {
    type Output = Result<Arc<dyn AnyProtocol>, NoProtocol>;

    fn chosen<P: Protocol>(self, switches: P::Switches) -> Self::Output {
        make::<P>(P::NAME, switches, self.0)
    }
}

fn make<P: Protocol>(
    name: &'static str,
    switches: P::Switches,
    grouping: Option<Grouping>,
) -> Result<Arc<dyn AnyProtocol>, NoProtocol> {
    let Some(Grouping { tick, accepts_loss, limits }) = grouping else {
        return Ok(Arc::new(Typed::<P>(switches)));
    };
    if P::REPLICATES_ITSELF {
        return Err(NoProtocol::InGroups { name });
    }
    let empty = P::Participant::new(RepositoryId(0), &Settings::default(), &switches);
    if empty.begin_checkpoint().is_none() {
        return Err(NoProtocol::WithoutCheckpoints { name });
    }
    let switches =
        GroupSettings { inner: switches, tick, accepts_loss, limits, ..GroupSettings::default() };
    Ok(Arc::new(Typed::<Grouped<P>>(switches)))
}
