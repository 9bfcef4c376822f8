//! What is asked of messages from other processes before they touch any state.

use muesli_protocols::two_phase::{Reader, ReaderBounds};
use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::limits::Limits;
use muesli_core::memory::{Held, Memory};
use muesli_core::parts::locator::Static;
use muesli_core::parts::vector_clock::{Number, VectorClock};
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Nanos, Node, NodeId, Protocol,
    Rejection, RepositoryId, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Timestamp,
    TxnId, TxnOptions, Wire,
};
use muesli_protocols::bumper::{Bumper, BumperPlace};
use muesli_protocols::gmu;
use muesli_protocols::repeatable_read::NewestVersions;
use muesli_protocols::score::Score;
use muesli_protocols::two_phase::message::{
    LockRequest, Message, Mostly, Prepare, ReadRequest, RepositoryVote, Vote,
};
use muesli_protocols::two_phase::{Sabotage, TwoPhase, Variant};

const SPACE: SpaceId = SpaceId(0);
const CLIENT: NodeId = NodeId(77);
const OTHER: NodeId = NodeId(1);
const HERE: RepositoryId = RepositoryId(0);
const THERE: RepositoryId = RepositoryId(1);

/// A node with one of two repositories, and what it says.
struct Server<V: Variant> {
    node: Node<TwoPhase<V>>,
    effects: Effects<TwoPhase<V>>,
}

impl<V: Variant> Server<V> {
    fn new() -> Server<V> {
        Server::with(Settings::default())
    }

    fn with(settings: Settings) -> Server<V> {
        Server::with_rules(settings, &V::Rules::default())
    }

    fn with_rules(settings: Settings, rules: &V::Rules) -> Server<V> {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap().with_visiting_coordinators();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let settings = Arc::new(Settings { issuer: Some(issuer()), ..settings });
        let mut node = Node::new(NodeId(0), 1, Arc::new(catalog), settings, rules);
        let mut effects = Effects::default();
        node.start(&mut effects);
        effects.list.clear();
        Server { node, effects }
    }

    fn hear(
        &mut self,
        sender: Sender,
        from: Address,
        message: Message<V>,
    ) -> Result<(), Rejection> {
        let to = Address::repository(NodeId(0), HERE);
        self.node.receive(sender, Envelope { from, to, message }, &mut self.effects)
    }

    fn client(&mut self, message: Message<V>) -> Result<(), Rejection> {
        self.hear(Sender::CLIENT, Address::coordinator(CLIENT), message)
    }

    fn member(&mut self, message: Message<V>) -> Result<(), Rejection> {
        self.hear(Sender::Member, Address::repository(OTHER, RepositoryId(1)), message)
    }

    fn remembered(&self) -> usize {
        self.node.participants()[0].1.remembered()
    }

    /// Some key of the repository that is here.
    fn key(&self, number: u32) -> SmallBytes {
        let key = |number: u32| SmallBytes::new(&number.to_be_bytes());
        let catalog = self.node.catalog();
        let here = |key: &SmallBytes| Static.holds(HERE, catalog.partition(SPACE, key), catalog);
        (0..).map(key).filter(here).nth(number as usize).unwrap()
    }

    /// What the node's own client finds.
    fn get(&mut self, key: &SmallBytes) -> Option<SmallBytes> {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let Step::Done(Ok(found)) = self.node.get(txn, SPACE, key, &mut self.effects) else {
            panic!("it is here")
        };
        let _ = self.node.commit(txn, &mut self.effects);
        found
    }

    fn put(&mut self, key: &SmallBytes, value: &str) -> Timestamp {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let value = Some(SmallBytes::from(value));
        self.node.put(txn, SPACE, key.clone(), value, &mut self.effects).unwrap();
        match self.node.commit(txn, &mut self.effects) {
            Step::Done(Ok(committed)) => committed.at,
            other => panic!("{other:?}"),
        }
    }

