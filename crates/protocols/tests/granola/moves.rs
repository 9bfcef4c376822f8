//! A move step by step: what its source and its destination say, keep through crashes and
//! checkpoints, and refuse.

use std::sync::Arc;

use muesli_core::{
    LoggedRole as _, Participant as _, RepositoryId, SmallBytes, SpaceId, Timestamp,
};
use muesli_protocols::granola::message::{
    Agreement, Few, Message, Part, PartAnswer, Record, ReplyOutcome, Repositories, Request, Task,
    TimestampVote,
};
use muesli_protocols::granola::message::{Fetched, Load};
use muesli_protocols::granola::message::{Move, Owners};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{GranolaSwitch, Participant, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::steps::{Harness, done_at, txn, vote};

const HERE: RepositoryId = RepositoryId(0);
const THERE: RepositoryId = RepositoryId(1);
const STREAM: Timestamp = Timestamp(77);

/// Asks for partition 0, which is here.
fn fetch(harness: &mut Harness, has: Fetched) -> (Timestamp, Load) {
    let sent = harness.receive(Message::Fetch { repository: THERE, partition: 0, has });
    match &sent[..] {
        [Message::Load { source, load, .. }] => (*source, load.clone()),
        other => panic!("a load and nothing else, not {other:?}"),
    }
}

/// Loads all of partition 0.
fn load(harness: &mut Harness) -> Fetched {
    let mut has = Fetched { stream: STREAM, ..Fetched::default() };
    loop {
        let (source, load) = fetch(harness, has);
        has.source = source;
        match load {
            Load::Piece { number, .. } => has.pieces = number,
            Load::Changes { changes, whole, .. } => {
                has.changes += changes.len() as u64;
                if whole {
                    return has;
                }
            }
            Load::Unknown => panic!("it is here"),
        }
    }
}

fn special(harness: &Harness, sequence: u64, partition: u16, task: Task) -> Request {
    let mut request = harness.request(sequence, Agreement::Independent, &[0, 1]);
    request.parts = Few::from_iter([Part { partition, owners: None, task }]);
    request
}

fn moving(harness: &Harness, sequence: u64, from: RepositoryId, has: Fetched) -> Message {
    let to = if from == HERE { THERE } else { HERE };
    let order = Move { partition: from.0, from, to, epoch: 1, has };
    Message::Request(Arc::new(special(harness, sequence, from.0, Task::Move(Box::new(order)))))
}

/// A write of a key of a partition, at the repository here.
fn write(harness: &Harness, sequence: u64, partition: u16, owners: Option<Owners>) -> Message {
    let mut request = harness.request(sequence, Agreement::Alone, &[partition]);
    request.participants = Repositories::from_iter([HERE]);
    request.parts[0].owners = owners.map(Arc::new);
    Message::Request(Arc::new(request))
}

fn keys_in(harness: &Harness) -> usize {
    harness.participant.spaces().iter().map(|(_, it)| it.len()).sum()
}

fn moved(sent: &[Message]) -> Option<Timestamp> {
    sent.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Moved { at }, .. } => Some(*at),
        _ => None,
    })
}

fn votes_for(sent: &[Message]) -> bool {
    sent.iter().any(|it| matches!(it, Message::Vote { ballot: TimestampVote::Commit(_), .. }))
}

/// Partition 0 has gone to the other repository, at the place that is given too.
fn gone() -> (Harness, Timestamp) {
    let mut harness = Harness::new(Switches::default());
    let first = write(&harness, 1, 0, None);
    assert!(done_at(&harness.receive(first)).is_some());
    let has = load(&mut harness);
    let order = moving(&harness, 2, HERE, has);
    assert!(votes_for(&harness.receive(order)));
    let place = Timestamp::new(1_000, THERE);
    assert_eq!(done_at(&harness.receive(vote(2, TimestampVote::Commit(place)))), Some(place));
    (harness, place)
}

#[test]
fn a_source_gives_away_what_was_loaded_and_nothing_else() {
    let mut harness = Harness::new(Switches::default());
    let first = write(&harness, 1, 0, None);
    assert!(done_at(&harness.receive(first)).is_some());
    let has = load(&mut harness);
    assert_eq!((has.pieces, has.changes), (1, 0));
    let second = write(&harness, 2, 0, None);
    assert!(done_at(&harness.receive(second)).is_some());
    let order = moving(&harness, 3, HERE, has);
    let sent = harness.receive(order);
    assert!(!votes_for(&sent) && moved(&sent).is_some(), "{sent:?}");
    assert!(matches!(
        harness.log.last(),
        Some(Record::Against { ballot: TimestampVote::Moved(_), .. })
    ));
    // It is held still: what is there can be loaded.
    let third = write(&harness, 4, 0, None);
    assert!(moved(&harness.receive(third.clone())).is_some());
    let (_, changes) = fetch(&mut harness, has);
    assert!(
        matches!(&changes, Load::Changes { from: 0, changes, whole: true } if changes.len() == 1)
    );
    let order = moving(&harness, 5, HERE, Fetched { changes: 1, ..has });
    assert!(votes_for(&harness.receive(order)));
    // Nothing new of it, however long its end is not known.
    harness.now = harness.settings.give_up_after;
    let fourth = write(&harness, 6, 0, None);
    assert!(moved(&harness.receive(fourth)).is_some());
    // Somebody else votes against it: all is as it was, but for what was refused.
    harness.receive(vote(5, TimestampVote::Moved(Timestamp::ZERO)));
    let fifth = write(&harness, 7, 0, None);
    assert!(done_at(&harness.receive(fifth)).is_some());
    assert!(moved(&harness.receive(third)).is_some(), "an id that was refused stays refused");
}

