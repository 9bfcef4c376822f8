//! Readers at copies: of a log that was replayed so far, and of a repository that is followed.

use std::sync::Arc;

use muesli_core::{Address, LoggedRole as _, NodeId, Participant as _, Timestamp};
use muesli_protocols::granola::message::{
    Agreement, Followed, Message, News, Record, ReplyOutcome, Request, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::clients::Mix;
use super::procedures::{SPACE, key};
use super::seeds::{ALL, TIMESTAMPS, try_seeds};
use super::steps::{Harness, done_at, vote};
use super::worlds::Shape;

/// A repository that has replayed what another one has logged, and leads nothing.
fn copy_of(harness: &Harness) -> Harness {
    let mut copy = Harness::new(harness.switches);
    for record in harness.log.clone() {
        copy.step(|participant, cx| participant.replay(record, cx));
    }
    copy
}

fn reader(harness: &Harness, sequence: u64, lower_bound: Timestamp) -> Request {
    let Message::Request(request) = harness.call(sequence, "look", &[], true) else {
        unreachable!()
    };
    Request { read_only: true, follower_read: true, lower_bound, ..(*request).clone() }
}

/// Where the copy says that a reader lies; nothing, if it leaves it to others.
fn asked(copy: &mut Harness, request: Request) -> Option<Timestamp> {
    let mut answered = false;
    let message = Message::Request(Arc::new(request));
    let sent = copy.step(|participant, cx| answered = participant.answer_behind(&message, cx));
    assert_eq!(answered, !sent.is_empty());
    done_at(&sent)
}

fn alone(harness: &mut Harness, sequence: u64) -> Timestamp {
    let request = harness.request(sequence, Agreement::Alone, &[0]);
    done_at(&harness.receive(Message::Request(Arc::new(request)))).expect("nothing is in its way")
}

#[test]
fn a_copy_answers_right_behind_what_it_knows_and_nobody_who_has_seen_more() {
    let mut harness = Harness::new(Switches::default());
    let empty = reader(&harness, 1, Timestamp::ZERO);
    assert_eq!(asked(&mut copy_of(&harness), empty), None, "it knows nothing");
    let at = alone(&mut harness, 2);
    let mut copy = copy_of(&harness);
    let after = Timestamp(at.0 + 1);
    let of = |lower_bound| reader(&harness, 3, lower_bound);
    let (seen, less, more) = (of(at), of(Timestamp::ZERO), of(after));
    assert_eq!(asked(&mut copy, seen), Some(at));
    assert_eq!(asked(&mut copy, less), Some(at));
    assert_eq!(asked(&mut copy, more.clone()), None);
    let update = Request { read_only: false, ..reader(&harness, 4, at) };
    assert_eq!(asked(&mut copy, update), None, "it only reads");
    copy.switches.set(GranolaSwitch::CopiesCheck, false);
    let mut careless = copy_of(&copy);
    for record in harness.log.clone() {
        careless.step(|participant, cx| participant.replay(record, cx));
    }
    assert_eq!(asked(&mut careless, more), Some(at), "the mistake");
}

#[test]
fn a_copy_of_what_is_quiet_learns_how_far_it_has_come() {
    let mut harness = Harness::new(Switches::default());
    let at = alone(&mut harness, 1);
    let lower_bound = Timestamp(at.0 << 4);
    let request = reader(&harness, 2, lower_bound);
    let data = done_at(&harness.receive(Message::Request(Arc::new(request)))).unwrap();
    assert!(data > lower_bound);
    assert!(matches!(harness.log.last(), Some(Record::Reached { at }) if *at == data));
    let again = reader(&harness, 3, data);
    assert_eq!(asked(&mut copy_of(&harness), again), Some(data));
}

/// The numbers of keys that live in the repository.
fn keys_here(harness: &Harness) -> Vec<u8> {
    let space = harness.catalog.space_named(SPACE).unwrap();
    let here = |at: &u8| harness.catalog.partition(space, &key(*at)) == 0;
    (0..=u8::MAX).filter(here).collect()
}

/// Something prepared lies below what was done beside it.
fn done_beside_what_is_prepared(switches: Switches) -> (Harness, Timestamp) {
    let mut harness = Harness::new(switches);
    alone(&mut harness, 1);
    let coordinated = harness.request(2, Agreement::Coordinated, &[0, 1]);
    let sent = harness.receive(Message::Request(Arc::new(coordinated)));
    let proposed = sent.iter().find_map(|message| match message {
        Message::Vote { ballot: TimestampVote::Commit(at), .. } => Some(*at),
        _ => None,
    });
    // An other key than the one that is locked.
    let other = keys_here(&harness)[1];
    let call = harness.call(3, "bump", &[other], true);
    let beside = done_at(&harness.receive(call)).expect("it touches nothing that is locked");
    assert!(beside > proposed.expect("it voted"));
    (harness, beside)
}

#[test]
fn a_copy_waits_for_what_may_lie_below() {
    let (mut harness, beside) = done_beside_what_is_prepared(Switches::default());
    let request = |harness: &Harness| reader(harness, 4, Timestamp::ZERO);
    let early = request(&harness);
    assert_eq!(asked(&mut copy_of(&harness), early), None);
    harness.receive(vote(2, TimestampVote::Commit(Timestamp(1))));
    let late = request(&harness);
    assert_eq!(asked(&mut copy_of(&harness), late), Some(beside));
    let switches = Switches::broken(GranolaSwitch::CopiesWait);
    let (harness, beside) = done_beside_what_is_prepared(switches);
    let early = request(&harness);
    assert_eq!(asked(&mut copy_of(&harness), early), Some(beside), "the mistake");
}

const FOLLOWER: NodeId = NodeId(7);

fn follow(harness: &mut Harness, pieces: u32, upto: Timestamp) -> Vec<Message> {
    let message = Message::Follow { has: Followed { stream: 1, pieces, upto } };
    harness.step(|participant, cx| participant.receive(Address::coordinator(FOLLOWER), message, cx))
}

/// What the repository tells its follower from time to time.
fn changes(harness: &mut Harness) -> Option<(Timestamp, Vec<Timestamp>)> {
    let sent = harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Feed, cx));
    sent.into_iter().find_map(|message| match message {
        Message::News { news: News::Changes { upto, changes, .. }, .. } => {
            Some((upto, changes.into_iter().map(|(at, _)| at).collect()))
        }
        _ => None,
    })
}

