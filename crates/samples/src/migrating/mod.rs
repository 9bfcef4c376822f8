//! Objects that move to whoever commits them, with a directory of their owners.
//!
//! # The idea
//! Each key is an object, which one repository *owns* at a time. A transaction asks the repository
//! nearest to its coordinator for all that it needs. That one fetches the objects that it does not
//! own from whoever does, and keeps them. Where it has all, it compares the versions that were read
//! with those that are there, and commits by itself: there is one participant, and one record.
//!
//! # Why that is right
//! An object is at one repository, or on its way between two, and whoever commits has all objects
//! of the transaction. So commits that share an object are one after the other, and the timestamp
//! of each is above those of all that it touches: an object brings along the latest timestamp of
//! whoever gave it. Whoever gives an object logs that before it says so, and repeats it until the
//! receiver has said that it is stable there; each move has the next epoch of its object, so that
//! an object that was received twice is taken once.
//!
//! # Where an object is
//! What never moved is where static placement puts it. A repository has hints
//! ([`Hints`](muesli_core::parts::locator::Hints)) of where others are, which may be stale:
//! whoever gave an object away knows to whom, and passes a request on.
//! What comes by this way has later epochs at each step, so it ends. A repository that got an
//! object tells the [directory](OwnersOfAll), a service beside repository 0, and whoever waits for
//! long asks there. The directory keeps nothing on a disk: if it has forgotten, requests go the
//! long way.
//!
//! # Who goes first
//! Two repositories may each have what the other one needs. An object that a transaction waits for
//! others with is kept for a while, but not from a repository of a smaller number.

mod checkpoint;
mod directory;
mod message;
mod owner;

use muesli_core::judgement::ensure;
use muesli_core::parts::single_repository::{
    SingleRepositoryCoordinator, SingleRepositoryProtocol,
};
use muesli_core::{
    Catalog, Isolation, NodeId, Protocol, Rejection, RepositoryId, Role, ServiceId, SmallBytes,
    SpaceId, View,
};

use directory::directory;

pub use directory::OwnersOfAll;
pub use message::{Message, Object, Record};
pub use owner::ObjectOwner;

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Migrating {}

/// An object's name: its key.
pub type Key = (SpaceId, SmallBytes);

/// Switches that break a rule, to see that the checker notices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    /// A repository that gave an object away goes on as if it had it.
    pub keeps_what_it_gave: bool,
    /// Commits without comparing versions.
    pub skips_validation: bool,
}

impl Protocol for Migrating {
    const NAME: &'static str = "migrating";
    const REPLICATES_ITSELF: bool = false;
    type Message = Message;
    type Record = Record;
    type Switches = Switches;
    type Coordinator = SingleRepositoryCoordinator<Migrating>;
    type Participant = ObjectOwner;
    type Service = OwnersOfAll;

    fn isolation(_: &Self::Switches) -> Isolation {
        Isolation::StrictSerializable
    }

    muesli_core::protocol_without_extras!();
    muesli_core::protocol_measured_by_encoding!();

    fn services(_: &Switches, node: NodeId, catalog: &Catalog) -> Vec<ServiceId> {
        let here = catalog.home(RepositoryId(0)) == node;
        here.then(directory).into_iter().collect()
    }

    fn is_about(message: &Message, catalog: &Catalog) -> bool {
        let is_there =
            |repository: &RepositoryId| usize::from(repository.0) < catalog.repositories();
        match message {
            Message::Want { to, .. } => is_there(to),
            Message::Owns { owners, .. } => owners.holders.iter().all(is_there),
            _ => true,
        }
    }

    fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
        let is_directory = view.me.role == Role::Service(directory());
        match message {
            Message::Ask { ask } => ask.judge(view),
            Message::Tell { tell } => tell.judge(view),
            Message::Want { .. } | Message::Give { .. } | Message::Got { .. } => {
                view.member()?;
                ensure(view.repository().is_some(), Rejection::Role)
            }
            Message::WhereIs { .. } => {
                view.member()?;
                ensure(is_directory, Rejection::Role)
            }
            Message::Owns { owners, .. } => {
                view.member()?;
                ensure(is_directory || view.repository().is_some(), Rejection::Role)?;
                ensure(owners.holders.len() == 1 && owners.epoch > 0, Rejection::Range)
            }
        }
    }

    fn offers_strict(_: &Switches) -> bool {
        true
    }
}

impl SingleRepositoryProtocol for Migrating {
    /// One of the node's own, or where it has none, one by its number.
    fn base(node: NodeId, catalog: &Catalog) -> RepositoryId {
        let count = catalog.repositories();
        let here = (0..count as u16).map(RepositoryId).find(|it| catalog.home(*it) == node);
        here.unwrap_or(RepositoryId((node.0 as usize % count) as u16))
    }
}
