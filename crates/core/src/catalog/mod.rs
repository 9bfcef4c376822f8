//! Spaces, and where their keys live.
//!
//! A space is cut into *partitions*, as many as there are repositories if nothing else is said, by
//! a hash of the key, by ranges, or by the [unit](Units) that a key belongs to; or every repository
//! has all of it. How many repositories hold each, is said here; which ones, a
//! [locator](crate::parts::locator) says, for a protocol may move partitions, or single objects.
//! Repositories have a home node each. Nodes may be at [sites](Sites), and repositories the leaves
//! of a [tree](Hierarchy), for protocols that go by these. All of it is one immutable value, shared
//! by the nodes that agree on it. Spaces, homes and the tree are decided in different places: each
//! has an epoch of its own, and of two catalogs the newer of each is [taken](Catalog::newest).

mod dealing;
mod hierarchy;
mod shard_sites;
mod sites;
mod spaces;
mod tree_file;
mod tree_nodes;
mod tree_plan;
mod tree_shape;
mod units;

pub use dealing::{EVERYWHERE, PARTITIONS_MAX};
pub use hierarchy::{Hierarchy, InnerNode, NotATree};
pub use shard_sites::{ShardSites, ShardSitesError};
pub use sites::{Sites, TwoSites};
pub use spaces::{Index, Partitioning, Space, SpaceOptions};
pub use tree_file::{NamedTree, TREE_BYTES_MAX, TreeFault, TreeFileError};
pub use tree_nodes::TreeError;
pub use tree_plan::{TreeForm, TreePlan};
pub use tree_shape::{LEVELS_MAX, NoTreeShape, TreeShape};
pub use units::{UnitMap, UnitPart, UnitRange, Units};

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::ids::{NodeId, REPOSITORIES_MAX, RepositoryId, SpaceId};
use crate::roles::{Address, Role};

/// A configuration that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// Repositories out of range.
    #[error("{0} repositories: there must be 1 to {REPOSITORIES_MAX}")]
    Repositories(usize),
    /// Replicas out of range.
    #[error(
        "{replicas} replicas of a key on {repositories} repositories: \
         allowed are 1 to {repositories}"
    )]
    Replicas {
        /// Asked for.
        replicas: usize,
        /// There are.
        repositories: usize,
    },
    /// Range splits that do not ascend or are too many.
    #[error(
        "space `{space}`: {splits} range splits for {partitions} partitions: \
         they must ascend and be fewer than partitions"
    )]
    Splits {
        /// The space.
        space: String,
        /// How many splits.
        splits: usize,
        /// There are.
        partitions: usize,
    },
    /// Partitions out of range.
    #[error(
        "{each} partitions for each of {repositories} repositories: \
         there must be one at least, and {PARTITIONS_MAX} in all at most"
    )]
    Partitions {
        /// Asked for.
        each: usize,
        /// There are.
        repositories: usize,
    },
    /// Units that have no parts, or a map that names one twice or a partition that there is not.
    #[error(
        "space `{space}`: a unit has at least one part, and its map names each unit once, with one \
         of the {partitions} partitions"
    )]
    Units {
        /// The space.
        space: String,
        /// There are.
        partitions: usize,
    },
    /// Two maps of one domain.
    #[error("space `{space}`: its map of `{domain}` differs from that of space `{other}`")]
    Domain {
        /// The space.
        space: String,
        /// The domain.
        domain: String,
        /// Another space of it.
        other: String,
    },
    /// Two different definitions of one space.
    #[error("space `{0}` exists already with other options")]
    Exists(String),
    /// Too many spaces.
    #[error("there are {0} spaces already, which is the most")]
    Spaces(usize),
}

/// The epoch of the tree that a database began with.
pub const FIRST_TREE_EPOCH: u64 = 1;

