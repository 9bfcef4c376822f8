//! What is on its way over a link that stands is not sent again, however long that takes; what was
//! taken and is not answered is, and so is what was lost with a link.

use std::sync::Arc;

use muesli_core::{
    Catalog, Effect, Effects, Environment, Nanos, Node, NodeId, Protocol, Role, Settings,
    SmallBytes, SpaceId, SpaceOptions, Step, TxnOptions,
};

/// The timer of coordinators that looks after what was not answered.
pub const SWEEP: u32 = 1;
pub const SERVER: NodeId = NodeId(0);

/// A client's node, and what it asked for.
pub struct Client<P: Protocol> {
    pub node: Node<P>,
    pub effects: Effects<P>,
}

impl<P: Protocol> Client<P> {
    pub fn new() -> Client<P> {
        let client = NodeId(1);
        let catalog = Catalog::new(&[SERVER], 1, &[SERVER, client]).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let settings = Arc::new(Settings::default());
        let node = Node::new(client, 1, catalog, settings, &P::Switches::default());
        let effects =
            Effects::new(Environment { now: Nanos::from_millis(1), ..Environment::default() });
        Client { node, effects }
    }

    /// How many messages it sent to the server since it was asked last.
    pub fn sent(&mut self) -> usize {
        let all = self.effects.list.drain(..);
        all.filter(|it| matches!(it, Effect::Send { envelope, .. } if envelope.to.node == SERVER))
            .count()
    }

    /// The time passes, and what was not answered is looked after.
    pub fn sweep_at(&mut self, millis: u64) -> usize {
        self.effects.now = Nanos::from_millis(millis);
        self.node.timer(Role::Coordinator, SWEEP, &mut self.effects);
        self.sent()
    }

    pub fn put(&mut self, bytes: usize) {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let value = Some(SmallBytes::from(vec![1; bytes]));
        self.node.put(txn, SpaceId(0), "k".into(), value, &mut self.effects).unwrap();
        assert!(matches!(self.node.commit(txn, &mut self.effects), Step::Wait(_)));
    }

    pub fn get(&mut self) {
        let txn = self.node.begin(TxnOptions::default(), &mut self.effects).unwrap();
        let key = SmallBytes::from("k");
        let step = self.node.get(txn, SpaceId(0), &key, &mut self.effects);
        assert!(matches!(step, Step::Wait(_)));
    }
}

pub fn is_sent_again_only_when_nothing_is_outstanding<P: Protocol>(begin: fn(&mut Client<P>)) {
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

/// Of commits and of requests.
pub fn both<P: Protocol>() {
    is_sent_again_only_when_nothing_is_outstanding::<P>(|client| client.put(8));
    is_sent_again_only_when_nothing_is_outstanding::<P>(Client::get);
}

/// A commit of ten megabytes.
pub fn large<P: Protocol>() {
    let mut client = Client::<P>::new();
    client.put(10 << 20);
    assert_eq!(client.sent(), 1, "{}", P::NAME);
    assert_eq!(client.sweep_at(200), 0, "{}: ten megabytes take their time", P::NAME);
    assert_eq!(client.sweep_at(400), 1, "{}", P::NAME);
}
