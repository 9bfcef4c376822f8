//! Messages and records come back from their bytes, and no bytes break their readers.

use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::wire::Wire;
use muesli_core::{
    Abort, Action, Catalog, Decision, DelayedCall, Gave, Nanos, NodeId, ProcedureId, RepositoryId,
    SmallBytes, SpaceId, SpaceOptions, Timestamp, TxnId,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::is_about;
use crate::score::message::{Prepare, RepositoryVote, Vote};
use crate::score::{Message, Record};
use crate::two_phase::message::{
    About, Answers, Extra, Few, Found, LockRequest, ReadReply, ReadRequest, ReadWants, ScanReply,
    ScanRequest, WatchRequest,
};

fn bytes() -> impl Strategy<Value = SmallBytes> {
    vec(any::<u8>(), 0..30).prop_map(SmallBytes::from)
}

fn space() -> impl Strategy<Value = SpaceId> {
    any::<u16>().prop_map(SpaceId)
}

fn at() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp)
}

fn txn() -> impl Strategy<Value = TxnId> {
    any::<(u32, u32, u64)>().prop_map(|(node, incarnation, sequence)| TxnId {
        node: NodeId(node),
        incarnation,
        sequence,
    })
}

fn reason() -> impl Strategy<Value = Abort> {
    prop::sample::select(&Abort::ALL[..])
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![at().prop_map(Decision::Commit), reason().prop_map(Decision::Abort)]
}

fn vote() -> impl Strategy<Value = Vote> {
    prop_oneof![
        at().prop_map(Vote::Yes),
        reason().prop_map(Vote::No),
        decision().prop_map(Vote::Decided)
    ]
}

fn ballot() -> impl Strategy<Value = RepositoryVote> {
    let changes = vec((any::<u16>(), any::<u64>()), 0..3);
    let repository = || any::<u16>().prop_map(RepositoryId);
    let moves = vec((repository(), repository(), any::<u64>()), 0..3);
    let about = (any::<u64>(), changes, moves).prop_map(|(participants, changes, moves)| {
        Box::new(About { participants, changes, moves })
    });
    let about = option::of(about);
    (any::<u16>(), vote(), about, any::<u64>()).prop_map(|(repository, vote, about, tag)| {
        let repository = RepositoryId(repository);
        RepositoryVote { repository, vote, about, tag }
    })
}

fn found() -> impl Strategy<Value = Found> {
    (at(), option::of(bytes()), any::<bool>(), at())
        .prop_map(|(version, value, newest, collected)| Found { version, value, newest, collected })
}

fn range() -> impl Strategy<Value = KeyRange> {
    (space(), bytes(), option::of(bytes())).prop_map(|(space, lo, hi)| KeyRange { space, lo, hi })
}

fn writes() -> impl Strategy<Value = Vec<(SpaceId, SmallBytes, Option<SmallBytes>)>> {
    vec((space(), bytes(), option::of(bytes())), 0..4)
}

fn delayed() -> impl Strategy<Value = Vec<(SpaceId, SmallBytes, Action)>> {
    let action = (bytes(), bytes()).prop_map(|(name, argument)| Action { name, argument });
    vec((space(), bytes(), action), 0..3)
}

fn extra() -> impl Strategy<Value = Option<Box<Extra>>> {
    let keys = vec((space(), bytes()), 0..3);
    let call = (bytes(), bytes(), any::<u16>(), keys, vec(range(), 0..2), any::<bool>()).prop_map(
        |(name, arguments, partition, keys, ranges, steady)| {
            let procedure = ProcedureId { name, version: 1 };
            DelayedCall { procedure, arguments, partition, keys, ranges, steady }
        },
    );
    let asked = vec(any::<(u32, u32)>(), 0..3);
    let extra = (vec(call, 0..2), asked, any::<u64>(), any::<bool>()).prop_map(
        |(calls, asked, result_bytes, votes_directly)| {
            Box::new(Extra { calls, asked, result_bytes, votes_directly })
        },
    );
    option::of(extra)
}

fn answers() -> impl Strategy<Value = Answers> {
    let gave = prop_oneof![
        option::of(bytes()).prop_map(Gave::Value),
        bytes().prop_map(Gave::Nothing),
        Just(Gave::Unknown),
    ];
    vec((any::<u32>(), gave), 0..3)
}

