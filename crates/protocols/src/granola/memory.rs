//! What a repository remembers of transactions that are over, for those who ask again.
//!
//! A vote may be forgotten only once every participant has the end stable in its log; a result,
//! once the client has it; and an id must be known as used for ever, or a copy of its request that
//! was long under way would be done a second time. So coordinators say with each request below
//! which number all of their transactions are settled: answered, and acknowledged by all
//! participants. Nothing of that is remembered but the number. A circular buffer of replies, as in
//! section 5.4, would not do.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use muesli_core::parts::window::Window;
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

/// What is known of a coordinator's transactions.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its newest life.
    life: u32,
    /// The number below which all of that life is settled.
    settled_below: u64,
    /// The newest transaction that was voted on here: its life and number.
    voted: Option<(u32, u64)>,
    /// What is over of the newest life, by number.
    over: Window<Over>,
    /// What is over of earlier lives.
    earlier: BTreeMap<(u32, u64), Over>,
}

impl Known {
    /// Its newest life is this one, or a later one. Whoever asks for a transaction of an earlier
    /// life that is not known is told no, so those that were refused need not be known.
    fn live(&mut self, life: u32) {
        if life <= self.life {
            return;
        }
        let (before, over) = (self.life, std::mem::take(&mut self.over));
        self.earlier.retain(|_, over| !over.is_refused());
        for (number, over) in over.into_entries().filter(|(_, over)| !over.is_refused()) {
            self.earlier.insert((before, number), over);
        }
        (self.life, self.settled_below) = (life, 0);
    }

    fn age(&self, txn: TxnId) -> Age {
        match txn.incarnation.cmp(&self.life) {
            Ordering::Less => Age::EarlierLife,
            Ordering::Equal if txn.sequence < self.settled_below => Age::Settled,
            _ => Age::Current,
        }
    }
}

impl Over {
    /// How this repository votes, whoever asks. Of a transaction that its client said to be this
    /// repository's alone, and told others that they take part in, the end is the vote.
    pub fn vote(&self) -> Ballot {
        if let Some(ballot) = &self.ballot {
            return ballot.clone();
        }
        match &self.end {
            End::Done { at, .. } => Ballot::Commit(*at),
            End::Moved { at } => Ballot::Moved(*at),
            End::Refused { at, refusal } => Ballot::Abort(*at, refusal.clone()),
            End::Conflict => Ballot::Conflict,
        }
    }

    /// Whether it was refused without ever having been voted for.
    fn is_refused(&self) -> bool {
        matches!(self.ballot, Some(Ballot::Conflict | Ballot::Moved(_)))
    }
}

/// Transactions that are over, by coordinator, and what is settled.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    coordinators: BTreeMap<NodeId, Known>,
    /// What was told of keys in transactions that are not settled, by this participant or another.
    heard: BTreeMap<TxnId, Heard>,
}

/// A memory as checkpoints carry it.
pub(super) type Carried = (Vec<(TxnId, Option<Ballot>, End)>, Vec<(NodeId, u32, u64)>);

impl Memory {
    /// What is known of the coordinator of `txn`, which has lived at least that long.
    fn known(&mut self, txn: TxnId) -> &mut Known {
        let known = self.coordinators.entry(txn.node).or_default();
        known.live(txn.incarnation);
        known
    }

    /// Takes note of a coordinator's life and of what it has settled.
    pub fn hear(&mut self, txn: TxnId, settled_below: u64) {
        let known = self.known(txn);
        if txn.incarnation < known.life || settled_below <= known.settled_below {
            return;
        }
        known.settled_below = settled_below;
        while let Some(sequence) = known.over.first().filter(|first| *first < settled_below) {
            known.over.remove(sequence);
        }
        if !self.heard.is_empty() {
            let below = TxnId { sequence: 0, ..txn }..TxnId { sequence: settled_below, ..txn };
            self.heard.extract_if(below, |_, _| true).for_each(drop);
        }
    }

    /// How old `txn` is.
    pub fn age(&self, txn: TxnId) -> Age {
        self.coordinators.get(&txn.node).map_or(Age::Current, |known| known.age(txn))
    }

    /// Whether `txn` can be new.
    pub fn is_current(&self, txn: TxnId) -> bool {
        self.age(txn) == Age::Current
    }

    /// How `txn` ended, if it is over and remembered.
    pub fn get(&self, txn: TxnId) -> Option<&Over> {
        let known = self.coordinators.get(&txn.node)?;
        match txn.incarnation == known.life {
            true => known.over.get(txn.sequence),
            false => known.earlier.get(&(txn.incarnation, txn.sequence)),
        }
    }

    /// `txn` is over.
    pub fn remember(&mut self, txn: TxnId, over: Over) {
        let known = self.known(txn);
        match known.age(txn) {
            Age::Settled => {}
            Age::Current => _ = known.over.insert(txn.sequence, over),
            Age::EarlierLife => {
                known.earlier.insert((txn.incarnation, txn.sequence), over);
            }
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
        let known = self.known(txn);
        known.voted = known.voted.max(Some((txn.incarnation, txn.sequence)));
    }

    /// Of each coordinator, the newest transaction that may have been voted on here and is not
    /// settled.
    pub fn voted(&self) -> Vec<TxnId> {
        let newest = self.coordinators.iter().filter_map(|(node, known)| {
            let (incarnation, sequence) = known.voted?;
            Some(TxnId { node: *node, incarnation, sequence })
        });
        newest.collect()
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.coordinators.values().map(|known| known.over.len() + known.earlier.len()).sum()
    }

    /// All of it, for a checkpoint.
    pub fn carried(&self) -> Carried {
        let (mut all, mut settled) = (Vec::new(), Vec::new());
        for (node, known) in &self.coordinators {
            let earlier = known.earlier.iter().map(|(txn, over)| (*txn, over));
            let over = known.over.iter().map(|(sequence, over)| ((known.life, sequence), over));
            for ((incarnation, sequence), over) in earlier.chain(over) {
                let txn = TxnId { node: *node, incarnation, sequence };
                all.push((txn, over.ballot.clone(), over.end.clone()));
            }
            settled.push((*node, known.life, known.settled_below));
        }
        (all, settled)
    }

    /// Takes over what another one [carried](Self::carried).
    pub fn recall(&mut self, (over, settled): Carried) {
        for (node, incarnation, below) in settled {
            self.hear(TxnId { node, incarnation, sequence: 0 }, below);
        }
        for (txn, ballot, end) in over {
            self.note_vote(txn);
            self.remember(txn, Over { ballot, end, noted: Noted::default() });
        }
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
