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
use muesli_protocols::granola::{GranolaSwitch, Participant, Rules};
use muesli_protocols::two_phase::Sabotage;

use super::steps::{Stage, done_at, txn, vote};

const HERE: RepositoryId = RepositoryId(0);
const THERE: RepositoryId = RepositoryId(1);
const STREAM: Timestamp = Timestamp(77);

/// Asks for partition 0, which is here.
fn fetch(stage: &mut Stage, has: Fetched) -> (Timestamp, Load) {
    let said = stage.receive(Message::Fetch { repository: THERE, partition: 0, has });
    match &said[..] {
        [Message::Load { source, load, .. }] => (*source, load.clone()),
        other => panic!("a load and nothing else, not {other:?}"),
    }
}

/// Loads all of partition 0.
fn load(stage: &mut Stage) -> Fetched {
    let mut has = Fetched { stream: STREAM, ..Fetched::default() };
    loop {
        let (source, load) = fetch(stage, has);
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

fn special(stage: &Stage, sequence: u64, partition: u16, task: Task) -> Request {
    let mut request = stage.request(sequence, Agreement::Independent, &[0, 1]);
    request.parts = Few::from_iter([Part { partition, owners: None, task }]);
    request
}

fn moving(stage: &Stage, sequence: u64, from: RepositoryId, has: Fetched) -> Message {
    let to = if from == HERE { THERE } else { HERE };
    let order = Move { partition: from.0, from, to, epoch: 1, has };
    Message::Request(Arc::new(special(stage, sequence, from.0, Task::Move(Box::new(order)))))
}

/// A write of a key of a partition, at the repository here.
fn write(stage: &Stage, sequence: u64, partition: u16, owners: Option<Owners>) -> Message {
    let mut request = stage.request(sequence, Agreement::Alone, &[partition]);
    request.participants = Repositories::from_iter([HERE]);
    request.parts[0].owners = owners.map(Arc::new);
    Message::Request(Arc::new(request))
}

fn keys_in(stage: &Stage) -> usize {
    stage.participant.spaces().iter().map(|(_, it)| it.len()).sum()
}

fn moved(said: &[Message]) -> Option<Timestamp> {
    said.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Moved { at }, .. } => Some(*at),
        _ => None,
    })
}

fn votes_for(said: &[Message]) -> bool {
    said.iter().any(|it| matches!(it, Message::Vote { ballot: TimestampVote::Commit(_), .. }))
}

/// Partition 0 has gone to the other repository, at the place that is given too.
fn gone() -> (Stage, Timestamp) {
    let mut stage = Stage::new(Rules::default());
    let first = write(&stage, 1, 0, None);
    assert!(done_at(&stage.receive(first)).is_some());
    let has = load(&mut stage);
    let order = moving(&stage, 2, HERE, has);
    assert!(votes_for(&stage.receive(order)));
    let place = Timestamp::new(1_000, THERE);
    assert_eq!(done_at(&stage.receive(vote(2, TimestampVote::Commit(place)))), Some(place));
    (stage, place)
}

#[test]
fn a_source_gives_away_what_was_loaded_and_nothing_else() {
    let mut stage = Stage::new(Rules::default());
    let first = write(&stage, 1, 0, None);
    assert!(done_at(&stage.receive(first)).is_some());
    let has = load(&mut stage);
    assert_eq!((has.pieces, has.changes), (1, 0));
    let second = write(&stage, 2, 0, None);
    assert!(done_at(&stage.receive(second)).is_some());
    let order = moving(&stage, 3, HERE, has);
    let said = stage.receive(order);
    assert!(!votes_for(&said) && moved(&said).is_some(), "{said:?}");
    assert!(matches!(
        stage.log.last(),
        Some(Record::Against { ballot: TimestampVote::Moved(_), .. })
    ));
    // It is held still: what is there can be loaded.
    let third = write(&stage, 4, 0, None);
    assert!(moved(&stage.receive(third.clone())).is_some());
    let (_, changes) = fetch(&mut stage, has);
    assert!(
        matches!(&changes, Load::Changes { from: 0, changes, whole: true } if changes.len() == 1)
    );
    let order = moving(&stage, 5, HERE, Fetched { changes: 1, ..has });
    assert!(votes_for(&stage.receive(order)));
    // Nothing new of it, however long its end is not known.
    stage.now = stage.settings.give_up_after;
    let fourth = write(&stage, 6, 0, None);
    assert!(moved(&stage.receive(fourth)).is_some());
    // Somebody else votes against it: all is as it was, but for what was refused.
    stage.receive(vote(5, TimestampVote::Moved(Timestamp::ZERO)));
    let fifth = write(&stage, 7, 0, None);
    assert!(done_at(&stage.receive(fifth)).is_some());
    assert!(moved(&stage.receive(third)).is_some(), "an id that was refused stays refused");
}