/// The spaces and the placement of a database; immutable, and newer where an epoch is larger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// Grows with each space.
    pub epoch: u64,
    /// Grows with each change of the homes.
    pub placement: u64,
    /// Home of each repository, by its number.
    pub homes: Arc<[NodeId]>,
    /// In which epoch of the placement each repository came to its home; 0 for those that are where
    /// they began.
    pub since: Arc<[u64]>,
    /// Repositories that are to go: they are kept where they are until it is certain that nobody
    /// needs them. In the order of their numbers.
    pub leaving: Arc<[RepositoryId]>,
    /// Groups of repositories that are known to have begun their work, by their numbers, in order;
    /// only ever more.
    pub begun: Arc<[u16]>,
    /// Nodes whose transactions hold old versions back.
    pub coordinators: Arc<[NodeId]>,
    /// Nodes that were coordinators and have left for good; only ever more.
    pub left: Arc<[NodeId]>,
    /// Whether others than those, whose names are not known beforehand, run transactions too.
    pub visiting_coordinators: bool,
    /// How many repositories hold each key.
    pub replicas: u16,
    /// How many partitions there are for each repository; never changed.
    pub partitions_per_repository: u16,
    /// Nodes that decide for the coordinators of others, under protocols that have such masters;
    /// none: each decides for itself. Never changed.
    pub masters: Arc<[NodeId]>,
    /// Where nodes are; known with the placement.
    pub sites: Sites,
    /// For clients that have no data themselves, the node with data that each is nearest to, in the
    /// order of the clients: what they write moves there, under protocols that move data. Each node
    /// may know of its own clients only.
    nearest: Arc<[(NodeId, NodeId)]>,
    /// The tree whose leaves are the repositories, under protocols that validate by one.
    pub hierarchy: Option<Arc<Hierarchy>>,
    /// Grows with each change of the tree; 0 where nothing was said of one.
    pub tree_epoch: u64,
    spaces: Vec<Space>,
}

impl Catalog {
    /// No spaces yet; repositories at `homes`, each key on `replicas` of them.
    ///
    /// # Errors
    /// Numbers out of range.
    pub fn new(
        homes: &[NodeId],
        replicas: usize,
        coordinators: &[NodeId],
    ) -> Result<Catalog, CatalogError> {
        let repositories = homes.len();
        if !(1..=REPOSITORIES_MAX).contains(&repositories) {
            return Err(CatalogError::Repositories(repositories));
        }
        if !(1..=repositories).contains(&replicas) {
            return Err(CatalogError::Replicas { replicas, repositories });
        }
        Ok(Catalog {
            epoch: 1,
            placement: 1,
            homes: homes.into(),
            since: vec![0; repositories].into(),
            leaving: [].into(),
            begun: [].into(),
            coordinators: coordinators.into(),
            left: [].into(),
            visiting_coordinators: false,
            replicas: replicas as u16,
            partitions_per_repository: 1,
            masters: [].into(),
            sites: Sites::default(),
            nearest: [].into(),
            hierarchy: None,
            tree_epoch: 0,
            spaces: Vec::new(),
        })
    }

    /// This catalog, of a database without spaces, with so many partitions for each repository.
    ///
    /// # Errors
    /// None, or more than [`PARTITIONS_MAX`] in all.
    pub fn with_partitions_per_repository(self, each: usize) -> Result<Catalog, CatalogError> {
        let repositories = self.repositories();
        if !(1..=PARTITIONS_MAX / repositories).contains(&each) {
            return Err(CatalogError::Partitions { each, repositories });
        }
        Ok(Catalog { partitions_per_repository: each as u16, ..self })
    }

    /// This catalog of a database where these nodes decide for the coordinators of others.
    pub fn with_masters(self, masters: &[NodeId]) -> Catalog {
        Catalog { masters: masters.into(), ..self }
    }

    /// This catalog of a database whose nodes are at these sites.
    pub fn with_sites(self, sites: Sites) -> Catalog {
        Catalog { sites, ..self }
    }

    /// This catalog where each of these clients is nearest to the node with it.
    pub fn with_nearest(self, nearest: &[(NodeId, NodeId)]) -> Catalog {
        let nearest: BTreeMap<NodeId, NodeId> = nearest.iter().copied().collect();
        Catalog { nearest: nearest.into_iter().collect(), ..self }
    }

    /// This catalog where clients are nearest to the nodes that another one names.
    pub fn with_nearest_of(self, other: &Catalog) -> Catalog {
        Catalog { nearest: Arc::clone(&other.nearest), ..self }
    }

    /// The node with data that a client is nearest to, if it was named.
    pub fn nearest(&self, client: NodeId) -> Option<NodeId> {
        let at = self.nearest.binary_search_by_key(&client, |(client, _)| *client).ok()?;
        Some(self.nearest[at].1)
    }