    /// The vote that was said last, as it is shown to others.
    fn ballot(&self) -> RepositoryVote<V> {
        let said = self.effects.list.iter().rev();
        let votes = said.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(envelope.message.clone()),
            _ => None,
        });
        let mut ballots = votes.filter_map(|message| match message {
            Message::Vote { repository, vote, about, tag, .. } => {
                Some(RepositoryVote { repository, vote, about, tag })
            }
            _ => None,
        });
        ballots.next().expect("it voted")
    }

    /// A client says that its transaction lies where this repository's proposal is, and shows the
    /// votes of both.
    fn commit_at(&mut self, of: TxnId, at: V::Place) -> Result<(), Rejection> {
        let ballot = self.ballot();
        let there = voted(of, THERE, ballot.vote.clone());
        let (decision, ballots) = (Decision::Commit(at), Mostly::from_vec(vec![ballot, there]));
        let message = Message::Decide { txn: of, decision, ballots };
        self.hear(Sender::CLIENT, Address::coordinator(of.node), message)
    }

    /// A client says that its transaction is aborted, and shows the vote of no.
    fn abort(&mut self, of: TxnId) -> Result<(), Rejection> {
        let decision = Decision::Abort(Abort::Abandoned);
        let ballots = Mostly::from_buf([voted(of, THERE, Vote::No(Abort::Locked))]);
        self.client(Message::Decide { txn: of, decision, ballots })
    }

    /// The proposal in the vote that was said last.
    fn proposal(&self) -> Option<V::Yes> {
        let said = self.effects.list.iter().rev();
        said.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(&envelope.message),
            _ => None,
        })
        .find_map(|message| match message {
            Message::Vote { vote: Vote::Yes(yes), .. } => Some(yes.clone()),
            _ => None,
        })
    }
}

fn issuer() -> Issuer {
    Issuer::new([7; 16])
}

/// What a member has said of a vote.
fn voted<V: Variant>(txn: TxnId, repository: RepositoryId, vote: Vote<V>) -> RepositoryVote<V> {
    let mut bytes = Vec::new();
    txn.encode(&mut bytes);
    repository.encode(&mut bytes);
    vote.encode(&mut bytes);
    bytes.push(0); // Keys have no copies.
    RepositoryVote { repository, vote, about: None, tag: issuer().vouch(&bytes) }
}

fn decide<V: Variant>(txn: TxnId, decision: Decision<V::Place>) -> Message<V> {
    Message::Decide { txn, decision, ballots: Mostly::new() }
}

fn txn(node: NodeId, sequence: u64) -> TxnId {
    TxnId { node, incarnation: 1, sequence }
}

fn prepare<V: Variant>(of: TxnId, keys: &[SmallBytes]) -> Prepare<V> {
    let value = Some(SmallBytes::from("new"));
    Prepare {
        txn: of,
        settled_below: of.sequence,
        participants: [HERE, RepositoryId(1)].into_iter().collect(),
        snapshot: V::Snapshot::default(),
        reader: V::Reader::new(of.node, 1, muesli_core::Txn { slot: 1, generation: 1 }),
        strict: false,
        reads: Vec::new().into(),
        writes: keys.iter().map(|key| (SPACE, key.clone(), value.clone())).collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
    }
}

fn asked<V: Variant>(prepare: Prepare<V>) -> Message<V> {
    Message::Prepare(Arc::new(prepare))
}

type Scored = Server<muesli_protocols::score::Snapshots>;

#[test]
fn a_key_written_twice_by_one_transaction_is_out_of_range() {
    let mut server = Scored::new();
    let key = server.key(0);
    let twice = prepare(txn(CLIENT, 1), &[key.clone(), key.clone()]);
    assert_eq!(server.client(asked(twice)), Err(Rejection::Range));
    assert_eq!(server.client(asked(prepare(txn(CLIENT, 2), &[key]))), Ok(()));
    let counted: Vec<_> = server.node.rejections().iter().collect();
    assert_eq!(counted, [("Prepare", Rejection::Range, 1)]);
}

#[test]
#[should_panic(expected = "prepared over a lock")]
fn unjudged_it_would_end_the_node() {
    let mut server = Scored::new();
    let key = server.key(0);
    let message = asked(prepare(txn(CLIENT, 1), &[key.clone(), key]));
    let (from, to) = (Address::coordinator(CLIENT), Address::repository(NodeId(0), HERE));
    server.node.deliver(Envelope { from, to, message }, &mut server.effects);
}

