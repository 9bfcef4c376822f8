//! A node with its log, over its lives.

use std::sync::Arc;

use muesli_core::{
    Catalog, Effects, LogPosition, Nanos, Node, NodeId, Recorder, RepositoryId, Settings,
};
use muesli_protocols::two_phase::{Record, TwoPhase, Variant};

use crate::delayable;

#[derive(Clone, Debug)]
pub(super) struct Host<V: Variant> {
    pub node: Node<TwoPhase<V>>,
    id: NodeId,
    rules: V::Rules,
    life: u32,
    log: Vec<(RepositoryId, Record<V>)>,
    /// How much of the log was there when this life began.
    inherited: usize,
    /// How much of it must have been stable for the node to say what it said.
    firm: usize,
    logged: LogPosition,
    gate: LogPosition,
}

impl<V: Variant> Host<V> {
    pub fn new(
        id: NodeId,
        catalog: Arc<Catalog>,
        settings: Arc<Settings>,
        rules: V::Rules,
    ) -> Host<V> {
        Host {
            node: Node::new(id, 1, catalog, settings, &rules),
            id,
            rules,
            life: 1,
            log: Vec::new(),
            inherited: 0,
            firm: 0,
            logged: LogPosition(0),
            gate: LogPosition(0),
        }
    }

    /// The buffer of one turn.
    pub fn turn(&self, now: Nanos) -> Effects<TwoPhase<V>> {
        Effects {
            now,
            recorder: Some(Box::new(Recorder::new())),
            logged: self.logged,
            gate: self.gate,
            ..Effects::default()
        }
    }

    pub fn end_turn(&mut self, effects: &Effects<TwoPhase<V>>) {
        (self.logged, self.gate) = (effects.logged, effects.gate);
    }

    pub fn log(&mut self, repository: RepositoryId, record: Record<V>) {
        self.log.push((repository, record));
    }

    /// The node said something that had to wait for its log up to `after`.
    pub fn has_said(&mut self, after: LogPosition) {
        self.firm = self.firm.max(self.inherited + after.0 as usize);
    }

    /// A new life, from the log without what it may have lost; what its first turn wants done.
    pub fn restart(&mut self, lossy: bool, now: Nanos) -> Effects<TwoPhase<V>> {
        if lossy {
            self.log.truncate(self.firm);
        }
        self.life += 1;
        (self.inherited, self.firm) = (self.log.len(), self.log.len());
        (self.logged, self.gate) = (LogPosition(0), LogPosition(0));
        let catalog = self.node.catalog().clone();
        let settings = Settings {
            keep_tombstones: true,
            logging: true,
            procedures: delayable::all(),
            ..Settings::default()
        };
        self.node = Node::new(self.id, self.life, catalog, Arc::new(settings), &self.rules);
        let mut effects = self.turn(now);
        for (repository, record) in &self.log {
            self.node.replay(*repository, record.clone(), &mut effects);
        }
        assert!(effects.list.is_empty(), "a replay says nothing");
        self.node.start(&mut effects);
        effects
    }

    /// Whether no transaction here waits for its end.
    pub fn has_no_doubts(&self) -> bool {
        self.node.unfinished().1 == 0
    }
}
