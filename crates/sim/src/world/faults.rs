//! Faults and their repairs.

use std::sync::Arc;

use muesli_core::catalog::FIRST_TREE_EPOCH;
use muesli_core::client::{self, Engine};
use muesli_core::{Catalog, NodeId, Settings};

use super::host::input::HostInput;
use super::links::pair;
use super::{Event, World};
use crate::hardware::clock::Drift;
use crate::plan::fault::{Direction, Fault};
use crate::time::{Span, VirtualTime};

impl World {
    /// Does to the world what the plan says.
    pub(super) fn inflict(&mut self, number: usize) {
        let timed = self.plan.faults()[number].clone();
        self.trace_world("fault", [number as u64, 0, 0], &timed);
        let repaired_at = timed.repaired_at();
        match timed.fault {
            Fault::Crash(node) => self.crash(node),
            Fault::LoseDisk(node) => {
                self.crash(node);
                let catalog = Arc::clone(&self.catalog);
                self.machine(node, |host, _| {
                    host.disk.lose();
                    host.has_lost_disk = true;
                    host.catalog = catalog;
                });
            }
            Fault::FailSync(node) => drop(self.failing_syncs.insert(node, false)),
            Fault::Vanish(client) => self.vanish(client),
            Fault::Partition(direction, nodes) => {
                for (from, to) in self.channels_cut(direction, &nodes) {
                    self.block(from, to);
                }
            }
            Fault::Break(first, second) => {
                *self.held_broken.entry(pair(first, second)).or_default() += 1;
                self.sever(first, second);
            }
            Fault::Pause(node) => {
                self.machine(node, |host, _| host.outside.processor.pause(repaired_at))
            }
            Fault::Slow(node, by) => {
                self.machine(node, |host, _| host.outside.processor.slow_down(by))
            }
            Fault::SlowDisk(node, by) => self.machine(node, |host, _| host.disk.slow_down(by)),
            Fault::Skew(node, leap, drift) => {
                self.machine(node, |host, now| {
                    let moment = host.after_tick(now);
                    host.clock.adjust(moment, leap, drift);
                });
            }
            Fault::Tree(tree, informed) => {
                self.tell_of_tree(number, tree, |node| informed.contains(&node))
            }
        }
    }

    /// Undoes what [`inflict`](Self::inflict) did.
    pub(super) fn repair(&mut self, number: usize) {
        let timed = self.plan.faults()[number].clone();
        self.trace_world("repair", [number as u64, 0, 0], &timed);
        match timed.fault {
            Fault::Crash(node) | Fault::LoseDisk(node) => self.recover(node),
            Fault::FailSync(node) => {
                if self.failing_syncs.remove(&node) == Some(true) {
                    self.recover(node);
                }
            }
            Fault::Vanish(client) => self.begin_client(client as usize),
            Fault::Partition(direction, nodes) => {
                for (from, to) in self.channels_cut(direction, &nodes) {
                    self.unblock(from, to);
                }
            }
            Fault::Break(first, second) => {
                if let Some(holds) = self.held_broken.get_mut(&pair(first, second)) {
                    *holds -= 1;
                }
                self.held_broken.retain(|_, holds| *holds > 0);
            }
            Fault::Pause(_) => {}
            Fault::Slow(node, _) => {
                self.machine(node, |host, _| host.outside.processor.slow_down(1))
            }
            Fault::SlowDisk(node, _) => self.machine(node, |host, _| host.disk.slow_down(1)),
            Fault::Skew(node, _, _) => self.machine(node, |host, now| {
                let moment = host.after_tick(now);
                host.clock.adjust(moment, Span::ZERO, Drift::default());
            }),
            Fault::Tree(tree, informed) => {
                self.tell_of_tree(number, tree, |node| !informed.contains(&node));
            }
        }
    }

    /// Some nodes hear of the tree that a fault has set; later faults set later ones. Who is down
    /// hears of it when it is back, as members tell each other.
    fn tell_of_tree(&mut self, fault: usize, tree: u32, is_informed: impl Fn(NodeId) -> bool) {
        let hierarchy = Some(Arc::new(self.trees[tree as usize].clone()));
        let tree_epoch = FIRST_TREE_EPOCH + 1 + fault as u64;
        let mut changed = Catalog::clone(&self.catalog);
        (changed.tree_epoch, changed.hierarchy) = (tree_epoch, hierarchy);
        let changed = Arc::new(changed);
        for node in (0..self.engines.len() as u32).map(NodeId).filter(|node| is_informed(*node)) {
            self.place(node, Arc::clone(&changed));
            self.machine(node, |host, _| host.observe_catalog(&changed));
        }
        if changed.tree_epoch > self.catalog.tree_epoch {
            self.catalog = changed;
        }
    }

    fn machine(&mut self, node: NodeId, change: impl FnOnce(&mut super::host::Host, VirtualTime)) {
        change(&mut self.engines[node.0 as usize].host.borrow_mut(), self.now);
    }

    /// A sync is over, unless it is to fail: then nothing that it was to write is assumed to be
    /// there, and the node stops. Returns whether it failed.
    pub(super) fn fail_sync(&mut self, node: NodeId) -> bool {
        let Some(happened @ false) = self.failing_syncs.get_mut(&node) else { return false };
        *happened = true;
        self.trace_node(node.0 as usize, "sync failed", [0; 3]);
        self.crash(node);
        true
    }

