//! What is asked of messages from other processes before they touch any state.

use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::parts::locator::Static;
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Node, NodeId, Rejection,
    RepositoryId, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Step, Timestamp, TxnId,
    TxnOptions, Wire,
};
use muesli_protocols::two_phase::message::{Message, Mostly, Prepare, RepositoryVote, Vote};
use muesli_protocols::two_phase::{ReaderBounds as _, TwoPhase, Variant};

pub const SPACE: SpaceId = SpaceId(0);
pub const CLIENT: NodeId = NodeId(77);
pub const OTHER: NodeId = NodeId(1);
pub const HERE: RepositoryId = RepositoryId(0);
pub const THERE: RepositoryId = RepositoryId(1);

/// A node with one of two repositories, and what it says.
pub struct Server<V: Variant> {
    pub node: Node<TwoPhase<V>>,
    pub effects: Effects<TwoPhase<V>>,
}

impl<V: Variant> Server<V> {
    pub fn new() -> Server<V> {
        Server::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Server<V> {
        Server::with_switches(settings, &V::Switches::default())
    }

    pub fn with_switches(settings: Settings, switches: &V::Switches) -> Server<V> {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap().with_visiting_coordinators();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let settings = Arc::new(Settings { issuer: Some(issuer()), ..settings });
        let mut node = Node::new(NodeId(0), 1, Arc::new(catalog), settings, switches);
        let mut effects = Effects::default();
        node.start(&mut effects);
        effects.list.clear();
        Server { node, effects }
    }

    pub fn receive_from(
        &mut self,
        sender: Sender,
        from: Address,
        message: Message<V>,
    ) -> Result<(), Rejection> {
        let to = Address::repository(NodeId(0), HERE);
        self.node.receive(sender, Envelope { from, to, message }, &mut self.effects)
    }

    pub fn client(&mut self, message: Message<V>) -> Result<(), Rejection> {
        self.receive_from(Sender::CLIENT, Address::coordinator(CLIENT), message)
    }

    pub fn member(&mut self, message: Message<V>) -> Result<(), Rejection> {
        self.receive_from(Sender::Member, Address::repository(OTHER, RepositoryId(1)), message)
    }

    pub fn remembered(&self) -> usize {
        self.node.participants()[0].1.remembered()
    }

    /// Some key of the repository that is here.
    pub fn key(&self, number: u32) -> SmallBytes {
        let key = |number: u32| SmallBytes::new(&number.to_be_bytes());
        let catalog = self.node.catalog();
        let here = |key: &SmallBytes| Static.holds(HERE, catalog.partition(SPACE, key), catalog);
        (0..).map(key).filter(here).nth(number as usize).unwrap()
    }

    /// What the node's own client finds.
    pub fn get(&mut self, key: &SmallBytes) -> Option<SmallBytes> {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let Step::Done(Ok(found)) = self.node.get(txn, SPACE, key, &mut self.effects) else {
            panic!("it is here")
        };
        let _ = self.node.commit(txn, &mut self.effects);
        found
    }

    pub fn put(&mut self, key: &SmallBytes, value: &str) -> Timestamp {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let value = Some(SmallBytes::from(value));
        self.node.put(txn, SPACE, key.clone(), value, &mut self.effects).unwrap();
        match self.node.commit(txn, &mut self.effects) {
            Step::Done(Ok(committed)) => committed.at,
            other => panic!("{other:?}"),
        }
    }

    /// The vote that was said last, as it is shown to others.
    pub fn ballot(&self) -> RepositoryVote<V> {
        let sent = self.effects.list.iter().rev();
        let votes = sent.filter_map(|effect| match effect {
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
    pub fn commit_at(&mut self, of: TxnId, at: V::Place) -> Result<(), Rejection> {
        let ballot = self.ballot();
        let there = voted(of, THERE, ballot.vote.clone());
        let (decision, ballots) = (Decision::Commit(at), Mostly::from_vec(vec![ballot, there]));
        let message = Message::Decide { txn: of, decision, ballots };
        self.receive_from(Sender::CLIENT, Address::coordinator(of.node), message)
    }

    /// A client says that its transaction is aborted, and shows the vote of no.
    pub fn abort(&mut self, of: TxnId) -> Result<(), Rejection> {
        let decision = Decision::Abort(Abort::Abandoned);
        let ballots = Mostly::from_buf([voted(of, THERE, Vote::No(Abort::Locked))]);
        self.client(Message::Decide { txn: of, decision, ballots })
    }

    /// The proposal in the vote that was said last.
    pub fn proposal(&self) -> Option<V::Yes> {
        let sent = self.effects.list.iter().rev();
        sent.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(&envelope.message),
            _ => None,
        })
        .find_map(|message| match message {
            Message::Vote { vote: Vote::Yes(yes), .. } => Some(yes.clone()),
            _ => None,
        })
    }
}

pub fn issuer() -> Issuer {
    Issuer::new([7; 16])
}

/// What a member has said of a vote.
pub fn voted<V: Variant>(txn: TxnId, repository: RepositoryId, vote: Vote<V>) -> RepositoryVote<V> {
    let mut bytes = Vec::new();
    txn.encode(&mut bytes);
    repository.encode(&mut bytes);
    vote.encode(&mut bytes);
    bytes.push(0); // Keys have no copies.
    RepositoryVote { repository, vote, about: None, tag: issuer().vouch(&bytes) }
}

pub fn decide<V: Variant>(txn: TxnId, decision: Decision<V::Place>) -> Message<V> {
    Message::Decide { txn, decision, ballots: Mostly::new() }
}

pub fn txn(node: NodeId, sequence: u64) -> TxnId {
    TxnId { node, incarnation: 1, sequence }
}

pub fn prepare<V: Variant>(of: TxnId, keys: &[SmallBytes]) -> Prepare<V> {
    let value = Some(SmallBytes::from("new"));
    Prepare {
        txn: of,
        settled_below: of.sequence,
        participants: [HERE, RepositoryId(1)].into_iter().collect(),
        snapshot: V::Snapshot::default(),
        reader: V::Reader::new(
            of.node,
            1,
            muesli_core::Txn { slot: 1, generation: 1 },
            muesli_core::Nanos(0),
        ),
        strict: false,
        reads: Vec::new().into(),
        writes: keys.iter().map(|key| (SPACE, key.clone(), value.clone())).collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
        leaving: Default::default(),
        arriving: Default::default(),
    }
}

pub fn asked<V: Variant>(prepare: Prepare<V>) -> Message<V> {
    Message::Prepare(Arc::new(prepare))
}

pub type Scored = Server<muesli_protocols::score::Snapshots>;
