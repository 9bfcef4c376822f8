//! What is asked of a decision from another process before it touches any state.

use muesli_core::{
    Abort, Address, Decision, Rejection, RepositoryId, Sender, SmallBytes, Timestamp,
};
use muesli_protocols::two_phase::message::{Message, RepositoryVote, Vote};

use crate::two_phase::server::{CLIENT, OTHER, Scored, THERE, asked, decide, prepare, txn, voted};

#[test]
fn a_decision_below_the_vote_contradicts_it() {
    let mut server = Scored::new();
    let (key, of) = (server.key(0), txn(CLIENT, 1));
    server.client(asked(prepare(of, std::slice::from_ref(&key)))).unwrap();
    let proposal = server.proposal().expect("it votes yes");
    let commit = |at| decide(of, Decision::Commit(at));
    assert_eq!(server.client(commit(Timestamp(proposal.0 - 1))), Err(Rejection::State));
    assert_eq!(server.client(commit(Timestamp(proposal.0 + 1))), Err(Rejection::Unissued));
    assert_eq!(server.member(commit(Timestamp(proposal.0 - 1))), Err(Rejection::State));
    assert_eq!(server.commit_at(of, proposal), Ok(()));
    assert_eq!(server.get(&key), Some(SmallBytes::from("new")));
}

#[test]
fn a_client_shows_the_votes_that_decide_and_a_member_need_not() {
    let mut server = Scored::new();
    let (key, of) = (server.key(0), txn(CLIENT, 1));
    server.client(asked(prepare(of, std::slice::from_ref(&key)))).unwrap();
    let (here, proposal) = (server.ballot(), server.proposal().unwrap());
    let there = |at| voted(of, THERE, Vote::Yes(at));
    let lower = Timestamp(proposal.0 - 1);
    let shown = |decision: &Decision, ballots: &[RepositoryVote<_>]| {
        let (decision, ballots) = (*decision, ballots.iter().cloned().collect());
        Message::Decide { txn: of, decision, ballots }
    };
    let (commit, abort) = (Decision::Commit(proposal), Decision::Abort(Abort::Abandoned));
    let forged = RepositoryVote { tag: here.tag ^ 1, ..here.clone() };
    let others = voted(txn(CLIENT, 2), THERE, Vote::Yes(lower));
    let nobodys = voted(of, RepositoryId(2), Vote::No(Abort::Locked));
    for ballots in [
        &[][..],
        std::slice::from_ref(&here),
        &[here.clone(), here.clone()],
        &[forged, there(lower)],
        &[here.clone(), others],
        &[nobodys],
    ] {
        assert_eq!(server.client(shown(&commit, ballots)), Err(Rejection::Unproven), "{ballots:?}");
        assert_eq!(server.client(shown(&abort, ballots)), Err(Rejection::Unproven), "{ballots:?}");
    }
    // They decide something else.
    let newer = [here.clone(), there(Timestamp(proposal.0 + 1))];
    assert_eq!(server.client(shown(&commit, &newer)), Err(Rejection::State));
    assert_eq!(server.client(shown(&abort, &newer)), Err(Rejection::State));
    let no = [voted(of, THERE, Vote::No(Abort::Locked))];
    assert_eq!(server.client(shown(&commit, &no)), Err(Rejection::State));
    let mut other = server;
    let mut server = Scored::new();
    server.client(asked(prepare(of, std::slice::from_ref(&key)))).unwrap();
    assert_eq!(server.client(shown(&commit, &[here, there(lower)])), Ok(()));
    assert_eq!(server.get(&key), Some(SmallBytes::from("new")));
    let member = Address::repository(OTHER, THERE);
    assert_eq!(other.receive_from(Sender::Member, member, shown(&commit, &[])), Ok(()));
    assert_eq!(other.get(&key), Some(SmallBytes::from("new")));
}

#[test]
fn a_decision_that_is_known_is_not_taken_back() {
    let mut server = Scored::new();
    let (first, second) = (txn(CLIENT, 1), txn(CLIENT, 2));
    let keys = [server.key(0), server.key(1)];
    server.client(asked(prepare(first, &keys[..1]))).unwrap();
    server.client(asked(prepare(second, &keys[1..]))).unwrap();
    let proposal = server.proposal().unwrap();
    // It waits for the first one's turn, decided.
    assert_eq!(server.commit_at(second, proposal), Ok(()));
    assert_eq!(server.abort(second), Err(Rejection::State));
}