#[test]
fn who_follows_is_told_all_keys_and_then_changes_up_to_where_nothing_is_open() {
    let (mut harness, beside) = done_beside_what_is_prepared(Switches::default());
    let piece = |sent: &[Message]| {
        let [Message::News { news: News::Piece { number, .. }, .. }] = sent else { panic!() };
        *number
    };
    assert_eq!(piece(&follow(&mut harness, 0, Timestamp::ZERO)), 1);
    assert_eq!(piece(&follow(&mut harness, 0, Timestamp::ZERO)), 1, "it was lost");
    assert_eq!(follow(&mut harness, 1, Timestamp::ZERO), [], "that was all");
    assert_eq!(changes(&mut harness), None, "something open may lie below");
    let sent = harness.receive(vote(2, TimestampVote::Commit(Timestamp(1))));
    let at = done_at(&sent).expect("its votes are there");
    assert_eq!(changes(&mut harness), Some((beside, vec![at])));
    assert_eq!(changes(&mut harness), None, "nobody asks");
    follow(&mut harness, 1, beside);
    assert_eq!(changes(&mut harness), None, "nothing new");
    let next = alone(&mut harness, 5);
    assert_eq!(changes(&mut harness), Some((next, vec![next])));
}

#[test]
fn who_follows_a_repository_that_started_again_is_told_so() {
    let mut harness = Harness::new(Switches::default());
    let sent = follow(&mut harness, 3, Timestamp(9));
    assert!(matches!(sent[..], [Message::News { news: News::Unknown, .. }]), "{sent:?}");
}

#[test]
fn a_reader_that_is_refused_is_told_so_by_a_copy_too() {
    let mut harness = Harness::new(Switches::default());
    let here = keys_here(&harness);
    for sequence in [1, 2] {
        let bump = harness.call(sequence, "bump", &here[..1], true);
        assert!(done_at(&harness.receive(bump)).is_some());
    }
    let Message::Request(refuses) = harness.call(3, "inspect", &here[..1], true) else { panic!() };
    let parts = refuses.parts.clone();
    let message = Request { parts, ..reader(&harness, 3, Timestamp::ZERO) };
    let message = Message::Request(Arc::new(message));
    let mut copy = copy_of(&harness);
    let sent = copy.step(|participant, cx| assert!(participant.answer_behind(&message, cx)));
    assert!(
        matches!(sent[..], [Message::Reply { end: ReplyOutcome::Refused { .. }, .. }]),
        "{sent:?}"
    );
}

const READERS: Mix = Mix { look: 12, keys: 6, ..ALL };

#[test]
fn caches_under_every_kind_of_fault() {
    let shape = Shape { caches: true, clients: 9, ..Shape::new(READERS) };
    try_seeds(&shape, 0..4);
    try_seeds(&Shape { faults: "all", ..shape.clone() }, 0..10);
    try_seeds(&Shape { faults: "all", switches: Switches::locking(), ..shape }, 0..6);
}

/// Without a rule of caches, the checker notices, and with it all is well on the same seeds.
fn assert_noticed(mix: Mix, faults: &'static str, switches: Switches, seeds: u64) {
    let whole = Shape { caches: true, clients: 9, faults, ..Shape::new(mix) };
    let broken = Shape { switches, ..whole.clone() };
    let found = (0..seeds).find(|&seed| broken.run(seed).problem.is_some());
    let found = found.unwrap_or_else(|| panic!("{switches:?}: {seeds} seeds are still fine"));
    assert_eq!(whole.run(found).problem, None);
}

#[test]
fn caches_look_at_what_a_session_has_seen() {
    let mix = Mix { look: 9, keys: 4, ..TIMESTAMPS };
    assert_noticed(mix, "skew", Switches::broken(GranolaSwitch::CopiesCheck), 20);
}

#[test]
fn caches_wait_for_what_may_lie_below() {
    assert_noticed(READERS, "none", Switches::broken(GranolaSwitch::CopiesWait), 20);
}

#[test]
fn caches_tell_what_a_session_has_seen() {
    let mix = Mix { look: 60, independent: 9, single: 0, keys: 4, ..TIMESTAMPS };
    let switches = Switches::broken(GranolaSwitch::CopiesTell);
    assert_noticed(mix, "link,pause", switches, 40);
}
