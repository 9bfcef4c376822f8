//! Decisions on their way down: one for all of a subtree; or, as printed, for one participant, with
//! what it holds of the transaction.

use muesli_core::{Decision, RepositoryId, TxnId, wire_struct};

use super::Repositories;
use super::voted_footprint::VotedFootprint;
use crate::two_phase::Variant;

/// How a transaction ended, for those below one inner node who take part.
///
/// Invariants: participants ascend, and there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedDecision<V: Variant> {
    /// The transaction.
    pub txn: TxnId,
    /// Its end.
    pub decision: Decision<V::Place>,
    /// Those of the participants who are to hear of it by this message.
    pub participants: Repositories,
    /// As printed: what these participants hold of the transaction.
    pub carried: Option<Box<VotedFootprint>>,
}

wire_struct!(MergedDecision<V: Variant> {
    txn: TxnId,
    decision: Decision<V::Place>,
    participants: Repositories,
    carried: Option<Box<VotedFootprint>>,
});

impl<V: Variant> MergedDecision<V> {
    /// Whether the invariants hold.
    pub fn is_well_formed(&self) -> bool {
        let ascend = |all: &[RepositoryId]| all.windows(2).all(|pair| pair[0] < pair[1]);
        ascend(&self.participants) && !self.participants.is_empty()
    }
}
