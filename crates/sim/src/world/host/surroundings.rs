//! What a host does for the machine of its node: what the node says leaves at the end of the turn.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use muesli_core::{
    Answer, Driver, Encode, Envelope, Environment, Failure, MachineTimer, Nanos, NodeId, Note,
    OpId, OutgoingMessage, Role, Timestamp, Wire,
};

use super::input::HostInput;
use super::journal::{Matching, PendingReport, WorldJournal};
use super::longest::Longest;
use super::message::{Logged, Message, SentMessage};
use super::operations::HostOperations;
use super::operations::deadlines::HostDeadlines;
use super::routes::Routes;
use super::strangers::FIRST_STRANGER;
use crate::hardware::costs::Costs;
use crate::hardware::processor::{Processor, ProcessorLoad};
use crate::time::VirtualTime;
use crate::world::node_traffic::NodeTraffic;

/// What surrounds a node on its host.
pub(in crate::world) struct Surroundings {
    pub(in crate::world) journal: WorldJournal,
    /// For the batch of effects under way.
    matching: Matching,
    pub(in crate::world) operations: HostOperations,
    pub(in crate::world) deadlines: HostDeadlines,
    pub(in crate::world) outgoing: OutgoingMessages,
    pub(in crate::world) processor: Processor<HostInput>,
    costs: Costs,
    /// The cores of its machine, by their numbers.
    pub(in crate::world) cores: Range<u32>,
    /// What this turn has done so far.
    pub(in crate::world) load: ProcessorLoad,
    /// What all turns did that have ended, over all lives.
    pub(in crate::world) ended: ProcessorLoad,
    /// When the turn under way began.
    pub(in crate::world) now: VirtualTime,
    /// Whom messages of this turn go to.
    destinations: KnownPeers,
    /// Over all lives.
    pub(in crate::world) longest: Longest,
    /// What was sent, but for what this life has held back.
    pub(in crate::world) traffic: NodeTraffic,
    /// Between which roles messages left.
    pub(in crate::world) routes: Routes,
    /// Nodes of the world that are clients which come and go.
    pub(in crate::world) unregistered: Arc<BTreeSet<NodeId>>,
    /// Of such a client: members have proven to it that timestamps up to this one are issued.
    pub(in crate::world) proven: Timestamp,
}

/// What leaves at the end of a turn.
#[derive(Default)]
pub(in crate::world) struct OutgoingMessages {
    pub(in crate::world) messages: Vec<SentMessage>,
    pub(in crate::world) records: Vec<Logged>,
    pub(in crate::world) timers: Vec<(MachineTimer, Nanos)>,
    pub(in crate::world) sleeps: Vec<(OpId, Nanos)>,
    pub(in crate::world) spawned: Vec<muesli_core::client::Task>,
}

impl Surroundings {
    pub(in crate::world) fn new(costs: Costs) -> Surroundings {
        Surroundings {
            journal: WorldJournal::default(),
            matching: Matching::default(),
            operations: HostOperations::default(),
            deadlines: HostDeadlines::default(),
            outgoing: OutgoingMessages::default(),
            processor: Processor::new(),
            costs,
            cores: 0..0,
            load: ProcessorLoad::default(),
            ended: ProcessorLoad::default(),
            now: VirtualTime::ZERO,
            destinations: KnownPeers::default(),
            longest: Longest::default(),
            traffic: NodeTraffic::default(),
            routes: Routes::default(),
            unregistered: Arc::default(),
            proven: Timestamp::ZERO,
        }
    }

    /// Something has come from a node that nothing came from in this turn.
    pub(in crate::world) fn note_source(&mut self, node: NodeId) {
        match self.is_core(node) {
            true => self.load.cores += 1,
            false => self.load.sources += 1,
        }
    }

    /// Whether a node is a core of the same machine.
    fn is_core(&self, node: NodeId) -> bool {
        self.cores.contains(&node.0)
    }

    /// The node has crashed: what was to leave with its turn does not.
    pub(in crate::world) fn crash(&mut self) {
        self.proven = Timestamp::ZERO;
        for pending_report in self.operations.forget_all() {
            self.journal.unheard(pending_report);
        }
        self.deadlines.crash();
        self.outgoing = OutgoingMessages::default();
        self.load = ProcessorLoad::default();
        self.destinations.clear();
        self.processor.crash();
    }

    /// When the work of the turn so far is done.
    pub(in crate::world) fn moment(&self, environment: &Environment) -> VirtualTime {
        self.now + self.processor.cost(&self.load_so_far(environment), &self.costs)
    }

    /// What the turn has done so far, the work that the node says it did included.
    pub(in crate::world) fn load_so_far(&self, environment: &Environment) -> ProcessorLoad {
        let work = &environment.work;
        ProcessorLoad {
            reads: self.load.reads + work.reads,
            validated: self.load.validated + work.validated,
            installed: self.load.installed + work.installed,
            ..self.load
        }
    }