#[test]
fn a_decision_below_the_vote_contradicts_it() {
    let mut server = Scored::new();
    let (key, of) = (server.key(0), txn(CLIENT, 1));
    server.client(asked(prepare(of, std::slice::from_ref(&key)))).unwrap();
    let proposal = server.proposal().expect("it votes yes");
    let commit = |at| decide(of, Decision::Commit(at));
    assert_eq!(server.client(commit(Timestamp(proposal.0 - 1))), Err(Rejection::State));
    assert_eq!(server.client(commit(Timestamp(proposal.0 + 1))), Err(Rejection::Unissued));
    assert_eq!(server.member(commit(Timestamp(proposal.0 - 1))), Err(Rejection::State));
    assert_eq!(server.commit_at(of, proposal), Ok(()));
    assert_eq!(server.get(&key), Some(SmallBytes::from("new")));
}

#[test]
fn a_client_shows_the_votes_that_decide_and_a_member_need_not() {
    let mut server = Scored::new();
    let (key, of) = (server.key(0), txn(CLIENT, 1));
    server.client(asked(prepare(of, std::slice::from_ref(&key)))).unwrap();
    let (here, proposal) = (server.ballot(), server.proposal().unwrap());
    let there = |at| voted(of, THERE, Vote::Yes(at));
    let lower = Timestamp(proposal.0 - 1);
    let shown = |decision: &Decision, ballots: &[RepositoryVote<_>]| {
        let (decision, ballots) = (*decision, ballots.iter().cloned().collect());
        Message::Decide { txn: of, decision, ballots }
    };
    let (commit, abort) = (Decision::Commit(proposal), Decision::Abort(Abort::Abandoned));
    let forged = RepositoryVote { tag: here.tag ^ 1, ..here.clone() };
    let others = voted(txn(CLIENT, 2), THERE, Vote::Yes(lower));
    let nobodys = voted(of, RepositoryId(2), Vote::No(Abort::Locked));
    for ballots in [
        &[][..],
        std::slice::from_ref(&here),
        &[here.clone(), here.clone()],
        &[forged, there(lower)],
        &[here.clone(), others],
        &[nobodys],
    ] {
        assert_eq!(server.client(shown(&commit, ballots)), Err(Rejection::Unproven), "{ballots:?}");
        assert_eq!(server.client(shown(&abort, ballots)), Err(Rejection::Unproven), "{ballots:?}");
    }
    // They decide something else.
    let later = [here.clone(), there(Timestamp(proposal.0 + 1))];
    assert_eq!(server.client(shown(&commit, &later)), Err(Rejection::State));
    assert_eq!(server.client(shown(&abort, &later)), Err(Rejection::State));
    let no = [voted(of, THERE, Vote::No(Abort::Locked))];
    assert_eq!(server.client(shown(&commit, &no)), Err(Rejection::State));
    let mut other = server;
    let mut server = Scored::new();
    server.client(asked(prepare(of, std::slice::from_ref(&key)))).unwrap();
    assert_eq!(server.client(shown(&commit, &[here, there(lower)])), Ok(()));
    assert_eq!(server.get(&key), Some(SmallBytes::from("new")));
    let member = Address::repository(OTHER, THERE);
    assert_eq!(other.hear(Sender::Member, member, shown(&commit, &[])), Ok(()));
    assert_eq!(other.get(&key), Some(SmallBytes::from("new")));
}

#[test]
fn a_decision_that_is_known_is_not_taken_back() {
    let mut server = Scored::new();
    let (first, second) = (txn(CLIENT, 1), txn(CLIENT, 2));
    let keys = [server.key(0), server.key(1)];
    server.client(asked(prepare(first, &keys[..1]))).unwrap();
    server.client(asked(prepare(second, &keys[1..]))).unwrap();
    let proposal = server.proposal().unwrap();
    // It waits for the first one's turn, decided.
    assert_eq!(server.commit_at(second, proposal), Ok(()));
    assert_eq!(server.abort(second), Err(Rejection::State));
}

