//! What a repository remembers of transactions that are over, for those who ask again.
//!
//! A vote may be forgotten only once every participant has the end stable in its log; a result,
//! once the client has it; and an id must be known as used for ever, or a copy of its request that
//! was long under way would be done a second time. So coordinators say with each request below
//! which number all of their transactions are settled: answered, and acknowledged by all
//! participants. Nothing of that is remembered but the number. A circular buffer of replies, as in
//! section 5.4, would not do.

use std::collections::BTreeMap;

use muesli_core::{NodeId, SmallBytes, SpaceId, TxnId};

use super::message::{Ballot, End, Found, Noted, Told};

/// A transaction that is over here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Over {
    /// How this repository voted, if anybody may ask.
    pub ballot: Option<Ballot>,
    /// How it ended.
    pub end: End,
    /// For a history, in the life in which it ended.
    pub noted: Noted,
}

/// Whether a transaction can be a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    /// It can.
    Current,
    /// It is settled everywhere.
    Settled,
    /// It is of an earlier life of its coordinator.
    EarlierLife,
}

/// What participants tell of keys, by the numbers of the parts that these belong to.
pub(super) type Heard = BTreeMap<u16, Vec<(SpaceId, SmallBytes, Found)>>;

/// Transactions that are over, by id, and what is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// In boxes: the tree moves its entries about as the oldest are forgotten.
    over: BTreeMap<TxnId, Box<Over>>,
    /// What was told of keys in transactions that are not settled, by this participant or another.
    heard: BTreeMap<TxnId, Heard>,
    /// Per coordinator, its newest life and the number below which everything is settled.
    settled: BTreeMap<NodeId, (u32, u64)>,
    /// Per coordinator, the newest transaction that was voted on here: its life and number.
    voted: BTreeMap<NodeId, (u32, u64)>,
}

/// A memory as checkpoints carry it.
pub(super) type Carried = (Vec<(TxnId, Option<Ballot>, End)>, Vec<(NodeId, u32, u64)>);

impl Memory {
    /// Takes note of a coordinator's life and of what it has settled.
    pub fn hear(&mut self, txn: TxnId, settled_below: u64) {
        let known = self.settled.entry(txn.node).or_insert((txn.incarnation, 0));
        if txn.incarnation > known.0 {
            *known = (txn.incarnation, 0);
            self.forget_refused_before(txn.node, txn.incarnation);
        }
        let known = self.settled.get_mut(&txn.node).expect("just entered");
        if txn.incarnation == known.0 && settled_below > known.1 {
            known.1 = settled_below;
            let first = TxnId { sequence: 0, ..txn };
            self.forget(first, TxnId { sequence: settled_below, ..txn }, |_| true);
        }
    }

    /// Whoever asks for a transaction of an earlier life that is not known is told no, so those
    /// that were refused need not be known.
    fn forget_refused_before(&mut self, node: NodeId, incarnation: u32) {
        let first = TxnId { node, incarnation: 0, sequence: 0 };
        let end = TxnId { node, incarnation, sequence: 0 };
        let again = |over: &Over| matches!(over.ballot, Some(Ballot::Conflict | Ballot::Moved(_)));
        self.forget(first, end, again);
    }

    fn forget(&mut self, first: TxnId, end: TxnId, forgotten: impl Fn(&Over) -> bool) {
        for (txn, _) in self.over.extract_if(first..end, |_, over| forgotten(over)) {
            self.heard.remove(&txn);
        }
    }

    /// Whether `txn` can be new.
    pub fn age(&self, txn: TxnId) -> Age {
        match self.settled.get(&txn.node) {
            Some((life, _)) if txn.incarnation < *life => Age::EarlierLife,
            Some((life, below)) if txn.incarnation == *life && txn.sequence < *below => {
                Age::Settled
            }
            _ => Age::Current,
        }
    }

    /// How `txn` ended, if it is over and remembered.
    pub fn get(&self, txn: TxnId) -> Option<&Over> {
        self.over.get(&txn).map(|over| &**over)
    }

    /// `txn` is over.
    pub fn remember(&mut self, txn: TxnId, over: Over) {
        if self.age(txn) != Age::Settled {
            self.over.insert(txn, Box::new(over));
        }
    }

