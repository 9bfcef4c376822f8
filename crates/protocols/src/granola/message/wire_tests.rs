use std::sync::Arc;

use muesli_core::{NodeId, SpaceOptions};
use proptest::prelude::*;

use super::*;
use super::{Fetched, Holding, Load, Move, Owners};

fn txn() -> TxnId {
    TxnId { node: NodeId(3), incarnation: 2, sequence: 77 }
}

fn range() -> KeyRange {
    KeyRange { space: SpaceId(0), lo: "a".into(), hi: Some("b".into()) }
}

fn request(agreement: Agreement) -> Arc<Request> {
    let procedure = ProcedureId { name: "transfer".into(), version: 4 };
    let install = Install {
        reads: vec![(SpaceId(0), "a".into(), Timestamp(9))],
        scans: vec![SeenRange { range: range(), at: Timestamp(8), live: 5 }],
        writes: vec![(SpaceId(0), "b".into(), None)],
    };
    let tasks = [
        Task::Call { procedure, arguments: "from and to".into(), shares: true, spaces: 1 },
        Task::Read(vec![(SpaceId(0), "a".into())]),
        Task::Scan { range: range(), reverse: true, limit: 12 },
        Task::Install(Box::new(install)),
        Task::Take { from: RepositoryId(1) },
        Task::Names,
    ];
    let owners = Owners { epoch: 3, holders: Repositories::from_iter([RepositoryId(1)]) };
    let owners = Some(Arc::new(owners));
    let part = |task| Part { partition: 1, owners: owners.clone(), task };
    let parts = tasks.into_iter().map(part).collect();
    Arc::new(Request {
        settled_below: 70,
        lower_bound: Timestamp(5),
        agreement,
        follower_read: true,
        master: Some(NodeId(9)),
        ..Request::new(txn(), [RepositoryId(0), RepositoryId(1)].into_iter().collect(), parts)
    })
}

fn fetched() -> Fetched {
    Fetched { pieces: 3, changes: 4, stream: Timestamp(5), source: Timestamp(6) }
}

/// A request that moves a partition.
fn moving() -> Request {
    let (from, to) = (RepositoryId(1), RepositoryId(0));
    let order = Move { partition: 1, from, to, epoch: 1, has: fetched() };
    let task = Task::Move(Box::new(order));
    let parts = Few::from_iter([Part { partition: 1, owners: None, task }]);
    Request { parts, ..(*request(Agreement::Independent)).clone() }
}

fn ends() -> Vec<ReplyOutcome> {
    let collected = Timestamp::ZERO;
    let found = FoundVersion { version: Timestamp(3), value: Some("v".into()), collected };
    let answers = [
        PartAnswer::Given("12".into()),
        PartAnswer::Found(vec![found.clone()]),
        PartAnswer::Rows(vec![("k".into(), found)], None),
        PartAnswer::Rows(Vec::new(), Some("l".into())),
        PartAnswer::Installed,
        PartAnswer::Taken { has: fetched(), whole: true },
        PartAnswer::Names(vec![(3, Owners { epoch: 1, holders: Repositories::new() })]),
        PartAnswer::Absent(vec![(SpaceId(2), "gone".into(), Timestamp(3))]),
    ];
    let answers: Few<_> = (0..).zip(answers).collect();
    let refusals = [
        Refusal::Refused("no".into()),
        Refusal::Faulty("it panicked".to_owned()),
        Refusal::Aborted(Abort::StaleRead),
    ];
    let refused = refusals.map(|refusal| ReplyOutcome::Refused { at: Timestamp(4), refusal });
    let mut ends = vec![ReplyOutcome::Done { at: Timestamp(6), answers }, ReplyOutcome::Conflict];
    ends.push(ReplyOutcome::Moved { at: Timestamp(7) });
    ends.extend(refused);
    ends
}