#[test]
fn what_is_held_still_is_let_go_after_a_while() {
    let mut harness = Harness::new(Switches::default());
    let has = load(&mut harness);
    let first = write(&harness, 1, 0, None);
    assert!(done_at(&harness.receive(first)).is_some());
    let order = moving(&harness, 2, HERE, has);
    assert!(!votes_for(&harness.receive(order)));
    let second = write(&harness, 3, 0, None);
    assert!(moved(&harness.receive(second)).is_some());
    harness.now = harness.settings.retry_after;
    let third = write(&harness, 4, 0, None);
    assert!(done_at(&harness.receive(third)).is_some());
}

#[test]
fn a_move_waits_for_what_is_under_way() {
    let mut harness = Harness::new(Switches::default());
    let has = load(&mut harness);
    let both = harness.request(1, Agreement::Independent, &[0, 1]);
    assert!(votes_for(&harness.receive(Message::Request(Arc::new(both)))));
    let order = moving(&harness, 2, HERE, has);
    assert!(!votes_for(&harness.receive(order)));
}

#[test]
fn who_has_given_it_away_remembers_and_refuses_through_crashes_and_checkpoints() {
    let (mut harness, place) = gone();
    let known = |harness: &mut Harness, sequence| {
        let (first, next) = (write(harness, 1, 0, None), write(harness, sequence, 0, None));
        assert!(done_at(&harness.receive(first)).is_some(), "it was done here");
        assert_eq!(moved(&harness.receive(next)), Some(place));
    };
    known(&mut harness, 3);
    harness.crash(harness.log.len());
    known(&mut harness, 4);
    let mut cursor = harness.participant.begin_checkpoint().expect("it has checkpoints");
    let mut pieces = Vec::new();
    loop {
        let mut piece = Vec::new();
        if !harness.participant.checkpoint_piece(&mut cursor, 1_000, &mut piece) {
            break;
        }
        pieces.push(piece);
    }
    harness.participant = Participant::new(HERE, &harness.settings, &harness.switches);
    for piece in pieces {
        harness.step(|participant, cx| participant.restore(&piece, cx).expect("a piece"));
    }
    harness.step(|participant, cx| participant.start(cx));
    known(&mut harness, 5);
    // It keeps names, and its keys are gone.
    let mut names = special(&harness, 9, 0, Task::Names);
    (names.agreement, names.read_only) = (Agreement::Alone, true);
    names.participants = Repositories::from_iter([HERE]);
    let sent = harness.receive(Message::Request(Arc::new(names)));
    let owners = Owners { epoch: 1, holders: Repositories::from_iter([THERE]) };
    let answer = PartAnswer::Names(vec![(0, owners)]);
    let is_tell = |it: &Message| match it {
        Message::Reply { end: ReplyOutcome::Done { answers, .. }, .. } => answers[0].1 == answer,
        _ => false,
    };
    assert!(sent.iter().any(is_tell), "{sent:?}");
    assert_eq!(keys_in(&harness), 0);
}

#[test]
fn a_source_that_starts_again_is_still_bound_by_its_vote() {
    let (mut harness, place) = gone();
    let voted = harness
        .log
        .iter()
        .position(|it| matches!(it, Record::Voted { request, .. } if request.txn == txn(2)));
    harness.crash(voted.expect("it has voted") + 1);
    let next = write(&harness, 3, 0, None);
    assert!(moved(&harness.receive(next)).is_some());
    assert_eq!(done_at(&harness.receive(vote(2, TimestampVote::Commit(place)))), Some(place));
}

#[test]
fn who_is_asked_twice_to_begin_gives_two_names() {
    let mut harness = Harness::new(Switches::default());
    let has = load(&mut harness);
    let first = write(&harness, 1, 0, None);
    assert!(done_at(&harness.receive(first)).is_some());
    harness.crash(harness.log.len());
    // The first message of all comes late, after a crash: what was loaded before it is not all.
    let begins = Fetched { stream: STREAM, ..Fetched::default() };
    let (source, _) = fetch(&mut harness, begins);
    assert_ne!(source, has.source);
    assert_eq!(fetch(&mut harness, has).1, Load::Unknown);
    let order = moving(&harness, 2, HERE, has);
    assert!(!votes_for(&harness.receive(order)));
}