    /// The node's process is killed, and nobody starts it again.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn end_node(&mut self, node: NodeId) {
        self.trace_node(node.0 as usize, "end", [0; 3]);
        // Nobody reads its disk any more.
        self.stop(node);
    }

    /// The node stops, unless it is down already.
    fn crash(&mut self, node: NodeId) {
        if self.stop(node) {
            self.machine(node, |host, _| host.disk.crash());
        }
    }

    /// The node's process ends. Returns whether there was one.
    fn stop(&mut self, node: NodeId) -> bool {
        let place = node.0 as usize;
        self.crashes[place] += 1;
        if self.crashes[place] > 1 {
            return false;
        }
        self.engines[place].host.borrow_mut().crash();
        // The node's process is gone, and its clients' futures with it: nothing is there to hear
        // what they say as they are dropped.
        drop(self.tasks[place].remove_all());
        for (other, cut) in self.network.crash(self.now, node) {
            self.expect_reconnect(node, other, &cut);
        }
        true
    }

    /// The node starts its next life, unless another crash still keeps it down.
    fn recover(&mut self, node: NodeId) {
        let place = node.0 as usize;
        self.crashes[place] -= 1;
        if self.crashes[place] > 0 {
            return;
        }
        self.network.restart(node);
        self.start_node(place);
        for client in 0..self.clients.len() {
            if self.clients[client].node == node {
                self.begin_client(client);
            }
        }
    }

    /// A node asked for its next life: it ends as by a crash, and is there again at once.
    pub(super) fn restart(&mut self, place: usize) {
        let node = self.engines[place].host.borrow().id;
        self.trace_node(place, "restart", [0; 3]);
        self.crash(node);
        self.recover(node);
    }

    /// Starts the next life of a node that is down.
    pub(super) fn start_node(&mut self, place: usize) {
        let linked = self.linked_to(NodeId(place as u32));
        let mut host = self.engines[place].host.borrow_mut();
        host.incarnation += 1;
        let catalog = Arc::clone(&host.catalog);
        // Each node is a process of its own, and so is each life of it.
        let memory = self.settings.memory.anew();
        let lost_disk = host.has_lost_disk.then_some(host.incarnation.into());
        let settings = Arc::new(Settings { memory, lost_disk, ..(*self.settings).clone() });
        host.set_time(self.now);
        let environment = host.take_environment();
        let (id, its_incarnation) = (host.id, host.incarnation);
        let machine = self.protocol.machine(id, its_incarnation, catalog, settings, environment);
        host.start(machine, self.mistake, &linked);
        let numbers = [u64::from(host.incarnation), host.disk.stable() as u64, 0];
        drop(host);
        self.trace_node(place, "start", numbers);
        self.wake(place);
    }

    /// Somebody tells a node, if it is up, where repositories live from this catalog's epoch on.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn place(&mut self, node: NodeId, catalog: Arc<Catalog>) {
        let place = node.0 as usize;
        if self.engines[place].host.borrow().is_up() {
            self.trace_node(place, "placement", [catalog.placement, 0, 0]);
            self.offer(place, HostInput::Placement(catalog));
        }
    }

    /// A client's task is dropped in the middle of what it does.
    fn vanish(&mut self, client: u32) {
        let Some(slot) = self.clients.get_mut(client as usize) else { return };
        let Some(task) = slot.task.take() else { return };
        let place = slot.node.0 as usize;
        let host_engine = std::rc::Rc::clone(&self.engines[place]);
        let mut host = host_engine.host.borrow_mut();
        let moment = host.after_tick(self.now);
        host.set_time(moment);
        drop(host);
        // The node is there, and is told what a session that ends tells it.
        let here = client::enter(host_engine as std::rc::Rc<dyn Engine>);
        drop(self.tasks[place].remove(task));
        drop(here);
        self.wake(place);
    }

    fn channels_cut(&self, direction: Direction, nodes: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        let all = (0..self.engines.len() as u32).map(NodeId);
        let others: Vec<NodeId> = all.filter(|node| !nodes.contains(node)).collect();
        let mut channels = Vec::new();
        for (inside, outside) in nodes.iter().flat_map(|a| others.iter().map(move |b| (*a, *b))) {
            if direction != Direction::In {
                channels.push((inside, outside));
            }
            if direction != Direction::Out {
                channels.push((outside, inside));
            }
        }
        channels
    }

    fn block(&mut self, from: NodeId, to: NodeId) {
        self.network.block(self.now, from, to);
        if self.network.blocked_since(from, to) == Some(self.now) {
            let given_up = Event::GivenUp { from, to, since: self.now };
            self.queue.push(self.now + self.patience, given_up);
        }
    }

    fn unblock(&mut self, from: NodeId, to: NodeId) {
        for sent in self.network.unblock(from, to) {
            self.deliver(sent);
        }
    }

    /// A partition has lasted longer than the ends of a link wait.
    pub(super) fn give_up(&mut self, from: NodeId, to: NodeId, since: VirtualTime) {
        if self.network.blocked_since(from, to) == Some(since) {
            self.sever(from, to);
        }
    }

    fn sever(&mut self, first: NodeId, second: NodeId) {
        if let Some(cut) = self.network.sever(self.now, first, second) {
            self.expect_reconnect(first, second, &cut);
        }
    }
}
