//! What is asked of messages from other processes before they touch any state.

use muesli_core::{
    Abort, Address, Decision, Effect, Envelope, Nanos, NodeId, Rejection, RepositoryId, Sender,
    Settings, SmallBytes, Timestamp, TxnId,
};
use muesli_protocols::two_phase::message::{Message, Prepare, ReadRequest, ReadWants, Vote};

use crate::two_phase::server::{CLIENT, HERE, OTHER, SPACE, Scored, asked, decide, prepare, txn};

#[test]
fn a_key_written_twice_by_one_transaction_is_out_of_range() {
    let mut server = Scored::new();
    let key = server.key(0);
    let twice = prepare(txn(CLIENT, 1), &[key.clone(), key.clone()]);
    assert_eq!(server.client(asked(twice)), Err(Rejection::Range));
    assert_eq!(server.client(asked(prepare(txn(CLIENT, 2), &[key]))), Ok(()));
    let counted: Vec<_> = server.node.rejections().iter().collect();
    assert_eq!(counted, [("Prepare", Rejection::Range, 1)]);
}

#[test]
#[should_panic(expected = "prepared over a lock")]
fn unjudged_it_would_end_the_node() {
    let mut server = Scored::new();
    let key = server.key(0);
    let message = asked(prepare(txn(CLIENT, 1), &[key.clone(), key]));
    let (from, to) = (Address::coordinator(CLIENT), Address::repository(NodeId(0), HERE));
    server.node.deliver(Envelope { from, to, message }, &mut server.effects);
}

#[test]
fn a_far_timestamp_raises_no_clock() {
    let mut server = Scored::new();
    let key = server.key(0);
    let before = server.put(&key, "old");
    let read = |snapshot| {
        let keys = [(SPACE, key.clone())].into_iter().collect();
        Message::Read(ReadRequest {
            request: 1,
            snapshot,
            first: true,
            wanted: ReadWants::Values,
            reader: (),
            keys,
            known: Default::default(),
        })
    };
    for far in [Timestamp(before.0 + (1 << 20)), Timestamp::FARTHEST, Timestamp::MAX] {
        assert!(server.client(read(far)).is_err(), "{far}");
        let bound = Message::Bound { bound: far, newest: far };
        let to = Address::coordinator(NodeId(0));
        let from = Address::coordinator(CLIENT);
        let envelope = Envelope { from, to, message: bound };
        assert!(server.node.receive(Sender::CLIENT, envelope, &mut server.effects).is_err());
    }
    let mut far = prepare(txn(CLIENT, 1), &[server.key(1)]);
    far.snapshot = Timestamp(u64::MAX - 1);
    assert_eq!(server.client(asked(far)), Err(Rejection::Range));
    let after = server.put(&key, "new");
    assert!(after.0 - before.0 < 1 << 20, "{before} {after}");
    assert_eq!(server.get(&key), Some(SmallBytes::from("new")));
    // A member's word counts, as far as there is room above it.
    let at = Timestamp(after.0 + (1 << 20));
    let member = Address::coordinator(OTHER);
    assert_eq!(
        server.receive_from(Sender::Member, member, read(Timestamp::MAX)),
        Err(Rejection::Range)
    );
    assert_eq!(server.receive_from(Sender::Member, member, read(at)), Ok(()));
    // And a client's, where it has proven that members have issued as much.
    let next = Timestamp(at.0 + (1 << 20));
    let proven = Sender::Client { issued: next };
    assert_eq!(server.receive_from(proven, Address::coordinator(CLIENT), read(next)), Ok(()));
    assert!(server.node.issued() >= next);
}

#[test]
fn clients_send_for_themselves_alone() {
    let mut server = Scored::new();
    let key = server.key(0);
    let foreign = asked(prepare(txn(OTHER, 1), std::slice::from_ref(&key)));
    assert_eq!(server.client(foreign), Err(Rejection::Sender));
    let repository = Address::repository(CLIENT, RepositoryId(1));
    let own = asked(prepare(txn(CLIENT, 1), &[key]));
    assert_eq!(server.receive_from(Sender::CLIENT, repository, own), Err(Rejection::Sender));
    let low = Message::Watermark { low: Timestamp(1), newest: Timestamp(1) };
    assert_eq!(server.client(low), Err(Rejection::Sender));
    let abort = Decision::Abort(Abort::Abandoned);
    assert_eq!(server.client(decide(txn(OTHER, 9), abort)), Err(Rejection::Sender));
}

#[test]
fn questions_of_clients_leave_nothing() {
    let mut server = Scored::new();
    for sequence in 1..1_000 {
        let ask = Message::Ask { txn: txn(CLIENT, sequence) };
        assert_eq!(server.client(ask), Err(Rejection::Sender));
    }
    assert_eq!(server.remembered(), 0);
}

#[test]
fn a_client_that_settles_nothing_comes_to_an_end_of_its_room() {
    let mut server = Scored::with(Settings { unsettled_max: 10, ..Settings::default() });
    let key = server.key(0);
    let mut rejected = None;
    for sequence in 1..=20 {
        let of = txn(CLIENT, sequence);
        let unsettling = Prepare { settled_below: 1, ..prepare(of, std::slice::from_ref(&key)) };
        rejected = server.client(asked(unsettling)).err().or(rejected);
        let _ = server.abort(of);
    }
    assert_eq!((rejected, server.remembered()), (Some(Rejection::Full), 10));
    // It says that they are settled, and goes on.
    assert_eq!(server.client(asked(prepare(txn(CLIENT, 21), &[key]))), Ok(()));
    assert_eq!(server.remembered(), 0);
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let mut server = Scored::new();
    let keys: Vec<_> = (0..8).map(|number| server.key(number)).collect();
    for (number, key) in keys.iter().enumerate() {
        let client = NodeId(1_000 + number as u32);
        let (from, of) = (Address::coordinator(client), txn(client, 5));
        let message = asked(prepare(of, std::slice::from_ref(key)));
        server.receive_from(Sender::CLIENT, from, message).unwrap();
        let proposal = server.proposal().unwrap();
        server.commit_at(of, proposal).unwrap();
        server
            .receive_from(Sender::CLIENT, from, Message::Settled { txn: txn(client, 6) })
            .unwrap();
    }
    let known = |server: &Scored| server.node.participants()[0].1.known_coordinators();
    assert_eq!((server.remembered(), known(&server)), (0, 8));
    server.effects.now = Nanos(2 * Settings::default().client_lease.0);
    let low = Message::Watermark { low: Timestamp(1), newest: Timestamp(1) };
    server.receive_from(Sender::Member, Address::coordinator(OTHER), low).unwrap();
    assert_eq!(known(&server), 0);
}

#[test]
fn a_number_that_comes_again_with_a_smaller_incarnation_is_told() {
    let mut server = Scored::new();
    let key = server.key(0);
    let of = |incarnation| TxnId { node: CLIENT, incarnation, sequence: 1 };
    server.client(asked(prepare(of(7), std::slice::from_ref(&key)))).unwrap();
    server.effects.list.clear();
    server.client(asked(prepare(of(3), &[key]))).unwrap();
    let sent = server.effects.list.iter().find_map(|effect| match effect {
        Effect::Send { envelope, .. } => Some(&envelope.message),
        _ => None,
    });
    let Some(Message::Vote { vote: Vote::No(reason), txn, .. }) = sent else {
        panic!("{sent:?}");
    };
    assert_eq!((*reason, *txn), (Abort::Superseded, of(3)));
}
