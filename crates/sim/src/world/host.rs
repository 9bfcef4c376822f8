//! A host: one node with the machine it runs on.
//!
//! The host takes the inputs of a turn to the node; the node's machine performs what follows, and
//! what the host does for that is in its [`Surroundings`]. Clients that are polled on the host see
//! it as an [`engine`]; what its transactions did is in its [`journal`].

pub(super) mod background;
pub(super) mod checkpoint;
pub(super) mod engine;
pub(super) mod input;
pub(super) mod journal;
pub(super) mod longest;
pub(super) mod message;
pub(super) mod mistake;
mod operations;
pub(super) mod routes;
pub(super) mod strangers;
mod surroundings;

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::operations::SLICE;
use muesli_core::{
    Answer, AnyMachine, BatchCounts, Catalog, Envelope, Environment, LogPosition, NodeId, OpId,
    Reader, Recorder, Rejection, Sender, Work,
};

use super::node_traffic::NodeTraffic;
use crate::hardware::clock::LocalClock;
use crate::hardware::costs::Costs;
use crate::hardware::disk::Disk;
use crate::random::Random;
use crate::time::{Span, VirtualTime};
use background::Background;
use checkpoint::HostCheckpoint;
use input::HostInput;
use message::{Logged, Message, SentMessage};
use mistake::Mistake;
use strangers::StrangerCount;
use surroundings::{KnownPeers, Surroundings};

/// A node with its host. The processor, the disk and the clock outlive a crash of the node.
pub(super) struct Host {
    pub(super) id: NodeId,
    /// The newest that its node went by: on the disk before anything that was said under it left.
    pub(super) catalog: Arc<Catalog>,
    /// `None` while it is down.
    pub(super) machine: Option<Box<dyn AnyMachine>>,
    /// For the node's next life, while it is down.
    next: Environment,
    /// Which life of the node this is, from 1.
    pub(super) incarnation: u32,
    /// Its disk was lost once.
    pub(super) has_lost_disk: bool,
    pub(super) outside: Surroundings,
    pub(super) checkpoint: Option<HostCheckpoint>,
    /// As in [`Setup`](super::Setup).
    pub(super) cuts_too_much: bool,
    /// Whether the last turn was one for what was left over.
    went_on: bool,
    pub(super) disk: Disk<Logged>,
    /// How many records the disk held when this life began; log positions count from here.
    pub(super) log_base: usize,
    pub(super) clock: LocalClock,
    pub(super) random: Random,
    /// Whom messages of this turn came from.
    sources: KnownPeers,
    /// What became of strangers' messages, by kind.
    pub(super) strange: BTreeMap<&'static str, StrangerCount>,
    /// Over all lives, without what the node of this life has done.
    background: Background,
    /// HostOperations since the task under way was last polled.
    pub(super) polled_operations: u32,
    /// How many turns there were.
    ticks: u64,
}

/// Once in so many turns all that a node promises of its state is looked at. In each turn that
/// would be three quarters of what a search does; so it is less than a tenth.
const CHECKED_TICKS: u64 = 32;

impl Host {
    /// A machine without a node.
    pub(super) fn new(
        id: NodeId,
        catalog: Arc<Catalog>,
        disk: Disk<Logged>,
        costs: Costs,
        random: Random,
    ) -> Self {
        Host {
            id,
            catalog,
            machine: None,
            next: Environment::default(),
            incarnation: 0,
            has_lost_disk: false,
            outside: Surroundings::new(costs),
            checkpoint: None,
            cuts_too_much: false,
            went_on: false,
            disk,
            log_base: 0,
            clock: LocalClock::default(),
            random,
            sources: KnownPeers::default(),
            strange: BTreeMap::new(),
            background: Background::default(),
            polled_operations: 0,
            ticks: 0,
        }
    }

    /// Has the node record what it does.
    pub(super) fn record(&mut self) {
        self.environment_mut().recorder = Some(Box::new(Recorder::new()));
    }

    /// The log position of this life up to which the node knows its log to be stable.
    pub(super) fn stable(&self) -> LogPosition {
        self.machine().map_or(LogPosition(0), AnyMachine::stable)
    }

    /// The node's machine, if it is up.
    pub(super) fn machine(&self) -> Option<&dyn AnyMachine> {
        self.machine.as_deref()
    }

    /// Whether the node is up.
    pub(super) fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    /// The environment of the node, or that which its next life begins with.
    pub(super) fn environment(&self) -> &Environment {
        self.machine.as_ref().map_or(&self.next, |machine| machine.environment())
    }

    pub(super) fn environment_mut(&mut self) -> &mut Environment {
        match &mut self.machine {
            Some(machine) => machine.environment_mut(),
            None => &mut self.next,
        }
    }

    /// What the node's next life begins with.
    pub(super) fn take_environment(&mut self) -> Environment {
        std::mem::take(&mut self.next)
    }

