//! What is asked of the numbers in a vector clock that another process shows.

use std::sync::Arc;

use muesli_core::parts::vector_clock::Number;
use muesli_core::parts::vector_clock::VectorClock;
use muesli_core::{Abort, Address, Decision, Effect, Sender, Settings, SmallBytes, TxnId};
use muesli_protocols::gmu;
use muesli_protocols::two_phase::Sabotage as _;
use muesli_protocols::two_phase::message::{Message, Mostly, Prepare, ReadRequest, ReadWants};

use crate::two_phase::server::{CLIENT, HERE, OTHER, SPACE, Server, THERE, txn};

/// Whether a reader that needs number nine of the repository, by whoever is named, gets its answer.
fn is_answered(server: &mut Server<gmu::Vectors>, by: TxnId) -> bool {
    let mut clock = VectorClock::default();
    clock.set(HERE, Number { counter: 9, by });
    let snapshot = gmu::Reads::from_clock(clock);
    let keys = [(SPACE, server.key(0))].into_iter().collect();
    let read = ReadRequest {
        request: 1,
        snapshot,
        first: true,
        wanted: ReadWants::Values,
        reader: (),
        keys,
        known: Default::default(),
    };
    server.effects.list.clear();
    let member = Address::coordinator(OTHER);
    server.receive_from(Sender::Member, member, Message::Read(read)).unwrap();
    let is_answer = |effect: &Effect<Message<_>, _>| match effect {
        Effect::Send { envelope, .. } => matches!(envelope.message, Message::ReadReply(_)),
        _ => false,
    };
    server.effects.list.iter().any(is_answer)
}

/// A server that has voted on a write of the key, with number one, and waits for the end.
fn with_a_vote(switches: &gmu::Switches) -> Server<gmu::Vectors> {
    let mut server = Server::<gmu::Vectors>::with_switches(Settings::default(), switches);
    let prepare = Prepare {
        txn: txn(OTHER, 1),
        settled_below: 1,
        participants: [HERE, THERE].into_iter().collect(),
        snapshot: gmu::Reads::default(),
        reader: (),
        strict: false,
        reads: Vec::new().into(),
        writes: [(SPACE, server.key(0), Some(SmallBytes::from("new")))].into_iter().collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
        leaving: Default::default(),
        arriving: Default::default(),
    };
    let member = Address::coordinator(OTHER);
    server.receive_from(Sender::Member, member, Message::Prepare(Arc::new(prepare))).unwrap();
    server
}

#[test]
fn a_number_that_nobody_was_given_keeps_no_reader_waiting() {
    let answered = |switches: gmu::Switches| {
        let mut server = Server::<gmu::Vectors>::with_switches(Settings::default(), &switches);
        // Members have issued as large a number, elsewhere.
        is_answered(&mut server, txn(OTHER, 7))
    };
    assert!(answered(gmu::Switches::default()));
    assert!(!answered(gmu::Switches::broken(gmu::GmuSwitch::WaitsForQueued)));
}

#[test]
fn a_made_up_number_lets_no_reader_overtake_those_below_it() {
    let mut server = with_a_vote(&gmu::Switches::default());
    assert!(!is_answered(&mut server, txn(OTHER, 1)), "by whoever has voted");
    assert!(!is_answered(&mut server, txn(CLIENT, 7)), "by nobody");
    // Once that one has aborted, nothing is below.
    let txn = txn(OTHER, 1);
    let (decision, ballots) = (Decision::Abort(Abort::Abandoned), Mostly::new());
    server.member(Message::Decide { txn, decision, ballots }).unwrap();
    assert!(is_answered(&mut server, TxnId { node: CLIENT, ..txn }));
}
