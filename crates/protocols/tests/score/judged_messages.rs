//! Each rule by which a message of another process is left out has a message here that breaks that
//! rule alone: the same message is taken where it does not.

use std::sync::Arc;

use muesli_core::parts::locator::Static;
use muesli_core::ranges::KeyRange;
use muesli_core::{
    Abort, Action, Address, Catalog, Decision, Effects, Envelope, Index, Nanos, Node, NodeId,
    Rejection, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Timestamp, TxnId,
};
use muesli_protocols::score::{Score, Snapshots};
use muesli_protocols::two_phase::message::{
    Found, LockRequest, Message, Prepare, ReadReply, ReadRequest, ReadWants, ScanReply,
    ScanRequest, Vote,
};

use crate::two_phase::server::{
    CLIENT, HERE, OTHER, SPACE, Scored, THERE, asked, decide, prepare, txn,
};

type AnyMessage = Message<Snapshots>;

/// More of anything than a message may have.
const TOO_MANY: usize = 100_000;
const FAR: Timestamp = Timestamp::MAX;

fn coordinator() -> Address {
    Address::coordinator(OTHER)
}

fn repository() -> Address {
    Address::repository(OTHER, THERE)
}

/// What the node makes of a member's message to its repository, or to its coordinator.
fn answered(to_coordinator: bool, from: Address, message: AnyMessage) -> Result<(), Rejection> {
    let mut server = Scored::new();
    let to = match to_coordinator {
        true => Address::coordinator(NodeId(0)),
        false => Address::repository(NodeId(0), HERE),
    };
    server.node.receive(Sender::Member, Envelope { from, to, message }, &mut server.effects)
}

fn at_repository(from: Address, message: AnyMessage) -> Result<(), Rejection> {
    answered(false, from, message)
}

fn at_coordinator(from: Address, message: AnyMessage) -> Result<(), Rejection> {
    answered(true, from, message)
}

fn key() -> SmallBytes {
    Scored::new().key(0)
}

