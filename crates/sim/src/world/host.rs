//! A host: one node with the machine it runs on.
//!
//! The host takes the inputs of a turn to the node and sorts the node's effects. Log before speak
//! is kept here: an effect that depends on log position N waits in `gated` until the disk says
//! that N is stable, and what is gated when the host crashes was never said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muesli_core::{
    Answer, Catalog, Effect, Effects, Envelope, Failure, LogPosition, Nanos, Node, NodeId, OpId,
    Protocol, Recorder, RepositoryId, Role, Sender, Timestamp, Work,
};

use muesli_core::operations::SLICE;

use super::background::Background;
use super::checkpoints::UnderWay;
use super::journal::{Journal, Matching, Promise};
use super::links::Sent;
use super::longest::Longest;
use super::operations::Operations;
use super::setup::Mistake;
use super::strangers::{self, Heard};
use crate::clock::LocalClock;
use crate::costs::Costs;
use crate::disk::Disk;
use crate::processor::{Load, Processor};
use crate::random::Random;
use crate::time::{Span, VirtualTime};

/// What a node's processor takes in.
#[derive(Debug)]
pub(super) enum Input<M> {
    /// A message from another node, and who that is.
    Message(Sender, Sent<M>),
    /// A message of a stranger, as whose word it counts.
    Strange(Sender, Envelope<M>),
    /// A timer of a role is due.
    Timer(Role, u32),
    /// A client's sleep is over.
    Awake(OpId),
    /// More of the log is stable.
    Stable,
    /// Repositories live elsewhere now.
    Placement(Arc<Catalog>),
    /// The link to another node is there from now on.
    Linked(NodeId),
    /// It is gone.
    Unlinked(NodeId),
}

/// A node with its machine. The processor, the disk and the clock outlive a crash of the node.
pub(super) struct Host<P: Protocol> {
    pub(super) id: NodeId,
    /// The newest that its node went by: on the disk before anything that was said under it left.
    pub(super) catalog: Arc<Catalog>,
    /// Nodes of the world that are clients which come and go.
    pub(super) visitors: Arc<BTreeSet<NodeId>>,
    /// Of such a client: members have proven to it that timestamps up to this one are issued.
    proven: Timestamp,
    /// When the turn under way began.
    now: VirtualTime,
    costs: Costs,
    /// `None` while it is down.
    pub(super) node: Option<Node<P>>,
    /// Which life of the node this is, from 1.
    pub(super) incarnation: u32,
    pub(super) effects: Effects<P>,
    pub(super) journal: Journal,
    pub(super) operations: Operations,
    pub(super) outgoing: Outgoing<P>,
    gated: BTreeMap<LogPosition, Vec<Gated<P::Message>>>,
    pub(super) checkpoint: Option<UnderWay>,
    /// As in [`Setup`](super::Setup).
    pub(super) cuts_too_much: bool,
    /// The log position of this life up to which the node knows its log to be stable.
    pub(super) stable: LogPosition,
    /// Timers without delay: work for turns of its own, after what was said has left.
    left_over: VecDeque<(Role, u32)>,
    /// Whether the last turn was such a one.
    went_on: bool,
    pub(super) processor: Processor<Input<P::Message>>,
    pub(super) disk: Disk<(RepositoryId, P::Record)>,
    /// How many records the disk held when this life began; log positions count from here.
    pub(super) log_base: usize,
    pub(super) clock: LocalClock,
    pub(super) random: Random,
    /// What this turn has done so far.
    pub(super) load: Load,
    /// Whom messages of this turn came from, and whom they go to.
    sources: Peers,
    destinations: Peers,
    /// What became of strangers' messages, by kind.
    pub(super) strange: BTreeMap<&'static str, Heard>,
    /// Over all lives.
    pub(super) longest: Longest,
    /// Over all lives, without what the node of this life has done.
    background: Background,
    /// Operations since the task under way was last polled.
    pub(super) polled_operations: u32,
}

/// What leaves at the end of a turn.
pub(super) struct Outgoing<P: Protocol> {
    pub(super) messages: Vec<Sent<P::Message>>,
    pub(super) records: Vec<(RepositoryId, P::Record)>,
    pub(super) timers: Vec<(Role, u32, Nanos)>,
    pub(super) sleeps: Vec<(OpId, Nanos)>,
    pub(super) spawned: Vec<muesli_core::client::Task>,
}

/// Nodes of higher numbers are not in the world: only those whom strangers made up have such.
const NODES_MOST: u32 = 1 << 16;

