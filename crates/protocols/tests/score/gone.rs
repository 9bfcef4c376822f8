//! Clients that are killed: what repositories keep of them has an end, and not too early.

use muesli_core::{Abort, Decision, Nanos, Rejection, Settings, TxnId};
use muesli_protocols::score::{FamilySwitch, Score, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_protocols::two_phase::message::{Message, Mostly, RepositoryVote, Vote};

use crate::harness::copies::{BOTH, Pair, txn};

const LEASE: Nanos = Nanos::from_millis(2_000);

/// A client has written a key of which both repositories keep a copy, one was told that it is
/// committed, and the client is killed; the other one cannot be reached.
fn killed(switches: &Switches) -> Pair<Score> {
    let settings = Settings { client_lease: LEASE, ..Settings::default() };
    let mut pair = Pair::<Score>::with(switches, settings);
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    pair.cut = true;
    assert_eq!(pair.commit(0), Ok(()));
    assert_eq!(in_doubt(&pair), [0, 1]);
    pair
}

fn in_doubt(pair: &Pair<Score>) -> [usize; 2] {
    [0, 1]
        .map(|place| muesli_core::StateMachine::unfinished(&pair.nodes[place].participants()[0].1))
}

/// How many ends each repository keeps, and of how many coordinators it knows.
fn kept(pair: &Pair<Score>) -> [(usize, usize); 2] {
    [0, 1].map(|place| {
        let participant = &pair.nodes[place].participants()[0].1;
        (participant.remembered(), participant.known_coordinators())
    })
}

fn long(leases: u64) -> Nanos {
    Nanos(leases * LEASE.0)
}

#[test]
fn a_commit_is_known_until_nobody_is_in_doubt_and_then_nothing_is() {
    let mut pair = killed(&Switches::default());
    pair.wait(long(10));
    assert_eq!((in_doubt(&pair), kept(&pair)[0]), ([0, 1], (1, 1)), "somebody may ask");
    pair.cut = false;
    pair.wait(LEASE);
    assert_eq!(in_doubt(&pair), [0, 0]);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
    pair.wait(long(2));
    assert_eq!(kept(&pair), [(0, 0), (0, 0)]);
}

/// The mistake: what was committed goes without a question to the others.
#[test]
fn without_a_question_the_copies_part() {
    let mut pair = killed(&Switches::broken(FamilySwitch::KeepsCommitsOfSilent));
    pair.wait(long(10));
    assert_eq!(kept(&pair)[0], (0, 0));
    pair.cut = false;
    pair.wait(LEASE);
    assert_eq!(pair.found(), [Some("new".into()), None]);
}

/// A copy of the request that comes long after all is forgotten; how many are prepared then.
fn comes_late(switches: &Switches) -> (Pair<Score>, usize) {
    let mut pair = killed(switches);
    pair.cut = false;
    pair.wait(long(4));
    assert_eq!(kept(&pair), [(0, 0), (0, 0)]);
    pair.answered_to.clear();
    pair.prepare(0, &BOTH, "new");
    let prepared = in_doubt(&pair)[0];
    (pair, prepared)
}

#[test]
fn what_comes_after_it_was_forgotten_is_not_taken_up() {
    let (mut pair, prepared) = comes_late(&Switches::default());
    assert_eq!(prepared, 0);
    let Some(Message::Vote { vote: Vote::No(Abort::Forgotten), committed, .. }) =
        pair.answered_to.last()
    else {
        panic!("{:?}", pair.answered_to)
    };
    // What its client is told is enough to run it again.
    let snapshot = *committed;
    let again = TxnId { sequence: 2, ..txn() };
    pair.prepare_at(0, (again, &BOTH), snapshot, "again");
    assert_eq!(in_doubt(&pair), [1, 0]);
}

/// Whoever is told so may ask once more, at a later snapshot, and is voted for: a client that
/// showed it to some and the votes to others would make the copies differ for ever.
#[test]
fn that_a_request_may_be_forgotten_decides_nothing() {
    let (mut pair, _) = comes_late(&Switches::default());
    let Some(Message::Vote { repository, vote, committed, about, tag, .. }) =
        pair.answered_to.pop()
    else {
        panic!("{:?}", pair.answered_to)
    };
    assert_eq!(vote, Vote::No(Abort::Forgotten));
    let ballots = Mostly::from_buf([RepositoryVote { repository, vote, about, tag }]);
    (0..2).for_each(|place| pair.prepare_at(place, (txn(), &BOTH), committed, "again"));
    assert_eq!(in_doubt(&pair), [1, 1]);
    let decision = Decision::Abort(Abort::Forgotten);
    let shown = Message::Decide { txn: txn(), decision, ballots };
    assert_eq!(pair.hand_to(1, shown), Err(Rejection::Unproven));
    assert_eq!([pair.commit(0), pair.commit(1)], [Ok(()), Ok(())]);
    assert_eq!(pair.found(), [Some("again".into()), Some("again".into())]);
}

#[test]
fn a_floor_outlives_what_is_restored() {
    let (mut pair, _) = comes_late(&Switches::default());
    pair.restart(0);
    pair.answered_to.clear();
    pair.prepare(0, &BOTH, "new");
    assert_eq!(in_doubt(&pair), [0, 0], "{:?}", pair.answered_to);
}

/// The mistake: what is not known is taken for new.
#[test]
fn without_a_floor_it_is_prepared_once_more() {
    let (_, prepared) = comes_late(&Switches::broken(FamilySwitch::RefusesForgotten));
    assert_eq!(prepared, 1);
}

#[test]
fn commits_of_earlier_incarnations_go_while_the_client_speaks() {
    let settings = Settings { client_lease: LEASE, ..Settings::default() };
    let mut pair = Pair::<Score>::with(&Switches::default(), settings);
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    assert_eq!([pair.commit(0), pair.commit(1)], [Ok(()), Ok(())]);
    assert_eq!(kept(&pair), [(1, 1), (1, 1)]);
    for sequence in 1..40 {
        let txn = TxnId { incarnation: 2, sequence, ..txn() };
        assert_eq!(
            [0, 1].map(|at| pair.hand_to(
                at,
                Message::Decide {
                    txn,
                    decision: Decision::Abort(Abort::Abandoned),
                    ballots: Mostly::new(),
                }
            )),
            [Ok(()), Ok(())]
        );
        assert_eq!([0, 1].map(|at| pair.hand_to(at, Message::Settled { txn })), [Ok(()), Ok(())]);
        pair.wait(Nanos(LEASE.0 / 20));
    }
    assert_eq!(kept(&pair).map(|(_, known)| known), [1, 1], "it is not silent");
    for place in 0..2 {
        pair.answered_to.clear();
        pair.prepare(place, &BOTH, "new");
        let Some(Message::Vote { vote, tag, .. }) = pair.answered_to.last() else {
            panic!("{:?}", pair.answered_to)
        };
        assert_eq!(*vote, Vote::No(Abort::Superseded));
        assert_eq!(*tag, 0, "it is not remembered, and decides nothing");
    }
}
