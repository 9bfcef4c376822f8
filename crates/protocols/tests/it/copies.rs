//! A client that tells the copies of a key different things: they never differ for others.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::parts::versions::Versions;
use muesli_core::{
    Address, Catalog, Decision, Effect, Effects, Envelope, Nanos, Node, NodeId, Protocol,
    Rejection, RepositoryId, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Timestamp,
    TxnId,
};
use muesli_protocols::granola::message::{
    Agreement, Install, Message as Said, Part, Request, Shown, Task, TimestampVote as Vouched,
};
use muesli_protocols::granola::{Granola, Ordering, Rules};
use muesli_protocols::score::{Score, Snapshots};
use muesli_protocols::two_phase::message::{Message, Mostly, Prepare, RepositoryVote, Vote};

const SPACE: SpaceId = SpaceId(0);
const CLIENT: NodeId = NodeId(77);
pub(super) const BOTH: [RepositoryId; 2] = [RepositoryId(0), RepositoryId(1)];
const LONG: Nanos = Nanos::from_millis(1_000);

type Timers = BTreeMap<(Nanos, usize, Role, u32), ()>;

/// Two nodes, each with a copy of all keys, and what they say to a client.
pub(super) struct Pair<P: Protocol> {
    pub(super) nodes: [Node<P>; 2],
    rules: P::Rules,
    settings: Arc<Settings>,
    effects: [Effects<P>; 2],
    timers: Timers,
    now: Nanos,
    /// What the client was told.
    pub(super) told: Vec<P::Message>,
    /// Messages between the two nodes are lost.
    pub(super) cut: bool,
}

impl<P: Protocol> Pair<P> {
    fn new(rules: &P::Rules) -> Pair<P> {
        Pair::with(rules, Settings::default())
    }

    pub(super) fn with(rules: &P::Rules, settings: Settings) -> Pair<P> {
        let homes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&homes, 2, &homes).unwrap().with_visiting_coordinators();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let issuer = Some(Issuer::new([7; 16]));
        let settings = Arc::new(Settings { issuer, ..settings });
        let mut pair = Pair {
            nodes: homes.map(|id| Node::new(id, 1, catalog.clone(), settings.clone(), rules)),
            effects: [Effects::default(), Effects::default()],
            rules: rules.clone(),
            settings: settings.clone(),
            timers: Timers::new(),
            now: Nanos(0),
            told: Vec::new(),
            cut: false,
        };
        for place in 0..2 {
            pair.nodes[place].start(&mut pair.effects[place]);
        }
        pair.perform();
        pair
    }

    /// One of the nodes ends, and starts again with a checkpoint of what it was.
    pub(super) fn restart(&mut self, place: usize) {
        let before = &self.nodes[place];
        let (id, catalog) = (NodeId(place as u32), before.catalog().clone());
        let settings = self.settings.clone();
        let mut node = Node::new(id, 2, catalog, settings, &self.rules);
        let mut checkpoint = before.begin_checkpoint(&self.effects[place]).expect("it has them");
        let mut piece = Vec::new();
        while before.checkpoint_piece(&mut checkpoint, 1 << 10, &mut piece) {
            node.restore(&piece, &mut self.effects[place]).expect("its own");
            piece.clear();
        }
        node.start(&mut self.effects[place]);
        self.nodes[place] = node;
        self.timers.retain(|(_, of, ..), ()| *of != place);
        self.perform();
    }

    fn perform(&mut self) {
        while let Some(place) = (0..2).find(|place| !self.effects[*place].list.is_empty()) {
            for effect in std::mem::take(&mut self.effects[place].list) {
                match effect {
                    Effect::Send { envelope, .. } => self.carry(envelope),
                    Effect::SetTimer { role, timer, after } => {
                        self.timers.insert((self.now + after, place, role, timer), ());
                    }
                    Effect::Complete { .. } | Effect::Log { .. } => {}
                }
            }
        }
    }

    fn carry(&mut self, envelope: Envelope<P::Message>) {
        let to = envelope.to.node.0 as usize;
        if to >= 2 {
            self.told.push(envelope.message);
        } else if envelope.from.node == envelope.to.node {
            self.nodes[to].deliver(envelope, &mut self.effects[to]);
        } else if !self.cut {
            // Who was told of other participants does not listen to them.
            let _ = self.nodes[to].receive(Sender::Member, envelope, &mut self.effects[to]);
        }
    }

    pub(super) fn wait(&mut self, length: Nanos) {
        let until = self.now + length;
        while let Some((&key, ())) = self.timers.first_key_value().filter(|it| it.0.0 <= until) {
            self.timers.remove(&key);
            let (at, place, role, timer) = key;
            self.now = self.now.max(at);
            self.effects.iter_mut().for_each(|effects| effects.now = self.now);
            self.nodes[place].timer(role, timer, &mut self.effects[place]);
            self.perform();
        }
        self.now = until;
        self.effects.iter_mut().for_each(|effects| effects.now = until);
    }

    /// The client says something to one of them.
    pub(super) fn say(&mut self, place: usize, message: P::Message) -> Result<(), Rejection> {
        let from = Address::coordinator(CLIENT);
        let to = Address::repository(NodeId(place as u32), BOTH[place]);
        let envelope = Envelope { from, to, message };
        // With the proof of what both have told it.
        let issued = self.nodes[0].issued().max(self.nodes[1].issued());
        let client = Sender::Client { issued };
        let taken = self.nodes[place].receive(client, envelope, &mut self.effects[place]);
        self.perform();
        taken
    }
}

