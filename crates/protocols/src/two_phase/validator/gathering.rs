//! Which validators gather a vote, and which ones pass on what was decided, by who decides.

use muesli_core::{Address, Catalog, NodeId, RepositoryId, ServiceId, TxnId};

use super::tree::{Tree, validator};
use crate::two_phase::message::{Few, Repositories};
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

/// Whom a validator tells what was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::two_phase) enum Recipient {
    /// A participant.
    Participant(RepositoryId),
    /// The validator at this address, which tells these participants: two or more.
    Validator(Address, Repositories),
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

    /// The nodes of the validators that votes on a transaction pass up to the one that decides; a
    /// node may be named several times.
    pub fn nodes_passed(self, txn: TxnId, participants: &[RepositoryId]) -> Vec<NodeId> {
        let tree = Tree::of(self.catalog);
        let decided_by = tree.lowest_above(participants);
        let passed = |voter: &RepositoryId| match self.decider {
            Decider::Tree => {
                let above = tree.above(*voter);
                let path = tree.path_to(above, decided_by);
                path.into_iter().map(|inner| tree.address(inner, txn).node).collect()
            }
            _ => self.first(*voter, txn, participants).map(|to| to.node).into_iter().collect(),
        };
        participants.iter().flat_map(|voter| -> Vec<NodeId> { passed(voter) }).collect()
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

    /// Whether a validator, by its number, may pass on decisions to those that are for this.
    pub fn is_above(self, upper: u16, inner: u16, txn: TxnId) -> bool {
        let tree = Tree::of(self.catalog);
        let upper = tree.inner_for(upper, txn).filter(|_| self.decider == Decider::Tree);
        upper.is_some_and(|upper| tree.is_ancestor(upper, inner))
    }

    /// Whom validators that are for this tell what was decided, so that these participants hear of
    /// it. Of several in one child's subtree it is the validator of the lowest inner node above
    /// them, where their paths part; of one alone it is that one: a validator between would only
    /// add a hop. Who is not below is told directly, too.
    pub fn recipients(
        self,
        inner: u16,
        txn: TxnId,
        participants: &[RepositoryId],
    ) -> Vec<Recipient> {
        let tree = Tree::of(self.catalog);
        let mut recipients = Vec::with_capacity(participants.len());
        let mut subtrees: Few<(u16, Repositories)> = Few::new();
        for &participant in participants {
            match tree.child_above(inner, participant) {
                None => recipients.push(Recipient::Participant(participant)),
                Some(child) => match subtrees.iter_mut().find(|(it, _)| *it == child) {
                    Some((_, known)) => known.push(participant),
                    None => subtrees.push((child, Repositories::from_slice(&[participant]))),
                },
            }
        }
        recipients.extend(subtrees.into_iter().map(|(_, below)| match below[..] {
            [alone] => Recipient::Participant(alone),
            _ => Recipient::Validator(tree.address(tree.lowest_above(&below), txn), below),
        }));
        recipients
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

    fn repositories(all: &[u16]) -> Repositories {
        all.iter().copied().map(RepositoryId).collect()
    }

    /// Who is told below an inner node of three levels: by which inner node, and who.
    fn by_whom(inner: u16, participants: &[u16]) -> Vec<(Option<u16>, Repositories)> {
        let nodes: Vec<NodeId> = (0..8).map(NodeId).collect();
        let plan = TreePlan::from("2x2x2".parse::<TreeShape>().unwrap());
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap().with_tree(&plan, &[]).unwrap();
        let gathering = Gathering::new(Decider::Tree, &catalog);
        let txn = TxnId { node: NodeId(9), incarnation: 1, sequence: 1 };
        let all = gathering.recipients(inner, txn, &repositories(participants));
        let shown = |recipient| match recipient {
            Recipient::Participant(it) => (None, repositories(&[it.0])),
            Recipient::Validator(to, all) => {
                let below = gathering.working_for(number(to), txn).expect("it works for it");
                assert!(gathering.is_above(inner, below, txn), "{inner} is above {below}");
                (Some(below), all)
            }
        };
        all.into_iter().map(shown).collect()
    }

    #[test]
    fn a_decision_goes_down_to_where_paths_part() {
        let root = Tree::of(&catalog()).lowest_above(&repositories(&[0, 3]));
        let (one, pair) = (|it| (None, repositories(&[it])), |it| repositories(&[it, it + 1]));
        assert_eq!(by_whom(root, &[0, 4]), [one(0), one(4)], "one is alone in each half");
        let three = by_whom(root, &[0, 2, 3, 6, 7]);
        let left = three[0].0.expect("the left half has three of them");
        assert_eq!(three[0].1, repositories(&[0, 2, 3]));
        let rack = three[1].0.expect("the right half has two, in one rack");
        assert_eq!(three[1].1, pair(6));
        assert_eq!((by_whom(left, &[0, 2, 3])[0].clone(), three.len()), (one(0), 2));
        assert_eq!(by_whom(left, &[0, 2, 3])[1].1, pair(2));
        assert_eq!(by_whom(rack, &[6, 7]), [one(6), one(7)], "they hang right below it");
        assert_eq!(by_whom(rack, &[0, 1]), [one(0), one(1)], "they are not below it");
        assert_eq!(by_whom(left, &[1, 2, 5]), [5, 1, 2].map(one), "nobody is left out");
    }

    #[test]
    fn without_a_tree_a_decision_goes_to_the_participants() {
        let nodes: Vec<NodeId> = (0..3).map(NodeId).collect();
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
        let gathering = Gathering::new(Decider::Tree, &catalog);
        let all = gathering.recipients(0, TxnId::default(), &repositories(&[0, 2]));
        assert_eq!(all, [0, 2].map(|it| Recipient::Participant(RepositoryId(it))));
    }

    #[test]
    #[should_panic(expected = "has no validator")]
    fn nothing_is_above_a_coordinator() {
        Gathering::new(Decider::Coordinator, &catalog()).above(0, TxnId::default());
    }
}
