//! A client that ends in an orderly way leaves nothing at the repositories.

use std::sync::Arc;

use muesli_core::issuance::Issuer;
use muesli_core::{
    Answer, Catalog, Effect, Effects, Failure, Node, NodeId, Protocol, Role, Sender, Settings,
    SpaceId, SpaceOptions, Step, TxnOptions,
};

pub const SPACE: SpaceId = SpaceId(0);
pub const SERVER: NodeId = NodeId(0);
pub const CLIENT: NodeId = NodeId(1 << 31);

/// A server, a client, and what the client was told.
pub struct Pair<P: Protocol> {
    pub nodes: [Node<P>; 2],
    pub effects: [Effects<P>; 2],
    pub results: Vec<Result<Answer, Failure>>,
    /// Timers of the server's repositories that were set.
    pub timers: Vec<(Role, u32)>,
}

impl<P: Protocol> Pair<P> {
    pub fn new() -> Pair<P> {
        let catalog = Catalog::new(&[SERVER], 1, &[SERVER]).unwrap().with_visiting_coordinators();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let node = |id, issuer| {
            let settings = Settings { issuer, ..Settings::default() };
            Node::new(id, 1, catalog.clone(), Arc::new(settings), &P::Switches::default())
        };
        let mut nodes = [node(SERVER, Some(Issuer::new([7; 16]))), node(CLIENT, None)];
        let mut effects = [Effects::default(), Effects::default()];
        nodes.iter_mut().zip(&mut effects).for_each(|(node, effects)| node.start(effects));
        Pair { nodes, effects, results: Vec::new(), timers: Vec::new() }
    }

    /// Carries messages until there are none; no timer of a coordinator rings.
    pub fn settle(&mut self) {
        while self.effects.iter().any(|effects| !effects.list.is_empty()) {
            for from in 0..2 {
                for effect in std::mem::take(&mut self.effects[from].list) {
                    match effect {
                        Effect::Send { envelope, .. } => {
                            let to = usize::from(envelope.to.node == CLIENT);
                            let sender = [Sender::Member, Sender::CLIENT][from];
                            let into = &mut self.effects[to];
                            self.nodes[to].receive(sender, envelope, into).unwrap();
                        }
                        Effect::Complete { result, .. } => self.results.push(result),
                        Effect::SetTimer { role: role @ Role::Repository(_), timer, .. } => {
                            self.timers.push((role, timer));
                        }
                        Effect::Log { .. } | Effect::SetTimer { .. } => {}
                    }
                }
            }
        }
    }

    pub fn commit(&mut self, key: &str) {
        let (client, effects) = (&mut self.nodes[1], &mut self.effects[1]);
        let txn = client.begin(TxnOptions::default(), effects).unwrap();
        client.put(txn, SPACE, key.into(), Some("new".into()), effects).unwrap();
        let Step::Wait(_) = client.commit(txn, effects) else { panic!("it is elsewhere") };
        self.settle();
        assert!(matches!(self.results.pop(), Some(Ok(Answer::Committed(_)))));
        // Acknowledgements wait for company.
        for (role, timer) in std::mem::take(&mut self.timers) {
            self.nodes[0].timer(role, timer, &mut self.effects[0]);
        }
        self.settle();
    }

    pub fn leave(&mut self) {
        self.nodes[1].leave(&mut self.effects[1]);
        self.settle();
    }
}

/// How many ends are kept after each of: two commits, the end of the client, and once more.
pub fn kept<P: Protocol>(remembered: impl Fn(&Pair<P>) -> usize) -> [usize; 3] {
    let mut pair = Pair::<P>::new();
    pair.commit("a");
    pair.commit("b");
    let before = remembered(&pair);
    pair.leave();
    let after = remembered(&pair);
    pair.leave();
    [before, after, remembered(&pair)]
}