#[test]
fn time_warped_places_lie_between_what_the_vote_allows() {
    let mut server = Server::<<Bumper as Named>::Variant>::new();
    let (key, of) = (server.key(0), txn(CLIENT, 1));
    server.client(asked(prepare(of, &[key]))).unwrap();
    let turn = server.proposal().expect("it votes yes").turn;
    let at = |version| decide(of, Decision::Commit(BumperPlace { turn, version }));
    assert_eq!(server.client(at(Timestamp(turn.0 + 1))), Err(Rejection::Range));
    assert_eq!(server.client(at(Timestamp::ZERO)), Err(Rejection::State));
    assert_eq!(server.commit_at(of, BumperPlace { turn, version: turn }), Ok(()));
}

#[test]
fn a_far_timestamp_raises_no_clock() {
    let mut server = Scored::new();
    let key = server.key(0);
    let before = server.put(&key, "old");
    let read = |snapshot| {
        let keys = [(SPACE, key.clone())].into_iter().collect();
        Message::Read(ReadRequest { request: 1, snapshot, first: true, reader: (), keys })
    };
    for far in [Timestamp(before.0 + (1 << 20)), Timestamp::FARTHEST, Timestamp::MAX] {
        assert!(server.client(read(far)).is_err(), "{far}");
        let bound = Message::Bound { bound: far, newest: far };
        let to = Address::coordinator(NodeId(0));
        let from = Address::coordinator(CLIENT);
        let envelope = Envelope { from, to, message: bound };
        assert!(server.node.receive(Sender::CLIENT, envelope, &mut server.effects).is_err());
    }
    let mut far = prepare(txn(CLIENT, 1), &[server.key(1)]);
    far.snapshot = Timestamp(u64::MAX - 1);
    assert_eq!(server.client(asked(far)), Err(Rejection::Range));
    let after = server.put(&key, "new");
    assert!(after.0 - before.0 < 1 << 20, "{before} {after}");
    assert_eq!(server.get(&key), Some(SmallBytes::from("new")));
    // A member's word counts, as far as there is room above it.
    let at = Timestamp(after.0 + (1 << 20));
    let member = Address::coordinator(OTHER);
    assert_eq!(server.hear(Sender::Member, member, read(Timestamp::MAX)), Err(Rejection::Range));
    assert_eq!(server.hear(Sender::Member, member, read(at)), Ok(()));
    // And a client's, where it has proven that members have issued as much.
    let next = Timestamp(at.0 + (1 << 20));
    let proven = Sender::Client { issued: next };
    assert_eq!(server.hear(proven, Address::coordinator(CLIENT), read(next)), Ok(()));
    assert!(server.node.issued() >= next);
}

#[test]
fn clients_speak_for_themselves_alone() {
    let mut server = Scored::new();
    let key = server.key(0);
    let foreign = asked(prepare(txn(OTHER, 1), std::slice::from_ref(&key)));
    assert_eq!(server.client(foreign), Err(Rejection::Sender));
    let repository = Address::repository(CLIENT, RepositoryId(1));
    let own = asked(prepare(txn(CLIENT, 1), &[key]));
    assert_eq!(server.hear(Sender::CLIENT, repository, own), Err(Rejection::Sender));
    let low = Message::Watermark { low: Timestamp(1), newest: Timestamp(1) };
    assert_eq!(server.client(low), Err(Rejection::Sender));
    let abort = Decision::Abort(Abort::Abandoned);
    assert_eq!(server.client(decide(txn(OTHER, 9), abort)), Err(Rejection::Sender));
}

#[test]
fn questions_of_clients_leave_nothing() {
    let mut server = Scored::new();
    for sequence in 1..1_000 {
        let ask = Message::Ask { txn: txn(CLIENT, sequence) };
        assert_eq!(server.client(ask), Err(Rejection::Sender));
    }
    assert_eq!(server.remembered(), 0);
}

