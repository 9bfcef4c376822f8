//! Reads that wait for a transaction to end: a repository keeps so many and no more, and whoever
//! was not kept asks again.

use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::limits::Limits;
use muesli_core::parts::locator::Static;
use muesli_core::{
    Abort, Address, Catalog, Decision, Effect, Effects, Envelope, Nanos, Node, NodeId,
    RepositoryId, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, Timestamp, TxnId,
};
use muesli_protocols::score::{Score, Snapshots, Switches};
use muesli_protocols::two_phase::message::{
    Message, Mostly, Prepare, ReadRequest, ReadWants, Vote,
};

const SPACE: SpaceId = SpaceId(0);
const HERE: RepositoryId = RepositoryId(0);
const OTHER: NodeId = NodeId(1);
/// The repository's timer for reads that wait.
const SWEEP_TIMER: u32 = 2;
/// As docs/running/limits.md says.
const READS_MAX: u64 = 65_536;

/// One of two repositories, and what it says.
struct Server {
    node: Node<Score>,
    effects: Effects<Score>,
}

impl Server {
    fn new() -> Server {
        Server::with(Limits::default(), Switches::default())
    }

    fn with(limits: Limits, switches: Switches) -> Server {
        let homes = [NodeId(0), OTHER];
        let catalog = Catalog::new(&homes, 1, &homes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let issuer = Some(Issuer::new([7; 16]));
        let settings = Arc::new(Settings { issuer, limits, ..Settings::default() });
        let mut node = Node::new(NodeId(0), 1, catalog, settings, &switches);
        let mut effects = Effects::default();
        node.start(&mut effects);
        Server { node, effects }
    }

    /// What it says to a message of the other node's coordinator.
    fn receive(&mut self, message: Message<Snapshots>) -> Vec<Message<Snapshots>> {
        let (from, to) = (Address::coordinator(OTHER), Address::repository(NodeId(0), HERE));
        let envelope = Envelope { from, to, message };
        self.node.receive(Sender::Member, envelope, &mut self.effects).unwrap();
        let sent = std::mem::take(&mut self.effects.list).into_iter();
        sent.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(envelope.message),
            _ => None,
        })
        .collect()
    }

    /// Some key that lives here.
    fn key(&self) -> SmallBytes {
        let catalog = self.node.catalog();
        let mut keys = (0u32..).map(|number| SmallBytes::new(&number.to_be_bytes()));
        keys.find(|key| Static.holds(HERE, catalog.partition(SPACE, key), catalog)).unwrap()
    }
}

/// A transaction that writes some bytes under a key.
fn prepare(sequence: u64, key: &SmallBytes, value: usize) -> Message<Snapshots> {
    Message::Prepare(Arc::new(Prepare {
        txn: TxnId { node: OTHER, incarnation: 1, sequence },
        settled_below: 0,
        participants: [HERE, RepositoryId(1)].into_iter().collect(),
        snapshot: Timestamp::ZERO,
        reader: (),
        strict: false,
        reads: Vec::new().into(),
        writes: [(SPACE, key.clone(), Some(vec![7; value].into()))].into_iter().collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
        leaving: Default::default(),
        arriving: Default::default(),
    }))
}

/// What was proposed for a transaction.
fn proposal(sent: &[Message<Snapshots>]) -> Timestamp {
    let proposed = sent.iter().find_map(|message| match message {
        Message::Vote { vote: Vote::Yes(at), .. } => Some(*at),
        _ => None,
    });
    proposed.expect("a vote for it")
}

fn abort(sequence: u64) -> Message<Snapshots> {
    let txn = TxnId { node: OTHER, incarnation: 1, sequence };
    Message::Decide { txn, decision: Decision::Abort(Abort::Abandoned), ballots: Mostly::new() }
}

/// The numbers of the requests that were answered.
fn answered(sent: &[Message<Snapshots>]) -> Vec<u64> {
    let answers = sent.iter().filter_map(|message| match message {
        Message::ReadReply(reply) => Some(reply.request),
        _ => None,
    });
    answers.collect()
}

#[test]
fn a_repository_keeps_so_many_waiting_reads_and_no_more() {
    let mut server = Server::new();
    let key = server.key();
    let snapshot = proposal(&server.receive(prepare(1, &key, 3)));
    let read = |request| {
        let keys = [(SPACE, key.clone())].into_iter().collect();
        Message::Read(ReadRequest {
            request,
            snapshot,
            first: false,
            wanted: ReadWants::Values,
            reader: (),
            keys,
            known: Default::default(),
        })
    };
    for request in 1..=READS_MAX + 10 {
        assert!(answered(&server.receive(read(request))).is_empty(), "{request}");
    }
    // One that waits asks again, and still waits.
    assert!(answered(&server.receive(read(3))).is_empty());
    let sent = server.receive(abort(1));
    assert_eq!(answered(&sent), (1..=READS_MAX).collect::<Vec<_>>());
    // Those that were not kept ask again, as all do that are not answered.
    let late = READS_MAX + 10;
    assert_eq!(answered(&server.receive(read(late))), [late]);
}