/// A small set of nodes.
#[derive(Debug, Default)]
struct Peers(Vec<u64>);

impl Peers {
    /// Adds a node; false if it was there. One that cannot be is not kept: a set has as many bits
    /// as the highest number in it.
    fn insert(&mut self, node: NodeId) -> bool {
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

    fn clear(&mut self) {
        self.0.fill(0);
    }
}

enum Gated<M> {
    Message(Envelope<M>),
    Answer(OpId, Result<Answer, Failure>, Option<Promise>),
}

impl<P: Protocol> Default for Outgoing<P> {
    fn default() -> Self {
        Outgoing {
            messages: Vec::new(),
            records: Vec::new(),
            timers: Vec::new(),
            sleeps: Vec::new(),
            spawned: Vec::new(),
        }
    }
}

impl<P: Protocol> Host<P> {
    /// A machine without a node.
    pub(super) fn new(
        id: NodeId,
        catalog: Arc<Catalog>,
        disk: Disk<(RepositoryId, P::Record)>,
        costs: Costs,
        random: Random,
    ) -> Self {
        Host {
            id,
            catalog,
            visitors: Arc::default(),
            proven: Timestamp::ZERO,
            now: VirtualTime::ZERO,
            costs,
            node: None,
            incarnation: 0,
            effects: Effects::default(),
            journal: Journal::default(),
            operations: Operations::default(),
            outgoing: Outgoing::default(),
            gated: BTreeMap::new(),
            checkpoint: None,
            cuts_too_much: false,
            stable: LogPosition(0),
            left_over: VecDeque::new(),
            went_on: false,
            processor: Processor::new(),
            disk,
            log_base: 0,
            clock: LocalClock::default(),
            random,
            load: Load::default(),
            sources: Peers::default(),
            destinations: Peers::default(),
            strange: BTreeMap::new(),
            longest: Longest::default(),
            background: Background::default(),
            polled_operations: 0,
        }
    }

    /// Puts a node of the next life on the machine, which goes through the log that is there, and
    /// then has links to these. With a mistake it leaves one record out, which must be noticed.
    pub(super) fn start(&mut self, mut node: Node<P>, mistake: Option<Mistake>, linked: &[NodeId]) {
        self.log_base = self.disk.stable();
        for piece in self.disk.checkpoint().iter().flat_map(|checkpoint| &checkpoint.pieces) {
            node.restore(piece, &mut self.effects).expect("the node's own checkpoint");
        }
        let records = self.disk.records();
        let left_out = match mistake {
            Some(Mistake::SkipsARecord) => Some(records.len() / 2),
            Some(Mistake::LosesTheNewest) => records.len().checked_sub(1),
            Some(Mistake::CutsTooMuch) | None => None,
        };
        for (at, (repository, record)) in records.iter().enumerate() {
            if Some(at) != left_out {
                node.replay(*repository, record.clone(), &mut self.effects);
            }
        }
        self.load.logged += records.len() as u64;
        // A replay says nothing; what it would have said was said in the earlier life.
        self.effects.list.clear();
        node.start(&mut self.effects);
        linked.iter().for_each(|other| node.linked(*other, &mut self.effects));
        self.node = Some(node);
    }

    /// The node is gone, with everything that was in its memory.
    pub(super) fn crash(&mut self) {
        let recorder = self.take_running().map(|recorder| {
            self.journal.crash(recorder);
            Box::new(Recorder::new())
        });
        self.node = None;
        self.background.maintenance += self.effects.maintenance;
        self.proven = Timestamp::ZERO;
        self.effects = Effects { recorder, ..Effects::default() };
        for promise in self.operations.forget_all() {
            self.journal.unheard(promise);
        }
        self.outgoing = Outgoing::default();
        self.gated.clear();
        self.checkpoint = None;
        self.stable = LogPosition(0);
        self.load = Load::default();
        self.sources.clear();
        self.destinations.clear();
        (self.left_over, self.went_on) = (VecDeque::new(), false);
        self.processor.crash();
    }

    /// What the node did beside transactions, over all lives.
    pub(super) fn background(&self) -> Background {
        let mut all = self.background;
        all.maintenance += self.effects.maintenance;
        all
    }

    /// A checkpoint was published, for which so many records were removed.
    pub(super) fn note_published(&mut self, cut: usize) {
        self.background.checkpoints += 1;
        self.background.cut += cut as u64;
    }

    /// The run is over.
    pub(super) fn finish(&mut self) {
        if let Some(recorder) = self.take_running() {
            self.journal.finish(recorder);
        }
    }

