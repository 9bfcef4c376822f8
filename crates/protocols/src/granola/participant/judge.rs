//! What is asked of a message by what is known here: whether there is room for what it would leave,
//! and whether it agrees with what is known of its transaction.

use muesli_core::judgement::ensure;
use muesli_core::{Rejection, Sender, Timestamp, TxnId, View};

use super::Participant;
use crate::client_quota::ClientQuota;
use crate::granola::message::{Agreement, Message, TimestampVote, evidence};

impl Participant {
    /// Whether there is room for what a client's request would leave: a client that does not settle
    /// its transactions gets no further ones in.
    pub(super) fn judge_capacity(
        &self,
        message: &Message,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let Message::Request(request) = message else { return Ok(()) };
        let reads_alone = request.read_only && request.agreement == Agreement::Alone;
        let txn = request.txn;
        let known = || self.active.contains_key(&txn) || self.memory.get(txn).is_some();
        if view.sender.is_member() || reads_alone || known() {
            return Ok(());
        }
        let quota = ClientQuota::of(view.settings);
        let most = quota.entries;
        let has_capacity =
            self.memory.has_capacity(txn, request.settled_below, self.active.len(), quota);
        ensure(has_capacity, Rejection::Full)?;
        // What is under way is counted only where there is much of it.
        let first = TxnId { incarnation: 0, sequence: 0, ..txn };
        let last = TxnId { incarnation: u32::MAX, sequence: u64::MAX, ..txn };
        let is_full =
            self.active.len() >= most && self.active.range(first..=last).nth(most - 1).is_some();
        ensure(!is_full, Rejection::Full)
    }

    /// Whether a message agrees with what is known here of its transaction.
    pub(super) fn judge_state(&self, message: &Message, view: View<'_>) -> Result<(), Rejection> {
        let Message::Decide { txn, ballot, shown } = message else { return Ok(()) };
        ensure(self.switches.has_master(), Rejection::Role)?;
        let Some(active) = self.active.get(txn).filter(|it| it.place.is_none()) else {
            return Ok(());
        };
        match ballot {
            TimestampVote::Commit(at) => {
                let voted = active.is_prepared();
                ensure(voted && *at >= active.proposed, Rejection::State)?;
            }
            TimestampVote::Conflict | TimestampVote::Abort(..) | TimestampVote::Moved(_) => {}
        }
        match view.sender {
            Sender::Member => Ok(()),
            Sender::Client { .. } => {
                evidence::judge((&active.request, active.about), ballot, shown, view)
            }
        }
    }

    /// The largest timestamp that was issued here, or that members have told of.
    pub(super) fn issued_here(&self) -> Timestamp {
        self.clock.proposed.max(self.clock.placed).max(self.clock.done)
    }
}