/// A key of partition 1 of two.
fn key_there() -> SmallBytes {
    let homes = [NodeId(0), NodeId(1)];
    let catalog = Catalog::new(&homes, 1, &homes).unwrap();
    let mut keys = (0..).map(|number: u8| SmallBytes::new(&[number]));
    keys.find(|key| catalog.partition(SpaceId(0), key) == 1).unwrap()
}

fn shared() -> Vec<PartData> {
    let collected = Timestamp::ZERO;
    let found = FoundVersion { version: Timestamp(3), value: Some("v".into()), collected };
    vec![(1, vec![(SpaceId(0), "k".into(), found)]), (2, Vec::new())]
}

fn messages() -> Vec<Message> {
    let (txn, repository) = (txn(), RepositoryId(1));
    let refusal = Refusal::Aborted(Abort::Phantom);
    let mut all = Vec::new();
    for agreement in [Agreement::Independent, Agreement::Coordinated] {
        all.push(Message::Request(request(agreement)));
    }
    all.push(Message::Request(Arc::new(moving())));
    for ballot in [
        TimestampVote::Commit(Timestamp(2)),
        TimestampVote::Conflict,
        TimestampVote::Abort(Timestamp(3), refusal),
        TimestampVote::Moved(Timestamp(4)),
    ] {
        let order = Some(VoteOrder { stream: Timestamp(8), number: 3 });
        for order in [None, order] {
            let (about, tag) = (order.map_or(0, |order| order.number), 7);
            all.push(Message::Vote { txn, repository, ballot: ballot.clone(), about, tag, order });
        }
        let shown = vec![Shown { repository, ballot: ballot.clone(), about: 5, tag: 6 }];
        all.push(Message::Decide { txn, ballot: ballot.clone(), shown });
        all.push(Message::Ask { request: request(Agreement::Independent), repository, ballot });
    }
    for end in ends() {
        all.push(Message::Reply { txn, repository, end, noted: Noted::default() });
    }
    all.push(Message::Acknowledge { repository, txns: vec![txn] });
    all.push(Message::Tell { txn, shared: shared() });
    let has = Followed { stream: 7, pieces: 2, upto: Timestamp(9) };
    all.push(Message::Follow { has });
    let changes = vec![(Timestamp(6), vec![(SpaceId(0), "k".into(), None)])];
    let bytes = SmallBytes::from("piece");
    let held = vec![(1, Holding { epoch: 2, holds: true, at: Timestamp(4) })];
    for news in [
        News::Piece { number: 3, bytes },
        News::Changes { upto: Timestamp(8), changes: changes.clone(), held },
        News::Unknown,
    ] {
        all.push(Message::News { repository, stream: 7, news });
    }
    all.push(Message::WhichPosition { repository });
    let (asked, clients) = (7, vec![(muesli_core::NodeId(9), 2)]);
    all.push(Message::AskDoubts { asked, clients: clients.clone() });
    all.push(Message::NoDoubts { repository, asked, clients });
    all.push(Message::Fetch { repository, partition: 1, has: fetched() });
    let (stream, source, partition) = (Timestamp(5), Timestamp(6), 1);
    let keys = vec![(SpaceId(0), key_there(), Timestamp(6), None)];
    let changes = vec![(Timestamp(6), vec![(SpaceId(0), key_there(), None)])];
    for load in [
        Load::Piece { number: 3, keys },
        Load::Changes { from: 2, changes, whole: true },
        Load::Unknown,
    ] {
        all.push(Message::Load { repository, partition, stream, source, load });
    }
    let order = VoteOrder { stream: Timestamp(8), number: 3 };
    all.push(Message::Position { repository, order, at: Timestamp(9), voted: vec![txn] });
    let reads = vec![(SpaceId(0), "k".into(), Timestamp(9))];
    let scans = vec![(1, SeenRange { range: range(), at: Timestamp(8), live: 5 })];
    all.push(Message::Watch { request: 3, reads: Box::new(WatchedReads { reads, scans }) });
    all.push(Message::Unwatch { request: 3 });
    all.push(Message::Changed { repository, request: 3 });
    all
}