    /// The recorder, if there is one, with the transactions that are running.
    fn take_running(&mut self) -> Option<Recorder> {
        self.sort_effects();
        let mut recorder = self.effects.recorder.take()?;
        if let Some(node) = &self.node {
            node.record_running(&mut recorder);
        }
        Some(*recorder)
    }

    /// Begins a turn: tells the node the time and takes what has arrived to it; or, in turn with
    /// that, does what is left over.
    pub(super) fn take_inputs(&mut self, now: VirtualTime) {
        self.set_time(now);
        let is_next = !self.went_on || self.processor.waiting() == 0;
        self.went_on = is_next && !self.left_over.is_empty();
        if self.went_on {
            return self.go_on();
        }
        for _ in 0..self.processor.waiting() {
            let Some(input) = self.processor.take() else { break };
            self.take_input(input);
            self.sort_effects();
        }
        self.sort_effects();
    }

    /// Does what is left over, for as long as drivers do so at a time.
    fn go_on(&mut self) {
        let slice = Span::from_nanos(SLICE.0);
        while self.processor.cost(&self.load_so_far(), &self.costs) < slice
            && let Some((role, timer)) = self.left_over.pop_front()
        {
            self.take_input(Input::Timer(role, timer));
            self.sort_effects();
        }
    }

    /// Whether something is left over for another turn.
    pub(super) fn has_left_over(&self) -> bool {
        !self.left_over.is_empty()
    }

    /// Now, or the end of the turn under way: the node has told times up to there, and what
    /// happens to it from outside comes after them.
    pub(super) fn after_turn(&self, now: VirtualTime) -> VirtualTime {
        now.max(self.processor.free_at())
    }

    /// Tells the node the time.
    pub(super) fn set_time(&mut self, now: VirtualTime) {
        self.now = now;
        self.effects.now = self.clock.local(now);
    }

    /// Tells the node how far the turn has come: when the work of the turn so far is done.
    /// Histories want the time of every begin and end, and within a turn these follow each other.
    pub(super) fn tell_moment(&mut self) {
        self.effects.now = self.clock.local(self.moment());
    }

    fn moment(&self) -> VirtualTime {
        self.now + self.processor.cost(&self.load_so_far(), &self.costs)
    }

    fn take_input(&mut self, input: Input<P::Message>) {
        let Some(node) = &mut self.node else { return };
        match input {
            Input::Message(sender, Sent { envelope, proven }) => {
                if sender.is_member() {
                    self.proven = self.proven.max(proven);
                }
                self.load.received += 1;
                self.load.sources += u64::from(self.sources.insert(envelope.from.node));
                self.load.bytes += P::wire_bytes(&envelope.message) as u64;
                // What is left out is counted by the node, and as lost as what a link loses.
                let _ = node.receive(sender, envelope, &mut self.effects);
            }
            Input::Strange(sender, envelope) => {
                self.load.received += 1;
                self.load.bytes += P::wire_bytes(&envelope.message) as u64;
                let heard = self.strange.entry(P::message_name(&envelope.message)).or_default();
                match node.receive(sender, envelope, &mut self.effects) {
                    Ok(()) => heard.taken += 1,
                    Err(_) => heard.rejected += 1,
                }
            }
            Input::Timer(role, timer) => {
                self.load.operations += 1;
                node.timer(role, timer, &mut self.effects);
            }
            Input::Awake(op) => self.answer(op, Ok(Answer::Awake), None),
            Input::Stable => self.release(),
            Input::Placement(catalog) => node.place(catalog, &mut self.effects),
            Input::Linked(other) => node.linked(other, &mut self.effects),
            Input::Unlinked(other) => node.unlinked(other),
        }
        self.keep_catalog();
    }

    fn keep_catalog(&mut self) {
        let newest = self.node.as_ref().map(Node::catalog);
        let is_news = |it: &&Arc<Catalog>| {
            it.placement > self.catalog.placement || it.begun.len() > self.catalog.begun.len()
        };
        if let Some(newest) = newest.filter(is_news) {
            self.catalog = Arc::clone(newest);
        }
    }

    /// Lets go what waited for records that are stable now, in the order of what it waited for.
    fn release(&mut self) {
        self.stable = LogPosition((self.disk.stable() - self.log_base) as u64);
        self.publish_checkpoint();
        while let Some(entry) = self.gated.first_entry()
            && *entry.key() <= self.stable
        {
            for gated in entry.remove() {
                match gated {
                    Gated::Message(envelope) => self.speak(envelope),
                    Gated::Answer(op, result, promise) => {
                        if let Some(promise) = promise {
                            self.journal.tell(promise, self.moment());
                        }
                        self.answer(op, result, promise);
                    }
                }
            }
        }
    }