/// Of a read that waits the first page is kept, and all together are no larger than a transaction.
#[test]
fn reads_that_wait_take_no_more_bytes_than_they_may() {
    let limits = Limits { page_bytes: 10_000, ..Limits::default() };
    let limits = Limits { value_bytes: 1_000, transaction_bytes: 200_000, ..limits };
    let mut server = Server::with(limits, Switches::default());
    let key = server.key();
    let snapshot = proposal(&server.receive(prepare(1, &key, 3)));
    let long = |fill: u8| SmallBytes::from(vec![fill; 1_000]);
    let catalog = server.node.catalog().clone();
    let here = |key: &SmallBytes| Static.holds(HERE, catalog.partition(SPACE, key), &catalog);
    let other = (0..=u8::MAX).map(long).find(here).unwrap();
    let read = |request| {
        let others = std::iter::repeat_n((SPACE, other.clone()), 5_000);
        let keys = [(SPACE, key.clone())].into_iter().chain(others).collect();
        Message::Read(ReadRequest {
            request,
            snapshot,
            first: false,
            wanted: ReadWants::Values,
            reader: (),
            keys,
            known: Default::default(),
        })
    };
    let bytes = |server: &Server| server.node.participants()[0].1.waiting_read_bytes();
    server.receive(read(1));
    assert!((10_000..12_000).contains(&bytes(&server)), "{} bytes of a page", bytes(&server));
    server.receive(read(1));
    assert!(bytes(&server) < 12_000, "asked for again: {} bytes", bytes(&server));
    for request in 2..=100 {
        assert!(answered(&server.receive(read(request))).is_empty(), "{request}");
    }
    let kept = server.node.participants()[0].1.waiting_reads();
    assert!((17..=20).contains(&kept) && bytes(&server) <= 200_000, "{kept} are kept");
    // They are answered with what was kept of them, and their coordinators ask for the rest.
    let sent = server.receive(abort(1));
    assert_eq!(answered(&sent), (1..=kept as u64).collect::<Vec<_>>());
    let counts = sent.iter().filter_map(|message| match message {
        Message::ReadReply(reply) => Some(reply.found.len()),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), vec![11; kept]);
    assert_eq!(bytes(&server), 0);
    assert_eq!(answered(&server.receive(read(100))), [100]);
}

/// A read that nobody asks for any more gives its bytes back.
#[test]
fn reads_that_are_dropped_take_nothing() {
    let mut server = Server::new();
    let key = server.key();
    let snapshot = proposal(&server.receive(prepare(1, &key, 3)));
    let keys = [(SPACE, key)].into_iter().collect();
    server.receive(Message::Read(ReadRequest {
        request: 1,
        snapshot,
        first: false,
        wanted: ReadWants::Values,
        reader: (),
        keys,
        known: Default::default(),
    }));
    assert!(server.node.participants()[0].1.waiting_read_bytes() > 0);
    server.effects.now = Settings::default().in_doubt_after + Nanos(1);
    server.node.timer(Role::Repository(HERE), SWEEP_TIMER, &mut server.effects);
    let left = &server.node.participants()[0].1;
    assert_eq!((left.waiting_reads(), left.waiting_read_bytes()), (0, 0));
}

/// So it is with prepares that wait for a lock: further ones are refused, and run again.
#[test]
fn prepares_that_wait_for_a_lock_take_no_more_bytes_than_a_transaction() {
    let limits = Limits { value_bytes: 100_000, transaction_bytes: 200_000, ..Limits::default() };
    let mut server = Server::with(limits, Switches::waiting());
    let key = server.key();
    proposal(&server.receive(prepare(1, &key, 3)));
    let mut refused = Vec::new();
    for sequence in 2..=8 {
        refused.extend(server.receive(prepare(sequence, &key, 60_000)).iter().filter_map(
            |message| match message {
                Message::Vote { txn, vote: Vote::No(Abort::Overloaded), .. } => Some(txn.sequence),
                _ => None,
            },
        ));
    }
    assert_eq!(refused, [5, 6, 7, 8]);
    assert_eq!(server.node.participants()[0].1.waiting_prepares(), 3);
    // The first that waits has the lock now.
    proposal(&server.receive(abort(1)));
    assert_eq!(server.node.participants()[0].1.waiting_prepares(), 2);
}
