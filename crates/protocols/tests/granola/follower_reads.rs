//! Readers at copies: of a log that was replayed so far, and of a repository that is followed.

use std::sync::Arc;

use muesli_core::{Address, LoggedRole as _, NodeId, Participant as _, Timestamp};
use muesli_protocols::granola::message::{
    Agreement, Followed, Message, News, Record, ReplyOutcome, Request, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{GranolaSwitch, Rules};
use muesli_protocols::two_phase::Sabotage;

use super::clients::Mix;
use super::procedures::{SPACE, key};
use super::seeds::{ALL, TIMESTAMPS, try_seeds};
use super::steps::{Stage, done_at, vote};
use super::worlds::Shape;

/// A repository that has replayed what another one has logged, and leads nothing.
fn copy_of(stage: &Stage) -> Stage {
    let mut copy = Stage::new(stage.rules);
    for record in stage.log.clone() {
        copy.step(|participant, cx| participant.replay(record, cx));
    }
    copy
}

fn reader(stage: &Stage, sequence: u64, floor: Timestamp) -> Request {
    let Message::Request(request) = stage.call(sequence, "look", &[], true) else { unreachable!() };
    Request { read_only: true, nearby: true, floor, ..(*request).clone() }
}

/// Where the copy says that a reader lies; nothing, if it leaves it to others.
fn asked(copy: &mut Stage, request: Request) -> Option<Timestamp> {
    let mut answered = false;
    let message = Message::Request(Arc::new(request));
    let said = copy.step(|participant, cx| answered = participant.answer_behind(&message, cx));
    assert_eq!(answered, !said.is_empty());
    done_at(&said)
}

fn alone(stage: &mut Stage, sequence: u64) -> Timestamp {
    let request = stage.request(sequence, Agreement::Alone, &[0]);
    done_at(&stage.receive(Message::Request(Arc::new(request)))).expect("nothing is in its way")
}

#[test]
fn a_copy_answers_right_behind_what_it_knows_and_nobody_who_has_seen_more() {
    let mut stage = Stage::new(Rules::default());
    let empty = reader(&stage, 1, Timestamp::ZERO);
    assert_eq!(asked(&mut copy_of(&stage), empty), None, "it knows nothing");
    let at = alone(&mut stage, 2);
    let mut copy = copy_of(&stage);
    let after = Timestamp(at.0 + 1);
    let of = |floor| reader(&stage, 3, floor);
    let (seen, less, more) = (of(at), of(Timestamp::ZERO), of(after));
    assert_eq!(asked(&mut copy, seen), Some(at));
    assert_eq!(asked(&mut copy, less), Some(at));
    assert_eq!(asked(&mut copy, more.clone()), None);
    let update = Request { read_only: false, ..reader(&stage, 4, at) };
    assert_eq!(asked(&mut copy, update), None, "it only reads");
    copy.rules.set(GranolaSwitch::CopiesCheck, false);
    let mut careless = copy_of(&copy);
    for record in stage.log.clone() {
        careless.step(|participant, cx| participant.replay(record, cx));
    }
    assert_eq!(asked(&mut careless, more), Some(at), "the mistake");
}

#[test]
fn a_copy_of_what_is_quiet_learns_how_far_it_has_come() {
    let mut stage = Stage::new(Rules::default());
    let at = alone(&mut stage, 1);
    let floor = Timestamp(at.0 << 4);
    let request = reader(&stage, 2, floor);
    let told = done_at(&stage.receive(Message::Request(Arc::new(request)))).unwrap();
    assert!(told > floor);
    assert!(matches!(stage.log.last(), Some(Record::Reached { at }) if *at == told));
    let again = reader(&stage, 3, told);
    assert_eq!(asked(&mut copy_of(&stage), again), Some(told));
}

/// The numbers of keys that live in the repository.
fn keys_here(stage: &Stage) -> Vec<u8> {
    let space = stage.catalog.space_named(SPACE).unwrap();
    let here = |at: &u8| stage.catalog.partition(space, &key(*at)) == 0;
    (0..=u8::MAX).filter(here).collect()
}

/// Something prepared lies below what was done beside it.
fn done_beside_what_is_prepared(rules: Rules) -> (Stage, Timestamp) {
    let mut stage = Stage::new(rules);
    alone(&mut stage, 1);
    let coordinated = stage.request(2, Agreement::Coordinated, &[0, 1]);
    let said = stage.receive(Message::Request(Arc::new(coordinated)));
    let proposed = said.iter().find_map(|message| match message {
        Message::Vote { ballot: TimestampVote::Commit(at), .. } => Some(*at),
        _ => None,
    });
    // An other key than the one that is locked.
    let other = keys_here(&stage)[1];
    let call = stage.call(3, "bump", &[other], true);
    let beside = done_at(&stage.receive(call)).expect("it touches nothing that is locked");
    assert!(beside > proposed.expect("it voted"));
    (stage, beside)
}

#[test]
fn a_copy_waits_for_what_may_lie_below() {
    let (mut stage, beside) = done_beside_what_is_prepared(Rules::default());
    let request = |stage: &Stage| reader(stage, 4, Timestamp::ZERO);
    let early = request(&stage);
    assert_eq!(asked(&mut copy_of(&stage), early), None);
    stage.receive(vote(2, TimestampVote::Commit(Timestamp(1))));
    let late = request(&stage);
    assert_eq!(asked(&mut copy_of(&stage), late), Some(beside));
    let rules = Rules::broken(GranolaSwitch::CopiesWait);
    let (stage, beside) = done_beside_what_is_prepared(rules);
    let early = request(&stage);
    assert_eq!(asked(&mut copy_of(&stage), early), Some(beside), "the mistake");
}

const FOLLOWER: NodeId = NodeId(7);

fn follow(stage: &mut Stage, pieces: u32, upto: Timestamp) -> Vec<Message> {
    let message = Message::Follow { has: Followed { stream: 1, pieces, upto } };
    stage.step(|participant, cx| participant.receive(Address::coordinator(FOLLOWER), message, cx))
}

/// What the repository tells its follower from time to time.
fn changes(stage: &mut Stage) -> Option<(Timestamp, Vec<Timestamp>)> {
    let said = stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Feed, cx));
    said.into_iter().find_map(|message| match message {
        Message::News { news: News::Changes { upto, changes, .. }, .. } => {
            Some((upto, changes.into_iter().map(|(at, _)| at).collect()))
        }
        _ => None,
    })
}

