//! A repository's life after a crash, from what it logged.
//!
//! Records stand in the log in the order in which things happened, and what was done is logged as
//! it is done. So a log that breaks off anywhere leaves the repository as it once was: with the
//! writes of what had been done, and with what had been voted on and was not done. What was lost
//! since is: what nobody was told of; votes of others, which are asked for again; places of
//! transactions that were done, which follow from the votes. Those transactions are done again,
//! at the same places, over the same state: what was done alone between them was either told of,
//! and then all before it was stable, or is lost with everything after it.
//!
//! Nothing new may come before them. The text lets a new primary resume once it has sent its votes
//! again; then a transaction can be proposed a timestamp below the place of one that was done,
//! answered and is not done again yet. Two ways out: to take nothing new until everything voted on
//! is done, and to propose above all that can have been done. This is the second: nothing is done
//! or proposed above a ceiling that is not stable ([`Record::UpperBound`]), and the next life proposes
//! above it. It needs no time in which the repository refuses work, and holds for reads, of which
//! there are no records, just as well.

use muesli_core::parts::versions::Handle;
use muesli_core::parts::votes::Votes;
use muesli_core::{Timestamp, TxnId};

use crate::granola::message::{Noted, Record, ReplyOutcome, TimestampVote, Write, evidence};
use crate::granola::participant::execution::install::install;
use crate::granola::participant::modes::active::Active;
use crate::granola::participant::outcomes::Over;
use crate::granola::participant::{Context, Participant};

impl Participant {
    pub(in super::super) fn replay_record(&mut self, record: Record, cx: &mut Context<'_>) {
        let noted = Noted::default();
        match record {
            Record::Voted { request, at } => {
                self.memory.observe(request.txn, request.settled_below);
                self.memory.note_vote(request.txn);
                self.clock.restart_above(at);
                let votes = Votes::from_voters(self.others(&request));
                let about = evidence::about(&request, cx.settings, cx.catalog);
                self.enter((request, about), at, votes, cx);
            }
            Record::Against { txn, ballot } => {
                if let Some(end) = ballot.end_against() {
                    let over = Over { ballot: Some(ballot), about: 0, end, noted };
                    self.memory.remember(txn, over);
                }
            }
            Record::Done { txn, at, writes, end } => {
                let active = self.take_out(txn);
                let order = active.as_ref().and_then(|active| active.request.moving());
                match order.filter(|_| matches!(end, ReplyOutcome::Done { .. })) {
                    Some(order) => self.apply_move(order, at, cx),
                    None => self.replay_writes(at, writes, cx),
                }
                self.clock.raise(at);
                let recorder = cx.effects.recorder.as_mut().filter(|_| order.is_none());
                if let Some(recorder) = recorder {
                    recorder.applied(txn, at);
                }
                let about = active.as_ref().map_or(0, |active| active.about);
                let ballot = active.map(|_| TimestampVote::Commit(at));
                self.memory.remember(txn, Over { ballot, about, end, noted });
            }
            Record::SharedData { txn, shared } => self.memory.add_data(txn, shared),
            Record::Dropped { txn, end } => {
                let active = self.take_out(txn);
                let about = active.as_ref().map_or(0, |active| active.about);
                let ballot = active.map(|active| TimestampVote::Commit(active.proposed));
                self.memory.remember(txn, Over { ballot, about, end, noted });
            }
            Record::Staged { partition, anew, keys } => {
                self.replay_staged(partition, anew, &keys, cx);
            }
            Record::Reached { at } => self.clock.raise(at),
            Record::UpperBound { at } => self.clock.restart_above(at),
        }
    }

    /// Takes out a transaction that was voted on.
    fn take_out(&mut self, txn: TxnId) -> Option<Active> {
        let active = self.active.remove(&txn)?;
        assert!(!active.is_prepared(), "{txn} was prepared before the log was read");
        self.queue.remove(active.wait_queue, &(active.bound, txn));
        Some(active)
    }

    pub(in super::super) fn replay_writes(
        &mut self,
        at: Timestamp,
        writes: Vec<Write>,
        cx: &Context<'_>,
    ) {
        for (space, key, value) in writes {
            let store = self.spaces.get_or_make(space, cx.catalog);
            let handle = store.find_or_create(Handle::NONE, &key);
            install(store, handle, value, at);
        }
    }
}
