use std::sync::Arc;

use muesli_core::{NodeId, SpaceOptions};
use proptest::prelude::*;

use super::*;

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
        scans: vec![Seen { range: range(), at: Timestamp(8), live: 5 }],
        writes: vec![(SpaceId(0), "b".into(), None)],
    };
    let tasks = [
        Task::Call { procedure, arguments: "from and to".into(), tells: true },
        Task::Read(vec![(SpaceId(0), "a".into())]),
        Task::Scan { range: range(), reverse: true, limit: 12 },
        Task::Install(Box::new(install)),
    ];
    let parts = tasks.into_iter().map(|task| Part { partition: 1, task }).collect();
    Arc::new(Request {
        txn: txn(),
        settled_below: 70,
        floor: Timestamp(5),
        agreement,
        read_only: false,
        nearby: true,
        participants: [RepositoryId(0), RepositoryId(1)].into_iter().collect(),
        parts,
    })
}

fn ends() -> Vec<End> {
    let found = Found { version: Timestamp(3), value: Some("v".into()) };
    let answers = [
        Answer::Given("12".into()),
        Answer::Found(vec![found.clone()]),
        Answer::Rows(vec![("k".into(), found)], true),
        Answer::Installed,
    ];
    let answers: Few<_> = (0..).zip(answers).collect();
    let refusals = [
        Refusal::Refused("no".into()),
        Refusal::Faulty("it panicked".to_owned()),
        Refusal::Aborted(Abort::StaleRead),
    ];
    let refused = refusals.map(|refusal| End::Refused { at: Timestamp(4), refusal });
    let mut ends = vec![End::Done { at: Timestamp(6), answers }, End::Conflict];
    ends.extend(refused);
    ends
}

fn told() -> Vec<Told> {
    let found = Found { version: Timestamp(3), value: Some("v".into()) };
    vec![(1, vec![(SpaceId(0), "k".into(), found)]), (2, Vec::new())]
}

fn messages() -> Vec<Message> {
    let (txn, repository) = (txn(), RepositoryId(1));
    let refusal = Refusal::Aborted(Abort::Phantom);
    let mut all = Vec::new();
    for agreement in [Agreement::Independent, Agreement::Coordinated] {
        all.push(Message::Request(request(agreement)));
    }
    for ballot in
        [Ballot::Commit(Timestamp(2)), Ballot::Conflict, Ballot::Abort(Timestamp(3), refusal)]
    {
        let order = Some(Order { stream: Timestamp(8), number: 3 });
        for order in [None, order] {
            all.push(Message::Vote { txn, repository, ballot: ballot.clone(), order });
        }
        all.push(Message::Ask { request: request(Agreement::Independent), repository, ballot });
    }
    for end in ends() {
        all.push(Message::Reply { txn, repository, end, noted: Noted::default() });
    }
    all.push(Message::Acknowledge { repository, txns: vec![txn] });
    all.push(Message::Tell { txn, told: told() });
    let has = Followed { stream: 7, pieces: 2, upto: Timestamp(9) };
    all.push(Message::Follow { has });
    let changes = vec![(Timestamp(6), vec![(SpaceId(0), "k".into(), None)])];
    let bytes = SmallBytes::from("piece");
    for news in [
        News::Piece { number: 3, bytes },
        News::Changes { upto: Timestamp(8), changes },
        News::Unknown,
    ] {
        all.push(Message::News { repository, stream: 7, news });
    }
    all.push(Message::WhichPosition { repository });
    let order = Order { stream: Timestamp(8), number: 3 };
    all.push(Message::Position { repository, order, at: Timestamp(9), voted: vec![txn] });
    all
}

fn records() -> Vec<Record> {
    let txn = txn();
    let mut all = vec![
        Record::Voted { request: request(Agreement::Independent), at: Timestamp(1) },
        Record::Against { txn, ballot: Ballot::Conflict },
        Record::Ceiling { at: Timestamp(9) },
        Record::Told { txn, told: told() },
        Record::Reached { at: Timestamp(9) },
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
    let request = |message: &&Message| matches!(message, Message::Request(_) | Message::Ask { .. });
    assert!(messages().iter().filter(request).all(|message| !is_about(message, &catalog)));
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    assert!(messages().iter().all(|message| is_about(message, &catalog)));
    let smaller = Catalog::new(&homes[..1], 1, &homes[..1]).unwrap();
    let smaller = smaller.with_space("s", SpaceOptions::default()).unwrap();
    let names =
        |message: &&Message| !matches!(message, Message::Tell { .. } | Message::Follow { .. });
    assert!(messages().iter().filter(names).all(|message| !is_about(message, &smaller)));
    let mut alone = (*super::tests::request(Agreement::Alone)).clone();
    assert!(!is_about(&Message::Request(Arc::new(alone.clone())), &catalog), "two are not alone");
    alone.agreement = Agreement::Independent;
    alone.participants.reverse();
    assert!(!is_about(&Message::Request(Arc::new(alone)), &catalog), "out of order");
}

proptest! {
    #[test]
    fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::decode_all(&bytes);
        let _ = Record::decode_all(&bytes);
    }
}
