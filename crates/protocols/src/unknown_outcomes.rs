//! What a coordinator remembers of transactions whose clients were told that nobody knows their
//! outcome.
//!
//! They may be asked for later, by [`outcome`](muesli_core::Coordinator::outcome). The newest
//! [10,000](UNKNOWN_MAX) are remembered.

use std::collections::BTreeMap;

use muesli_core::{Committed, Context, Decision, Doubt, Outcome, Protocol, TxnId};

/// So many transactions of unknown outcome are remembered, the newest ones.
const UNKNOWN_MAX: usize = 10_000;

/// Transactions of one incarnation of a coordinator, by sequence number, and what came of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownOutcomes {
    known: BTreeMap<u64, Option<Outcome>>,
}

impl UnknownOutcomes {
    /// The client of a transaction was told that nobody knows its outcome.
    pub(crate) fn add(&mut self, sequence: u64) {
        let earlier = self.known.insert(sequence, None);
        assert_eq!(earlier, None, "{sequence} is unknown for the second time");
        if self.known.len() > UNKNOWN_MAX {
            self.known.pop_first();
        }
        assert!(self.known.len() <= UNKNOWN_MAX, "what is unknown has a bound");
    }

    /// The outcome of one that is remembered is known after all.
    pub(crate) fn learn(&mut self, sequence: u64, outcome: Outcome) {
        let Some(known) = self.known.get_mut(&sequence) else { return };
        assert!(known.is_none_or(|it| it == outcome), "{sequence} ended in two ways: {known:?}");
        *known = Some(outcome);
    }

    /// How one of them ended: it is part of a history as well.
    pub(crate) fn learn_end<P: Protocol>(
        &mut self,
        txn: TxnId,
        decision: Decision,
        cx: &mut Context<'_, P>,
    ) {
        let outcome = match decision {
            Decision::Commit(at) => {
                if let Some(recorder) = &mut cx.effects.recorder {
                    recorder.applied(txn, at);
                }
                Outcome::Committed(Committed { at })
            }
            Decision::Abort(reason) => Outcome::Aborted(reason),
        };
        self.learn(txn.sequence, outcome);
    }

    /// Nobody will ever know the outcome of this one.
    pub(crate) fn forget(&mut self, sequence: u64) {
        let known = self.known.remove(&sequence).flatten();
        assert_eq!(known, None, "what {sequence} has come to is known, and forgotten");
    }

    /// Whether the outcome of a transaction is remembered as unknown.
    pub(crate) fn is_unknown(&self, sequence: u64) -> bool {
        matches!(self.known.get(&sequence), Some(None))
    }

    /// What has become of a transaction of this incarnation.
    pub(crate) fn of(&self, sequence: u64) -> Outcome {
        match self.known.get(&sequence) {
            Some(Some(outcome)) => *outcome,
            Some(None) => Outcome::NotKnown(Doubt::UnderWay),
            None => Outcome::NotKnown(Doubt::Forgotten),
        }
    }

    /// Checks what is remembered; `last` is the newest transaction.
    ///
    /// # Panics
    /// It is too much, or of a transaction that was never begun.
    pub(crate) fn assert_invariants(&self, last: u64) {
        assert!(self.known.len() <= UNKNOWN_MAX, "{} unknown outcomes", self.known.len());
        let newest = self.known.last_key_value().map_or(0, |(sequence, _)| *sequence);
        assert!(newest <= last, "outcome {newest} is unknown, of {last}");
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::Abort;

    use super::*;

    #[test]
    fn the_newest_are_remembered_and_what_came_of_them() {
        let mut all = UnknownOutcomes::default();
        let last = UNKNOWN_MAX as u64 + 3;
        (1..=last).for_each(|sequence| all.add(sequence));
        all.assert_invariants(last);
        assert_eq!(all.of(3), Outcome::NotKnown(Doubt::Forgotten));
        assert!(all.is_unknown(4) && all.of(4) == Outcome::NotKnown(Doubt::UnderWay));
        all.learn(4, Outcome::Aborted(Abort::Locked));
        assert!(!all.is_unknown(4) && all.of(4) == Outcome::Aborted(Abort::Locked));
        all.learn(3, Outcome::Aborted(Abort::Locked));
        all.forget(5);
        assert_eq!([all.of(3), all.of(5)], [Outcome::NotKnown(Doubt::Forgotten); 2]);
    }
}
