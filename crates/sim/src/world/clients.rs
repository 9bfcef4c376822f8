//! The clients of the world: who they are, and when they begin anew.

use std::cell::Cell;
use std::rc::Rc;

use muesli_core::NodeId;
use muesli_core::client::Task;

use super::World;
use super::tasks::TaskId;
use crate::random::Seed;

/// What a client is told when it begins.
#[derive(Clone, Debug)]
pub struct ClientStart {
    /// Its number among the clients of the world, from 0.
    pub number: u32,
    /// How often it has begun, from 1; it begins anew after it vanished or its node crashed.
    pub incarnation: u32,
    /// The node that it runs on.
    pub node: NodeId,
    /// Where its chances come from; another for each life.
    pub seed: Seed,
    /// Whether it is to end after what it does now.
    pub stop: StopFlag,
}

/// Tells clients to end.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Rc<Cell<bool>>);

impl StopFlag {
    /// Whether clients are to end.
    pub fn is_raised(&self) -> bool {
        self.0.get()
    }

    pub(super) fn raise(&self) {
        self.0.set(true);
    }
}

/// Makes the task of a client.
pub type ClientBody = Rc<dyn Fn(ClientStart) -> Task>;

/// A client of the world.
pub(super) struct WorldClient {
    pub(super) node: NodeId,
    pub(super) incarnation: u32,
    pub(super) body: ClientBody,
    /// `None` while it has ended, has vanished, or its node is down.
    pub(super) task: Option<TaskId>,
}

impl World {
    /// Adds a client that runs on `node`, and begins it. Returns its number.
    pub fn add_client(&mut self, node: NodeId, body: ClientBody) -> u32 {
        self.clients.push(WorldClient { node, incarnation: 0, body, task: None });
        self.begin_client(self.clients.len() - 1);
        (self.clients.len() - 1) as u32
    }

    /// Tells all clients to end after what they do now.
    pub fn stop_clients(&mut self) {
        self.stop.raise();
    }

    /// How many clients and other tasks have not ended.
    pub fn tasks_alive(&self) -> usize {
        self.tasks.iter().map(super::tasks::WorldTasks::alive).sum()
    }

    /// Begins the next life of a client, if its node is up and the old life is over.
    pub(super) fn begin_client(&mut self, number: usize) {
        let Some(client) = self.clients.get_mut(number) else { return };
        let place = client.node.0 as usize;
        let old = client.task.is_some_and(|task| self.tasks[place].is_alive(task));
        let up = self.engines[place].host.borrow().is_up();
        if old || !up || self.stop.is_raised() {
            return;
        }
        client.incarnation += 1;
        let start = ClientStart {
            number: number as u32,
            incarnation: client.incarnation,
            node: client.node,
            seed: self.seed.split("clients").nth(number as u64).nth(client.incarnation.into()),
            stop: self.stop.clone(),
        };
        let task = (client.body)(start);
        client.task = Some(self.tasks[place].spawn(task));
        let numbers = [number as u64, client.incarnation.into(), 0];
        self.trace_node(place, "client", numbers);
        self.wake(place);
    }

    /// A task has ended; perhaps it was a client's.
    pub(super) fn client_ended(&mut self, task: TaskId) {
        // Clients rarely end, so that looking through them all costs nothing.
        if let Some(client) = self.clients.iter_mut().find(|client| client.task == Some(task)) {
            client.task = None;
        }
    }
}
