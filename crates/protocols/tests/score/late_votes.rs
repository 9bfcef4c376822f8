//! A client commits nothing by votes that come after it has given up: meanwhile the others may have
//! ended its transaction, and who refused may have forgotten that.

use std::sync::Arc;

use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Environment, Nanos, Node, NodeId,
    Outcome, RepositoryId, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Timestamp,
    TxnId, TxnOptions,
};
use muesli_protocols::score::{FamilySwitch, Score, Snapshots, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_protocols::two_phase::message::{Message, Vote};

const CLIENT: NodeId = NodeId(77);
const SERVERS: [NodeId; 2] = [NodeId(0), NodeId(1)];

/// A client of two servers, each of which holds all keys, in the middle of a commit.
struct Client {
    node: Node<Score>,
    effects: Effects<Score>,
    txn: TxnId,
}

impl Client {
    fn commits(switches: &Switches) -> Client {
        let catalog = Catalog::new(&SERVERS, 2, &SERVERS).unwrap().with_visiting_coordinators();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let settings = Arc::new(Settings::default());
        let mut node = Node::new(CLIENT, 1, Arc::new(catalog), settings, switches);
        let mut effects =
            Effects::new(Environment { now: Nanos::from_millis(1), ..Environment::default() });
        let txn = node.begin(TxnOptions::default(), &mut effects).unwrap();
        node.put(txn, SpaceId(0), "k".into(), Some(SmallBytes::from("v")), &mut effects).unwrap();
        assert!(matches!(node.commit(txn, &mut effects), Step::Wait(_)));
        let asked = messages_of(&mut effects).into_iter().find_map(|message| match message {
            Message::Prepare(prepare) => Some(prepare.txn),
            _ => None,
        });
        Client { node, effects, txn: asked.expect("it asks for votes") }
    }

    /// A server votes at this time; how the client decides then.
    fn receives(&mut self, millis: u64, repository: u16, vote: Vote<Snapshots>) -> Option<bool> {
        self.effects.now = Nanos::from_millis(millis);
        let (repository, txn) = (RepositoryId(repository), self.txn);
        let from = Address::repository(SERVERS[usize::from(repository.0)], repository);
        let committed = Timestamp::ZERO;
        let message = Message::Vote { txn, repository, vote, committed, about: None, tag: 0 };
        let envelope = Envelope { from, to: Address::coordinator(CLIENT), message };
        self.node.receive(Sender::Member, envelope, &mut self.effects).unwrap();
        messages_of(&mut self.effects).into_iter().find_map(|message| match message {
            Message::Decide { decision, .. } => Some(matches!(decision, Decision::Commit(_))),
            _ => None,
        })
    }

    /// The time passes; how many are asked for their votes.
    fn sweeps(&mut self, millis: u64) -> usize {
        self.effects.now = Nanos::from_millis(millis);
        self.node.timer(muesli_core::Role::Coordinator, 1, &mut self.effects);
        let all = messages_of(&mut self.effects);
        all.iter().filter(|it| matches!(it, Message::Prepare(_))).count()
    }

    fn has_given_up(&mut self) -> bool {
        let given_up =
            |effect: &Effect<_, _>| matches!(effect, Effect::Complete { result: Err(_), .. });
        self.effects.list.iter().any(given_up)
    }
}

fn messages_of(effects: &mut Effects<Score>) -> Vec<Message<Snapshots>> {
    let sent = effects.list.iter().filter_map(|effect| match effect {
        Effect::Send { envelope, .. } => Some(envelope.message.clone()),
        _ => None,
    });
    let sent = sent.collect();
    effects.list.retain(|effect| !matches!(effect, Effect::Send { .. }));
    sent
}

fn yes(at: u64) -> Vote<Snapshots> {
    Vote::Yes(Timestamp::new(at, RepositoryId(0)))
}

#[test]
fn votes_count_until_the_client_has_given_up() {
    let give_up = Settings::default().give_up_after.as_millis();
    let mut client = Client::commits(&Switches::default());
    assert_eq!(client.receives(2, 0, yes(1)), None);
    assert_eq!(client.receives(give_up, 1, yes(2)), Some(true));

    let mut late = Client::commits(&Switches::default());
    assert_eq!(late.receives(2, 0, yes(1)), None);
    assert_eq!(late.sweeps(give_up - 1), 1, "whose vote is missing");
    assert_eq!(late.sweeps(give_up + 1_000), 2, "all: to hear how it ended");
    assert!(late.has_given_up());
    // The second one had refused, the first one has aborted, and the second one has forgotten that.
    assert_eq!(late.receives(give_up + 2_000, 1, yes(2)), None);
    assert_eq!(late.node.outcome(late.txn), Outcome::NotKnown(muesli_core::Doubt::UnderWay));
    let aborted = Vote::Decided(Decision::Abort(Abort::Abandoned));
    assert_eq!(late.receives(give_up + 3_000, 0, aborted), Some(false));
    assert_eq!(late.node.outcome(late.txn), Outcome::Aborted(Abort::Abandoned));

    // All have committed by themselves meanwhile.
    let mut committed = Client::commits(&Switches::default());
    assert_eq!(committed.receives(2, 0, yes(1)), None);
    committed.sweeps(give_up + 1_000);
    let at = Timestamp::new(2, RepositoryId(0));
    assert_eq!(
        committed.receives(give_up + 2_000, 1, Vote::Decided(Decision::Commit(at))),
        Some(true)
    );
    assert!(matches!(committed.node.outcome(committed.txn), Outcome::Committed(_)));
}

/// The mistake: a seed of `muesli sim append --protocol rr` had copies of a key that differed.
#[test]
fn without_the_rule_it_commits_what_others_have_aborted() {
    let give_up = Settings::default().give_up_after.as_millis();
    let mut late = Client::commits(&Switches::broken(FamilySwitch::DecidesInTime));
    assert_eq!(late.receives(2, 0, yes(1)), None);
    late.sweeps(give_up + 1_000);
    assert_eq!(late.receives(give_up + 2_000, 1, yes(2)), Some(true));
}

/// A repository that may have forgotten a transaction says so: that is a refusal for who asked
/// once, and for nobody else.
#[test]
fn what_may_be_forgotten_is_refused_only_where_it_was_asked_once() {
    let give_up = Settings::default().give_up_after.as_millis();
    let forgotten = || Vote::No(Abort::Forgotten);
    let mut once = Client::commits(&Switches::default());
    assert_eq!(once.receives(2, 0, forgotten()), Some(false));
    let failed = once.effects.list.iter().find_map(|effect| match effect {
        Effect::Complete { result: Err(failure), .. } => Some(failure.clone()),
        _ => None,
    });
    let failure = failed.expect("its client is told");
    assert!(failure.is_retryable(), "{failure}");

    let mut twice = Client::commits(&Switches::default());
    assert_eq!(twice.sweeps(give_up - 1), 2, "nobody has answered");
    assert_eq!(twice.receives(give_up - 1, 0, forgotten()), None);
    assert!(twice.has_given_up());
    assert_eq!(twice.node.outcome(twice.txn), Outcome::NotKnown(muesli_core::Doubt::Forgotten));
    assert_eq!(twice.sweeps(give_up + 1_000), 0, "it is over for this client");

    let mut late = Client::commits(&Switches::default());
    assert_eq!(late.receives(give_up + 1, 0, forgotten()), None);
    assert_eq!(late.node.outcome(late.txn), Outcome::NotKnown(muesli_core::Doubt::Forgotten));
}

/// The mistake: a commit that is forgotten is told to have been aborted.
#[test]
fn without_that_rule_it_tells_an_abort_of_what_may_have_committed() {
    let give_up = Settings::default().give_up_after.as_millis();
    let mut twice = Client::commits(&Switches::broken(FamilySwitch::DoubtsForgotten));
    assert_eq!(twice.sweeps(give_up - 1), 2);
    assert_eq!(twice.receives(give_up - 1, 0, Vote::No(Abort::Forgotten)), Some(false));
}