/// A key of partition 1 was loaded here, and its move was voted on, or not.
fn loaded(switches: Switches, votes: bool) -> (Harness, Fetched) {
    let mut harness = Harness::new(switches);
    let mut take = special(&harness, 1, 1, Task::Take { from: THERE });
    (take.agreement, take.read_only) = (Agreement::Alone, true);
    take.participants = Repositories::from_iter([HERE]);
    let sent = harness.receive(Message::Request(Arc::new(take)));
    let [Message::Fetch { has, .. }] = sent[..] else { panic!("{sent:?}") };
    let key =
        (SpaceId(0), harness.key_in(1), Timestamp::new(5, THERE), Some(SmallBytes::from("v")));
    let source = Timestamp(8);
    let give = |harness: &mut Harness, load| {
        let (repository, stream) = (THERE, has.stream);
        harness.receive(Message::Load { repository, partition: 1, stream, source, load })
    };
    let sent = give(&mut harness, Load::Piece { number: 1, keys: vec![key] });
    let has = Fetched { pieces: 1, source, ..has };
    let taken = PartAnswer::Taken { has, whole: false };
    let is_tell = |it: &Message| match it {
        Message::Reply { end: ReplyOutcome::Done { answers, .. }, .. } => answers[0].1 == taken,
        _ => false,
    };
    assert!(sent.iter().any(is_tell), "{sent:?}");
    // An earlier attempt of the source is no part of this one.
    let (repository, stream, keys) = (THERE, has.stream, Vec::new());
    let load = Load::Piece { number: 2, keys };
    let other = Message::Load { repository, partition: 1, stream, source: Timestamp(7), load };
    assert_eq!(harness.receive(other), []);
    if votes {
        let less = moving(&harness, 2, THERE, Fetched { pieces: 0, ..has });
        assert!(!votes_for(&harness.receive(less)), "something else was loaded");
        let order = moving(&harness, 3, THERE, has);
        assert!(votes_for(&harness.receive(order)));
    }
    (harness, has)
}

fn owned_here() -> Option<Owners> {
    Some(Owners { epoch: 1, holders: Repositories::from_iter([HERE]) })
}

/// How a write lies to the move of its partition, at the destination.
fn after_the_move(switches: Switches) -> std::cmp::Ordering {
    let (mut harness, _) = loaded(switches, true);
    let early = write(&harness, 4, 1, owned_here());
    assert!(moved(&harness.receive(early)).is_some(), "it has not come yet");
    let place = Timestamp::new(1_000, THERE);
    assert_eq!(done_at(&harness.receive(vote(3, TimestampVote::Commit(place)))), Some(place));
    let store = harness.participant.spaces().get(SpaceId(0)).expect("a key was loaded");
    assert!(store.find(&harness.key_in(1)).is_some());
    let next = write(&harness, 5, 1, owned_here());
    done_at(&harness.receive(next)).expect("it is here").cmp(&place)
}

#[test]
fn at_its_destination_everything_lies_above_the_move() {
    assert!(after_the_move(Switches::default()).is_gt());
    let switches = Switches::broken(GranolaSwitch::MovesRaise);
    assert!(after_the_move(switches).is_lt(), "below what was done at the source");
}

#[test]
fn a_destination_has_all_keys_when_it_has_voted_and_none_if_it_did_not() {
    let (mut harness, _) = loaded(Switches::default(), true);
    harness.crash(harness.log.len());
    let place = Timestamp::new(1_000, THERE);
    assert_eq!(done_at(&harness.receive(vote(3, TimestampVote::Commit(place)))), Some(place));
    assert_eq!(keys_in(&harness), 1);
    assert_eq!(harness.participant.chains(&harness.catalog).len(), 1);
    let (mut harness, has) = loaded(Switches::default(), false);
    assert_eq!(harness.participant.chains(&harness.catalog).len(), 0, "it does not live here yet");
    harness.crash(harness.log.len());
    assert_eq!(keys_in(&harness), 0);
    let order = moving(&harness, 3, THERE, has);
    assert!(!votes_for(&harness.receive(order)), "what was loaded in an earlier life is gone");
}

#[test]
fn a_move_that_is_off_leaves_nothing_at_its_destination() {
    let (mut harness, _) = loaded(Switches::default(), true);
    harness.receive(vote(3, TimestampVote::Moved(Timestamp::ZERO)));
    harness.now = harness.settings.snapshot_lease;
    harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Staged, cx));
    assert_eq!(keys_in(&harness), 0);
}