    /// Puts a node of the next life on the machine, which goes through the log that is there, and
    /// then has links to these. With a mistake it leaves one record out, which must be noticed.
    pub(super) fn start(
        &mut self,
        mut machine: Box<dyn AnyMachine>,
        mistake: Option<Mistake>,
        linked: &[NodeId],
    ) {
        self.log_base = self.disk.stable();
        for piece in self.disk.checkpoint().iter().flat_map(|checkpoint| &checkpoint.pieces) {
            machine.restore(piece).expect("the node's own checkpoint");
        }
        let records = self.disk.records();
        let left_out = match mistake {
            Some(Mistake::SkipsARecord) => Some(records.len() / 2),
            Some(Mistake::LosesTheNewest) => records.len().checked_sub(1),
            Some(Mistake::CutsTooMuch) | None => None,
        };
        let mut decoding = machine.decoding();
        for (at, record) in records.iter().enumerate() {
            if Some(at) != left_out {
                decoding.decode(&record.body).expect("the node's own record");
            }
        }
        machine.replay(decoding.take());
        self.outside.load.logged += records.len() as u64;
        machine.start(linked);
        self.machine = Some(machine);
    }

    /// The node is gone, with everything that was in its memory.
    pub(super) fn crash(&mut self) {
        let recorder = self.take_running().map(|recorder| {
            self.outside.journal.crash(recorder);
            Box::new(Recorder::new())
        });
        self.background.maintenance += self.environment().maintenance;
        self.outside.traffic.batches += self.held_back();
        let sampler = self.environment().accesses.as_ref();
        let accesses = sampler.map(|sampler| Box::new(sampler.emptied()));
        self.machine = None;
        self.next = Environment { recorder, accesses, ..Environment::default() };
        self.outside.crash();
        self.checkpoint = None;
        self.sources.clear();
        self.went_on = false;
    }

    /// What the node did beside transactions, over all lives.
    pub(super) fn background(&self) -> Background {
        let mut all = self.background;
        all.maintenance += self.environment().maintenance;
        all
    }

    /// What the node has sent to others, over all lives.
    pub(super) fn traffic(&self) -> NodeTraffic {
        let mut all = self.outside.traffic.clone();
        all.batches += self.held_back();
        all
    }

    /// What became of messages that were held back in this life.
    fn held_back(&self) -> BatchCounts {
        self.machine().map_or_else(BatchCounts::default, AnyMachine::batch_counts)
    }

    /// A checkpoint was published, for which so many records were removed.
    pub(super) fn note_published(&mut self, cut: usize) {
        self.background.checkpoints += 1;
        self.background.cut += cut as u64;
    }

    /// The run is over.
    pub(super) fn finish(&mut self) {
        if let Some(recorder) = self.take_running() {
            self.outside.journal.finish(recorder);
        }
    }

    /// The recorder, if there is one, with the transactions that are running.
    fn take_running(&mut self) -> Option<Recorder> {
        self.perform();
        let mut recorder = self.environment_mut().recorder.take()?;
        if let Some(machine) = self.machine() {
            machine.record_running(&mut recorder);
        }
        Some(*recorder)
    }

    /// Begins a turn: tells the node the time and takes what has arrived to it; or, in turn with
    /// that, does what is left over.
    pub(super) fn take_inputs(&mut self, now: VirtualTime) {
        self.set_time(now);
        let is_next = !self.went_on || self.outside.processor.waiting() == 0;
        self.went_on = is_next && self.has_left_over();
        if self.went_on {
            return self.go_on();
        }
        for _ in 0..self.outside.processor.waiting() {
            let Some(input) = self.outside.processor.take() else { break };
            self.take_input(input);
        }
        self.perform();
    }

    /// Does what is left over, for as long as drivers do so at a time.
    fn go_on(&mut self) {
        let slice = Span::from_nanos(SLICE.0);
        while self.has_left_over()
            && self.outside.moment(self.environment()) < self.outside.now + slice
        {
            let Some(machine) = &mut self.machine else { return };
            self.outside.load.operations += 1;
            machine.go_on(&mut self.outside);
            self.keep_catalog();
        }
    }

    /// Whether something is left over for another turn.
    pub(super) fn has_left_over(&self) -> bool {
        self.machine().is_some_and(AnyMachine::has_left_over)
    }

    /// Now, or the end of the turn under way: the node has told times up to there, and what
    /// happens to it from outside comes after them.
    pub(super) fn after_tick(&self, now: VirtualTime) -> VirtualTime {
        now.max(self.outside.processor.free_at())
    }

    /// Tells the node the time.
    pub(super) fn set_time(&mut self, now: VirtualTime) {
        self.outside.now = now;
        self.environment_mut().now = self.clock.local(now);
    }

    /// Tells the node how far the turn has come: when the work of the turn so far is done.
    /// Histories want the time of every begin and end, and within a turn these follow each other.
    pub(super) fn tell_moment(&mut self) {
        let moment = self.outside.moment(self.environment());
        self.environment_mut().now = self.clock.local(moment);
    }

