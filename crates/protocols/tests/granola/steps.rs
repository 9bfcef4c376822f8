//! What a repository does step by step, where chance alone would seldom show it.

use std::sync::Arc;

use muesli_core::{
    Address, Catalog, Context, Effect, Effects, Environment, LoggedRole as _, Nanos, NodeId,
    Participant as _, Positions, ProcedureId, RepositoryId, Role, Settings, SmallBytes,
    SpaceOptions, Timer, Timestamp, TxnId,
};
use muesli_protocols::granola::message::{
    Agreement, Install, Message, Part, Record, ReplyOutcome, Request, Task, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{Granola, GranolaSwitch, Participant, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::procedures::{SPACE, all, key};

/// Repository 0 of two, and what it has logged.
pub struct Harness {
    pub catalog: Catalog,
    pub settings: Settings,
    pub switches: Switches,
    pub participant: Participant,
    pub log: Vec<Record>,
    pub now: Nanos,
    /// Timers without delay, which ring after each step; unless they are held back.
    left_over: Vec<u32>,
    pub holds_back: bool,
    /// Timers with a delay, and when they are due.
    pub alarms: Vec<(Nanos, u32)>,
    positions: Positions,
}

fn timer_of(number: u32) -> GranolaParticipantTimer {
    Timer::numbered(number).expect("a timer that it has set")
}

impl Harness {
    pub fn new(switches: Switches) -> Harness {
        let homes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = catalog.with_space(SPACE, SpaceOptions::default()).unwrap();
        let settings = Settings { logging: true, procedures: all(), ..Settings::default() };
        let participant = Participant::new(RepositoryId(0), &settings, &switches);
        let (log, now, left_over, holds_back) = (Vec::new(), Nanos(0), Vec::new(), false);
        let (alarms, positions) = (Vec::new(), Positions::default());
        Harness {
            catalog,
            settings,
            switches,
            participant,
            log,
            now,
            left_over,
            holds_back,
            alarms,
            positions,
        }
    }

    /// Does something with the participant, and what it has left over then; gives what it said.
    pub fn step(
        &mut self,
        run: impl FnOnce(&mut Participant, &mut Context<'_, Granola>),
    ) -> Vec<Message> {
        let mut sent = self.step_alone(run);
        while !self.holds_back && !self.left_over.is_empty() {
            sent.extend(self.go_on());
        }
        sent
    }

    /// Something was left over, and held back.
    pub fn has_left_over(&self) -> bool {
        !self.left_over.is_empty()
    }

    /// Does what was left over first.
    pub fn go_on(&mut self) -> Vec<Message> {
        let timer = self.left_over.remove(0);
        self.step_alone(|participant, cx| participant.timer(timer_of(timer), cx))
    }

    fn step_alone(
        &mut self,
        run: impl FnOnce(&mut Participant, &mut Context<'_, Granola>),
    ) -> Vec<Message> {
        let (now, positions) = (self.now, std::mem::take(&mut self.positions));
        let mut effects = Effects::new(Environment { now, positions, ..Environment::default() });
        let me = Address { node: NodeId(0), role: Role::Repository(RepositoryId(0)) };
        let (catalog, settings) = (&self.catalog, &self.settings);
        run(&mut self.participant, &mut Context { me, catalog, settings, effects: &mut effects });
        self.positions = effects.environment.positions;
        let mut sent = Vec::new();
        for effect in effects.list {
            match effect {
                Effect::Send { envelope, .. } => sent.push(envelope.message),
                Effect::Log { record, .. } => self.log.push(record),
                Effect::SetTimer { timer, after: Nanos(0), .. } => self.left_over.push(timer),
                Effect::SetTimer { timer, after, .. } => {
                    self.alarms.push((self.now + after, timer));
                }
                Effect::Complete { .. } => {}
            }
        }
        sent
    }

    /// The time passes, and timers ring that are due by then; what was said.
    pub fn pass_until(&mut self, until: Nanos) -> Vec<Message> {
        let mut sent = Vec::new();
        while let Some(next) = self.alarms.iter().filter(|it| it.0 <= until).min().copied() {
            self.alarms.retain(|it| *it != next);
            self.now = self.now.max(next.0);
            sent.extend(self.step(|participant, cx| participant.timer(timer_of(next.1), cx)));
        }
        self.now = until;
        sent
    }

    pub fn receive(&mut self, message: Message) -> Vec<Message> {
        let from = Address::coordinator(NodeId(1));
        self.step(|participant, cx| participant.receive(from, message, cx))
    }

    /// Another life, which has only the first records of the log.
    pub fn crash(&mut self, records: usize) {
        self.participant = Participant::new(RepositoryId(0), &self.settings, &self.switches);
        self.log.truncate(records);
        self.left_over.clear();
        for record in self.log.clone() {
            self.step(|participant, cx| participant.replay(record, cx));
        }
        self.step(|participant, cx| participant.start(cx));
    }

    /// A key that lives in `partition`.
    pub fn key_in(&self, partition: u16) -> SmallBytes {
        let space = self.catalog.space_named(SPACE).unwrap();
        let mut keys = (0..).map(key);
        keys.find(|key| self.catalog.partition(space, key) == partition).unwrap()
    }

    /// A call of a procedure with keys of repository 0, and a write at the other one if that takes
    /// part.
    pub fn call(&self, sequence: u64, name: &str, keys: &[u8], alone: bool) -> Message {
        let agreement = if alone { Agreement::Alone } else { Agreement::Independent };
        let partitions: &[u16] = if alone { &[0] } else { &[0, 1] };
        let mut request = self.request(sequence, agreement, partitions);
        let procedure = ProcedureId { name: name.into(), version: 1 };
        request.parts[0].task =
            Task::Call { procedure, arguments: SmallBytes::new(keys), shares: false, spaces: 1 };
        Message::Request(Arc::new(request))
    }

    pub fn request(&self, sequence: u64, agreement: Agreement, partitions: &[u16]) -> Request {
        let space = self.catalog.space_named(SPACE).unwrap();
        let part = |&partition: &u16| {
            let writes = vec![(space, self.key_in(partition), Some("x".into()))];
            let install = Install { writes, ..Install::default() };
            Part { partition, owners: None, task: Task::Install(Box::new(install)) }
        };
        Request {
            agreement,
            ..Request::new(
                txn(sequence),
                partitions.iter().map(|it| RepositoryId(*it)).collect(),
                partitions.iter().map(part).collect(),
            )
        }
    }
}

pub fn txn(sequence: u64) -> TxnId {
    TxnId { node: NodeId(1), incarnation: 1, sequence }
}

pub fn vote(sequence: u64, ballot: TimestampVote) -> Message {
    let (txn, repository) = (txn(sequence), RepositoryId(1));
    Message::Vote { txn, repository, ballot, about: 0, tag: 0, order: None }
}

pub fn done_at(sent: &[Message]) -> Option<Timestamp> {
    sent.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Done { at, .. }, .. } => Some(*at),
        _ => None,
    })
}

/// Does a transaction at a place that the other repository gave, loses the record of it, and does
/// another one in the next life. Gives their places.
fn before_and_after_a_crash(switches: Switches) -> (Timestamp, Timestamp) {
    let mut harness = Harness::new(switches);
    let both = harness.request(1, Agreement::Independent, &[0, 1]);
    harness.receive(Message::Request(Arc::new(both)));
    let voted = harness.log.len();
    let place = Timestamp::new(1_000, RepositoryId(1));
    let data = done_at(&harness.receive(vote(1, TimestampVote::Commit(place)))).expect("all votes");
    // What was stable before the answer was told: all but the record of the end itself.
    assert!(matches!(harness.log.last(), Some(Record::Done { .. })));
    assert!(harness.log.len() > voted);
    let stable = harness.log.len() - 1;
    harness.crash(stable);
    let alone = harness.request(2, Agreement::Alone, &[0]);
    assert_eq!(done_at(&harness.receive(Message::Request(Arc::new(alone)))), None, "it waits");
    let sent = harness.receive(vote(1, TimestampVote::Commit(place)));
    let after = sent.iter().find_map(|message| match message {
        Message::Reply { txn: of, end: ReplyOutcome::Done { at, .. }, .. } if *of == txn(2) => {
            Some(*at)
        }
        _ => None,
    });
    (data, after.expect("done after what it waited for"))
}

#[test]
fn a_new_life_lies_above_all_that_was_done_before() {
    let (data, after) = before_and_after_a_crash(Switches::default());
    assert!(after > data, "{after} is below {data}");
    // A repository that resumes with its votes alone goes before what its clients were told of.
    let (data, after) = before_and_after_a_crash(Switches::broken(GranolaSwitch::UpperBound));
    assert!(after < data, "{after} is above {data}");
}

#[test]
fn what_is_ready_is_done_after_votes_have_left_and_newcomers_go_behind_it() {
    let mut harness = Harness::new(Switches::broken(GranolaSwitch::ImplicitVotes));
    harness.holds_back = true;
    let place = Timestamp::new(1_000, RepositoryId(1));
    let votes = |sent: &[Message]| match sent {
        [Message::Vote { ballot: TimestampVote::Commit(at), .. }] => *at,
        other => panic!("a vote and nothing else, not {other:?}"),
    };
    let both = |harness: &Harness, number| {
        Message::Request(Arc::new(harness.request(number, Agreement::Independent, &[0, 1])))
    };
    // All that the first one waits for is there before it: yet at once it only votes.
    harness.receive(vote(1, TimestampVote::Commit(place)));
    let first = harness.receive(both(&harness, 1));
    assert!(votes(&first) < place);
    let second = harness.receive(both(&harness, 2));
    assert!(votes(&second) > place, "the first one need not wait for the second one's votes");
    assert_eq!(harness.left_over.len(), 1);
    assert_eq!(done_at(&harness.go_on()), Some(place));
    assert!(harness.left_over.is_empty());
}

#[test]
fn a_vote_whose_request_does_not_come_ends_by_time_and_is_asked_for_when_it_comes() {
    let mut harness = Harness::new(Switches::default());
    let (begun, patience) = (Nanos::from_millis(1), harness.settings.in_doubt_after);
    harness.now = begun;
    let place = Timestamp::new(1_000, RepositoryId(1));
    harness.receive(vote(1, TimestampVote::Commit(place)));
    harness.pass_until(begun + Nanos(patience.0 / 2));
    // Another one keeps the timer going, and ends later.
    harness.receive(vote(2, TimestampVote::Commit(Timestamp::new(1_001, RepositoryId(1)))));
    harness.pass_until(begun + Nanos(patience.0 - 1));
    assert_eq!(harness.participant.early_votes(), 2);
    harness.pass_until(begun + Nanos(patience.0 * 3 / 2 - 1));
    assert_eq!(harness.participant.early_votes(), 1);
    harness.pass_until(begun + Nanos(3 * patience.0));
    assert_eq!(harness.participant.early_votes(), 0);
    assert_eq!(harness.alarms, [], "nothing is left to look after");
    let both = harness.request(1, Agreement::Independent, &[0, 1]);
    let sent = harness.receive(Message::Request(Arc::new(both)));
    assert_eq!(done_at(&sent), None, "the vote is gone");
    let sent = harness.pass_until(begun + Nanos(5 * patience.0));
    assert!(sent.iter().any(|message| matches!(message, Message::Ask { .. })), "{sent:?}");
    let sent = harness.receive(vote(1, TimestampVote::Commit(place)));
    assert!(done_at(&sent).is_some_and(|at| at > place), "{sent:?}");
}

#[test]
fn a_vote_against_that_came_first_is_never_answered_with_a_vote_for() {
    for ballot in
        [TimestampVote::Conflict, TimestampVote::Commit(Timestamp::new(7, RepositoryId(1)))]
    {
        let mut harness = Harness::new(Switches::default());
        let against = ballot == TimestampVote::Conflict;
        assert_eq!(harness.receive(vote(1, ballot)), []);
        let both = harness.request(1, Agreement::Independent, &[0, 1]);
        let sent = harness.receive(Message::Request(Arc::new(both)));
        let voted: Vec<_> = sent
            .iter()
            .filter_map(|message| match message {
                Message::Vote { ballot, .. } => Some(matches!(ballot, TimestampVote::Commit(_))),
                _ => None,
            })
            .collect();
        assert_eq!(voted, [!against]);
        let stable = harness.log.iter().any(|it| matches!(it, Record::Against { .. }));
        assert_eq!(stable, against);
        assert_eq!(done_at(&sent).is_some(), !against);
    }
}

#[test]
fn a_request_that_is_repeated_is_done_once_and_never_after_it_was_settled() {
    let mut harness = Harness::new(Switches::default());
    let first = Arc::new(harness.request(1, Agreement::Alone, &[0]));
    let at = done_at(&harness.receive(Message::Request(first.clone())));
    assert!(at.is_some());
    assert_eq!(done_at(&harness.receive(Message::Request(first.clone()))), at);
    harness.crash(harness.log.len());
    assert_eq!(done_at(&harness.receive(Message::Request(first.clone()))), at);
    let mut next = harness.request(2, Agreement::Alone, &[0]);
    next.settled_below = 2;
    assert!(done_at(&harness.receive(Message::Request(Arc::new(next)))) > at);
    assert_eq!(harness.receive(Message::Request(first)), []);
}

#[test]
fn a_deferred_transaction_does_not_keep_others_from_their_votes() {
    let mut harness = Harness::new(Switches::default());
    // Two that write one key, so that they cannot both be locked.
    for sequence in [1, 2] {
        let both = harness.request(sequence, Agreement::Independent, &[0, 1]);
        harness.receive(Message::Request(Arc::new(both)));
    }
    let coordinated = harness.request(3, Agreement::Coordinated, &[0, 1]);
    assert_eq!(harness.receive(Message::Request(Arc::new(coordinated))), [], "deferred");
    let both = harness.request(4, Agreement::Independent, &[0, 1]);
    let sent = harness.receive(Message::Request(Arc::new(both)));
    assert!(
        matches!(sent[..], [Message::Vote { ballot: TimestampVote::Commit(_), .. }]),
        "{sent:?}"
    );
    // Two are over: what is left can be locked, but the deferred one conflicts with it.
    let place = |sequence| TimestampVote::Commit(Timestamp::new(sequence, RepositoryId(1)));
    harness.receive(vote(1, place(1_000)));
    harness.receive(vote(2, place(1_001)));
    let sent = harness.receive(vote(4, TimestampVote::Conflict));
    let voted = sent.iter().any(|message| {
        let Message::Vote { txn: of, ballot, .. } = message else { return false };
        *of == txn(3) && matches!(ballot, TimestampVote::Commit(_))
    });
    let refused = harness.log.iter().any(|record| {
        let Record::Against { txn: of, ballot } = record else { return false };
        *of == txn(3) && *ballot == TimestampVote::Conflict
    });
    assert!(voted != refused, "it was voted on once: {sent:?}");
}

/// Two transactions wait for a repository that stays away. What the first one will touch depends on
/// whether the second one goes before it. Gives what becomes of one that touches the same.
fn beside_what_is_blocked(switches: Switches) -> (Harness, Vec<Message>) {
    let mut harness = Harness::new(switches);
    let space = harness.catalog.space_named(SPACE).unwrap();
    let here = |number: &u8| harness.catalog.partition(space, &key(*number)) == 0;
    let keys: Vec<u8> = (0..100).filter(here).take(3).collect();
    // The first key is odd, so that `chase` would leave the second one alone.
    assert!(done_at(&harness.receive(harness.call(1, "bump", &keys[..1], true))).is_some());
    harness.receive(harness.call(2, "bump", &keys[..1], false));
    harness.receive(harness.call(3, "chase", &keys[..2], false));
    assert_eq!(
        done_at(&harness.receive(harness.call(4, "bump", &keys[2..], true))),
        None,
        "it waits"
    );
    harness.now = harness.settings.in_doubt_after;
    let sent =
        harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Sweep, cx));
    let conflict =
        |message: &Message| matches!(message, Message::Reply { end: ReplyOutcome::Conflict, .. });
    assert!(sent.iter().any(conflict), "what waited for its turn alone is to try again: {sent:?}");
    let other = harness.receive(harness.call(5, "bump", &keys[2..], true));
    assert!(done_at(&other).is_some(), "what touches nothing of it goes on: {other:?}");
    let same = harness.receive(harness.call(6, "bump", &keys[1..2], true));
    (harness, same)
}

#[test]
fn what_waits_for_who_stays_away_claims_all_that_it_may_touch() {
    let (mut harness, same) = beside_what_is_blocked(Switches::default());
    assert_eq!(done_at(&same), None, "{same:?}");
    // Its votes come: both are done, in the order of their places, and the mode is left.
    let place = |sequence| TimestampVote::Commit(Timestamp::new(sequence, RepositoryId(1)));
    assert_eq!(done_at(&harness.receive(vote(3, place(1)))), None, "behind the other one");
    let sent = harness.receive(vote(2, place(1)));
    let done = |message: &&Message| {
        matches!(message, Message::Reply { end: ReplyOutcome::Done { .. }, .. })
    };
    assert_eq!(sent.iter().filter(done).count(), 2, "{sent:?}");
    let Message::Request(again) = harness.call(7, "bump", &[], true) else { unreachable!() };
    assert!(done_at(&harness.receive(Message::Request(again))).is_some());
    // Locks of what it touches as things are would have let a later one go before it.
    let (_, same) = beside_what_is_blocked(Switches::broken(GranolaSwitch::Supersets));
    assert!(done_at(&same).is_some(), "{same:?}");
}