    /// Ends the turn. Returns when its effects leave.
    pub(in crate::world) fn end_tick(&mut self, environment: &Environment) -> VirtualTime {
        let load = self.load_so_far(environment);
        self.load = ProcessorLoad::default();
        self.ended += load;
        self.destinations.clear();
        self.processor.end(self.now, &load, &self.costs)
    }

    /// Tells a client, if it is still there.
    pub(in crate::world) fn tell(
        &mut self,
        op: OpId,
        result: Result<Answer, Failure>,
        pending_report: Option<PendingReport>,
    ) {
        if let Some(pending_report) = self.operations.answer(op, result, pending_report) {
            self.journal.unheard(pending_report);
        }
    }

    /// Up to where this node proves to another one that timestamps are issued: what members of it
    /// know where that one is unregistered, what they have proven where this one is.
    fn proof_for(&self, outgoing_message: &OutgoingMessage<'_>) -> Timestamp {
        match self.unregistered.contains(&outgoing_message.to.node) {
            true => (outgoing_message.issued)(),
            false => self.proven,
        }
    }
}

/// What is kept with an answer: the transaction whose client it tells, and whether it has waited.
#[derive(Clone, Copy, Debug)]
struct Kept {
    pending_report: Option<PendingReport>,
    waited: bool,
}

impl From<Kept> for Note {
    fn from(kept: Kept) -> Note {
        let place =
            kept.pending_report.map_or(0, |pending_report| pending_report.place() as u64 + 1);
        Note(place << 1 | u64::from(kept.waited))
    }
}

impl From<Note> for Kept {
    fn from(note: Note) -> Kept {
        let pending_report =
            (note.0 >> 1).checked_sub(1).map(|place| PendingReport::at(place as usize));
        Kept { pending_report, waited: note.0 & 1 == 1 }
    }
}

impl Driver for Surroundings {
    fn begin(&mut self, environment: &mut Environment) {
        self.matching = self.journal.look(environment);
    }

    fn send(&mut self, outgoing_message: OutgoingMessage<'_>) {
        if outgoing_message.to.node.0 >= FIRST_STRANGER {
            return; // Whatever strangers are told, they say what they like.
        }
        self.load.sent += 1;
        let is_first = self.destinations.insert(outgoing_message.to.node);
        let is_core = self.is_core(outgoing_message.to.node);
        self.load.cores += u64::from(is_first && is_core);
        self.load.destinations += u64::from(is_first && !is_core);
        let bytes = outgoing_message.bytes as u64;
        self.traffic.note(outgoing_message.name, bytes, is_first && !is_core);
        self.load.bytes += bytes;
        self.longest.note_message(bytes, || outgoing_message.name);
        self.routes.note(&outgoing_message);
        let proven = self.proof_for(&outgoing_message);
        let message = Message::of(&outgoing_message);
        let envelope = Envelope { from: outgoing_message.from, to: outgoing_message.to, message };
        self.outgoing.messages.push(SentMessage { envelope, proven });
    }

    fn append(&mut self, role: Role, record: &dyn Encode, bytes: usize) {
        let bytes = bytes as u64;
        self.load.logged += 1;
        self.longest.note_record(bytes);
        let mut body = Vec::new();
        role.encode(&mut body);
        record.encode_to(&mut body);
        self.outgoing.records.push(Logged { body, bytes });
    }

    fn arm(&mut self, _: Nanos, timer: MachineTimer, after: Nanos) {
        self.outgoing.timers.push((timer, after));
    }

    fn note(&mut self, result: &Result<Answer, Failure>, waits: bool) -> Note {
        let pending_report = match waits {
            true => self.journal.gate(&mut self.matching, result),
            false => self.matching.pending_report_of(result),
        };
        Kept { pending_report, waited: waits }.into()
    }

    fn answer(
        &mut self,
        environment: &Environment,
        op: OpId,
        result: Result<Answer, Failure>,
        note: Note,
    ) {
        let kept = Kept::from(note);
        if let (Some(pending_report), true) = (kept.pending_report, kept.waited) {
            let moment = self.moment(environment);
            self.journal.tell(pending_report, moment);
        }
        self.tell(op, result, kept.pending_report);
    }
}

/// Nodes of higher numbers are not in the world: only those whom strangers made up have such.
const NODES_MOST: u32 = 1 << 16;

/// A small set of nodes.
#[derive(Debug, Default)]
pub(in crate::world) struct KnownPeers(Vec<u64>);

impl KnownPeers {
    /// Adds a node; false if it was there. One that cannot be is not kept: a set has as many bits
    /// as the highest number in it.
    pub(in crate::world) fn insert(&mut self, node: NodeId) -> bool {
        if node.0 >= NODES_MOST {
            return true;
        }
        let (word, bit) = (node.0 as usize / 64, 1 << (node.0 % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    pub(in crate::world) fn clear(&mut self) {
        self.0.fill(0);
    }
}