/// A key that the other repository holds.
fn key_elsewhere() -> SmallBytes {
    let server = Scored::new();
    let catalog = server.node.catalog();
    let keys = (0_u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
    let elsewhere = |key: &SmallBytes| !Static.holds(HERE, catalog.partition(SPACE, key), catalog);
    keys.into_iter().find(elsewhere).unwrap()
}

/// A transaction whose number nobody can have come to.
fn beyond() -> TxnId {
    txn(OTHER, TxnId::SEQUENCE_MAX + 1)
}

fn read() -> ReadRequest<Snapshots> {
    let keys = [(SPACE, key())].into_iter().collect();
    ReadRequest {
        request: 1,
        snapshot: Timestamp(1),
        first: true,
        wanted: ReadWants::Values,
        reader: (),
        keys,
        known: Default::default(),
    }
}

fn range() -> KeyRange {
    KeyRange { space: SPACE, lo: SmallBytes::EMPTY, hi: None }
}

fn scan() -> ScanRequest<Snapshots> {
    let server = Scored::new();
    let catalog = server.node.catalog();
    let partitions = 0..catalog.partitions() as u16;
    ScanRequest {
        request: 1,
        snapshot: Timestamp(1),
        first: true,
        reader: (),
        range: range(),
        partitions: partitions.filter(|it| Static.holds(HERE, *it, catalog)).collect(),
        reverse: false,
        limit: 9,
    }
}

fn prepared() -> Prepare<Snapshots> {
    prepare(txn(OTHER, 1), &[key()])
}

#[test]
fn a_read_names_keys_that_are_here_at_a_snapshot_that_can_be() {
    let answered = |read| at_repository(coordinator(), Message::Read(read));
    assert_eq!(answered(read()), Ok(()));
    let none = ReadRequest { keys: [].into_iter().collect(), ..read() };
    assert_eq!(answered(none), Err(Rejection::Range), "no keys");
    let elsewhere = [(SPACE, key_elsewhere())].into_iter().collect();
    assert_eq!(answered(ReadRequest { keys: elsewhere, ..read() }), Err(Rejection::Catalog));
    let unknown = [(SpaceId(9), key())].into_iter().collect();
    assert_eq!(answered(ReadRequest { keys: unknown, ..read() }), Err(Rejection::Catalog));
    assert_eq!(answered(ReadRequest { snapshot: FAR, ..read() }), Err(Rejection::Range));
    let of_repository = at_repository(repository(), Message::Read(read()));
    assert_eq!(of_repository, Err(Rejection::Sender), "repositories read nothing");
}

#[test]
fn a_scan_names_partitions_that_are_here_and_a_range_that_can_be() {
    let answered = |scan| at_repository(coordinator(), Message::Scan(Box::new(scan)));
    assert_eq!(answered(scan()), Ok(()));
    let many = vec![scan().partitions[0]; TOO_MANY];
    assert_eq!(answered(ScanRequest { partitions: many, ..scan() }), Err(Rejection::Range));
    let server = Scored::new();
    let catalog = server.node.catalog();
    let elsewhere = (0..).find(|it| !Static.holds(HERE, *it, catalog)).unwrap();
    let elsewhere = ScanRequest { partitions: vec![elsewhere], ..scan() };
    assert_eq!(answered(elsewhere), Err(Rejection::Catalog));
    assert_eq!(answered(ScanRequest { snapshot: FAR, ..scan() }), Err(Rejection::Range));
    let long = KeyRange { lo: vec![1; TOO_MANY].into(), ..range() };
    assert_eq!(answered(ScanRequest { range: long, ..scan() }), Err(Rejection::Range));
    let unknown = KeyRange { space: SpaceId(9), ..range() };
    assert_eq!(answered(ScanRequest { range: unknown, ..scan() }), Err(Rejection::Catalog));
    let of_repository = at_repository(repository(), Message::Scan(Box::new(scan())));
    assert_eq!(of_repository, Err(Rejection::Sender));
}

#[test]
fn a_scan_of_a_space_that_is_not_there_is_left_out() {
    let homes = [NodeId(0), OTHER];
    let answered = |index: Option<Index>| {
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let options = index.map(|index| SpaceOptions { index, ..SpaceOptions::default() });
        let known = options.map(|options| catalog.with_space("s", options).unwrap());
        let catalog = Arc::new(known.unwrap_or(catalog));
        let settings = Arc::new(Settings::default());
        let node = Node::new(NodeId(0), 1, catalog, settings, &Default::default());
        let mut server = Scored { node, effects: Effects::default() };
        server.receive_from(Sender::Member, coordinator(), Message::Scan(Box::new(scan())))
    };
    // One without an order is put in order for who lists it.
    assert_eq!([Index::Ordered, Index::Hash].map(|it| answered(Some(it))), [Ok(()), Ok(())]);
    assert_eq!(answered(None), Err(Rejection::Catalog));
}

#[test]
fn a_lock_is_asked_for_by_a_coordinator_on_a_key_that_is_here() {
    let lock = |key| Message::Lock(LockRequest { request: 1, reader: (), space: SPACE, key });
    assert_eq!(at_repository(coordinator(), lock(key())), Ok(()));
    assert_eq!(at_repository(repository(), lock(key())), Err(Rejection::Sender));
    let elsewhere = at_repository(coordinator(), lock(key_elsewhere()));
    assert_eq!(elsewhere, Err(Rejection::Catalog));
    let long = (0..=u8::MAX).map(|fill| SmallBytes::from(vec![fill; TOO_MANY]));
    for key in long.take(9) {
        assert_eq!(at_repository(coordinator(), lock(key)), Err(Rejection::Range));
    }
    let unlock = Message::Unlock { reader: () };
    assert_eq!(at_repository(repository(), unlock), Err(Rejection::Sender));
}

#[test]
fn a_prepare_is_of_its_owner_and_its_numbers_can_be() {
    let answered = |prepare| at_repository(coordinator(), asked(prepare));
    assert_eq!(answered(prepared()), Ok(()));
    assert_eq!(at_repository(repository(), asked(prepared())), Err(Rejection::Sender));
    let foreign = Prepare { txn: txn(CLIENT, 1), ..prepared() };
    assert_eq!(answered(foreign), Err(Rejection::Sender));
    assert_eq!(answered(Prepare { txn: beyond(), ..prepared() }), Err(Rejection::Range));
    assert_eq!(answered(Prepare { settled_below: 2, ..prepared() }), Err(Rejection::Range));
    assert_eq!(answered(Prepare { snapshot: FAR, ..prepared() }), Err(Rejection::Range));
    for (all, why) in [
        (vec![THERE, HERE], Rejection::Range),
        (vec![HERE, HERE, THERE], Rejection::Range),
        (vec![THERE], Rejection::Role),
    ] {
        let participants = all.iter().copied().collect();
        assert_eq!(answered(Prepare { participants, ..prepared() }), Err(why), "{all:?}");
    }
}

#[test]
fn a_prepare_names_keys_that_are_here() {
    let answered = |prepare| at_repository(coordinator(), asked(prepare));
    let reads = |key, at| [(SPACE, key, at)].into_iter().collect();
    let honest = Prepare { reads: reads(key(), Timestamp(1)), ..prepared() };
    assert_eq!(answered(honest), Ok(()));
    let elsewhere = Prepare { reads: reads(key_elsewhere(), Timestamp(1)), ..prepared() };
    assert_eq!(answered(elsewhere), Err(Rejection::Catalog));
    assert_eq!(answered(Prepare { reads: reads(key(), FAR), ..prepared() }), Err(Rejection::Range));
    let writes = [(SPACE, key_elsewhere(), None)].into_iter().collect();
    assert_eq!(answered(Prepare { writes, ..prepared() }), Err(Rejection::Catalog));
    let unknown = KeyRange { space: SpaceId(9), ..range() };
    assert_eq!(answered(Prepare { scans: vec![range()], ..prepared() }), Ok(()));
    assert_eq!(answered(Prepare { scans: vec![unknown], ..prepared() }), Err(Rejection::Catalog));
}

/// SCORe does all that it is asked for at once.
#[test]
fn actions_are_left_out_where_the_protocol_defers_none() {
    let delayed = vec![(SPACE, Scored::new().key(1), Action::append("x"))];
    let delays = Prepare { delayed, ..prepared() };
    assert_eq!(at_repository(coordinator(), asked(delays)), Err(Rejection::State));
}

#[test]
fn the_owner_or_a_participant_decides() {
    let abort = || Decision::Abort(Abort::Abandoned);
    assert_eq!(at_repository(coordinator(), decide(txn(OTHER, 1), abort())), Ok(()));
    assert_eq!(at_repository(repository(), decide(txn(CLIENT, 1), abort())), Ok(()));
    let foreign = at_repository(coordinator(), decide(txn(CLIENT, 1), abort()));
    assert_eq!(foreign, Err(Rejection::Sender));
    assert_eq!(at_repository(repository(), decide(beyond(), abort())), Err(Rejection::Range));
    let far = decide(txn(CLIENT, 1), Decision::Commit(FAR));
    assert_eq!(at_repository(repository(), far), Err(Rejection::Range));
    let of_client = |from| {
        let mut server = Scored::new();
        server.receive_from(Sender::CLIENT, from, decide(txn(CLIENT, 1), abort()))
    };
    let disguised = Address::repository(CLIENT, THERE);
    assert_eq!(of_client(disguised), Err(Rejection::Sender), "a client has no repository");
    let settled = |of| at_repository(coordinator(), Message::Settled { txn: txn(of, 1) });
    assert_eq!((settled(OTHER), settled(CLIENT)), (Ok(()), Err(Rejection::Sender)));
}

/// Who takes no part in a transaction that waits for its end does not tell it.
#[test]
fn repositories_that_take_no_part_do_not_decide() {
    let alone = Prepare { participants: [HERE].into_iter().collect(), ..prepared() };
    let both = prepared();
    let received_after = |prepare: Prepare<_>, message: fn(TxnId) -> AnyMessage| {
        let mut server = Scored::new();
        server.receive_from(Sender::Member, coordinator(), asked(prepare)).unwrap();
        server.receive_from(Sender::Member, repository(), message(txn(OTHER, 1)))
    };
    let abort = |txn| decide(txn, Decision::Abort(Abort::Abandoned));
    let decided = |txn| {
        let vote = Vote::Decided(Decision::Abort(Abort::Abandoned));
        Message::Vote { txn, repository: THERE, vote, committed: Timestamp(1), about: None, tag: 0 }
    };
    assert_eq!(
        (received_after(both.clone(), abort), received_after(both, decided)),
        (Ok(()), Ok(()))
    );
    assert_eq!(received_after(alone.clone(), abort), Err(Rejection::Sender));
    assert_eq!(received_after(alone, decided), Err(Rejection::Sender));
}

#[test]
fn a_vote_is_of_the_repository_that_it_names() {
    let honest = || (txn(OTHER, 1), THERE, Vote::No(Abort::Locked), Timestamp(1));
    let vote = |(txn, repository, vote, committed)| {
        let message = Message::Vote { txn, repository, vote, committed, about: None, tag: 0 };
        at_repository(self::repository(), message)
    };
    let (of, there, no, at) = honest();
    assert_eq!(vote(honest()), Ok(()));
    assert_eq!(vote((of, HERE, no.clone(), at)), Err(Rejection::Sender));
    assert_eq!(vote((beyond(), there, no.clone(), at)), Err(Rejection::Range));
    assert_eq!(vote((of, there, no, FAR)), Err(Rejection::Range), "of what is committed");
    assert_eq!(vote((of, there, Vote::Yes(FAR), at)), Err(Rejection::Range));
    let far = Vote::Decided(Decision::Commit(FAR));
    assert_eq!(vote((of, there, far, at)), Err(Rejection::Range));
}

#[test]
fn repositories_ask_each_other_and_nobody_else_does() {
    let ask = |txn| Message::Ask { txn };
    assert_eq!(at_repository(repository(), ask(txn(OTHER, 1))), Ok(()));
    assert_eq!(at_repository(coordinator(), ask(txn(OTHER, 1))), Err(Rejection::Sender));
    assert_eq!(at_repository(repository(), ask(beyond())), Err(Rejection::Range));
    let gone = |count| vec![(CLIENT, 1); count];
    let doubts = |count| Message::AskDoubts { asked: Nanos(1), clients: gone(count) };
    assert_eq!(at_repository(repository(), doubts(1)), Ok(()));
    assert_eq!(at_repository(coordinator(), doubts(1)), Err(Rejection::Sender));
    assert_eq!(at_repository(repository(), doubts(TOO_MANY)), Err(Rejection::Range));
    let none = |repository, count| {
        let clients = gone(count);
        at_repository(
            self::repository(),
            Message::NoDoubts { repository, asked: Nanos(1), clients },
        )
    };
    assert_eq!(none(THERE, 1), Ok(()));
    assert_eq!(none(HERE, 1), Err(Rejection::Sender));
    assert_eq!(none(THERE, TOO_MANY), Err(Rejection::Range));
}

fn read_reply(snapshot: Option<Timestamp>, committed: Timestamp, version: Timestamp) -> AnyMessage {
    let found = Found { version, value: None, newest: true, collected: Timestamp::ZERO };
    let found = [found].into_iter().collect();
    Message::ReadReply(ReadReply {
        request: 1,
        snapshot,
        committed,
        found,
        moved: Default::default(),
        known: Default::default(),
    })
}

fn scan_reply(snapshot: Option<Timestamp>, committed: Timestamp, version: Timestamp) -> AnyMessage {
    let found = Found { version, value: None, newest: true, collected: Timestamp::ZERO };
    let rows = vec![(key(), found)];
    Message::ScanReply(Box::new(ScanReply {
        request: 1,
        snapshot,
        committed,
        rows,
        seen_to: None,
        moved: Default::default(),
    }))
}

#[test]
fn an_answer_is_of_a_repository_and_its_numbers_can_be() {
    let at = Timestamp(1);
    for reply in [read_reply, scan_reply] {
        assert_eq!(at_coordinator(repository(), reply(Some(at), at, at)), Ok(()));
        assert_eq!(at_coordinator(coordinator(), reply(None, at, at)), Err(Rejection::Sender));
        for (snapshot, committed, version) in
            [(Some(FAR), at, at), (Some(at), FAR, at), (Some(at), at, FAR)]
        {
            let far = reply(snapshot, committed, version);
            assert_eq!(at_coordinator(repository(), far.clone()), Err(Rejection::Range), "{far:?}");
        }
        let astray = at_repository(repository(), reply(None, at, at));
        assert_eq!(astray, Err(Rejection::Role), "a repository asks for nothing");
    }
    let locked = || Message::Locked { request: 1, refused: None };
    assert_eq!(at_coordinator(repository(), locked()), Ok(()));
    assert_eq!(at_coordinator(coordinator(), locked()), Err(Rejection::Sender));
}

#[test]
fn answers_to_a_coordinator_are_about_its_own_transactions() {
    let ours = txn(NodeId(0), 1);
    let acknowledge = |repository, txns| {
        at_coordinator(self::repository(), Message::Acknowledge { repository, txns })
    };
    assert_eq!(acknowledge(THERE, vec![ours]), Ok(()));
    assert_eq!(acknowledge(HERE, vec![ours]), Err(Rejection::Sender));
    assert_eq!(acknowledge(THERE, vec![ours, txn(OTHER, 1)]), Err(Rejection::Sender));
    let ran = |txn| Message::Ran { txn, answers: Vec::new(), violation: None };
    assert_eq!(at_coordinator(repository(), ran(ours)), Ok(()));
    assert_eq!(at_coordinator(coordinator(), ran(ours)), Err(Rejection::Sender));
    assert_eq!(at_coordinator(repository(), ran(txn(OTHER, 1))), Err(Rejection::Sender));
}

#[test]
fn requests_are_for_repositories() {
    let abort = decide(txn(OTHER, 1), Decision::Abort(Abort::Abandoned));
    for message in [Message::Read(read()), asked(prepared()), abort] {
        assert_eq!(at_coordinator(coordinator(), message), Err(Rejection::Role));
    }
}

#[test]
fn bounds_and_watermarks_are_of_coordinators() {
    let at = Timestamp(1);
    let bound = |bound, newest| Message::Bound { bound, newest };
    let watermark = |low, newest| Message::Watermark { low, newest };
    for sent in [bound, watermark] {
        assert_eq!(at_coordinator(coordinator(), sent(at, at)), Ok(()));
        assert_eq!(at_coordinator(repository(), sent(at, at)), Err(Rejection::Sender));
        assert_eq!(at_coordinator(coordinator(), sent(FAR, at)), Err(Rejection::Range));
        assert_eq!(at_coordinator(coordinator(), sent(at, FAR)), Err(Rejection::Range));
    }
}

/// The coordinator beside repository 0 gathers the bounds, of clients only where they may come.
#[test]
fn bounds_go_to_the_coordinator_that_gathers_them() {
    let answered = |me: NodeId, visits: bool| {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = if visits { catalog.with_visiting_coordinators() } else { catalog };
        let settings = Arc::new(Settings::default());
        let (mut effects, switches) = (Effects::default(), Default::default());
        let mut node = Node::<Score>::new(me, 1, Arc::new(catalog), settings, &switches);
        let bound = Message::Bound { bound: Timestamp::ZERO, newest: Timestamp::ZERO };
        let (from, to) = (Address::coordinator(CLIENT), Address::coordinator(me));
        node.receive(Sender::CLIENT, Envelope { from, to, message: bound }, &mut effects)
    };
    assert_eq!(answered(NodeId(0), true), Ok(()));
    assert_eq!(answered(OTHER, true), Err(Rejection::Role));
    assert_eq!(answered(NodeId(0), false), Err(Rejection::Sender));
}