    /// This catalog with a tree above its repositories.
    ///
    /// # Errors
    /// It has leaves for other repositories.
    pub fn with_hierarchy(self, hierarchy: Hierarchy) -> Result<Catalog, NotATree> {
        let (leaves, repositories) = (hierarchy.leaves(), self.repositories());
        if leaves != repositories {
            return Err(NotATree::Leaves { leaves, repositories });
        }
        Ok(self.with_first_tree(hierarchy))
    }

    /// This catalog of a database that begins with this tree. Its leaves are those that the
    /// protocol knows.
    pub fn with_first_tree(self, hierarchy: Hierarchy) -> Catalog {
        Catalog { hierarchy: Some(Arc::new(hierarchy)), tree_epoch: FIRST_TREE_EPOCH, ..self }
    }

    /// This catalog with this tree over its nodes with data, whose validators live on `apart`, or
    /// beside data where that is empty.
    ///
    /// # Errors
    /// The tree does not fit the nodes.
    pub fn with_tree(self, plan: &TreePlan, apart: &[NodeId]) -> Result<Catalog, TreeError> {
        let hierarchy = plan.over(&self.homes, apart, &self.coordinators)?;
        Ok(self.with_hierarchy(hierarchy)?)
    }

    /// This catalog with another tree, or none, from the next epoch of trees on. A database that
    /// began without one had that in the epoch in which others have their first.
    pub fn with_next_tree(self, hierarchy: Option<Hierarchy>) -> Catalog {
        let tree_epoch = self.tree_epoch.max(FIRST_TREE_EPOCH) + 1;
        Catalog { hierarchy: hierarchy.map(Arc::new), tree_epoch, ..self }
    }

    /// Who decides for `coordinator`: one of the masters that have not left, the same for ever as
    /// long as none leaves. `None`: it decides for itself, being a master or having none.
    pub fn master_of(&self, coordinator: NodeId) -> Option<NodeId> {
        let there = || self.masters.iter().filter(|node| !self.left.contains(node));
        let place = coordinator.0 as usize % there().count().max(1);
        let is_other = |master: &NodeId| *master != coordinator;
        there().nth(place).copied().filter(|_| there().all(is_other))
    }

    /// This catalog with repositories placed as somebody says who knows a newer placement: for each
    /// its home, and since which epoch, and which of them are to go. `None`: it is not newer, or of
    /// other repositories.
    pub fn placed(
        &self,
        placement: u64,
        homes: &[(NodeId, u64)],
        leaving: &[RepositoryId],
    ) -> Option<Catalog> {
        let fits = placement > self.placement && homes.len() == self.repositories();
        let (nodes, since): (Vec<_>, Vec<_>) = homes.iter().copied().unzip();
        let (homes, since) = (nodes.into(), since.into());
        let leaving = leaving.into();
        fits.then(|| Catalog { placement, homes, since, leaving, ..self.clone() })
    }

    /// The placement as [`placed`](Self::placed) takes it: for each repository its home, and since
    /// which epoch.
    pub fn stays(&self) -> Vec<(NodeId, u64)> {
        self.homes.iter().copied().zip(self.since.iter().copied()).collect()
    }

    /// This catalog with one repository on another node from the placement's next epoch on.
    pub fn moved(&self, repository: RepositoryId, to: NodeId) -> Catalog {
        let placement = self.placement + 1;
        let mut stays = self.stays();
        stays[usize::from(repository.0)] = (to, placement);
        self.placed(placement, &stays, &self.leaving)
            .expect("the next epoch, of the same repositories")
    }

    /// The newest of this catalog and another one of the same database: its spaces, its homes, and
    /// those who run transactions, each as whoever knows more of them says. `None`: the other one
    /// has nothing new.
    pub fn newest(&self, other: &Catalog) -> Option<Catalog> {
        let mut newest = self.clone();
        if other.epoch > self.epoch {
            (newest.epoch, newest.spaces) = (other.epoch, other.spaces.clone());
        }
        if other.placement > self.placement {
            (newest.placement, newest.homes) = (other.placement, Arc::clone(&other.homes));
            newest.since = Arc::clone(&other.since);
            newest.leaving = Arc::clone(&other.leaving);
            (newest.replicas, newest.partitions_per_repository) =
                (other.replicas, other.partitions_per_repository);
            newest.masters = Arc::clone(&other.masters);
            newest.sites = other.sites.clone();
        }
        // Of two trees of one epoch all take the same one.
        if (other.tree_epoch, &other.hierarchy) > (self.tree_epoch, &self.hierarchy) {
            (newest.tree_epoch, newest.hierarchy) = (other.tree_epoch, other.hierarchy.clone());
        }
        if other.coordinators_ever() > self.coordinators_ever() {
            newest.coordinators = Arc::clone(&other.coordinators);
        }
        let newest = newest.without(&self.left).without(&other.left);
        let newest = newest.with_begun(&other.begun);
        (newest != *self).then_some(newest)
    }