#[test]
fn a_client_that_settles_nothing_comes_to_an_end_of_its_room() {
    let mut server = Scored::with(Settings { unsettled_max: 10, ..Settings::default() });
    let key = server.key(0);
    let mut rejected = None;
    for sequence in 1..=20 {
        let of = txn(CLIENT, sequence);
        let unsettling = Prepare { settled_below: 1, ..prepare(of, std::slice::from_ref(&key)) };
        rejected = server.client(asked(unsettling)).err().or(rejected);
        let _ = server.abort(of);
    }
    assert_eq!((rejected, server.remembered()), (Some(Rejection::Full), 10));
    // It says that they are settled, and goes on.
    assert_eq!(server.client(asked(prepare(txn(CLIENT, 21), &[key]))), Ok(()));
    assert_eq!(server.remembered(), 0);
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let mut server = Scored::new();
    let keys: Vec<_> = (0..8).map(|number| server.key(number)).collect();
    for (number, key) in keys.iter().enumerate() {
        let client = NodeId(1_000 + number as u32);
        let (from, of) = (Address::coordinator(client), txn(client, 5));
        let message = asked(prepare(of, std::slice::from_ref(key)));
        server.hear(Sender::CLIENT, from, message).unwrap();
        let proposal = server.proposal().unwrap();
        server.commit_at(of, proposal).unwrap();
        server.hear(Sender::CLIENT, from, Message::Settled { txn: txn(client, 6) }).unwrap();
    }
    let known = |server: &Scored| server.node.participants()[0].1.known_coordinators();
    assert_eq!((server.remembered(), known(&server)), (0, 8));
    server.effects.now = Nanos(2 * Settings::default().client_lease.0);
    let low = Message::Watermark { low: Timestamp(1), newest: Timestamp(1) };
    server.hear(Sender::Member, Address::coordinator(OTHER), low).unwrap();
    assert_eq!(known(&server), 0);
}

#[test]
fn a_number_that_comes_again_with_a_smaller_incarnation_is_told() {
    let mut server = Scored::new();
    let key = server.key(0);
    let of = |incarnation| TxnId { node: CLIENT, incarnation, sequence: 1 };
    server.client(asked(prepare(of(7), std::slice::from_ref(&key)))).unwrap();
    server.effects.list.clear();
    server.client(asked(prepare(of(3), &[key]))).unwrap();
    let said = server.effects.list.iter().find_map(|effect| match effect {
        Effect::Send { envelope, .. } => Some(&envelope.message),
        _ => None,
    });
    let Some(Message::Vote { vote: Vote::No(reason), txn, .. }) = said else {
        panic!("{said:?}");
    };
    assert_eq!((*reason, *txn), (Abort::Superseded, of(3)));
}

/// A protocol of the family, by its variant.
trait Named: Protocol {
    type Variant: Variant;
}

impl<V: Variant> Named for TwoPhase<V> {
    type Variant = V;
}

const _: fn() = || {
    fn is_named<P: Named>() {}
    is_named::<Score>();
};

/// Whether a reader that needs number nine of the repository, by whoever is named, gets its answer.
fn is_answered(server: &mut Server<gmu::Vectors>, by: TxnId) -> bool {
    let mut clock = VectorClock::default();
    clock.set(HERE, Number { counter: 9, by });
    let snapshot = gmu::Reads::from_clock(clock);
    let keys = [(SPACE, server.key(0))].into_iter().collect();
    let read = ReadRequest { request: 1, snapshot, first: true, reader: (), keys };
    server.effects.list.clear();
    let member = Address::coordinator(OTHER);
    server.hear(Sender::Member, member, Message::Read(read)).unwrap();
    let is_answer = |effect: &Effect<Message<_>, _>| match effect {
        Effect::Send { envelope, .. } => matches!(envelope.message, Message::ReadReply(_)),
        _ => false,
    };
    server.effects.list.iter().any(is_answer)
}

/// A server that has voted on a write of the key, with number one, and waits for the end.
fn with_a_vote(rules: &gmu::Rules) -> Server<gmu::Vectors> {
    let mut server = Server::<gmu::Vectors>::with_rules(Settings::default(), rules);
    let prepare = Prepare {
        txn: txn(OTHER, 1),
        settled_below: 1,
        participants: [HERE, THERE].into_iter().collect(),
        snapshot: gmu::Reads::default(),
        reader: (),
        strict: false,
        reads: Vec::new().into(),
        writes: [(SPACE, server.key(0), Some(SmallBytes::from("new")))].into_iter().collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
    };
    let member = Address::coordinator(OTHER);
    server.hear(Sender::Member, member, Message::Prepare(Arc::new(prepare))).unwrap();
    server
}

#[test]
fn a_number_that_nobody_was_given_keeps_no_reader_waiting() {
    let answered = |rules: gmu::Rules| {
        let mut server = Server::<gmu::Vectors>::with_rules(Settings::default(), &rules);
        // Members have issued as large a number, elsewhere.
        is_answered(&mut server, txn(OTHER, 7))
    };
    assert!(answered(gmu::Rules::default()));
    assert!(!answered(gmu::Rules::broken(gmu::GmuSwitch::WaitsForQueued)));
}

