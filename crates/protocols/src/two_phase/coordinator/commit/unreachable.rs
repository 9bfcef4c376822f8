//! Nodes with validators that the coordinator has lost its link to: votes that would go there it
//! gathers itself, until the link is there again.

use std::collections::BTreeSet;

use muesli_core::{NodeId, RepositoryId, TxnId};

use super::Phase;
use crate::two_phase::coordinator::Coordinator;
use crate::two_phase::policy::TreeSwitch;
use crate::two_phase::validator::gathering::Gathering;
use crate::two_phase::{Context, Variant};

/// The nodes.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct UnreachableValidators(BTreeSet<NodeId>);

impl<V: Variant> Coordinator<V> {
    /// The link to a node is gone. Votes that were to pass it are asked for as soon as the time
    /// comes.
    pub(in crate::two_phase) fn lose_validators(&mut self, node: NodeId, cx: &Context<'_, V>) {
        if !V::POLICIES.deciding.may_have_validators() {
            return;
        }
        let tree = V::tree(&self.switches);
        let gathering = Gathering::new(tree.decider, cx.catalog);
        if !tree.keeps(TreeSwitch::BypassesUnreachable) || gathering.living_on(node).is_empty() {
            return; // Of clients, which come and go, nothing is kept.
        }
        self.unreachable.0.insert(node);
        for commit in self.committing.values_mut() {
            let participants: Vec<_> = commit.prepares.iter().map(|(it, _)| *it).collect();
            let waits = matches!(commit.phase, Phase::Preparing(_)) && participants.len() > 1;
            if waits && gathering.nodes_passed(commit.id, &participants).contains(&node) {
                commit.expect_no_answer();
            }
        }
    }

    /// The link to a node is there again.
    pub(in crate::two_phase) fn regain_validators(&mut self, node: NodeId) {
        self.unreachable.0.remove(&node);
    }

    /// Whether votes on a transaction would pass a validator that cannot be reached from here.
    #[inline]
    pub(in crate::two_phase) fn must_gather(
        &self,
        txn: TxnId,
        participants: &[RepositoryId],
        cx: &Context<'_, V>,
    ) -> bool {
        if self.unreachable.0.is_empty() || participants.len() < 2 {
            return false;
        }
        let gathering = Gathering::new(V::tree(&self.switches).decider, cx.catalog);
        let passed = gathering.nodes_passed(txn, participants);
        passed.iter().any(|node| self.unreachable.0.contains(node))
    }
}
