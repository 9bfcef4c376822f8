//! Which member of a shard is asked: the nearest that answers.
//!
//! Any member answers for its shard, at any timestamp, and of any transaction. So one that cannot
//! be reached, or leaves a read without an answer for long, is passed over for a while, and what
//! was asked of it is asked of another.

use std::collections::BTreeMap;

use muesli_core::{Catalog, Nanos, NodeId, RepositoryId, Settings};

use crate::sharded::locator::{ShardId, by_distance};

/// So many times [`in_doubt_after`](muesli_core::Settings::in_doubt_after) a member may take to
/// answer a read before it is passed over.
const PATIENCE: u64 = 5;
/// The same of the time for which it is passed over, unless a link to it comes up.
const PASSED_OVER: u64 = 50;

/// The members, as a node sees them.
#[derive(Clone, Debug, Default)]
pub struct NearMembers {
    /// Those that are passed over, until when.
    passed_over: BTreeMap<RepositoryId, Nanos>,
}

impl NearMembers {
    /// The member of a shard to ask; the next ones in turn where others were asked before.
    pub fn of(
        &self,
        shard: ShardId,
        skipped: u32,
        (node, catalog): (NodeId, &Catalog),
        now: Nanos,
    ) -> RepositoryId {
        let mut all = by_distance(shard, node, catalog);
        let is_over = |it: &RepositoryId| self.passed_over.get(it).is_some_and(|it| *it > now);
        all.sort_by_key(is_over); // Their order stays otherwise.
        assert!(!all.is_empty(), "{shard:?} has nobody to ask");
        all[skipped as usize % all.len()]
    }

    /// How long a member may take to answer a read.
    pub fn patience(settings: &Settings) -> Nanos {
        Nanos(settings.in_doubt_after.0 * PATIENCE)
    }

    /// A member is asked nothing for a while.
    pub fn pass_over(
        &mut self,
        member: RepositoryId,
        (node, catalog): (NodeId, &Catalog),
        (now, settings): (Nanos, &Settings),
    ) {
        if catalog.home(member) != node {
            let until = now + Nanos(settings.in_doubt_after.0 * PASSED_OVER);
            self.passed_over.insert(member, until);
        }
    }

    /// A link to a node has come up: its members are asked again.
    pub fn on_linked(&mut self, node: NodeId, catalog: &Catalog) {
        self.passed_over.retain(|member, _| catalog.home(*member) != node);
    }

    /// The link to a node is gone.
    pub fn on_unlinked(
        &mut self,
        gone: NodeId,
        (node, catalog): (NodeId, &Catalog),
        at: (Nanos, &Settings),
    ) {
        let all = (0..catalog.repositories() as u16).map(RepositoryId);
        for member in all.filter(|member| catalog.home(*member) == gone) {
            self.pass_over(member, (node, catalog), at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_passed_over_is_asked_last_until_a_link_to_it_stands() {
        let homes: Vec<_> = (0..3).map(NodeId).collect();
        let catalog = Catalog::new(&homes, 3, &homes).expect("a catalog");
        let (mut members, settings) = (NearMembers::default(), Settings::default());
        let at = (NodeId(9), &catalog);
        let of = |members: &NearMembers, skipped| members.of(ShardId(0), skipped, at, Nanos(1)).0;
        assert_eq!([0, 1, 2, 3].map(|skipped| of(&members, skipped)), [0, 1, 2, 0]);
        members.on_unlinked(NodeId(0), at, (Nanos(0), &settings));
        assert_eq!([0, 1, 2, 3].map(|skipped| of(&members, skipped)), [1, 2, 0, 1]);
        members.on_linked(NodeId(0), &catalog);
        assert_eq!(of(&members, 0), 0);
        members.on_unlinked(NodeId(0), (NodeId(0), &catalog), (Nanos(0), &settings));
        assert_eq!(of(&members, 0), 0, "it is its own node");
    }
}