fn prepare() -> impl Strategy<Value = Arc<Prepare>> {
    let participants = vec(any::<u16>().prop_map(RepositoryId), 0..4);
    let reads = vec((space(), bytes(), at()), 0..4);
    let newer = (delayed(), extra());
    (txn(), any::<u64>(), participants, at(), reads, writes(), vec(range(), 0..3), newer).prop_map(
        |(txn, settled_below, participants, snapshot, reads, writes, scans, (delayed, extra))| {
            let participants = participants.into();
            Arc::new(Prepare {
                txn,
                settled_below,
                participants,
                snapshot,
                reader: (),
                strict: settled_below % 2 == 0,
                reads: reads.into(),
                writes: writes.into(),
                scans,
                delayed,
                extra,
                leaving: Default::default(),
                arriving: Default::default(),
            })
        },
    )
}

fn wanted() -> impl Strategy<Value = ReadWants> {
    const ALL: [ReadWants; 3] = [ReadWants::Values, ReadWants::NewestValues, ReadWants::Versions];
    prop::sample::select(ALL.as_slice())
}

fn asking() -> impl Strategy<Value = Message> {
    let keys = vec((space(), bytes()), 0..4);
    let read = (any::<u64>(), at(), any::<bool>(), wanted(), keys).prop_map(
        |(request, snapshot, first, wanted, keys)| {
            let keys = keys.into();
            let known = Default::default();
            Message::Read(ReadRequest { request, snapshot, first, wanted, reader: (), keys, known })
        },
    );
    let partitions = vec(any::<u16>(), 0..4);
    let scan = (any::<u64>(), at(), any::<bool>(), range(), partitions, any::<usize>()).prop_map(
        |(request, snapshot, first, range, partitions, limit)| {
            let reverse = first != (limit % 2 == 0);
            let reader = ();
            let asked =
                ScanRequest { request, snapshot, first, reader, range, partitions, reverse, limit };
            Message::Scan(Box::new(asked))
        },
    );
    prop_oneof![read, scan, prepare().prop_map(Message::Prepare)]
}

fn answering() -> impl Strategy<Value = Message> {
    let read = (any::<u64>(), option::of(at()), at(), vec(found(), 0..4)).prop_map(
        |(request, snapshot, committed, found)| {
            Message::ReadReply(ReadReply {
                request,
                snapshot,
                committed,
                found: found.into(),
                moved: Default::default(),
                known: Default::default(),
            })
        },
    );
    let rows = vec((bytes(), found()), 0..4);
    let scan = (any::<u64>(), option::of(at()), at(), rows, option::of(bytes())).prop_map(
        |(request, snapshot, committed, rows, seen_to)| {
            let reply = ScanReply {
                request,
                snapshot,
                committed,
                rows,
                seen_to,
                moved: Default::default(),
            };
            Message::ScanReply(Box::new(reply))
        },
    );
    let voted = (ballot(), txn(), at()).prop_map(|(ballot, txn, committed)| {
        let RepositoryVote { repository, vote, about, tag } = ballot;
        Message::Vote { txn, repository, vote, committed, about, tag }
    });
    prop_oneof![read, scan, voted]
}

fn clients() -> impl Strategy<Value = Vec<(NodeId, u32)>> {
    vec(any::<(u32, u32)>().prop_map(|(node, until)| (NodeId(node), until)), 0..4)
}

fn sharing() -> impl Strategy<Value = Message> {
    let acknowledge = (any::<u16>(), vec(txn(), 0..4)).prop_map(|(repository, txns)| {
        Message::Acknowledge { repository: RepositoryId(repository), txns }
    });
    prop_oneof![
        (txn(), decision(), vec(ballot(), 0..4)).prop_map(|(txn, decision, ballots)| {
            let ballots = ballots.into();
            Message::Decide { txn, decision, ballots }
        }),
        acknowledge,
        txn().prop_map(|txn| Message::Ask { txn }),
        (txn(), answers(), option::of(bytes()))
            .prop_map(|(txn, answers, violation)| Message::Ran { txn, answers, violation }),
        (any::<u64>(), space(), bytes()).prop_map(|(request, space, key)| {
            Message::Lock(LockRequest { request, reader: (), space, key })
        }),
        (any::<u64>(), option::of(reason()))
            .prop_map(|(request, refused)| Message::Locked { request, refused }),
        Just(Message::Unlock { reader: () }),
        (at(), at()).prop_map(|(bound, newest)| Message::Bound { bound, newest }),
        (at(), at()).prop_map(|(low, newest)| Message::Watermark { low, newest }),
        (any::<u64>(), clients())
            .prop_map(|(asked, clients)| Message::AskDoubts { asked: Nanos(asked), clients }),
        (any::<u16>(), any::<u64>(), clients()).prop_map(|(repository, asked, clients)| {
            let (repository, asked) = (RepositoryId(repository), Nanos(asked));
            Message::NoDoubts { repository, asked, clients }
        }),
    ]
}