#[test]
fn what_is_held_still_is_let_go_after_a_while() {
    let mut stage = Stage::new(Rules::default());
    let has = load(&mut stage);
    let first = write(&stage, 1, 0, None);
    assert!(done_at(&stage.receive(first)).is_some());
    let order = moving(&stage, 2, HERE, has);
    assert!(!votes_for(&stage.receive(order)));
    let second = write(&stage, 3, 0, None);
    assert!(moved(&stage.receive(second)).is_some());
    stage.now = stage.settings.retry_after;
    let third = write(&stage, 4, 0, None);
    assert!(done_at(&stage.receive(third)).is_some());
}

#[test]
fn a_move_waits_for_what_is_under_way() {
    let mut stage = Stage::new(Rules::default());
    let has = load(&mut stage);
    let both = stage.request(1, Agreement::Independent, &[0, 1]);
    assert!(votes_for(&stage.receive(Message::Request(Arc::new(both)))));
    let order = moving(&stage, 2, HERE, has);
    assert!(!votes_for(&stage.receive(order)));
}

#[test]
fn who_has_given_it_away_remembers_and_refuses_through_crashes_and_checkpoints() {
    let (mut stage, place) = gone();
    let known = |stage: &mut Stage, sequence| {
        let (first, next) = (write(stage, 1, 0, None), write(stage, sequence, 0, None));
        assert!(done_at(&stage.receive(first)).is_some(), "it was done here");
        assert_eq!(moved(&stage.receive(next)), Some(place));
    };
    known(&mut stage, 3);
    stage.crash(stage.log.len());
    known(&mut stage, 4);
    let mut cursor = stage.participant.begin_checkpoint().expect("it has checkpoints");
    let mut pieces = Vec::new();
    loop {
        let mut piece = Vec::new();
        if !stage.participant.checkpoint_piece(&mut cursor, 1_000, &mut piece) {
            break;
        }
        pieces.push(piece);
    }
    stage.participant = Participant::new(HERE, &stage.settings, &stage.rules);
    for piece in pieces {
        stage.step(|participant, cx| participant.restore(&piece, cx).expect("a piece"));
    }
    stage.step(|participant, cx| participant.start(cx));
    known(&mut stage, 5);
    // It keeps names, and its keys are gone.
    let mut names = special(&stage, 9, 0, Task::Names);
    (names.agreement, names.read_only) = (Agreement::Alone, true);
    names.participants = Repositories::from_iter([HERE]);
    let said = stage.receive(Message::Request(Arc::new(names)));
    let owners = Owners { epoch: 1, holders: Repositories::from_iter([THERE]) };
    let answer = PartAnswer::Names(vec![(0, owners)]);
    let told = |it: &Message| match it {
        Message::Reply { end: ReplyOutcome::Done { answers, .. }, .. } => answers[0].1 == answer,
        _ => false,
    };
    assert!(said.iter().any(told), "{said:?}");
    assert_eq!(keys_in(&stage), 0);
}

#[test]
fn a_source_that_starts_again_is_still_bound_by_its_vote() {
    let (mut stage, place) = gone();
    let voted = stage
        .log
        .iter()
        .position(|it| matches!(it, Record::Voted { request, .. } if request.txn == txn(2)));
    stage.crash(voted.expect("it has voted") + 1);
    let next = write(&stage, 3, 0, None);
    assert!(moved(&stage.receive(next)).is_some());
    assert_eq!(done_at(&stage.receive(vote(2, TimestampVote::Commit(place)))), Some(place));
}

#[test]
fn who_is_asked_twice_to_begin_gives_two_names() {
    let mut stage = Stage::new(Rules::default());
    let has = load(&mut stage);
    let first = write(&stage, 1, 0, None);
    assert!(done_at(&stage.receive(first)).is_some());
    stage.crash(stage.log.len());
    // The first message of all comes late, after a crash: what was loaded before it is not all.
    let begins = Fetched { stream: STREAM, ..Fetched::default() };
    let (source, _) = fetch(&mut stage, begins);
    assert_ne!(source, has.source);
    assert_eq!(fetch(&mut stage, has).1, Load::Unknown);
    let order = moving(&stage, 2, HERE, has);
    assert!(!votes_for(&stage.receive(order)));
}

