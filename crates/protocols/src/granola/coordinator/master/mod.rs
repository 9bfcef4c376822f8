//! Sinfonia's minitransactions, as the thesis extends them with procedures (section 6.1.2): two
//! phases with a master, the plain way that Granola is compared with.
//!
//! The master is the client's coordinator, or another node's that decides for it
//! ([`cases`](delegated)), as in the thesis. It sends the call to all participants; each runs
//! it, locks what it touched, writes its vote to the log and votes *to the master*, which tells all
//! of them what the votes come to. A lock that is not free is a vote against: nobody waits, and the
//! client tries again after a random while that doubles. At one repository it is one phase, and
//! locks are looked at only where others hold some. All of that is locking mode as Granola has it,
//! held for ever ([`Switches::sinfonia`](crate::granola::Switches::sinfonia)); what differs stands
//! here.
//!
//! What the votes come to follows from the votes, and these are stable before they are sent. So if
//! the master dies its participants find the outcome by asking each other, as Granola's do when
//! votes are missing; they give the master time first. And for that reason readers' votes are
//! stable here, too: a participant that started again and voted anew would be told of a decision
//! that was made of its earlier vote.
//!
//! # Deviations
//! The thesis's prepare tells locks and the procedure runs at the decision; here it runs once,
//! under its locks, and what it wrote is put aside until then: the state is the same. Clients are
//! told after the decision was carried out, as in the thesis.

pub mod delegated;

use muesli_core::parts::votes::{Counted, Votes};
use muesli_core::{RepositoryId, Timestamp, TxnId};

use crate::granola::coordinator::{Context, Coordinator};
use crate::granola::message::{Message, Shown, TimestampVote, evidence};
use crate::granola::switches::GranolaSwitch;

/// What a transaction comes to, as its master knows it.
#[derive(Clone, Debug)]
pub(super) enum Ruling {
    /// Votes are missing.
    Open(Votes<RepositoryId, Timestamp>),
    /// It is decided.
    Made(TimestampVote),
}

impl Ruling {
    /// Counts a vote; true if that decides.
    fn count(&mut self, repository: RepositoryId, ballot: TimestampVote, waits: bool) -> bool {
        let Ruling::Open(votes) = self else { return false };
        let made = match ballot {
            TimestampVote::Commit(at) => {
                let counted = votes.count(repository, at);
                let enough = counted == Counted::Complete || !waits;
                enough.then(|| {
                    TimestampVote::Commit(votes.so_far().copied().fold(at, Timestamp::max))
                })
            }
            against => Some(against),
        };
        let Some(made) = made else { return false };
        let is_known = !matches!(made, TimestampVote::Commit(_)) || votes.is_complete() || !waits;
        assert!(is_known, "a decision to commit before all have voted");
        *self = Ruling::Made(made);
        true
    }
}

impl Coordinator {
    /// A participant votes, or votes again because it was not told what came of it.
    pub(super) fn on_ballot(&mut self, txn: TxnId, shown: Shown, cx: &mut Context<'_>) {
        let waits = self.switches.keeps(GranolaSwitch::MasterWaits);
        let is_client = cx.catalog.shows_votes(cx.me);
        let Shown { repository, mut ballot, about, .. } = shown.clone();
        let found = match txn.node == self.id {
            true => self
                .pending
                .get_mut(txn.sequence)
                .filter(|it| it.request.txn == txn)
                .map(|it| (&it.request.participants, &mut it.ruling, Some(&mut it.shown))),
            false => self.cases.get_mut(txn, cx.now()).map(|case| {
                if matches!(ballot, TimestampVote::Commit(_)) && about != case.about {
                    ballot = TimestampVote::Conflict; // It was asked for something else.
                }
                (&case.participants, &mut case.ruling, None)
            }),
        };
        let Some((participants, ruling, all)) = found else { return }; // Of another life, or over.
        let mut votes = Vec::new();
        if let Some(all) = all.filter(|_| is_client) {
            if matches!(ruling, Ruling::Open(_)) {
                evidence::keep(all, shown);
            }
            votes = all.clone();
        }
        let against = !matches!(ballot, TimestampVote::Commit(_));
        let decides = ruling.count(repository, ballot, waits);
        let Ruling::Made(made) = ruling else { return };
        // Who voted against it is through with it.
        let is_participant = |other: &RepositoryId| match decides {
            true => !against || *other != repository,
            false => !against && *other == repository,
        };
        for &other in participants.iter().filter(|other| is_participant(other)) {
            let (ballot, shown) = (made.clone(), votes.clone());
            cx.send_to_repository(other, Message::Decide { txn, ballot, shown });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [RepositoryId; 2] = [RepositoryId(0), RepositoryId(3)];

    fn at(counter: u64) -> Timestamp {
        Timestamp::new(counter, RepositoryId(0))
    }

    #[test]
    fn all_votes_or_one_against_decide_once() {
        let open = || Ruling::Open(Votes::from_voters(ALL));
        let mut ruling = open();
        assert!(!ruling.count(ALL[1], TimestampVote::Commit(at(9)), true));
        assert!(!ruling.count(ALL[1], TimestampVote::Commit(at(9)), true), "it has voted");
        assert!(ruling.count(ALL[0], TimestampVote::Commit(at(4)), true));
        assert!(matches!(&ruling, Ruling::Made(TimestampVote::Commit(place)) if *place == at(9)));
        assert!(!ruling.count(ALL[0], TimestampVote::Conflict, true), "it is decided");
        let mut ruling = open();
        assert!(ruling.count(ALL[0], TimestampVote::Conflict, true));
        assert!(!ruling.count(ALL[1], TimestampVote::Commit(at(1)), true));
        assert!(matches!(ruling, Ruling::Made(TimestampVote::Conflict)));
        let mut hasty = open();
        assert!(hasty.count(ALL[0], TimestampVote::Commit(at(4)), false));
    }
}
