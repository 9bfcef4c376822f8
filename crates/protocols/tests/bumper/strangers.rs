//! What is asked of a place in the past that another process decides.

use muesli_core::{Decision, Rejection, Timestamp};
use muesli_protocols::bumper::BumperPlace;
use muesli_protocols::bumper::TimeWarp;

use crate::two_phase::server::{CLIENT, Server, asked, decide, prepare, txn};

#[test]
fn time_warped_places_lie_between_what_the_vote_allows() {
    let mut server = Server::<TimeWarp>::new();
    let (key, of) = (server.key(0), txn(CLIENT, 1));
    server.client(asked(prepare(of, &[key]))).unwrap();
    let apply_order = server.proposal().expect("it votes yes").apply_order;
    let at = |version| decide(of, Decision::Commit(BumperPlace { apply_order, version }));
    assert_eq!(server.client(at(Timestamp(apply_order.0 + 1))), Err(Rejection::Range));
    assert_eq!(server.client(at(Timestamp::ZERO)), Err(Rejection::State));
    assert_eq!(server.commit_at(of, BumperPlace { apply_order, version: apply_order }), Ok(()));
}
