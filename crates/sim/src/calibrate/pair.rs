//! Two real nodes, and transactions of several shapes between them.
//!
//! Messages go from one node to the other by a function call, records are stable as soon as they
//! are logged, and timers never ring: what is measured is the nodes.

use std::collections::VecDeque;
use std::sync::Arc;

use muesli_core::{
    Answer, Catalog, Effect, Effects, Envelope, Failure, Nanos, Node, NodeId, OpId, Protocol,
    Settings, SmallBytes, SpaceId, SpaceOptions, Step, TxnOptions, Work,
};

use crate::hardware::processor::ProcessorLoad;

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairShape {
    /// Whether the keys live at the other node.
    pub(super) remote: bool,
    /// How many keys it reads.
    pub(super) reads: usize,
    /// How many of them it writes.
    pub(super) writes: usize,
    /// How long its values are, in bytes.
    pub(super) value_bytes: usize,
}

impl PairShape {
    /// The shapes that are measured.
    pub(super) fn all() -> Vec<PairShape> {
        let footprints = [(1, 0), (8, 0), (1, 1), (4, 1), (4, 4), (8, 8)];
        let mut shapes = Vec::new();
        for remote in [false, true] {
            for (reads, writes) in footprints {
                for value_bytes in [8, 1_000] {
                    shapes.push(PairShape { remote, reads, writes, value_bytes });
                }
            }
        }
        shapes
    }
}

/// Two nodes with a repository each; transactions begin at the first.
pub(super) struct CalibrationPair<P: Protocol> {
    nodes: [(Node<P>, Effects<P>); 2],
    /// Messages under way.
    under_way: VecDeque<Envelope<P::Message>>,
    answers: Vec<(OpId, Result<Answer, Failure>)>,
    /// Keys of each node.
    keys: [Vec<SmallBytes>; 2],
    next_key: usize,
    load: ProcessorLoad,
}

const SPACE: SpaceId = SpaceId(0);
const KEYS: usize = 1_000;

impl<P: Protocol> CalibrationPair<P> {
    pub(super) fn new(logging: bool) -> Self {
        let ids = [NodeId(0), NodeId(1)];
        let catalog = Catalog::new(&ids, 1, &ids).expect("two repositories are allowed");
        let catalog = catalog.with_space("calibration", SpaceOptions::default());
        let catalog = Arc::new(catalog.expect("one space is allowed"));
        let settings = Arc::new(Settings { logging, ..Settings::default() });
        let nodes = ids.map(|id| {
            let (catalog, settings) = (Arc::clone(&catalog), Arc::clone(&settings));
            let mut node = Node::new(id, 1, catalog, settings, &P::Switches::default());
            let mut effects = Effects::default();
            node.start(&mut effects);
            (node, effects)
        });
        let all = (0..).map(|number: usize| SmallBytes::from(format!("key {number}").into_bytes()));
        let home = |key: &SmallBytes| usize::from(catalog.partition(SPACE, key));
        let keys = [0, 1]
            .map(|node| all.clone().filter(|key| home(key) == node).take(KEYS).collect::<Vec<_>>());
        let (under_way, answers) = (VecDeque::new(), Vec::new());
        let mut pair = CalibrationPair {
            nodes,
            under_way,
            answers,
            keys,
            next_key: 0,
            load: ProcessorLoad::default(),
        };
        pair.perform();
        pair
    }

    /// Runs one transaction to its end.
    pub(super) fn transaction(&mut self, shape: PairShape) {
        // Time goes on, or the watermark would stand still and versions pile up.
        for (_, effects) in &mut self.nodes {
            effects.now = effects.now + Nanos::from_micros(1);
        }
        let txn = self.operate(|node, effects| node.begin(TxnOptions::default(), effects));
        let txn = txn.expect("a transaction can begin");
        let value = SmallBytes::from(vec![7; shape.value_bytes]);
        for place in 0..shape.reads {
            let key = self.keys[usize::from(shape.remote)][(self.next_key + place) % KEYS].clone();
            let step = self.operate(|node, effects| node.get(txn, SPACE, &key, effects));
            self.wait(step);
            if place < shape.writes {
                let value = Some(value.clone());
                let put = self.operate(|node, effects| node.put(txn, SPACE, key, value, effects));
                put.expect("a write is buffered");
            }
        }
        let step = self.operate(|node, effects| node.commit(txn, effects));
        self.wait(step);
        // What follows the answer is part of the work.
        self.perform();
        self.next_key = (self.next_key + shape.reads) % KEYS;
    }

    fn operate<T>(&mut self, operation: impl FnOnce(&mut Node<P>, &mut Effects<P>) -> T) -> T {
        self.load.operations += 1;
        let (node, effects) = &mut self.nodes[0];
        operation(node, effects)
    }

    fn wait<T>(&mut self, step: Step<T>) {
        match step {
            Step::Done(answer) => {
                assert!(answer.is_ok(), "nothing stands in the way of the only transaction");
            }
            Step::Wait(op) => {
                self.perform();
                let place = self.answers.iter().position(|(answered, _)| *answered == op);
                let (_, result) = self.answers.swap_remove(place.expect("nothing is lost"));
                assert!(result.is_ok(), "{result:?}");
            }
        }
    }

    /// Does what the nodes want done until they want nothing more.
    fn perform(&mut self) {
        loop {
            for place in 0..2 {
                self.perform_effects(place);
            }
            let Some(envelope) = self.under_way.pop_front() else { return };
            let (node, effects) = &mut self.nodes[envelope.to.node.0 as usize];
            self.load.received += 1;
            self.load.bytes += P::wire_bytes(&envelope.message) as u64;
            node.deliver(envelope, effects);
        }
    }

    fn perform_effects(&mut self, place: usize) {
        while !self.nodes[place].1.list.is_empty() {
            let mut list = std::mem::take(&mut self.nodes[place].1.list);
            for effect in list.drain(..) {
                self.perform_effect(place, effect);
            }
            if self.nodes[place].1.list.is_empty() {
                self.nodes[place].1.list = list;
            }
        }
    }

    fn perform_effect(&mut self, place: usize, effect: Effect<P::Message, P::Record>) {
        match effect {
            Effect::Send { envelope, .. } if envelope.to.node.0 as usize == place => {
                let (node, effects) = &mut self.nodes[place];
                node.deliver(envelope, effects);
            }
            Effect::Send { envelope, .. } => {
                self.load.sent += 1;
                self.load.bytes += P::wire_bytes(&envelope.message) as u64;
                self.under_way.push_back(envelope);
            }
            Effect::Complete { op, result, .. } => self.answers.push((op, result)),
            Effect::Log { .. } => self.load.logged += 1,
            Effect::SetTimer { .. } => {}
        }
    }

    /// What both nodes have done since this was last asked.
    pub(super) fn take_load(&mut self) -> ProcessorLoad {
        let mut load = std::mem::take(&mut self.load);
        for (_, effects) in &mut self.nodes {
            let Work { reads, validated, installed } = std::mem::take(&mut effects.work);
            load += ProcessorLoad { reads, validated, installed, ..ProcessorLoad::default() };
        }
        load
    }
}
