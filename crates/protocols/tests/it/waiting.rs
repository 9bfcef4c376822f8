//! Reads that wait for a transaction to end: a repository keeps so many and no more, and whoever
//! was not kept asks again.

use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Node, NodeId, RepositoryId,
    Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Timestamp, TxnId,
};
use muesli_protocols::score::{Score, Snapshots};
use muesli_protocols::two_phase::message::{Message, Prepare, ReadRequest, Vote};

const SPACE: SpaceId = SpaceId(0);
const HERE: RepositoryId = RepositoryId(0);
const OTHER: NodeId = NodeId(1);
/// As docs/limits.md says.
const READS_MAX: u64 = 65_536;

/// One of two repositories, and what it says.
struct Server {
    node: Node<Score>,
    effects: Effects<Score>,
}

impl Server {
    fn new() -> Server {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let issuer = Some(Issuer::new([7; 16]));
        let settings = Arc::new(Settings { issuer, ..Settings::default() });
        let mut node = Node::new(NodeId(0), 1, catalog, settings, &Default::default());
        let mut effects = Effects::default();
        node.start(&mut effects);
        Server { node, effects }
    }

    /// What it says to a message of the other node's coordinator.
    fn hear(&mut self, message: Message<Snapshots>) -> Vec<Message<Snapshots>> {
        let (from, to) = (Address::coordinator(OTHER), Address::repository(NodeId(0), HERE));
        let envelope = Envelope { from, to, message };
        self.node.receive(Sender::Member, envelope, &mut self.effects).unwrap();
        let said = std::mem::take(&mut self.effects.list).into_iter();
        said.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(envelope.message),
            _ => None,
        })
        .collect()
    }

    /// Some key that lives here.
    fn key(&self) -> SmallBytes {
        let catalog = self.node.catalog();
        let mut keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
        keys.find(|key| catalog.holds(HERE, catalog.partition(SPACE, key))).unwrap()
    }
}

/// The numbers of the requests that were answered.
fn answered(said: &[Message<Snapshots>]) -> Vec<u64> {
    let answers = said.iter().filter_map(|message| match message {
        Message::ReadReply(reply) => Some(reply.request),
        _ => None,
    });
    answers.collect()
}

#[test]
fn a_repository_keeps_so_many_waiting_reads_and_no_more() {
    let mut server = Server::new();
    let (key, txn) = (server.key(), TxnId { node: OTHER, incarnation: 1, sequence: 1 });
    let said = server.hear(Message::Prepare(Arc::new(Prepare {
        txn,
        settled_below: 0,
        participants: [HERE, RepositoryId(1)].into_iter().collect(),
        snapshot: Timestamp::ZERO,
        reader: (),
        strict: false,
        reads: Vec::new().into(),
        writes: [(SPACE, key.clone(), Some("new".into()))].into_iter().collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
    })));
    let proposal = said.iter().find_map(|message| match message {
        Message::Vote { vote: Vote::Yes(at), .. } => Some(*at),
        _ => None,
    });
    let snapshot = proposal.expect("a vote for it");
    let read = |request| {
        let keys = [(SPACE, key.clone())].into_iter().collect();
        Message::Read(ReadRequest { request, snapshot, first: false, reader: (), keys })
    };
    for request in 1..=READS_MAX + 10 {
        assert!(answered(&server.hear(read(request))).is_empty(), "{request}");
    }
    // One that waits asks again, and still waits.
    assert!(answered(&server.hear(read(3))).is_empty());
    let decision = Decision::Abort(Abort::Abandoned);
    let said = server.hear(Message::Decide { txn, decision, ballots: Vec::new() });
    assert_eq!(answered(&said), (1..=READS_MAX).collect::<Vec<_>>());
    // Those that were not kept ask again, as all do that are not answered.
    let late = READS_MAX + 10;
    assert_eq!(answered(&server.hear(read(late))), [late]);
}
