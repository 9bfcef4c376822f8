//! A client that tells the copies of a key different things: they never differ for others.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{
    Decision, Nanos, Rejection, RepositoryId, Settings, SmallBytes, Timestamp, TxnId,
};
use muesli_protocols::score::Score;
use muesli_protocols::score::Snapshots;
use muesli_protocols::two_phase::message::Message;
use muesli_protocols::two_phase::message::Mostly;
use muesli_protocols::two_phase::message::Prepare;
use muesli_protocols::two_phase::message::RepositoryVote;
use muesli_protocols::two_phase::message::Vote;

use crate::harness::copies::{BOTH, LONG, Pair, SPACE, key, newest, txn};

impl Pair<Score> {
    /// The last votes of both that the client was told.
    fn ballots(&self) -> BTreeMap<RepositoryId, RepositoryVote<Snapshots>> {
        let votes = self.answered_to.iter().filter_map(|message| match message.clone() {
            Message::Vote { repository, vote, about, tag, .. } => {
                Some((repository, RepositoryVote { repository, vote, about, tag }))
            }
            _ => None,
        });
        votes.collect()
    }

    pub(super) fn prepare(&mut self, place: usize, participants: &[RepositoryId], value: &str) {
        self.prepare_at(place, (txn(), participants), Timestamp::ZERO, value);
    }

    /// Asks one of them for its vote on a transaction that read at `snapshot`.
    pub(super) fn prepare_at(
        &mut self,
        place: usize,
        (txn, participants): (TxnId, &[RepositoryId]),
        snapshot: Timestamp,
        value: &str,
    ) {
        let prepare = Prepare {
            txn,
            settled_below: txn.sequence,
            participants: participants.iter().copied().collect(),
            snapshot,
            reader: (),
            strict: false,
            reads: Vec::new().into(),
            writes: [(SPACE, key(), Some(SmallBytes::from(value)))].into_iter().collect(),
            scans: Vec::new(),
            delayed: Vec::new(),
            extra: None,
            leaving: Default::default(),
            arriving: Default::default(),
        };
        self.hand_to(place, Message::Prepare(Arc::new(prepare))).expect("a prepare as others");
    }

    /// What the client shows one of them: that its transaction commits, by all votes.
    pub(super) fn commit(&mut self, place: usize) -> Result<(), Rejection> {
        let ballots: Mostly<_> = self.ballots().into_values().collect();
        let proposal = |ballot: &RepositoryVote<Snapshots>| match ballot.vote {
            Vote::Yes(at) => at,
            ref other => panic!("{other:?}"),
        };
        let at = ballots.iter().map(proposal).max().expect("votes");
        let decision = Decision::Commit(at);
        self.hand_to(place, Message::Decide { txn: txn(), decision, ballots })
    }

    pub(super) fn found(&self) -> [Option<SmallBytes>; 2] {
        [0, 1].map(|place| newest(self.nodes[place].participants()[0].1.versions(SPACE)))
    }
}

#[test]
fn copies_that_were_told_alike_commit_by_what_the_client_shows() {
    let mut pair = Pair::<Score>::new(&Default::default());
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    assert_eq!([pair.commit(0), pair.commit(1)], [Ok(()), Ok(())]);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

#[test]
fn copies_that_were_told_different_values_take_none() {
    let mut pair = Pair::<Score>::new(&Default::default());
    pair.prepare(0, &BOTH, "one");
    pair.prepare(1, &BOTH, "another");
    assert_eq!([pair.commit(0), pair.commit(1)], [Err(Rejection::Unproven); 2]);
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn one_copy_alone_is_not_written() {
    let mut pair = Pair::<Score>::new(&Default::default());
    pair.prepare(0, &BOTH[..1], "new");
    assert_eq!(pair.commit(0), Err(Rejection::Unproven));
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn the_end_of_another_transaction_of_that_name_is_not_the_end_of_this_one() {
    let mut pair = Pair::<Score>::new(&Default::default());
    pair.prepare(0, &BOTH, "new");
    pair.prepare(1, &BOTH[1..], "new");
    assert_eq!([pair.commit(0), pair.commit(1)], [Err(Rejection::Unproven); 2]);
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn a_client_that_settles_too_early_does_not_part_the_copies() {
    let mut pair = Pair::<Score>::new(&Default::default());
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    assert_eq!(pair.commit(0), Ok(()));
    let txn = TxnId { sequence: 2, ..txn() };
    assert_eq!(pair.hand_to(0, Message::Settled { txn }), Ok(()));
    pair.wait(LONG);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

#[test]
fn a_copy_that_was_away_for_a_while_hears_of_a_commit_that_was_settled() {
    let mut pair = Pair::<Score>::new(&Default::default());
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    pair.cut = true;
    assert_eq!(pair.commit(0), Ok(()));
    // Another life, and an earlier transaction once more: it is not told that it is refused.
    let txn = TxnId { incarnation: 2, ..txn() };
    assert_eq!(
        pair.hand_to(0, Message::Settled { txn: TxnId { incarnation: 1, sequence: 2, ..txn } }),
        Ok(())
    );
    assert_eq!(pair.hand_to(0, Message::Settled { txn }), Ok(()));
    pair.wait(Nanos(Settings::default().snapshot_lease.0 / 2));
    pair.prepare(0, &BOTH, "new");
    let end = pair.ballots()[&BOTH[0]].vote.clone();
    assert!(matches!(end, Vote::Decided(Decision::Commit(_))), "{end:?}");
    pair.cut = false;
    pair.wait(LONG);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}