fn waiting() -> impl Strategy<Value = Message> {
    let reads = vec((space(), bytes(), at()), 0..4);
    let watch = (any::<u64>(), at(), reads).prop_map(|(request, snapshot, reads)| {
        Message::Watch(Box::new(WatchRequest { request, snapshot, reads, scans: Vec::new() }))
    });
    let nodes = vec((any::<u32>().prop_map(NodeId), any::<u64>()), 0..4);
    prop_oneof![
        watch,
        any::<u64>().prop_map(|request| Message::Unwatch { request }),
        any::<u64>().prop_map(|request| Message::Changed { request }),
        (txn(), nodes).prop_map(|(txn, waiting)| Message::Waiting { txn, waiting }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![asking(), answering(), sharing(), waiting()]
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        (prepare(), at()).prop_map(|(prepare, at)| Record::Prepared { prepare, at }),
        (txn(), reason()).prop_map(|(txn, reason)| Record::Refused { txn, reason }),
        (txn(), decision()).prop_map(|(txn, decision)| Record::Decided { txn, decision }),
        (at(), writes()).prop_map(|(at, writes)| Record::Committed { at, writes }),
        at().prop_map(|at| Record::UpperBound { at }),
        at().prop_map(|low| Record::Low { low }),
        (txn(), writes(), answers()).prop_map(|(txn, writes, answers)| Record::Ran {
            txn,
            writes,
            answers
        }),
    ]
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Damages an encoding at one place: most of it stays good, which gets readers further than
/// random bytes do.
fn damaged(mut bytes: Vec<u8>, place: prop::sample::Index, byte: u8) -> Vec<u8> {
    let place = place.index(bytes.len());
    bytes[place] = byte;
    bytes
}

proptest! {
    #[test]
    fn messages_come_back(message in message()) {
        let bytes = encoded(&message);
        prop_assert!(bytes.len() >= Message::LEAST_BYTES);
        prop_assert_eq!(Message::decode_all(&bytes), Ok(message));
    }

    #[test]
    fn records_come_back(record in record()) {
        let bytes = encoded(&record);
        prop_assert!(bytes.len() >= Record::LEAST_BYTES);
        prop_assert_eq!(Record::decode_all(&bytes), Ok(record));
    }

    #[test]
    fn any_bytes_are_a_message_or_refused(bytes: Vec<u8>) {
        if let Ok(message) = Message::decode_all(&bytes) {
            prop_assert_eq!(encoded(&message), bytes);
        }
    }

    #[test]
    fn any_bytes_are_a_record_or_refused(bytes: Vec<u8>) {
        if let Ok(record) = Record::decode_all(&bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }

    #[test]
    fn damaged_messages_are_others_or_refused(
        message in message(), place: prop::sample::Index, byte: u8,
    ) {
        let bytes = damaged(encoded(&message), place, byte);
        if let Ok(message) = Message::decode_all(&bytes) {
            prop_assert_eq!(encoded(&message), bytes);
        }
    }

    #[test]
    fn damaged_records_are_others_or_refused(
        record in record(), place: prop::sample::Index, byte: u8,
    ) {
        let bytes = damaged(encoded(&record), place, byte);
        if let Ok(record) = Record::decode_all(&bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }
}

#[test]
fn messages_about_what_is_not_there_are_told_apart() {
    let nodes = [NodeId(0), NodeId(1)];
    let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    let txn = TxnId::default();
    let prepare = |participants: &[RepositoryId], space| {
        Message::Prepare(Arc::new(Prepare {
            txn,
            settled_below: 0,
            participants: participants.into(),
            snapshot: Timestamp::ZERO,
            reader: (),
            strict: false,
            reads: Few::new(),
            writes: vec![(SpaceId(space), SmallBytes::EMPTY, None)].into(),
            scans: vec![],
            delayed: vec![],
            extra: None,
            leaving: Default::default(),
            arriving: Default::default(),
        }))
    };
    let here = [RepositoryId(0), RepositoryId(1)];
    assert!(is_about(&prepare(&here, 0), &catalog));
    assert!(!is_about(&prepare(&here, 1), &catalog));
    assert!(!is_about(&prepare(&[RepositoryId(2)], 0), &catalog));
    let repository = RepositoryId(7);
    assert!(!is_about(&Message::Acknowledge { repository, txns: vec![txn] }, &catalog));
    assert!(is_about(&Message::Ask { txn }, &catalog));
}