#[test]
fn a_made_up_number_lets_no_reader_overtake_those_below_it() {
    let mut server = with_a_vote(&gmu::Rules::default());
    assert!(!is_answered(&mut server, txn(OTHER, 1)), "by whoever has voted");
    assert!(!is_answered(&mut server, txn(CLIENT, 7)), "by nobody");
    // Once that one has aborted, nothing is below.
    let txn = txn(OTHER, 1);
    let (decision, ballots) = (Decision::Abort(Abort::Abandoned), Mostly::new());
    server.member(Message::Decide { txn, decision, ballots }).unwrap();
    assert!(is_answered(&mut server, TxnId { node: CLIENT, ..txn }));
}

/// Under encounter-time locking a delete needs its lock first, too.
#[test]
fn at_the_limit_of_memory_a_delete_has_its_lock_and_commits() {
    let memory = Memory::new(0, u64::MAX >> 1);
    memory.report(Held::default(), Held { all: 1, old: 0 });
    let mut server = Server::<NewestVersions>::with(Settings { memory, ..Settings::default() });
    let reader = Reader::new(CLIENT, 1, muesli_core::Txn { slot: 1, generation: 1 });
    for (number, value, is_refused) in [(0, None, false), (1, Some("new".into()), true)] {
        let key = server.key(number);
        let (request, space) = (u64::from(number), SPACE);
        server.effects.list.clear();
        server
            .client(Message::Lock(LockRequest { request, reader, space, key: key.clone() }))
            .unwrap();
        let given = server.effects.list.iter().any(|effect| match effect {
            Effect::Send { envelope, .. } => {
                matches!(envelope.message, Message::Locked { refused: None, .. })
            }
            _ => false,
        });
        assert!(given, "key {number}");
        let of = txn(CLIENT, u64::from(number) + 1);
        let mut prepare = prepare(of, &[key]);
        prepare.writes[0].2 = value;
        server.client(asked(prepare)).unwrap();
        let out_of_memory = server.ballot().vote == Vote::No(Abort::OutOfMemory);
        assert_eq!(out_of_memory, is_refused, "key {number}");
    }
}

#[test]
fn locks_of_a_running_transaction_have_an_end() {
    let limits = Limits { transaction_bytes: 400, ..Limits::default() };
    let mut server = Server::<NewestVersions>::with(Settings { limits, ..Settings::default() });
    let reader = Reader::new(CLIENT, 1, muesli_core::Txn { slot: 1, generation: 1 });
    for number in 0..100 {
        let (request, key) = (u64::from(number), server.key(number));
        let asked = LockRequest { request, reader, space: SPACE, key };
        server.client(Message::Lock(asked)).unwrap();
    }
    let refused = server.effects.list.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.message {
            Message::Locked { refused, .. } => *refused,
            _ => None,
        },
        _ => None,
    });
    // Keys of four bytes, which count 20.
    assert_eq!(refused.collect::<Vec<_>>(), [Abort::TransactionTooLarge; 80]);
}

/// Requests that wait for a lock count by their keys.
#[test]
fn requests_that_wait_for_a_lock_have_an_end() {
    let limits = Limits { transaction_bytes: 400, ..Limits::default() };
    let mut server = Server::<NewestVersions>::with(Settings { limits, ..Settings::default() });
    let key = server.key(0);
    for number in 0..100 {
        let slot = muesli_core::Txn { slot: number, generation: 1 };
        let (request, reader) = (u64::from(number), Reader::new(CLIENT, 1, slot));
        let asked = LockRequest { request, reader, space: SPACE, key: key.clone() };
        server.client(Message::Lock(asked)).unwrap();
    }
    // The first one has it, and 20 of 20 bytes wait.
    let waiting = server.node.participants()[0].1.encounter_locks();
    assert_eq!(waiting, (1, 20));
    let refused = server.effects.list.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => match &envelope.message {
            Message::Locked { refused, .. } => *refused,
            _ => None,
        },
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [Abort::Overloaded; 79]);
}
