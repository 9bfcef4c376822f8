//! What the explorer does for the machine of a node.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_core::{
    Answer, Effect, Effects, Envelope, Failure, MachineTimer, Nanos, Node, OpId, Outside, Role,
    TxnId,
};

use super::client::Client;
use crate::harness::subject::{Subject, Timer};

/// The parts of a world that a step of the node `at` can change.
pub(super) struct Surroundings<'a, P: Subject> {
    pub at: u32,
    /// Whether timers that mend what went wrong are of any concern.
    pub cares: bool,
    pub links: &'a mut BTreeMap<(u32, u32), VecDeque<Envelope<P::Message>>>,
    pub clients: &'a mut Vec<Client>,
    pub timers: &'a mut BTreeSet<(u32, Role, u32)>,
    pub begun: &'a mut BTreeSet<TxnId>,
    pub logged: Vec<(Role, P::Record)>,
}

impl<P: Subject> Outside<P> for Surroundings<'_, P> {
    type Note = ();

    /// What the node says to itself begins a transaction, too.
    fn begin(&mut self, effects: &mut Effects<P>) {
        for effect in &effects.list {
            if let Effect::Send { envelope, .. } = effect {
                self.begun.extend(P::begins(&envelope.message));
            }
        }
    }

    fn send(&mut self, _: &Node<P>, envelope: Envelope<P::Message>) {
        self.links.entry((self.at, envelope.to.node.0)).or_default().push_back(envelope);
    }

    fn append(&mut self, role: Role, record: P::Record) {
        self.logged.push((role, record));
    }

    fn arm(&mut self, _: Nanos, timer: MachineTimer, _: Nanos) {
        let MachineTimer::Role(role, timer) = timer else { unreachable!("nothing is batched") };
        let counts = match P::timer(role, timer) {
            Timer::Wait => true,
            Timer::Care => self.cares,
            Timer::Idle => false,
        };
        if counts {
            self.timers.insert((self.at, role, timer));
        }
    }

    fn note(&mut self, _: &Result<Answer, Failure>, _waits: bool) {}

    fn answer(&mut self, _: &Effects<P>, op: OpId, result: Result<Answer, Failure>, (): ()) {
        let waits = |client: &&mut Client| client.node == self.at && client.waits_for(op);
        if let Some(client) = self.clients.iter_mut().find(waits) {
            client.receive(&result);
        }
    }
}