    /// Something was told in `txn`; what was told before stays.
    pub fn hear_of(&mut self, txn: TxnId, told: impl IntoIterator<Item = Told>) {
        if self.age(txn) == Age::Settled {
            return;
        }
        let heard = self.heard.entry(txn).or_default();
        for (part, values) in told {
            heard.entry(part).or_insert(values);
        }
    }

    /// What was told in `txn`.
    pub fn heard(&self, txn: TxnId) -> Option<&Heard> {
        self.heard.get(&txn)
    }

    /// All that was told, for a checkpoint.
    pub fn all_heard(&self) -> Vec<(TxnId, Vec<Told>)> {
        let told = |heard: &Heard| heard.iter().map(|(part, it)| (*part, it.clone())).collect();
        self.heard.iter().map(|(txn, heard)| (*txn, told(heard))).collect()
    }

    /// `txn` is voted on.
    pub fn note_vote(&mut self, txn: TxnId) {
        let newest = self.voted.entry(txn.node).or_default();
        *newest = (*newest).max((txn.incarnation, txn.sequence));
    }

    /// Of each coordinator, the newest transaction that may have been voted on here and is not
    /// settled.
    pub fn voted(&self) -> Vec<TxnId> {
        let newest = self.voted.iter();
        newest
            .map(|(node, (incarnation, sequence))| TxnId {
                node: *node,
                incarnation: *incarnation,
                sequence: *sequence,
            })
            .collect()
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.over.len()
    }

    /// All of it, for a checkpoint.
    pub fn carried(&self) -> Carried {
        let over = self.over.iter();
        let over = over.map(|(txn, over)| (*txn, over.ballot.clone(), over.end.clone()));
        let settled = self.settled.iter().map(|(node, (life, below))| (*node, *life, *below));
        (over.collect(), settled.collect())
    }

    /// Takes over what another one [carried](Self::carried).
    pub fn recall(&mut self, (over, settled): Carried) {
        let over = over
            .into_iter()
            .map(|(txn, ballot, end)| (txn, Over { ballot, end, noted: Noted::default() }));
        for (txn, over) in over {
            self.note_vote(txn);
            self.over.insert(txn, Box::new(over));
        }
        self.settled.extend(settled.into_iter().map(|(node, life, below)| (node, (life, below))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(incarnation: u32, sequence: u64) -> TxnId {
        TxnId { node: NodeId(1), incarnation, sequence }
    }

    fn over(ballot: Ballot) -> Over {
        Over { ballot: Some(ballot), end: End::Conflict, noted: Noted::default() }
    }

    #[test]
    fn what_is_settled_is_forgotten_and_known_as_used() {
        let mut memory = Memory::default();
        memory.hear(txn(2, 3), 1);
        for sequence in 1..5 {
            memory.remember(txn(2, sequence), over(Ballot::Conflict));
        }
        memory.hear(txn(2, 9), 4);
        assert_eq!(memory.len(), 1);
        assert_eq!(memory.age(txn(2, 3)), Age::Settled);
        assert_eq!(memory.age(txn(2, 4)), Age::Current);
        memory.remember(txn(2, 2), over(Ballot::Conflict));
        assert_eq!(memory.len(), 1);
        memory.hear(txn(1, 50), 40);
        assert_eq!(memory.age(txn(2, 3)), Age::Settled);
    }

    #[test]
    fn of_earlier_lives_only_votes_to_commit_are_remembered() {
        let mut memory = Memory::default();
        memory.hear(txn(1, 1), 1);
        memory.remember(txn(1, 1), over(Ballot::Conflict));
        let commit = Ballot::Commit(muesli_core::Timestamp(5));
        memory.remember(txn(1, 2), over(commit));
        memory.hear(txn(2, 1), 1);
        assert!(memory.get(txn(1, 1)).is_none() && memory.get(txn(1, 2)).is_some());
        assert_eq!(memory.age(txn(1, 7)), Age::EarlierLife);
        let mut other = Memory::default();
        other.recall(memory.carried());
        assert_eq!(other.carried(), memory.carried());
        assert_eq!(other.voted(), [txn(1, 2)]);
    }
}