/// The newest value of the key.
fn newest(versions: Option<&Versions>) -> Option<SmallBytes> {
    let versions = versions?;
    versions.newest(versions.find(&key())?).value.cloned()
}

pub(super) fn txn() -> TxnId {
    TxnId { node: CLIENT, incarnation: 1, sequence: 1 }
}

fn key() -> SmallBytes {
    SmallBytes::from("key")
}

impl Pair<Score> {
    /// The last votes of both that the client was told.
    fn ballots(&self) -> BTreeMap<RepositoryId, RepositoryVote<Snapshots>> {
        let votes = self.told.iter().filter_map(|message| match message.clone() {
            Message::Vote { repository, vote, about, tag, .. } => {
                Some((repository, RepositoryVote { repository, vote, about, tag }))
            }
            _ => None,
        });
        votes.collect()
    }

    pub(super) fn prepare(&mut self, place: usize, participants: &[RepositoryId], value: &str) {
        self.prepare_at(place, (txn(), participants), Timestamp::ZERO, value);
    }

    /// Asks one of them for its vote on a transaction that read at `snapshot`.
    pub(super) fn prepare_at(
        &mut self,
        place: usize,
        (txn, participants): (TxnId, &[RepositoryId]),
        snapshot: Timestamp,
        value: &str,
    ) {
        let prepare = Prepare {
            txn,
            settled_below: txn.sequence,
            participants: participants.iter().copied().collect(),
            snapshot,
            reader: (),
            strict: false,
            reads: Vec::new().into(),
            writes: [(SPACE, key(), Some(SmallBytes::from(value)))].into_iter().collect(),
            scans: Vec::new(),
            delayed: Vec::new(),
            extra: None,
        };
        self.say(place, Message::Prepare(Arc::new(prepare))).expect("a prepare as others");
    }

    /// What the client shows one of them: that its transaction commits, by all votes.
    pub(super) fn commit(&mut self, place: usize) -> Result<(), Rejection> {
        let ballots: Mostly<_> = self.ballots().into_values().collect();
        let proposal = |ballot: &RepositoryVote<Snapshots>| match ballot.vote {
            Vote::Yes(at) => at,
            ref other => panic!("{other:?}"),
        };
        let at = ballots.iter().map(proposal).max().expect("votes");
        let decision = Decision::Commit(at);
        self.say(place, Message::Decide { txn: txn(), decision, ballots })
    }

    pub(super) fn found(&self) -> [Option<SmallBytes>; 2] {
        [0, 1].map(|place| newest(self.nodes[place].participants()[0].1.versions(SPACE)))
    }
}

