//! A node with its log, over its lives.

use std::fmt;
use std::sync::Arc;

use muesli_core::{
    Catalog, Effects, Environment, Machine, Nanos, Node, NodeId, Recorder, Role, Settings,
};

use crate::harness::subject::Subject;

#[derive(Clone)]
pub(super) struct Host<P: Subject> {
    pub machine: Machine<P>,
    id: NodeId,
    settings: Arc<Settings>,
    switches: P::Switches,
    lifetime: u32,
    log: Vec<(Role, P::Record)>,
    /// How much of the log was there when this life began.
    inherited: usize,
}

/// What can differ from one world to the next.
impl<P: Subject> fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = (&self.log, self.inherited);
        f.debug_tuple("Host").field(&self.machine).field(&self.lifetime).field(&log).finish()
    }
}

impl<P: Subject> Host<P> {
    pub fn new(
        id: NodeId,
        catalog: Arc<Catalog>,
        settings: Arc<Settings>,
        switches: P::Switches,
    ) -> Host<P> {
        let node = Node::new(id, 1, catalog, settings.clone(), &switches);
        let machine = Machine::new(node, recording(Nanos(0)));
        Host { machine, id, settings, switches, lifetime: 1, log: Vec::new(), inherited: 0 }
    }

    pub fn node(&self) -> &Node<P> {
        &self.machine.node
    }

    pub fn log(&mut self, records: Vec<(Role, P::Record)>) {
        self.log.extend(records);
    }

    /// A new life, from the log without what it may have lost; its first step is to be performed.
    pub fn restart(&mut self, lossy: bool, now: Nanos) {
        if lossy {
            self.log.truncate(self.inherited + self.machine.stable().0 as usize);
        }
        self.lifetime += 1;
        self.inherited = self.log.len();
        let catalog = self.node().catalog().clone();
        let settings = self.settings.clone();
        let mut node = Node::new(self.id, self.lifetime, catalog, settings, &self.switches);
        let mut effects = recording(now);
        for (role, record) in &self.log {
            node.replay(*role, record.clone(), &mut effects);
        }
        assert!(effects.list.is_empty(), "a replay says nothing");
        node.start(&mut effects);
        self.machine = Machine::new(node, effects);
    }

    /// Whether no transaction here waits for its end.
    pub fn has_no_doubts(&self) -> bool {
        self.node().unfinished().1 == 0
    }
}

fn recording<P: Subject>(now: Nanos) -> Effects<P> {
    let recorder = Some(Box::new(Recorder::new()));
    Effects::new(Environment { now, recorder, ..Environment::default() })
}
