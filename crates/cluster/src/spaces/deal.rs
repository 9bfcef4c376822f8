//! How repositories are dealt to the servers of a new cluster, and what these have beside.

use muesli_core::NodeId;
use muesli_core::catalog::{ShardSites, Sites, TreePlan};
use muesli_group::layout;

use crate::spaces::error::MapError;

/// How repositories are dealt to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deal {
    /// How many repositories there are.
    pub repositories: usize,
    /// How many of them hold each key.
    pub replicas: usize,
    /// How many partitions there are for each of them.
    pub partitions_per_repository: usize,
    /// How many servers keep each repository; 1 is no group.
    pub group: u16,
    /// How many servers, one after the other, are loops of one process, and end together.
    pub loops: usize,
}

/// What servers there are beside those that hold repositories, what is above these, and where all
/// are.
#[derive(Clone, Debug, Default)]
pub struct Beside<'a> {
    /// Servers that decide for the coordinators of others.
    pub masters: &'a [NodeId],
    /// The tree above the repositories.
    pub tree: Option<&'a TreePlan>,
    /// Servers on which its validators live; none: these live where repositories do.
    pub validators: &'a [NodeId],
    /// Where servers are.
    pub sites: Sites,
    /// The sites of each shard's members; none: repositories are dealt to servers in turn.
    pub shards: Option<&'a ShardSites>,
}

impl Default for Deal {
    fn default() -> Deal {
        Deal { repositories: 1, replicas: 1, partitions_per_repository: 1, group: 1, loops: 1 }
    }
}

/// Homes of the members of shards at their sites.
pub(super) fn at_sites(
    names: &[NodeId],
    deal: Deal,
    (shards, sites): (&ShardSites, &Sites),
) -> Result<Vec<NodeId>, MapError> {
    let (repositories, replicas) = (shards.repositories(), shards.replicas());
    if (deal.repositories, deal.replicas) != (repositories, replicas) || deal.group > 1 {
        let Deal { repositories: meant, replicas: copies, group, .. } = deal;
        return Err(MapError::Shards { repositories, replicas, meant, copies, group });
    }
    Ok(shards.homes(sites, names, deal.loops)?)
}

/// Homes of repositories dealt to servers in turn.
pub(super) fn round_robin(names: &[NodeId], repositories: usize) -> Vec<NodeId> {
    let count = names.len().max(1);
    (0..repositories).filter_map(|at| names.get(at % count).copied()).collect()
}

/// Homes of the members of groups: no process holds two of a group.
pub(super) fn homes(names: &[NodeId], deal: Deal) -> Result<Vec<NodeId>, MapError> {
    let Deal { repositories, group, loops, .. } = deal;
    let loops = loops.max(1);
    let groups = u16::try_from(repositories).unwrap_or(u16::MAX);
    let processes = layout::homes(groups, group, (names.len() / loops) as u32)?;
    let node = |(at, process): (usize, &NodeId)| {
        let number = at / usize::from(layout::PLACES) % loops;
        let there = names.get(process.0 as usize * loops + number);
        there.copied().unwrap_or(NodeId::NOWHERE)
    };
    Ok(processes.iter().enumerate().map(node).collect())
}
