//! What is on its way over a link that stands is not sent again, however long that takes; what was
//! taken and is not answered is, and so is what was lost with a link.

use std::sync::Arc;

use muesli_core::{
    Catalog, Effect, Effects, Environment, Nanos, Node, NodeId, Protocol, Role, Settings,
    SmallBytes, SpaceId, SpaceOptions, Step, TxnOptions,
};
use muesli_protocols::bumper::Bumper;
use muesli_protocols::gmu::Gmu;
use muesli_protocols::granola::Granola;
use muesli_protocols::locking::TwoPhaseLocking;
use muesli_protocols::score::Score;
use muesli_protocols::two_phase::message::Message;

/// The timer of coordinators that looks after what was not answered.
const SWEEP: u32 = 1;
const SERVER: NodeId = NodeId(0);

/// A client's node, and what it asked for.
struct Client<P: Protocol> {
    node: Node<P>,
    effects: Effects<P>,
}

impl<P: Protocol> Client<P> {
    fn new() -> Client<P> {
        let client = NodeId(1);
        let catalog = Catalog::new(&[SERVER], 1, &[SERVER, client]).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let settings = Arc::new(Settings::default());
        let node = Node::new(client, 1, catalog, settings, &P::Rules::default());
        let effects =
            Effects::new(Environment { now: Nanos::from_millis(1), ..Environment::default() });
        Client { node, effects }
    }

    /// How many messages it sent to the server since it was asked last.
    fn sent(&mut self) -> usize {
        let all = self.effects.list.drain(..);
        all.filter(|it| matches!(it, Effect::Send { envelope, .. } if envelope.to.node == SERVER))
            .count()
    }

    /// The time passes, and what was not answered is looked after.
    fn sweep_at(&mut self, millis: u64) -> usize {
        self.effects.now = Nanos::from_millis(millis);
        self.node.timer(Role::Coordinator, SWEEP, &mut self.effects);
        self.sent()
    }

    fn put(&mut self, bytes: usize) {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let value = Some(SmallBytes::from(vec![1; bytes]));
        self.node.put(txn, SpaceId(0), "k".into(), value, &mut self.effects).unwrap();
        assert!(matches!(self.node.commit(txn, &mut self.effects), Step::Wait(_)));
    }

    fn get(&mut self) {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let key = SmallBytes::from("k");
        let step = self.node.get(txn, SpaceId(0), &key, &mut self.effects);
        assert!(matches!(step, Step::Wait(_)));
    }
}

fn is_sent_again_only_when_nothing_is_outstanding<P: Protocol>(begin: fn(&mut Client<P>)) {
    let mut client = Client::<P>::new();
    begin(&mut client);
    assert_eq!(client.sent(), 1, "{}", P::NAME);
    client.effects.links.set(SERVER, Nanos::from_millis(1));
    for millis in [30, 100, 1_000, 9_000] {
        assert_eq!(client.sweep_at(millis), 0, "{} at {millis} ms", P::NAME);
    }
    client.effects.links.clear(SERVER);
    assert_eq!(client.sweep_at(9_010), 0, "{}: it was just taken", P::NAME);
    assert_eq!(client.sweep_at(9_020), 1, "{}", P::NAME);
    // Something else is on its way, which was sent later.
    client.effects.links.set(SERVER, Nanos::from_millis(9_030));
    assert_eq!(client.sweep_at(9_040), 1, "{}", P::NAME);
}

#[test]
fn requests_and_commits_are_sent_again_only_when_nothing_is_outstanding() {
    fn both<P: Protocol>() {
        is_sent_again_only_when_nothing_is_outstanding::<P>(|client| client.put(8));
        is_sent_again_only_when_nothing_is_outstanding::<P>(Client::get);
    }
    both::<Score>();
    both::<Gmu>();
    both::<Bumper>();
    both::<TwoPhaseLocking>();
    both::<Granola>();
}

#[test]
fn a_large_commit_is_waited_for_longer_once_it_was_taken() {
    fn large<P: Protocol>() {
        let mut client = Client::<P>::new();
        client.put(10 << 20);
        assert_eq!(client.sent(), 1, "{}", P::NAME);
        assert_eq!(client.sweep_at(200), 0, "{}: ten megabytes take their time", P::NAME);
        assert_eq!(client.sweep_at(400), 1, "{}", P::NAME);
    }
    large::<Score>();
    large::<Granola>();
}

/// The others follow as soon as the snapshot is known, each repository's in one request.
#[test]
fn few_keys_go_in_the_request_that_fixes_a_snapshot() {
    for (keys, first) in [(2, 2), (20, 8)] {
        let mut client = Client::<Score>::new();
        let Client { node, effects } = &mut client;
        let txn = node.begin(TxnOptions::default(), effects).unwrap();
        let keys = (0..keys).map(|key| SmallBytes::from(vec![key])).collect();
        assert!(matches!(node.get_many(txn, SpaceId(0), keys, effects), Step::Wait(_)));
        let asked = effects.list.iter().filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => match &envelope.message {
                Message::Read(read) => Some((read.first, read.keys.len())),
                other => panic!("{other:?}"),
            },
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [(true, first)]);
    }
}
