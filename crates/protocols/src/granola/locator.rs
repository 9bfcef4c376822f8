//! Which repository holds which partition (section 7.1: naming).
//!
//! Where nobody moved a partition, the catalog says who holds it. Who holds those that were moved
//! is kept by the *name service*: the repositories that hold partition 0 in the catalog, whatever
//! has become of that partition since. Each partition has an epoch of its own, which counts its
//! moves. Coordinators keep what they have heard of it, and say in each part of a request by which
//! epoch they sent it; a repository that knows better refuses (see
//! [`moving`](super::participant::migration)).
//!
//! The thesis has one epoch for all names, kept by repositories and clients. A client that
//! refreshes a part of its map would then pass with what it did not refresh.

use std::sync::Arc;

use muesli_core::parts::locator::{OwnerDirectory, Static};
use muesli_core::{Catalog, RepositoryId};

use super::message::{Move, Owners, Part, Repositories, Request, Task};

/// Those who keep names.
pub(super) fn name_service(catalog: &Catalog) -> impl Iterator<Item = RepositoryId> + use<> {
    Static.replicas_of(0, catalog)
}

/// Those who hold a partition; with `owners` where it was moved.
pub(super) fn holders(
    partition: u16,
    owners: Option<&Arc<Owners>>,
    catalog: &Catalog,
) -> Repositories {
    match owners {
        Some(owners) => owners.holders.clone(),
        None => Static.replicas_of(partition, catalog).collect(),
    }
}

/// Who holds a partition after a move; `None`: it cannot be.
pub(super) fn after(
    names: &OwnerDirectory<u16>,
    order: &Move,
    catalog: &Catalog,
) -> Option<Owners> {
    names.after((&order.partition, order.epoch), order.from, order.to, catalog)
}

impl Part {
    /// Whether `repository` holds its partition, as its coordinator knows it.
    #[inline]
    pub(super) fn is_held_by(&self, repository: RepositoryId, catalog: &Catalog) -> bool {
        match &self.owners {
            Some(owners) => owners.holders.contains(&repository),
            None => Static.holds(repository, self.partition, catalog),
        }
    }

    /// Those who hold its partition, as its coordinator knows it.
    pub(super) fn holders(&self, catalog: &Catalog) -> Repositories {
        holders(self.partition, self.owners.as_ref(), catalog)
    }

    /// By which epoch of its partition it was sent.
    pub(super) fn epoch(&self) -> u64 {
        self.owners.as_ref().map_or(0, |owners| owners.epoch)
    }

    /// Whether it is about keys of its partition.
    pub(super) fn is_about_keys(&self) -> bool {
        !matches!(self.task, Task::Take { .. } | Task::Move(_) | Task::Names)
    }
}

impl Request {
    /// The move that it is.
    pub(super) fn moving(&self) -> Option<&Move> {
        match &self.parts.first()?.task {
            Task::Move(order) => Some(order),
            _ => None,
        }
    }
}