fn records() -> Vec<Record> {
    let txn = txn();
    let mut all = vec![
        Record::Voted { request: request(Agreement::Independent), at: Timestamp(1) },
        Record::Against { txn, ballot: TimestampVote::Conflict },
        Record::UpperBound { at: Timestamp(9) },
        Record::SharedData { txn, shared: shared() },
        Record::Reached { at: Timestamp(9) },
        Record::Staged {
            partition: 1,
            anew: false,
            keys: vec![(SpaceId(0), "k".into(), Timestamp(6), Some("v".into()))],
        },
    ];
    for end in ends() {
        let writes = vec![(SpaceId(0), "k".into(), Some("v".into()))];
        all.push(Record::Done { txn, at: Timestamp(6), writes, end: end.clone() });
        all.push(Record::Dropped { txn, end });
    }
    all
}

/// It comes back from its bytes, from all of them, and from no fewer and no more.
fn comes_back<T: Wire + PartialEq + std::fmt::Debug>(value: &T) {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    assert!(bytes.len() >= T::LEAST_BYTES, "{value:?}");
    assert_eq!(T::decode_all(&bytes).as_ref(), Ok(value));
    for shorter in 0..bytes.len() {
        assert!(T::decode_all(&bytes[..shorter]).is_err(), "{shorter} bytes of {value:?}");
    }
    bytes.push(0);
    assert!(T::decode_all(&bytes).is_err(), "{value:?} and a byte");
}

#[test]
fn messages_and_records_come_back_from_their_bytes() {
    messages().iter().for_each(comes_back);
    records().iter().for_each(comes_back);
}

#[test]
fn what_is_not_there_is_not_let_in() {
    let homes = [NodeId(0), NodeId(1)];
    let catalog = Catalog::new(&homes, 1, &homes).unwrap();
    let is_request = |message: &&Message| match message {
        Message::Request(request) => request.moving().is_none(),
        other => matches!(other, Message::Ask { .. }),
    };
    assert!(messages().iter().filter(is_request).all(|message| !is_about(message, &catalog)));
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    assert!(messages().iter().all(|message| is_about(message, &catalog)));
    let smaller = Catalog::new(&homes[..1], 1, &homes[..1]).unwrap();
    let smaller = smaller.with_space("s", SpaceOptions::default()).unwrap();
    let names = |message: &&Message| {
        let names_none = matches!(message, Message::Tell { .. } | Message::Follow { .. });
        !names_none && !matches!(message, Message::AskDoubts { .. } | Message::Unwatch { .. })
    };
    assert!(messages().iter().filter(names).all(|message| !is_about(message, &smaller)));
    let mut alone = (*request(Agreement::Alone)).clone();
    assert!(!is_about(&Message::Request(Arc::new(alone.clone())), &catalog), "two are not alone");
    alone.agreement = Agreement::Independent;
    alone.participants.reverse();
    assert!(!is_about(&Message::Request(Arc::new(alone)), &catalog), "out of order");
    let mut moves = moving();
    moves.participants = Repositories::from_iter([RepositoryId(1)]);
    assert!(!is_about(&Message::Request(Arc::new(moves)), &catalog), "who is to have it is out");
    let (repository, stream, source) = (RepositoryId(0), Timestamp(5), Timestamp(6));
    let keys = vec![(SpaceId(0), key_there(), Timestamp(6), None)];
    let load = Load::Piece { number: 3, keys };
    let misplaced = Message::Load { repository, partition: 0, stream, source, load };
    assert!(!is_about(&misplaced, &catalog), "keys of another partition");
}

proptest! {
    #[test]
    fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::decode_all(&bytes);
        let _ = Record::decode_all(&bytes);
    }
}
