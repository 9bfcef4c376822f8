//! A client that tells two nodes different things: of the copies of a key, or of who has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::parts::versions::Versions;
use muesli_core::{
    Address, Catalog, Effect, Effects, Envelope, Nanos, Node, NodeId, Protocol, Rejection,
    RepositoryId, Role, Sender, Settings, SmallBytes, SpaceId, SpaceOptions, TxnId,
};

pub const SPACE: SpaceId = SpaceId(0);
pub const CLIENT: NodeId = NodeId(77);
pub const BOTH: [RepositoryId; 2] = [RepositoryId(0), RepositoryId(1)];
pub const LONG: Nanos = Nanos::from_millis(1_000);

pub type Timers = BTreeMap<(Nanos, usize, Role, u32), ()>;

/// Two nodes, each with a copy of all keys or with half of them, and what they say to a client.
pub struct Pair<P: Protocol> {
    pub nodes: [Node<P>; 2],
    switches: P::Switches,
    settings: Arc<Settings>,
    effects: [Effects<P>; 2],
    timers: Timers,
    now: Nanos,
    /// What the client was told.
    pub answered_to: Vec<P::Message>,
    /// Messages between the two nodes are lost.
    pub cut: bool,
}

impl<P: Protocol> Pair<P> {
    pub fn new(switches: &P::Switches) -> Pair<P> {
        Pair::with(switches, Settings::default())
    }

    pub fn with(switches: &P::Switches, settings: Settings) -> Pair<P> {
        Pair::with_copies(switches, settings, 2)
    }

    pub fn with_copies(switches: &P::Switches, settings: Settings, copies: usize) -> Pair<P> {
        let homes = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&homes, copies, &homes).unwrap().with_visiting_coordinators();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let issuer = Some(Issuer::new([7; 16]));
        let settings = Arc::new(Settings { issuer, ..settings });
        let mut pair = Pair {
            nodes: homes.map(|id| Node::new(id, 1, catalog.clone(), settings.clone(), switches)),
            effects: [Effects::default(), Effects::default()],
            switches: switches.clone(),
            settings: settings.clone(),
            timers: Timers::new(),
            now: Nanos(0),
            answered_to: Vec::new(),
            cut: false,
        };
        for place in 0..2 {
            pair.nodes[place].start(&mut pair.effects[place]);
        }
        pair.perform();
        pair
    }

    /// One of the nodes ends, and starts again with a checkpoint of what it was.
    pub fn restart(&mut self, place: usize) {
        let before = &self.nodes[place];
        let (id, catalog) = (NodeId(place as u32), before.catalog().clone());
        let settings = self.settings.clone();
        let mut node = Node::new(id, 2, catalog, settings, &self.switches);
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

    pub fn perform(&mut self) {
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

    pub fn carry(&mut self, envelope: Envelope<P::Message>) {
        let to = envelope.to.node.0 as usize;
        if to >= 2 {
            self.answered_to.push(envelope.message);
        } else if envelope.from.node == envelope.to.node {
            self.nodes[to].deliver(envelope, &mut self.effects[to]);
        } else if !self.cut {
            // Who was told of other participants does not listen to them.
            let _ = self.nodes[to].receive(Sender::Member, envelope, &mut self.effects[to]);
        }
    }

    pub fn wait(&mut self, length: Nanos) {
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
    pub fn hand_to(&mut self, place: usize, message: P::Message) -> Result<(), Rejection> {
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
pub fn newest(versions: Option<&Versions>) -> Option<SmallBytes> {
    let versions = versions?;
    versions.newest(versions.find(&key())?).value.cloned()
}

pub fn txn() -> TxnId {
    TxnId { node: CLIENT, incarnation: 1, sequence: 1 }
}

pub fn key() -> SmallBytes {
    SmallBytes::from("key")
}
