//! What checkpoints carry of transactions that are over.

use muesli_core::{NodeId, TxnId};

use super::{EndedTransactions, Over};
use crate::granola::message::{Noted, ReplyOutcome, TimestampVote};

/// A transaction that is over, as checkpoints carry it: the vote and what it is about, and the end.
pub(in super::super) type CarriedOver = (TxnId, (Option<TimestampVote>, u64, ReplyOutcome));
/// A coordinator, its newest life, and the number below which all of that is settled.
pub(in super::super) type Settled = (NodeId, u32, u64);

impl EndedTransactions {
    /// All of it, for a checkpoint.
    pub fn carried(&self) -> (Vec<CarriedOver>, Vec<Settled>) {
        let (mut all, mut settled) = (Vec::new(), Vec::new());
        for (node, known) in &self.coordinators {
            let earlier = known.earlier.iter().map(|(txn, over)| (*txn, over));
            let over =
                known.over.iter().map(|(sequence, over)| ((known.incarnation, sequence), over));
            for ((incarnation, sequence), over) in earlier.chain(over) {
                let txn = TxnId { node: *node, incarnation, sequence };
                all.push((txn, (over.ballot.clone(), over.about, over.end.clone())));
            }
            settled.push((*node, known.incarnation, known.settled_below));
        }
        (all, settled)
    }

    /// Takes over what is settled as another one [carried](Self::carried) it.
    pub fn recall_settled(&mut self, settled: Vec<Settled>) {
        for (node, incarnation, below) in settled {
            self.observe(TxnId { node, incarnation, sequence: 0 }, below);
        }
    }

    /// Takes over what is over as another one [carried](Self::carried) it.
    pub fn recall(&mut self, over: Vec<CarriedOver>) {
        for (txn, (ballot, about, end)) in over {
            self.note_vote(txn);
            self.remember(txn, Over { ballot, about, end, noted: Noted::default() });
        }
    }
}