    /// Gives a client the answer of its operation, if it is still there.
    fn answer(&mut self, op: OpId, result: Result<Answer, Failure>, promise: Option<Promise>) {
        if let Some(promise) = self.operations.answer(op, result, promise) {
            self.journal.unheard(promise);
        }
    }

    /// A client does not wait for an operation any more.
    pub(super) fn forget(&mut self, op: OpId) {
        if let Some(promise) = self.operations.forget(op) {
            self.journal.unheard(promise);
        }
    }

    /// Deals the node's effects out to what they wait for or to what leaves with this turn.
    pub(super) fn sort_effects(&mut self) {
        // Speaking to the node itself makes further effects.
        while !self.effects.list.is_empty() {
            let mut list = std::mem::take(&mut self.effects.list);
            let mut matching = self.journal.look(&mut self.effects);
            for effect in list.drain(..) {
                self.sort_effect(effect, &mut matching);
            }
            if self.effects.list.is_empty() {
                self.effects.list = list;
            }
        }
    }

    fn sort_effect(&mut self, effect: Effect<P::Message, P::Record>, matching: &mut Matching) {
        match effect {
            Effect::Send { envelope, after } if after <= self.stable => self.speak(envelope),
            Effect::Send { envelope, after } => self.gate(after, Gated::Message(envelope)),
            Effect::Complete { op, result, after } if after <= self.stable => {
                let promise = matching.promise_of(&result);
                self.answer(op, result, promise);
            }
            Effect::Complete { op, result, after } => {
                let promise = self.journal.gate(matching, &result);
                self.gate(after, Gated::Answer(op, result, promise));
            }
            Effect::Log { repository, record } => {
                self.load.logged += 1;
                self.longest.note_record(P::record_bytes(&record) as u64);
                self.outgoing.records.push((repository, record));
            }
            Effect::SetTimer { role, timer, after: Nanos(0) } => {
                self.left_over.push_back((role, timer));
            }
            Effect::SetTimer { role, timer, after } => {
                self.outgoing.timers.push((role, timer, after));
            }
        }
    }

    fn gate(&mut self, after: LogPosition, gated: Gated<P::Message>) {
        self.gated.entry(after).or_default().push(gated);
    }

    fn speak(&mut self, envelope: Envelope<P::Message>) {
        if envelope.to.node == self.id {
            if let Some(node) = &mut self.node {
                node.deliver(envelope, &mut self.effects);
            }
            return;
        }
        if envelope.to.node.0 >= strangers::FIRST {
            return; // Whatever strangers are told, they say what they like.
        }
        self.load.sent += 1;
        self.load.destinations += u64::from(self.destinations.insert(envelope.to.node));
        let bytes = P::wire_bytes(&envelope.message) as u64;
        self.load.bytes += bytes;
        self.longest.note_message(bytes, || P::message_name(&envelope.message));
        let proven = self.proof_for(envelope.to.node);
        self.outgoing.messages.push(Sent { envelope, proven });
    }

    /// Up to where this node proves to another one that timestamps are issued: what members of it
    /// know where that one is a visitor, what they have proven where this one is.
    fn proof_for(&self, other: NodeId) -> Timestamp {
        let node = self.node.as_ref().filter(|_| self.visitors.contains(&other));
        node.map_or(self.proven, Node::issued)
    }

    /// Ends the turn. Returns when its effects leave.
    pub(super) fn end_turn(&mut self) -> VirtualTime {
        let load = self.load_so_far();
        (self.load, self.effects.work) = (Load::default(), Work::default());
        self.sources.clear();
        self.destinations.clear();
        self.processor.end(self.now, &load, &self.costs)
    }

    /// What the turn has done so far, the work that the node says it did included.
    fn load_so_far(&self) -> Load {
        let work = &self.effects.work;
        Load {
            reads: self.load.reads + work.reads,
            validated: self.load.validated + work.validated,
            installed: self.load.installed + work.installed,
            ..self.load
        }
    }

    /// Whether nothing waits for the disk and nobody for an answer.
    pub(super) fn is_settled(&self) -> bool {
        let unfinished = self.node.as_ref().map_or((0, 0), Node::unfinished);
        self.gated.is_empty() && self.operations.len() == 0 && unfinished == (0, 0)
    }
}