    /// How many nodes were ever coordinators, which tells the newer of two lists of them.
    pub fn coordinators_ever(&self) -> usize {
        self.coordinators.len() + self.left.len()
    }

    /// This catalog where these groups are known to have begun.
    pub fn with_begun(&self, groups: &[u16]) -> Catalog {
        let mut begun: Vec<u16> = self.begun.iter().chain(groups).copied().collect();
        begun.sort_unstable();
        begun.dedup();
        Catalog { begun: begun.into(), ..self.clone() }
    }

    /// This catalog where these nodes have left for good.
    pub fn without(&self, gone: &[NodeId]) -> Catalog {
        let mut left: Vec<NodeId> = self.left.iter().chain(gone).copied().collect();
        left.sort_unstable();
        left.dedup();
        let stays = |node: &&NodeId| !left.contains(node);
        let coordinators = self.coordinators.iter().filter(stays).copied().collect();
        Catalog { coordinators, left: left.into(), ..self.clone() }
    }

    /// This catalog of a database whose clients coordinate their own transactions, come and go.
    pub fn with_visiting_coordinators(self) -> Catalog {
        Catalog { visiting_coordinators: true, ..self }
    }

    /// Whether `node` is one that comes and goes: neither a coordinator that this lists nor a
    /// master. What such a client says of others is not believed.
    #[inline]
    pub fn is_client(&self, node: NodeId) -> bool {
        !self.coordinators.contains(&node) && !self.masters.contains(&node)
    }

    /// Whether what is said to `to` is shown to others by somebody whom they do not believe.
    #[inline]
    pub fn shows_votes(&self, to: Address) -> bool {
        to.role == Role::Coordinator && self.is_client(to.node)
    }

    /// Whether `node` is the only one that runs transactions.
    pub fn is_only_coordinator(&self, node: NodeId) -> bool {
        !self.visiting_coordinators && *self.coordinators == [node]
    }

    /// This catalog with one more space, or as it is where the space is there already.
    ///
    /// # Errors
    /// The space exists with other options, the splits do not fit, or there are too many spaces.
    pub fn with_space(&self, name: &str, options: SpaceOptions) -> Result<Catalog, CatalogError> {
        self.check_partitioning(name, &options)?;
        if let Some(space) = self.spaces.iter().find(|space| space.name == name) {
            let same = space.options == options;
            return same.then(|| self.clone()).ok_or(CatalogError::Exists(name.to_owned()));
        }
        if self.spaces.len() > usize::from(u16::MAX) {
            return Err(CatalogError::Spaces(self.spaces.len()));
        }
        let mut next = self.clone();
        next.epoch += 1;
        next.spaces.push(Space { name: name.to_owned(), options });
        Ok(next)
    }

    /// The number of the space called `name`.
    pub fn space_named(&self, name: &str) -> Option<SpaceId> {
        self.spaces.iter().position(|space| space.name == name).map(|at| SpaceId(at as u16))
    }

    /// The space with this number.
    pub fn space(&self, id: SpaceId) -> Option<&Space> {
        self.spaces.get(usize::from(id.0))
    }

    /// This catalog as it was when there were so many spaces.
    pub fn with_first_spaces(&self, count: usize) -> Catalog {
        let mut earlier = self.clone();
        earlier.spaces.truncate(count);
        earlier
    }

    /// All spaces, by their numbers.
    pub fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// How many repositories there are.
    #[inline]
    pub fn repositories(&self) -> usize {
        self.homes.len()
    }

    /// Where a repository lives.
    #[inline]
    pub fn home(&self, repository: RepositoryId) -> NodeId {
        self.homes[usize::from(repository.0)]
    }
}

#[cfg(test)]
mod tests;