    fn take_input(&mut self, input: HostInput) {
        let Host { machine: Some(machine), outside, .. } = self else { return };
        match input {
            HostInput::Message(sender, SentMessage { envelope, proven }) => {
                if sender.is_member() {
                    outside.proven = outside.proven.max(proven);
                }
                outside.load.received += 1;
                if self.sources.insert(envelope.from.node) {
                    outside.note_source(envelope.from.node);
                }
                outside.load.bytes += envelope.message.bytes;
                // What is left out is counted by the node, and as lost as what a link loses.
                let _ = receive(&mut **machine, sender, &envelope, outside);
            }
            HostInput::Strange(sender, envelope) => {
                outside.load.received += 1;
                outside.load.bytes += envelope.message.bytes;
                let counted = self.strange.entry(envelope.message.name).or_default();
                match receive(&mut **machine, sender, &envelope, outside) {
                    Ok(()) => counted.taken += 1,
                    Err(_) => counted.rejected += 1,
                }
            }
            HostInput::Timer(timer) => {
                outside.load.operations += 1;
                machine.timer(timer, outside);
            }
            HostInput::Awake(op) if outside.deadlines.is_over(op) => {
                let now = machine.environment().now;
                for due in outside.deadlines.due(now) {
                    machine.meet(due, outside);
                }
                let Surroundings { deadlines, operations, outgoing, .. } = outside;
                outgoing.sleeps.extend(deadlines.arm(now, operations));
            }
            HostInput::Awake(op) => outside.tell(op, Ok(Answer::Awake), None),
            HostInput::Stable => self.release(),
            HostInput::Placement(catalog) => machine.place(catalog, outside),
            HostInput::Linked(other) => machine.linked(other, outside),
            HostInput::Unlinked(other) => machine.unlinked(other, outside),
        }
        self.keep_catalog();
    }

    /// What this node begins its next life with is at least as new as this.
    pub(super) fn observe_catalog(&mut self, catalog: &Catalog) {
        if let Some(newest) = self.catalog.newest(catalog) {
            self.catalog = Arc::new(newest);
        }
    }

    fn keep_catalog(&mut self) {
        let newest = self.machine().map(AnyMachine::catalog);
        let is_news = |it: &&Arc<Catalog>| {
            it.placement > self.catalog.placement
                || it.begun.len() > self.catalog.begun.len()
                || it.tree_epoch > self.catalog.tree_epoch
        };
        if let Some(newest) = newest.filter(is_news) {
            self.catalog = Arc::clone(newest);
        }
    }

    /// Lets go what waited for records that are stable now, in the order of what it waited for.
    fn release(&mut self) {
        let stable = LogPosition((self.disk.stable() - self.log_base) as u64);
        if let Some(machine) = &mut self.machine {
            machine.learn_stable(stable);
        }
        self.publish_checkpoint();
        if let Some(machine) = &mut self.machine {
            machine.let_go(&mut self.outside);
        }
    }

    /// A client does not wait for an operation any more.
    pub(super) fn forget(&mut self, op: OpId) {
        if let Some(pending_report) = self.outside.operations.forget(op) {
            self.outside.journal.unheard(pending_report);
        }
    }

    /// Performs what the node asked for: some of it waits, the rest leaves with this turn.
    pub(super) fn perform(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.perform(&mut self.outside);
        }
    }

    /// Ends the turn. Returns when its effects leave.
    pub(super) fn end_tick(&mut self) -> VirtualTime {
        self.sources.clear();
        self.assert_invariants();
        let environment = match &mut self.machine {
            Some(machine) => machine.environment_mut(),
            None => &mut self.next,
        };
        let leave = self.outside.end_tick(environment);
        environment.work = Work::default();
        leave
    }

    /// Where a history is recorded, to be judged, the node's state is, too: once in so many turns,
    /// as a look at all of it takes longer than most turns.
    fn assert_invariants(&mut self) {
        self.ticks += 1;
        if !self.ticks.is_multiple_of(CHECKED_TICKS) {
            return;
        }
        if let Some(machine) = self.machine().filter(|it| it.environment().recorder.is_some()) {
            machine.assert_invariants();
        }
    }

    /// Whether nothing waits for the disk and nobody for an answer.
    pub(super) fn is_settled(&self) -> bool {
        let unfinished = self.machine().map_or((0, 0), AnyMachine::unfinished);
        let waits = self.machine().and_then(AnyMachine::waits_for);
        waits.is_none() && self.outside.operations.len() == 0 && unfinished == (0, 0)
    }
}

/// Takes a message of another node to one.
fn receive(
    machine: &mut dyn AnyMachine,
    sender: Sender,
    envelope: &Envelope<Message>,
    outside: &mut Surroundings,
) -> Result<(), Rejection> {
    let Envelope { from, to, message } = envelope;
    let mut body = Reader::new(&message.body);
    let received = machine.receive(sender, (*from, *to), &mut body, outside);
    received.expect("what a node wrote, or what was decoded before")
}
