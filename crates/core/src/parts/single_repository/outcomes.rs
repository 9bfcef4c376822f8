//! How transactions ended, as far as their coordinators may ask.

use std::collections::BTreeMap;

use crate::ids::{NodeId, TxnId};
use crate::outcome::Decision;
use crate::wire_struct;

/// How transactions ended, as far as their coordinators may ask.
#[derive(Clone, Debug, Default)]
pub struct KnownOutcomes {
    /// By coordinator: its newest incarnation that was heard of, and the ends of that.
    incarnations: BTreeMap<NodeId, CoordinatorIncarnation>,
}

/// A coordinator's incarnation.
#[derive(Clone, Debug, Default)]
struct CoordinatorIncarnation {
    incarnation: u32,
    /// It knows how transactions below ended.
    settled_below: u64,
    ended: BTreeMap<u64, Decision>,
}

wire_struct!(KnownOutcomes { incarnations: BTreeMap<NodeId, CoordinatorIncarnation> });
wire_struct!(CoordinatorIncarnation {
    incarnation: u32,
    settled_below: u64,
    ended: BTreeMap<u64, Decision>,
});

/// What is known of a transaction that asks to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownOutcome {
    /// Nothing: it is to be decided.
    New,
    /// It was decided.
    Decided(Decision),
    /// Nobody waits for an answer: its coordinator knows it, or has lived again.
    Gone,
}

impl KnownOutcomes {
    /// A transaction asks to commit, and its coordinator knows of all that are below. What comes
    /// late from an incarnation before the newest one says nothing of that.
    pub fn ask(&mut self, txn: TxnId, settled_below: u64) -> KnownOutcome {
        let coordinator = self.incarnations.entry(txn.node).or_default();
        if coordinator.incarnation < txn.incarnation {
            *coordinator = CoordinatorIncarnation {
                incarnation: txn.incarnation,
                ..CoordinatorIncarnation::default()
            };
        }
        if coordinator.incarnation == txn.incarnation {
            coordinator.settled_below = coordinator.settled_below.max(settled_below);
        }
        let settled_below = coordinator.settled_below;
        if coordinator.ended.first_key_value().is_some_and(|(first, _)| *first < settled_below) {
            coordinator.ended = coordinator.ended.split_off(&settled_below);
        }
        self.known(txn)
    }

    /// The coordinators that are known, each by its incarnation and up to where it knows how its
    /// transactions ended.
    pub fn coordinators(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.incarnations.iter().map(|(&node, it)| TxnId {
            node,
            incarnation: it.incarnation,
            sequence: it.settled_below,
        })
    }

    /// All ends that are remembered.
    pub fn ended(&self) -> impl Iterator<Item = (TxnId, Decision)> + '_ {
        self.incarnations.iter().flat_map(|(&node, coordinator)| {
            let incarnation = coordinator.incarnation;
            let ended = coordinator.ended.iter();
            ended.map(move |(&sequence, &it)| (TxnId { node, incarnation, sequence }, it))
        })
    }

    /// Of how many transactions of a coordinator the ends are remembered.
    pub fn count_of(&self, coordinator: NodeId) -> usize {
        self.incarnations.get(&coordinator).map_or(0, |it| it.ended.len())
    }

    /// Forgets a coordinator that asks for nothing any more.
    pub fn forget(&mut self, coordinator: NodeId) {
        self.incarnations.remove(&coordinator);
    }

    /// What is known of a transaction; nothing is learnt.
    pub fn known(&self, txn: TxnId) -> KnownOutcome {
        let Some(coordinator) = self.incarnations.get(&txn.node) else { return KnownOutcome::New };
        if coordinator.incarnation < txn.incarnation {
            return KnownOutcome::New;
        }
        if coordinator.incarnation > txn.incarnation || txn.sequence < coordinator.settled_below {
            return KnownOutcome::Gone;
        }
        coordinator
            .ended
            .get(&txn.sequence)
            .map_or(KnownOutcome::New, |decision| KnownOutcome::Decided(*decision))
    }

    /// A transaction was decided.
    ///
    /// # Panics
    /// If it was decided otherwise before.
    pub fn decide(&mut self, txn: TxnId, decision: Decision) {
        if self.ask(txn, 0) == KnownOutcome::Gone {
            return;
        }
        let coordinator = self.incarnations.get_mut(&txn.node).expect("just asked for");
        let before = coordinator.ended.insert(txn.sequence, decision);
        assert!(before.is_none_or(|before| before == decision), "{txn} was decided otherwise");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Timestamp;
    use crate::outcome::Abort;
    use crate::wire::Wire;

    fn txn(incarnation: u32, sequence: u64) -> TxnId {
        TxnId { node: NodeId(3), incarnation, sequence }
    }

    #[test]
    fn ends_are_remembered_until_their_coordinator_knows_or_lives_again() {
        let mut outcomes = KnownOutcomes::default();
        let commit = Decision::Commit(Timestamp(5));
        assert_eq!(outcomes.ask(txn(1, 1), 1), KnownOutcome::New);
        outcomes.decide(txn(1, 1), commit);
        assert_eq!(outcomes.ask(txn(1, 1), 1), KnownOutcome::Decided(commit));
        let mut bytes = Vec::new();
        outcomes.encode(&mut bytes);
        let mut outcomes = KnownOutcomes::decode_all(&bytes).unwrap();
        assert_eq!(outcomes.known(txn(1, 1)), KnownOutcome::Decided(commit), "they come back");
        assert_eq!(outcomes.count_of(NodeId(3)), 1);
        assert_eq!(outcomes.ask(txn(1, 2), 2), KnownOutcome::New);
        assert_eq!(outcomes.count_of(NodeId(3)), 0, "what is settled is forgotten");
        assert_eq!(outcomes.ask(txn(1, 1), 1), KnownOutcome::Gone, "it was settled");
        assert_eq!(outcomes.ask(txn(2, 1), 1), KnownOutcome::New);
        assert_eq!(outcomes.ask(txn(1, 3), 3), KnownOutcome::Gone);
        assert_eq!(outcomes.known(txn(2, 2)), KnownOutcome::New, "an earlier one settles nothing");
        outcomes.forget(NodeId(3));
        assert_eq!(outcomes.known(txn(1, 3)), KnownOutcome::New, "its coordinator is forgotten");
    }

    #[test]
    #[should_panic(expected = "was decided otherwise")]
    fn nothing_is_decided_twice() {
        let mut outcomes = KnownOutcomes::default();
        outcomes.decide(txn(1, 1), Decision::Commit(Timestamp(5)));
        outcomes.decide(txn(1, 1), Decision::Abort(Abort::StaleRead));
    }
}