/// A key of partition 1 was loaded here, and its move was voted on, or not.
fn loaded(rules: Rules, votes: bool) -> (Stage, Fetched) {
    let mut stage = Stage::new(rules);
    let mut take = special(&stage, 1, 1, Task::Take { from: THERE });
    (take.agreement, take.read_only) = (Agreement::Alone, true);
    take.participants = Repositories::from_iter([HERE]);
    let said = stage.receive(Message::Request(Arc::new(take)));
    let [Message::Fetch { has, .. }] = said[..] else { panic!("{said:?}") };
    let key = (SpaceId(0), stage.key_in(1), Timestamp::new(5, THERE), Some(SmallBytes::from("v")));
    let source = Timestamp(8);
    let give = |stage: &mut Stage, load| {
        let (repository, stream) = (THERE, has.stream);
        stage.receive(Message::Load { repository, partition: 1, stream, source, load })
    };
    let said = give(&mut stage, Load::Piece { number: 1, keys: vec![key] });
    let has = Fetched { pieces: 1, source, ..has };
    let taken = PartAnswer::Taken { has, whole: false };
    let told = |it: &Message| match it {
        Message::Reply { end: ReplyOutcome::Done { answers, .. }, .. } => answers[0].1 == taken,
        _ => false,
    };
    assert!(said.iter().any(told), "{said:?}");
    // An earlier attempt of the source is no part of this one.
    let (repository, stream, keys) = (THERE, has.stream, Vec::new());
    let load = Load::Piece { number: 2, keys };
    let other = Message::Load { repository, partition: 1, stream, source: Timestamp(7), load };
    assert_eq!(stage.receive(other), []);
    if votes {
        let less = moving(&stage, 2, THERE, Fetched { pieces: 0, ..has });
        assert!(!votes_for(&stage.receive(less)), "something else was loaded");
        let order = moving(&stage, 3, THERE, has);
        assert!(votes_for(&stage.receive(order)));
    }
    (stage, has)
}

fn owned_here() -> Option<Owners> {
    Some(Owners { epoch: 1, holders: Repositories::from_iter([HERE]) })
}

/// How a write lies to the move of its partition, at the destination.
fn after_the_move(rules: Rules) -> std::cmp::Ordering {
    let (mut stage, _) = loaded(rules, true);
    let early = write(&stage, 4, 1, owned_here());
    assert!(moved(&stage.receive(early)).is_some(), "it has not come yet");
    let place = Timestamp::new(1_000, THERE);
    assert_eq!(done_at(&stage.receive(vote(3, TimestampVote::Commit(place)))), Some(place));
    let store = stage.participant.spaces().get(SpaceId(0)).expect("a key was loaded");
    assert!(store.find(&stage.key_in(1)).is_some());
    let next = write(&stage, 5, 1, owned_here());
    done_at(&stage.receive(next)).expect("it is here").cmp(&place)
}

#[test]
fn at_its_destination_everything_lies_above_the_move() {
    assert!(after_the_move(Rules::default()).is_gt());
    let rules = Rules::broken(GranolaSwitch::MovesRaise);
    assert!(after_the_move(rules).is_lt(), "below what was done at the source");
}

#[test]
fn a_destination_has_all_keys_when_it_has_voted_and_none_if_it_did_not() {
    let (mut stage, _) = loaded(Rules::default(), true);
    stage.crash(stage.log.len());
    let place = Timestamp::new(1_000, THERE);
    assert_eq!(done_at(&stage.receive(vote(3, TimestampVote::Commit(place)))), Some(place));
    assert_eq!(keys_in(&stage), 1);
    assert_eq!(stage.participant.chains(&stage.catalog).len(), 1);
    let (mut stage, has) = loaded(Rules::default(), false);
    assert_eq!(stage.participant.chains(&stage.catalog).len(), 0, "it does not live here yet");
    stage.crash(stage.log.len());
    assert_eq!(keys_in(&stage), 0);
    let order = moving(&stage, 3, THERE, has);
    assert!(!votes_for(&stage.receive(order)), "what was loaded in an earlier life is gone");
}

#[test]
fn a_move_that_is_off_leaves_nothing_at_its_destination() {
    let (mut stage, _) = loaded(Rules::default(), true);
    stage.receive(vote(3, TimestampVote::Moved(Timestamp::ZERO)));
    stage.now = stage.settings.snapshot_lease;
    stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Staged, cx));
    assert_eq!(keys_in(&stage), 0);
}
