//! Which validators gather a vote, by who decides.

use muesli_core::{Address, Catalog, NodeId, RepositoryId, ServiceId, TxnId};

use super::tree::{Tree, validator};
use crate::two_phase::policy::Decider;

/// Who gathers votes.
///
/// With a tree, and for relays, validators are those of the inner nodes. Where participants decide
/// there is one beside each repository, which has its number.
#[derive(Clone, Copy, Debug)]
pub(in crate::two_phase) struct Gathering<'a> {
    decider: Decider,
    catalog: &'a Catalog,
}

impl<'a> Gathering<'a> {
    /// Where this decides.
    pub fn new(decider: Decider, catalog: &'a Catalog) -> Gathering<'a> {
        Gathering { decider, catalog }
    }

    /// The validators that live on `node`.
    pub fn living_on(self, node: NodeId) -> Vec<ServiceId> {
        match self.decider {
            Decider::Tree | Decider::Relay => Tree::of(self.catalog).living_on(node),
            Decider::Coordinator => Vec::new(),
            Decider::Participant => {
                let all = (0..self.catalog.repositories() as u16).map(RepositoryId);
                let here = all.filter(|it| self.catalog.home(*it) == node);
                here.map(|it| validator(it.0)).collect()
            }
        }
    }

    /// The validator that a participant votes to; `None`: it votes to the coordinator.
    pub fn first(
        self,
        voter: RepositoryId,
        txn: TxnId,
        participants: &[RepositoryId],
    ) -> Option<Address> {
        assert!(participants.contains(&voter), "{txn} has a vote of {voter:?}");
        let ascend = participants.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ascend, "{txn} has participants {participants:?}");
        let tree = Tree::of(self.catalog);
        match self.decider {
            Decider::Coordinator => None,
            Decider::Tree => Some(tree.address(tree.above(voter), txn)),
            Decider::Participant => {
                let next = (txn.sequence % participants.len() as u64) as usize;
                let chosen = self.at_coordinator(txn, participants).unwrap_or(participants[next]);
                Some(Address::service(self.catalog.home(chosen), validator(chosen.0)))
            }
            Decider::Relay => {
                let chosen = self.at_coordinator(txn, participants).unwrap_or(participants[0]);
                Some(tree.address(tree.above(chosen), txn))
            }
        }
    }

    /// The first participant on the coordinator's node.
    fn at_coordinator(self, txn: TxnId, participants: &[RepositoryId]) -> Option<RepositoryId> {
        participants.iter().copied().find(|it| self.catalog.home(*it) == txn.node)
    }

    /// What the validator with this number is for, if it works for this transaction: the number of
    /// an inner node, or of the repository that it is beside.
    pub fn working_for(self, number: u16, txn: TxnId) -> Option<u16> {
        match self.decider {
            Decider::Tree | Decider::Relay => Tree::of(self.catalog).inner_for(number, txn),
            Decider::Coordinator => None,
            Decider::Participant => {
                Some(number).filter(|it| usize::from(*it) < self.catalog.repositories())
            }
        }
    }

    /// Whether validators that are for this gather the votes of a repository.
    pub fn gathers(self, inner: u16, repository: RepositoryId) -> bool {
        assert!(self.decider.has_validators(), "coordinators gather votes themselves");
        self.decider != Decider::Tree || Tree::of(self.catalog).covers(inner, repository)
    }

    /// To which validator those that are for this say what they have merged of a transaction.
    pub fn above(self, inner: u16, txn: TxnId) -> Option<Address> {
        assert!(self.decider.has_validators(), "{txn} has no validator");
        let tree = Tree::of(self.catalog);
        match self.decider {
            Decider::Tree => tree.parent(inner).map(|parent| tree.address(parent, txn)),
            Decider::Coordinator | Decider::Participant | Decider::Relay => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::Role;
    use muesli_core::catalog::{TreePlan, TreeShape};

    use super::*;

    /// Four nodes with a repository each, under two inner nodes and a root.
    fn catalog() -> Catalog {
        let nodes: Vec<NodeId> = (0..4).map(NodeId).collect();
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
        let plan = TreePlan::from("2x2".parse::<TreeShape>().unwrap());
        catalog.with_tree(&plan, &[]).unwrap()
    }

    fn number(address: Address) -> u16 {
        match address.role {
            Role::Service(id) => id.number(),
            Role::Coordinator | Role::Repository(_) => panic!("{address:?} is no validator"),
        }
    }

    fn first(decider: Decider, coordinator: u32, sequence: u64) -> Option<(NodeId, u16)> {
        let txn = TxnId { node: NodeId(coordinator), incarnation: 1, sequence };
        let participants = [0, 2, 3].map(RepositoryId);
        let first = Gathering::new(decider, &catalog()).first(RepositoryId(2), txn, &participants);
        first.map(|to| (to.node, number(to)))
    }

    #[test]
    fn votes_go_to_the_one_that_decides() {
        assert_eq!(first(Decider::Coordinator, 1, 1), None);
        assert_eq!(first(Decider::Tree, 1, 1), Some((NodeId(2), 2)));
        assert_eq!(first(Decider::Participant, 3, 1), Some((NodeId(3), 3)), "where it began");
        assert_eq!(first(Decider::Participant, 1, 1), Some((NodeId(2), 2)), "by its turn");
        assert_eq!(first(Decider::Participant, 1, 3), Some((NodeId(0), 0)), "by its turn");
        assert_eq!(first(Decider::Relay, 3, 1), Some((NodeId(2), 2)), "in the coordinator's rack");
        assert_eq!(first(Decider::Relay, 9, 1), Some((NodeId(0), 1)), "in the first one's");
    }

    #[test]
    fn each_validator_lives_where_it_is_voted_to() {
        let catalog = catalog();
        for decider in [Decider::Tree, Decider::Coordinator, Decider::Participant, Decider::Relay] {
            let gathering = Gathering::new(decider, &catalog);
            for (voter, sequence) in (0..4).flat_map(|voter| [(voter, 1), (voter, 2)]) {
                let txn = TxnId { node: NodeId(7), incarnation: 1, sequence };
                let participants = [0, 1, 2, 3].map(RepositoryId);
                let Some(to) = gathering.first(RepositoryId(voter), txn, &participants) else {
                    assert!(!decider.has_validators());
                    continue;
                };
                let there = gathering.living_on(to.node);
                assert!(there.contains(&validator(number(to))), "{decider:?}: {there:?}");
                let working = gathering.working_for(number(to), txn).expect("it works for it");
                assert!(gathering.gathers(working, RepositoryId(voter)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "has no validator")]
    fn nothing_is_above_a_coordinator() {
        Gathering::new(Decider::Coordinator, &catalog()).above(0, TxnId::default());
    }
}
