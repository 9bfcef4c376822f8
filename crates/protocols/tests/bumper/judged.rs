//! What is asked of what a transaction leaves to its turn, and of who reads: each rule has a
//! message here that breaks that rule alone.

use muesli_core::parts::locator::Static;
use muesli_core::ranges::KeyRange;
use muesli_core::{
    Action, Address, DelayedCall, Nanos, NodeId, ProcedureId, Rejection, Sender, Settings,
    SmallBytes, SpaceId, Txn,
};
use muesli_protocols::bumper::{Switches, TimeWarp};
use muesli_protocols::two_phase::message::{
    Extra, LockRequest, Message, Prepare, ReadRequest, ReadWants, ScanRequest,
};
use muesli_protocols::two_phase::{ReaderBounds as _, Variant};

use crate::two_phase::server::{CLIENT, HERE, OTHER, SPACE, Server, asked, prepare, txn};

fn server() -> Server<TimeWarp> {
    Server::with_switches(Settings::default(), &Switches::delaying())
}

fn answered(message: Message<TimeWarp>) -> Result<(), Rejection> {
    server().receive_from(Sender::Member, Address::coordinator(OTHER), message)
}

fn reader(node: NodeId) -> <TimeWarp as Variant>::Reader {
    <TimeWarp as Variant>::Reader::new(node, 1, Txn { slot: 1, generation: 1 }, Nanos(0))
}

fn key_elsewhere() -> SmallBytes {
    let server = server();
    let catalog = server.node.catalog();
    let keys = (0_u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
    let elsewhere = |key: &SmallBytes| !Static.holds(HERE, catalog.partition(SPACE, key), catalog);
    keys.into_iter().find(elsewhere).unwrap()
}

/// Two keys of one partition, which is here.
fn keys() -> (SmallBytes, SmallBytes) {
    let server = server();
    let partition = |key: &SmallBytes| server.node.catalog().partition(SPACE, key);
    let first = server.key(0);
    let near =
        (1..200).map(|number| server.key(number)).find(|it| partition(it) == partition(&first));
    (first, near.expect("more keys than partitions"))
}

fn empty() -> Prepare<TimeWarp> {
    prepare(txn(OTHER, 1), &[])
}

fn calling(keys: &[SmallBytes], ranges: Vec<KeyRange>) -> DelayedCall {
    DelayedCall {
        procedure: ProcedureId { name: "any".into(), version: 1 },
        arguments: SmallBytes::EMPTY,
        partition: server().node.catalog().partition(SPACE, &keys[0]),
        keys: keys.iter().map(|key| (SPACE, key.clone())).collect(),
        ranges,
        steady: false,
    }
}

fn with_call(call: DelayedCall) -> Prepare<TimeWarp> {
    Prepare { extra: Some(Box::new(Extra { calls: vec![call], ..Extra::default() })), ..empty() }
}

#[test]
fn a_reader_is_a_transaction_of_the_sending_node() {
    for (node, expected) in [(OTHER, Ok(())), (CLIENT, Err(Rejection::Sender))] {
        let (reader, key) = (reader(node), server().key(0));
        let snapshot = Default::default();
        let keys = [(SPACE, key.clone())].into_iter().collect();
        let read = ReadRequest {
            request: 1,
            snapshot,
            first: true,
            wanted: ReadWants::Values,
            reader,
            keys,
            known: Default::default(),
        };
        assert_eq!(answered(Message::Read(read)), expected, "read of {node:?}");
        let scan = ScanRequest {
            request: 1,
            snapshot,
            first: true,
            reader,
            range: KeyRange { space: SPACE, lo: SmallBytes::EMPTY, hi: None },
            partitions: vec![server().node.catalog().partition(SPACE, &key)],
            reverse: false,
            limit: 1,
        };
        assert_eq!(answered(Message::Scan(Box::new(scan))), expected, "scan of {node:?}");
        let lock = LockRequest { request: 1, reader, space: SPACE, key };
        assert_eq!(answered(Message::Lock(lock)), expected, "lock of {node:?}");
        assert_eq!(answered(Message::Unlock { reader }), expected, "unlock of {node:?}");
        let prepare = Prepare { reader, ..prepare(txn(OTHER, 1), &[server().key(0)]) };
        assert_eq!(answered(asked(prepare)), expected, "prepare of {node:?}");
    }
}

#[test]
fn actions_are_on_keys_that_are_here() {
    let delaying = |space, key| {
        let delayed = vec![(space, key, Action::append("x"))];
        answered(asked(Prepare { delayed, ..empty() }))
    };
    assert_eq!(delaying(SPACE, server().key(0)), Ok(()));
    assert_eq!(delaying(SPACE, key_elsewhere()), Err(Rejection::Catalog));
    assert_eq!(delaying(SpaceId(9), server().key(0)), Err(Rejection::Catalog));
}

#[test]
fn procedures_touch_what_lives_with_their_partition() {
    let (key, near) = keys();
    let answered = |call| answered(asked(with_call(call)));
    assert_eq!(answered(calling(&[key.clone(), near], vec![])), Ok(()));
    assert_eq!(answered(calling(&[key.clone(), key_elsewhere()], vec![])), Err(Rejection::Catalog));
    let apart = DelayedCall { partition: u16::MAX, ..calling(std::slice::from_ref(&key), vec![]) };
    assert_eq!(answered(apart), Err(Rejection::Catalog));
    let unknown = KeyRange { space: SpaceId(9), lo: SmallBytes::EMPTY, hi: None };
    assert_eq!(answered(calling(&[key], vec![unknown])), Err(Rejection::Catalog));
}

#[test]
fn what_is_asked_for_is_deferred() {
    let asking = |at| {
        let delayed = vec![(SPACE, server().key(0), Action::append("x"))];
        let extra = Some(Box::new(Extra { asked: vec![(at, 0)], ..Extra::default() }));
        answered(asked(Prepare { delayed, extra, ..empty() }))
    };
    assert_eq!((asking(0), asking(1)), (Ok(()), Err(Rejection::Range)));
}

#[test]
fn a_key_is_changed_once() {
    let (key, near) = keys();
    let append = |key: &SmallBytes| (SPACE, key.clone(), Action::append("x"));
    let twice = Prepare { delayed: vec![append(&key), append(&key)], ..empty() };
    assert_eq!(answered(asked(twice)), Ok(()), "several actions may be on one key");
    let written = prepare(txn(OTHER, 1), std::slice::from_ref(&key));
    let both = Prepare { delayed: vec![append(&key)], ..written };
    assert_eq!(answered(asked(both)), Err(Rejection::Range), "a write and an action");
    let call = with_call(calling(&[key.clone(), near], vec![]));
    let both = Prepare { delayed: vec![append(&key)], ..call.clone() };
    assert_eq!(answered(asked(both)), Err(Rejection::Range), "an action and a procedure");
    let writes = [(SPACE, key, None)].into_iter().collect();
    assert_eq!(answered(asked(Prepare { writes, ..call })), Err(Rejection::Range));
}
