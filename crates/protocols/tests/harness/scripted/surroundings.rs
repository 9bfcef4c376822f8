//! What the stage does for the machine of a node: messages wait on their links, records lie on the
//! node's disk, and all of it is printed.

use std::collections::{BTreeMap, VecDeque};

use muesli_core::{
    Answer, Effect, Effects, Envelope, Failure, LogPosition, MachineTimer, Nanos, Node, NodeId,
    OpId, Outside, RepositoryId, Role,
};

use super::page::Page;
use crate::harness::subject::{Subject, lines};

/// What survives a crash.
pub(super) struct Disk<P: Subject> {
    pub incarnation: u32,
    /// What stands for the records before those that are here.
    pub checkpoint: Vec<Vec<u8>>,
    pub stable: Vec<(RepositoryId, P::Record)>,
    pub unstable: Vec<(RepositoryId, P::Record)>,
    /// It was lost once.
    pub is_lost: bool,
}

impl<P: Subject> Default for Disk<P> {
    fn default() -> Disk<P> {
        let (checkpoint, stable, unstable) = Default::default();
        Disk { incarnation: 0, checkpoint, stable, unstable, is_lost: false }
    }
}

/// What surrounds one node for the length of a step.
pub(super) struct Surroundings<'a, P: Subject> {
    pub id: u32,
    pub now: Nanos,
    /// Whether records are stable as soon as they are logged.
    pub syncs: bool,
    pub stable: &'a mut LogPosition,
    pub timers: &'a mut BTreeMap<(Nanos, u64), (Role, u32)>,
    pub waiting: &'a mut BTreeMap<OpId, String>,
    pub timers_set: &'a mut u64,
    pub links: &'a mut BTreeMap<(u32, u32), VecDeque<Envelope<P::Message>>>,
    pub disk: &'a mut Disk<P>,
    pub page: &'a mut Page,
}

impl<P: Subject> Outside<P> for Surroundings<'_, P> {
    type Note = ();

    /// What the node says to itself is not printed, but names a transaction as well.
    fn begin(&mut self, effects: &mut Effects<P>) {
        for effect in &effects.list {
            if let Effect::Send { envelope, .. } = effect
                && envelope.to.node == NodeId(self.id)
            {
                self.page.name::<P>(&envelope.message);
            }
        }
    }

    fn send(&mut self, _: &Node<P>, envelope: Envelope<P::Message>) {
        crate::harness::samples::note::<P, _>("message", &envelope.message);
        self.page.name::<P>(&envelope.message);
        let line = lines::envelope::<P>(&envelope, &self.page.names);
        self.page.write(format_args!("{line}"));
        self.links.entry((self.id, envelope.to.node.0)).or_default().push_back(envelope);
    }

    fn append(&mut self, role: Role, record: P::Record) {
        crate::harness::samples::note::<P, _>("record", &record);
        let line = P::show_record(&record, &self.page.names);
        let Role::Repository(repository) = role else { panic!("{role} logs nothing") };
        self.page.write(format_args!("r{} logs {line}", repository.0));
        if self.syncs {
            self.disk.stable.push((repository, record));
            self.stable.0 += 1;
        } else {
            self.disk.unstable.push((repository, record));
        }
    }

    fn arm(&mut self, _: Nanos, timer: MachineTimer, after: Nanos) {
        let MachineTimer::Role(role, timer) = timer else { unreachable!("nothing is batched") };
        *self.timers_set += 1;
        self.timers.insert((self.now + after, *self.timers_set), (role, timer));
    }

    fn note(&mut self, _: &Result<Answer, Failure>, _waits: bool) {}

    fn answer(&mut self, _: &Effects<P>, op: OpId, result: Result<Answer, Failure>, (): ()) {
        let what = self.waiting.remove(&op).unwrap_or_else(|| "nobody".to_owned());
        self.page.answer(&what, &result);
    }
}