#[test]
fn copies_that_were_told_alike_commit_by_what_the_client_shows() {
    let mut pair = Pair::<Score>::new(&Default::default());
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    assert_eq!([pair.commit(0), pair.commit(1)], [Ok(()), Ok(())]);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

#[test]
fn copies_that_were_told_different_values_take_none() {
    let mut pair = Pair::<Score>::new(&Default::default());
    pair.prepare(0, &BOTH, "one");
    pair.prepare(1, &BOTH, "another");
    assert_eq!([pair.commit(0), pair.commit(1)], [Err(Rejection::Unproven); 2]);
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn one_copy_alone_is_not_written() {
    let mut pair = Pair::<Score>::new(&Default::default());
    pair.prepare(0, &BOTH[..1], "new");
    assert_eq!(pair.commit(0), Err(Rejection::Unproven));
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn the_end_of_another_transaction_of_that_name_is_not_the_end_of_this_one() {
    let mut pair = Pair::<Score>::new(&Default::default());
    pair.prepare(0, &BOTH, "new");
    pair.prepare(1, &BOTH[1..], "new");
    assert_eq!([pair.commit(0), pair.commit(1)], [Err(Rejection::Unproven); 2]);
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn a_client_that_settles_too_early_does_not_part_the_copies() {
    let mut pair = Pair::<Score>::new(&Default::default());
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    assert_eq!(pair.commit(0), Ok(()));
    let txn = TxnId { sequence: 2, ..txn() };
    assert_eq!(pair.say(0, Message::Settled { txn }), Ok(()));
    pair.wait(LONG);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

#[test]
fn a_copy_that_was_away_for_a_while_hears_of_a_commit_that_was_settled() {
    let mut pair = Pair::<Score>::new(&Default::default());
    (0..2).for_each(|place| pair.prepare(place, &BOTH, "new"));
    pair.cut = true;
    assert_eq!(pair.commit(0), Ok(()));
    // Another life, and an earlier transaction once more: it is not told that it is refused.
    let txn = TxnId { incarnation: 2, ..txn() };
    assert_eq!(
        pair.say(0, Message::Settled { txn: TxnId { incarnation: 1, sequence: 2, ..txn } }),
        Ok(())
    );
    assert_eq!(pair.say(0, Message::Settled { txn }), Ok(()));
    pair.wait(Nanos(Settings::default().snapshot_lease.0 / 2));
    pair.prepare(0, &BOTH, "new");
    let end = pair.ballots()[&BOTH[0]].vote.clone();
    assert!(matches!(end, Vote::Decided(Decision::Commit(_))), "{end:?}");
    pair.cut = false;
    pair.wait(LONG);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

impl Pair<Granola> {
    /// Asks one of them to write, as a transaction of so many.
    fn ask(&mut self, place: usize, participants: &[RepositoryId], value: &str, settled: u64) {
        let writes = vec![(SPACE, key(), Some(SmallBytes::from(value)))];
        let install = Install { writes, ..Install::default() };
        let partition = self.nodes[0].catalog().partition(SPACE, &key());
        let task = Task::Install(Box::new(install));
        let part = Part { partition, owners: None, task };
        let request = Request {
            settled_below: settled,
            agreement: Agreement::Coordinated,
            ..Request::new(
                txn(),
                participants.iter().copied().collect(),
                [part].into_iter().collect(),
            )
        };
        self.say(place, Said::Request(Arc::new(request))).expect("a request as others");
    }

    /// The votes that the client was told.
    fn shown(&self) -> Vec<Shown> {
        let votes = self.told.iter().filter_map(|message| match message.clone() {
            Said::Vote { repository, ballot, about, tag, .. } => {
                Some(Shown { repository, ballot, about, tag })
            }
            _ => None,
        });
        votes.collect()
    }

    fn decide(&mut self, place: usize, ballot: Vouched) -> Result<(), Rejection> {
        let (txn, shown) = (txn(), self.shown());
        self.say(place, Said::Decide { txn, ballot, shown })
    }

    /// The higher one of the proposals that the client was told.
    fn place(&self) -> Vouched {
        let proposal = |shown: &Shown| match shown.ballot {
            Vouched::Commit(at) => at,
            ref other => panic!("{other:?}"),
        };
        Vouched::Commit(self.shown().iter().map(proposal).max().expect("votes"))
    }

    fn found(&self) -> [Option<SmallBytes>; 2] {
        [0, 1].map(|place| newest(self.nodes[place].participants()[0].1.spaces().get(SPACE)))
    }
}

#[test]
fn one_round_copies_that_were_asked_for_different_values_take_none() {
    for rules in [Rules::default(), Rules::locking(), Rules::out_of_order()] {
        let mut pair = Pair::<Granola>::new(&rules);
        (0..2).for_each(|place| pair.ask(place, &BOTH, "new", 1));
        pair.wait(LONG);
        assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
        let mut pair = Pair::<Granola>::new(&rules);
        pair.ask(0, &BOTH, "one", 1);
        pair.ask(1, &BOTH, "another", 1);
        pair.wait(LONG);
        assert_eq!(pair.found(), [None, None]);
    }
}

#[test]
fn a_master_that_is_a_client_shows_the_votes() {
    let mut pair = Pair::<Granola>::new(&Rules::sinfonia());
    (0..2).for_each(|place| pair.ask(place, &BOTH, "new", 1));
    let place = pair.place();
    let votes = std::mem::take(&mut pair.told);
    assert_eq!(pair.decide(0, place.clone()), Err(Rejection::Unproven), "no votes");
    pair.told = votes;
    let Vouched::Commit(at) = place else { unreachable!("a place") };
    let later = Vouched::Commit(Timestamp(at.0 + 1));
    assert!(pair.decide(0, later).is_err(), "the votes decide something else");
    assert_eq!(pair.decide(1, Vouched::Conflict), Err(Rejection::Unproven), "nobody said so");
    assert_eq!(pair.decide(0, place), Ok(()));
    assert_eq!(pair.decide(1, Vouched::Conflict), Err(Rejection::Unproven), "nobody said so");
    pair.wait(LONG);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

#[test]
fn copies_that_a_client_asked_for_different_values_do_not_believe_it_that_both_voted() {
    let mut pair = Pair::<Granola>::new(&Rules::sinfonia());
    pair.ask(0, &BOTH, "one", 1);
    pair.ask(1, &BOTH, "another", 1);
    let place = pair.place();
    assert_eq!([0, 1].map(|it| pair.decide(it, place.clone())), [Err(Rejection::Unproven); 2]);
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn a_client_that_settles_too_early_does_not_part_copies_that_voted() {
    for rules in [Rules::default(), Rules::sinfonia()] {
        let mut pair = Pair::<Granola>::new(&rules);
        pair.ask(0, &BOTH, "new", 1);
        pair.cut = true;
        pair.ask(1, &BOTH, "new", 1);
        // Without a master, the second one has both votes; the vote of its own is lost.
        let done = if rules.ordering == Ordering::Master { 0 } else { 1 };
        if rules.ordering == Ordering::Master {
            assert_eq!(pair.decide(0, pair.place()), Ok(()));
        }
        pair.wait(Nanos::from_millis(1));
        assert!(pair.found()[done].is_some() && pair.found()[1 - done].is_none());
        // A later request says that it is settled.
        let later = TxnId { sequence: 9, ..txn() };
        let part = Part { partition: 0, owners: None, task: Task::Names };
        let request = Request {
            settled_below: 9,
            read_only: true,
            ..Request::new(later, [BOTH[done]].into_iter().collect(), [part].into_iter().collect())
        };
        pair.say(done, Said::Request(Arc::new(request))).expect("a reader");
        pair.cut = false;
        pair.wait(LONG);
        let found = pair.found();
        assert_eq!(found[0], found[1], "{rules:?}");
        assert!(found[0].is_some());
    }
}

#[test]
fn what_is_written_names_all_that_hold_it() {
    let mut pair = Pair::<Granola>::new(&Rules::default());
    let install = Install { writes: vec![(SPACE, key(), None)], ..Install::default() };
    let partition = pair.nodes[0].catalog().partition(SPACE, &key());
    let part = Part { partition, owners: None, task: Task::Install(Box::new(install)) };
    let request =
        Request::new(txn(), [BOTH[0]].into_iter().collect(), [part].into_iter().collect());
    let said = Said::Request(Arc::new(request));
    assert_eq!(pair.say(0, said), Err(Rejection::Catalog));
}