#[test]
fn who_follows_is_told_all_keys_and_then_changes_up_to_where_nothing_is_open() {
    let (mut stage, beside) = done_beside_what_is_prepared(Rules::default());
    let piece = |said: &[Message]| {
        let [Message::News { news: News::Piece { number, .. }, .. }] = said else { panic!() };
        *number
    };
    assert_eq!(piece(&follow(&mut stage, 0, Timestamp::ZERO)), 1);
    assert_eq!(piece(&follow(&mut stage, 0, Timestamp::ZERO)), 1, "it was lost");
    assert_eq!(follow(&mut stage, 1, Timestamp::ZERO), [], "that was all");
    assert_eq!(changes(&mut stage), None, "something open may lie below");
    let said = stage.receive(vote(2, TimestampVote::Commit(Timestamp(1))));
    let at = done_at(&said).expect("its votes are there");
    assert_eq!(changes(&mut stage), Some((beside, vec![at])));
    assert_eq!(changes(&mut stage), None, "nobody asks");
    follow(&mut stage, 1, beside);
    assert_eq!(changes(&mut stage), None, "nothing new");
    let next = alone(&mut stage, 5);
    assert_eq!(changes(&mut stage), Some((next, vec![next])));
}

#[test]
fn who_follows_a_repository_that_started_again_is_told_so() {
    let mut stage = Stage::new(Rules::default());
    let said = follow(&mut stage, 3, Timestamp(9));
    assert!(matches!(said[..], [Message::News { news: News::Unknown, .. }]), "{said:?}");
}

#[test]
fn a_reader_that_is_refused_is_told_so_by_a_copy_too() {
    let mut stage = Stage::new(Rules::default());
    let here = keys_here(&stage);
    for sequence in [1, 2] {
        let bump = stage.call(sequence, "bump", &here[..1], true);
        assert!(done_at(&stage.receive(bump)).is_some());
    }
    let Message::Request(refuses) = stage.call(3, "inspect", &here[..1], true) else { panic!() };
    let parts = refuses.parts.clone();
    let message = Request { parts, ..reader(&stage, 3, Timestamp::ZERO) };
    let message = Message::Request(Arc::new(message));
    let mut copy = copy_of(&stage);
    let said = copy.step(|participant, cx| assert!(participant.answer_behind(&message, cx)));
    assert!(
        matches!(said[..], [Message::Reply { end: ReplyOutcome::Refused { .. }, .. }]),
        "{said:?}"
    );
}

const READERS: Mix = Mix { look: 12, keys: 6, ..ALL };

#[test]
fn caches_under_every_kind_of_fault() {
    let shape = Shape { caches: true, clients: 9, ..Shape::new(READERS) };
    try_seeds(&shape, 0..4);
    try_seeds(&Shape { faults: "all", ..shape.clone() }, 0..10);
    try_seeds(&Shape { faults: "all", rules: Rules::locking(), ..shape }, 0..6);
}

/// Without a rule of caches, the checker notices, and with it all is well on the same seeds.
fn assert_noticed(mix: Mix, faults: &'static str, rules: Rules, seeds: u64) {
    let whole = Shape { caches: true, clients: 9, faults, ..Shape::new(mix) };
    let broken = Shape { rules, ..whole.clone() };
    let found = (0..seeds).find(|&seed| broken.run(seed).problem.is_some());
    let found = found.unwrap_or_else(|| panic!("{rules:?}: {seeds} seeds are still fine"));
    assert_eq!(whole.run(found).problem, None);
}

#[test]
fn caches_look_at_what_a_session_has_seen() {
    let mix = Mix { look: 9, keys: 4, ..TIMESTAMPS };
    assert_noticed(mix, "skew", Rules::broken(GranolaSwitch::CopiesCheck), 20);
}

#[test]
fn caches_wait_for_what_may_lie_below() {
    assert_noticed(READERS, "none", Rules::broken(GranolaSwitch::CopiesWait), 20);
}

#[test]
fn caches_tell_what_a_session_has_seen() {
    let mix = Mix { look: 60, independent: 9, single: 0, keys: 4, ..TIMESTAMPS };
    let rules = Rules::broken(GranolaSwitch::CopiesTell);
    assert_noticed(mix, "link,pause", rules, 40);
}
