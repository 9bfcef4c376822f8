//! Why a map makes no sense.

use muesli_core::catalog::{CatalogError, NotATree, ShardSitesError, TreeError};
use muesli_group::layout::{self, Unfit};
use thiserror::Error;

use crate::spaces::limits::SpaceLimit;

/// Why a map makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// The catalog cannot be.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A repository lives on a server that there is not.
    #[error("repository {repository} lives on node {home}, which is not a server of the cluster")]
    Home {
        /// The repository.
        repository: usize,
        /// Its home.
        home: u32,
    },
    /// A new space is over a limit.
    #[error(transparent)]
    Space(#[from] SpaceLimit),
    /// The sites of shards are others than the servers'.
    #[error(transparent)]
    ShardSites(#[from] ShardSitesError),
    /// The sites of shards are of other shards.
    #[error(
        "the sites of shards name {repositories} repositories with {replicas} replicas of each \
         key, and there are to be {meant} with {copies}, each kept by {group} servers: give them \
         so, with a group of 1"
    )]
    Shards {
        /// Named by the sites of shards.
        repositories: usize,
        /// The same.
        replicas: usize,
        /// Repositories that there are.
        meant: usize,
        /// Replicas that there are.
        copies: usize,
        /// Servers that keep each repository.
        group: u16,
    },
    /// Groups do not fit on the servers.
    #[error(transparent)]
    Nodes(#[from] Unfit),
    /// Members that are no groups, or too few of a group.
    #[error(
        "{places} places of members are no groups with at least {} members each",
        layout::LEAST
    )]
    Group {
        /// How many places there are.
        places: usize,
    },
    /// Two servers of one name, or out of order.
    #[error("the servers are not told in the order of their names")]
    Order,
    /// Nobody to ask.
    #[error("a cluster without servers")]
    NoServers,
    /// A master that there is not.
    #[error("node {0} is to be a master, which is no server of the cluster")]
    Master(u32),
    /// A server at a site that there is not.
    #[error("node {0} is to be at a site, which is no server of the cluster")]
    Placed(u32),
    /// Nobody to hold keys.
    #[error(
        "all {0} servers are to be masters or to have nothing but validators: somebody must hold \
         the keys"
    )]
    OnlyMasters(usize),
    /// The tree does not fit the servers.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The tree does not fit the repositories.
    #[error(transparent)]
    Leaves(#[from] NotATree),
    /// Validators on a server that there is not.
    #[error("validators of the tree live on node {0}, which is no server of the cluster")]
    Validator(u32),
    /// A register that did not grow out of the spaces that are known.
    #[error(
        "the register of spaces, of epoch {found}, does not go on from those known here, of epoch \
         {known}: its row was written by somebody who makes no spaces"
    )]
    Register {
        /// The epoch of the spaces known.
        known: u64,
        /// That of the register.
        found: u64,
    },
    /// A server has left that there never was.
    #[error("node {0} has left, which was no server of the cluster")]
    Left(u32),
    /// An epoch that does not count the spaces.
    #[error(
        "spaces of epoch {epoch}, and there are {spaces}: the epoch is one more than there are \
         spaces, or 0 where nothing is known of them"
    )]
    Epoch {
        /// The epoch.
        epoch: u64,
        /// How many spaces there are.
        spaces: usize,
    },
}
