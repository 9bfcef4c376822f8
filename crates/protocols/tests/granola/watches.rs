//! Who waits for a change of what was read: told of each, and of nothing else.

use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::{
    Address, Limits, LoggedRole as _, Nanos, NodeId, RepositoryId, SmallBytes, SpaceId, Timestamp,
};
use muesli_protocols::granola::message::{
    Agreement, Fetched, Install, Message, Move, Request, SeenRange, Task, TimestampVote,
    WatchedReads,
};
use muesli_protocols::granola::{GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::procedures::SPACE;
use super::steps::{Harness, done_at, vote};

const ABSENT: Timestamp = Timestamp::ZERO;

fn space(harness: &Harness) -> SpaceId {
    harness.catalog.space_named(SPACE).unwrap()
}

/// Writes the key of repository 0, or deletes it; the timestamp, and who was told of it.
fn write(harness: &mut Harness, sequence: u64, value: Option<&str>) -> (Timestamp, Vec<u64>) {
    let mut request = harness.request(sequence, Agreement::Alone, &[0]);
    let writes = vec![(space(harness), harness.key_in(0), value.map(SmallBytes::from))];
    request.parts[0].task = Task::Install(Box::new(Install { writes, ..Install::default() }));
    let sent = harness.receive(Message::Request(Arc::new(request)));
    (done_at(&sent).expect("nobody is in its way"), answered(&sent))
}

fn answered(sent: &[Message]) -> Vec<u64> {
    let answered = sent.iter().filter_map(|message| match message {
        Message::Changed { repository, request } => {
            assert_eq!(*repository, RepositoryId(0), "who tells");
            Some(*request)
        }
        _ => None,
    });
    answered.collect()
}

fn of_key(harness: &Harness, partition: u16, version: Timestamp) -> WatchedReads {
    let reads = vec![(space(harness), harness.key_in(partition), version)];
    WatchedReads { reads, ..WatchedReads::default() }
}

fn of_all(harness: &Harness, at: Timestamp, live: u64) -> WatchedReads {
    let range = KeyRange { space: space(harness), lo: SmallBytes::EMPTY, hi: None };
    let scans = vec![(0, SeenRange { range, at, live })];
    WatchedReads { scans, ..WatchedReads::default() }
}

/// Asks for a watch; whether it is kept.
fn watch(harness: &mut Harness, request: u64, reads: WatchedReads) -> bool {
    let sent = harness.receive(Message::Watch { request, reads: Box::new(reads) });
    let answered = answered(&sent);
    assert!(answered.is_empty() || answered == [request], "{sent:?}");
    answered.is_empty()
}

#[test]
fn a_change_wakes_who_has_read_the_key_or_its_range_once() {
    for switches in [Switches::default(), Switches::locking(), Switches::sinfonia()] {
        let mut harness = Harness::new(switches);
        let (key, range) = (of_key(&harness, 0, ABSENT), of_all(&harness, ABSENT, 0));
        assert!(watch(&mut harness, 1, key.clone()) && watch(&mut harness, 2, range));
        let (first, answered) = write(&mut harness, 1, Some("x"));
        assert_eq!(answered, [1, 2]);
        assert_eq!(write(&mut harness, 2, Some("y")).1, [0; 0], "once");
        // What was read before is compared with what is there.
        assert!(!watch(&mut harness, 3, key));
        let old = of_key(&harness, 0, first);
        assert!(!watch(&mut harness, 4, old));
        let (newest, _) = write(&mut harness, 3, Some("z"));
        let (key, range) = (of_key(&harness, 0, newest), of_all(&harness, newest, 1));
        let (older, fewer) = (of_all(&harness, first, 1), of_all(&harness, newest, 0));
        assert!(!watch(&mut harness, 5, older) && !watch(&mut harness, 5, fewer));
        assert!(watch(&mut harness, 6, key) && watch(&mut harness, 7, range));
        assert_eq!(write(&mut harness, 4, None).1, [6, 7], "a deletion");
    }
}

#[test]
fn what_is_not_compared_wakes_nobody() {
    let mut harness = Harness::new(Switches::broken(GranolaSwitch::ComparesWatches));
    let reads = of_key(&harness, 0, ABSENT);
    write(&mut harness, 1, Some("x"));
    assert!(watch(&mut harness, 1, reads), "it sleeps on");
    assert_eq!(write(&mut harness, 2, Some("y")).1, [1]);
}

#[test]
fn who_has_been_told_that_nobody_waits_or_that_nobody_asks_for_tells_nobody() {
    let mut harness = Harness::new(Switches::default());
    let lease = harness.settings.in_doubt_after;
    harness.now = Nanos(1);
    let reads = of_key(&harness, 0, ABSENT);
    assert!(watch(&mut harness, 1, reads.clone()));
    harness.receive(Message::Unwatch { request: 1 });
    assert!(watch(&mut harness, 2, reads.clone()) && watch(&mut harness, 3, reads.clone()));
    harness.pass_until(Nanos(lease.0 / 2));
    assert!(watch(&mut harness, 3, reads.clone()), "it is asked for again");
    harness.pass_until(lease + Nanos(lease.0 / 4));
    assert_eq!(write(&mut harness, 1, Some("x")).1, [3]);
    // Nothing of it is logged, and another life knows nothing.
    let mut harness = Harness::new(Switches::default());
    assert!(watch(&mut harness, 1, reads));
    assert_eq!(harness.log.len(), 0);
    harness.crash(0);
    assert_eq!(write(&mut harness, 1, Some("x")).1, [0; 0]);
}

#[test]
fn what_is_too_much_or_elsewhere_counts_as_changed() {
    let mut harness = Harness::new(Switches::default());
    let (newest, _) = write(&mut harness, 1, Some("x"));
    let elsewhere = of_key(&harness, 1, ABSENT);
    assert!(!watch(&mut harness, 1, elsewhere));
    let range = of_all(&harness, newest, 1);
    assert!(watch(&mut harness, 2, range.clone()));
    harness.settings.limits.procedure_steps = 0;
    assert!(!watch(&mut harness, 2, range), "a key more than may be looked at");
    let key = of_key(&harness, 0, newest);
    assert!(watch(&mut harness, 3, key.clone()));
    harness.settings.limits.transaction_bytes = 1;
    assert!(!watch(&mut harness, 3, key));
    harness.settings.limits = Limits::default();
    assert_eq!(write(&mut harness, 2, Some("y")).1, [0; 0], "who was told watches no more");
}

/// Partition 0 goes to repository 1: who waits for a change of it is to ask there.
#[test]
fn who_waits_for_a_change_of_what_goes_is_told() {
    let mut harness = Harness::new(Switches::default());
    let (newest, _) = write(&mut harness, 1, Some("x"));
    let (key, range) = (of_key(&harness, 0, newest), of_all(&harness, newest, 1));
    assert!(watch(&mut harness, 1, key.clone()) && watch(&mut harness, 2, range));
    let (from, to) = (RepositoryId(0), RepositoryId(1));
    let stream = Timestamp::new(9, to);
    let fetch = |harness: &mut Harness, has| {
        let sent = harness.step(|participant, cx| {
            let from = Address::repository(NodeId(1), to);
            let message = Message::Fetch { repository: to, partition: 0, has };
            participant.receive(from, message, cx);
        });
        let [Message::Load { source, .. }] = sent[..] else { panic!("{sent:?}") };
        source
    };
    let source = fetch(&mut harness, Fetched { stream, ..Fetched::default() });
    let has = Fetched { pieces: 1, changes: 0, stream, source };
    fetch(&mut harness, has);
    let order = Move { partition: 0, from, to, epoch: 1, has };
    let mut request = Request {
        agreement: Agreement::Independent,
        participants: [from, to].into_iter().collect(),
        ..harness.request(2, Agreement::Alone, &[0])
    };
    request.parts[0].task = Task::Move(Box::new(order));
    let sent = harness.receive(Message::Request(Arc::new(request)));
    assert_eq!(answered(&sent), [0; 0], "it is here still");
    let place = Timestamp::new(1_000_000, to);
    let sent = harness.receive(vote(2, TimestampVote::Commit(place)));
    assert_eq!((done_at(&sent), answered(&sent)), (Some(place), vec![1, 2]));
    assert!(!watch(&mut harness, 3, key), "it is elsewhere");
}
