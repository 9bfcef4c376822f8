//! A node: a map of [roles](crate::roles), which every driver uses through one interface. The
//! coordinator and the participants, which most transactions need, are found without a look-up.
//!
//! Messages between roles of one node never reach the driver: they are delivered here, in order,
//! once what they wait for is stable; in memory that is at once.

mod above;
mod by_name;
mod checkpoints;
mod looks;
mod roles_here;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use roles_here::{context, each_logged_role, find, find_mut, logged_role};

use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::contract::{
    Context, Coordinator, Effect, Effects, Envelope, Here, LoggedRole, Operation, Participant,
    Protocol, Service, StateMachine, Step,
};
use crate::ids::{NodeId, RepositoryId, SpaceId, Timestamp, Txn};
use crate::judgement::{Rejection, Rejections, Sender, View, ensure};
use crate::memory::Held;
use crate::options::{Settings, TxnOptions};
use crate::outcome::Failure;
use crate::positions::LogPosition;
use crate::roles::{Address, Role, ServiceId};
use crate::time::Nanos;
use crate::timers::Timer;

/// The state machines of one node under one protocol.
#[derive(Clone)]
pub struct Node<P: Protocol> {
    id: NodeId,
    catalog: Arc<Catalog>,
    settings: Arc<Settings>,
    switches: P::Switches,
    coordinator: P::Coordinator,
    participants: Vec<(RepositoryId, P::Participant)>,
    services: Vec<(ServiceId, P::Service)>,
    incarnation: u32,
    rejections: Rejections,
}

/// Without what it shares with other nodes.
impl<P: Protocol> fmt::Debug for Node<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Node { id, coordinator, participants, services, .. } = self;
        let mut shown = f.debug_struct("Node");
        shown.field("id", id).field("coordinator", coordinator);
        shown.field("participants", participants);
        if !services.is_empty() {
            shown.field("services", services);
        }
        shown.finish_non_exhaustive()
    }
}

/// The timer of this number, which its role has set.
fn timer_of<T: Timer>(number: u32) -> T {
    T::numbered(number).expect("a timer that the role has set")
}

impl<P: Protocol> Node<P> {
    /// A node with the repositories whose home it is and its services, empty;
    /// [`start`](Self::start) it next.
    pub fn new(
        id: NodeId,
        incarnation: u32,
        catalog: Arc<Catalog>,
        settings: Arc<Settings>,
        switches: &P::Switches,
    ) -> Node<P> {
        let participants = (0..catalog.repositories() as u16)
            .map(RepositoryId)
            .filter(|&repository| catalog.home(repository) == id)
            .map(|repository| (repository, P::Participant::new(repository, &settings, switches)))
            .collect();
        let coordinator = P::Coordinator::new(id, incarnation, switches);
        let mut node = Node {
            id,
            catalog,
            settings,
            switches: switches.clone(),
            coordinator,
            participants,
            services: Vec::new(),
            incarnation,
            rejections: Rejections::default(),
        };
        node.new_services();
        node
    }

    /// What it was told when it was made.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Checks what each role says of its own state.
    ///
    /// # Panics
    /// Something of that does not hold.
    pub fn assert_invariants(&self) {
        self.coordinator.assert_invariants();
        self.participants.iter().for_each(|(_, it)| it.assert_invariants());
        self.services.iter().for_each(|(_, it)| it.assert_invariants());
    }

    /// Who this is.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Makes the services that are to be here and are not, in the order of their ids, and tells
    /// which they are.
    fn new_services(&mut self) -> Vec<ServiceId> {
        let mut wanted = P::services(&self.switches, self.id, &self.catalog);
        wanted.retain(|id| self.services.iter().all(|(known, _)| known != id));
        wanted.sort_unstable();
        wanted.dedup();
        for &id in &wanted {
            let (settings, switches) = (&self.settings, &self.switches);
            let service = P::Service::new(id, self.id, self.incarnation, settings, switches);
            self.services.push((id, service));
        }
        self.services.sort_unstable_by_key(|(id, _)| *id);
        wanted
    }

    /// Starts the roles: participants, services, and then the coordinator.
    pub fn start(&mut self, effects: &mut Effects<P>) {
        each_logged_role!(self, effects, |it, cx| it.start(cx));
        let before = effects.list.len();
        let mut cx = context!(self, Role::Coordinator, effects);
        self.coordinator.start(Here::new(&mut self.participants), &mut cx);
        self.deliver_local(effects, before);
    }

    /// Newer spaces.
    pub fn reconfigure(&mut self, catalog: Arc<Catalog>) {
        if catalog.epoch > self.catalog.epoch {
            self.catalog = catalog;
        }
    }

    /// A catalog that is newer, in its spaces, its placement or its tree. In the second case
    /// repositories may live elsewhere, in the last two services. Those that come here begin empty;
    /// those that go stay for as long as the node lives, so that they can say where they went. A
    /// driver keeps the newest catalog that its node [goes by](Self::catalog), before anything that
    /// the node says under it leaves, and begins the node's next life with it.
    pub fn place(&mut self, catalog: Arc<Catalog>, effects: &mut Effects<P>) {
        let Some(newest) = self.catalog.newest(&catalog) else { return };
        let have_moved = newest.placement != self.catalog.placement;
        let is_other_tree = newest.hierarchy != self.catalog.hierarchy;
        self.catalog = Arc::new(newest);
        if have_moved {
            self.place_participants(effects);
        }
        if have_moved || is_other_tree {
            self.place_services(effects);
        }
    }

    fn place_participants(&mut self, effects: &mut Effects<P>) {
        for (repository, participant) in &mut self.participants {
            participant.placed(&mut context!(self, Role::Repository(*repository), effects));
        }
        for repository in (0..self.catalog.repositories() as u16).map(RepositoryId) {
            let is_known = self.participants.iter().any(|(id, _)| *id == repository);
            if !is_known && self.catalog.home(repository) == self.id {
                let mut new = P::Participant::new(repository, &self.settings, &self.switches);
                new.start(&mut context!(self, Role::Repository(repository), effects));
                self.participants.push((repository, new));
            }
        }
        self.participants.sort_by_key(|(id, _)| *id);
    }

    fn place_services(&mut self, effects: &mut Effects<P>) {
        for (id, service) in &mut self.services {
            service.placed(&mut context!(self, Role::Service(*id), effects));
        }
        let new = self.new_services();
        for (id, service) in self.services.iter_mut().filter(|(id, _)| new.contains(id)) {
            service.start(&mut context!(self, Role::Service(*id), effects));
        }
    }

    /// A link to another node is there from now on. A driver whose links are always there need not
    /// say so.
    pub fn linked(&mut self, node: NodeId, effects: &mut Effects<P>) {
        let before = effects.list.len();
        self.coordinator.linked(node, &mut context!(self, Role::Coordinator, effects));
        each_logged_role!(self, effects, |it, cx| it.linked(node, cx));
        self.deliver_local(effects, before);
    }

    /// The link to another node is gone, or could not be made.
    pub fn unlinked(&mut self, node: NodeId, effects: &mut Effects<P>) {
        let before = effects.list.len();
        self.coordinator.unlinked(node, &mut context!(self, Role::Coordinator, effects));
        each_logged_role!(self, effects, |it, cx| it.unlinked(node, cx));
        self.deliver_local(effects, before);
    }

    /// The node ends in an orderly way: see [`Coordinator::leave`].
    pub fn leave(&mut self, effects: &mut Effects<P>) {
        let before = effects.list.len();
        self.coordinator.leave(&mut context!(self, Role::Coordinator, effects));
        self.deliver_local(effects, before);
    }

    /// The catalog this node goes by.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Does what a client asks; see [`Coordinator::operate`].
    #[inline(always)]
    pub fn operate(&mut self, operation: Operation, effects: &mut Effects<P>) -> Step {
        let operation = match self.bounded(operation) {
            Ok(operation) => operation,
            Err(failure) => return Step::Done(Err(failure)),
        };
        let before = effects.list.len();
        let mut cx = context!(self, Role::Coordinator, effects);
        let here = Here::new(&mut self.participants);
        let answer = self.coordinator.operate(operation, here, &mut cx);
        if effects.list.len() > before {
            self.deliver_local(effects, before);
        }
        answer
    }

    /// What is asked of the coordinator in place of a transaction that may be stale.
    #[inline(always)]
    fn bounded(&self, operation: Operation) -> Result<Operation, Failure> {
        match operation {
            Operation::Begin(options) if options.staleness.is_some() => {
                self.bounded_options(options).map(Operation::Begin)
            }
            Operation::Invoke(options, call) if options.staleness.is_some() => {
                Ok(Operation::Invoke(self.bounded_options(options)?, call))
            }
            other => Ok(other),
        }
    }

    #[cold]
    fn bounded_options(&self, options: TxnOptions) -> Result<TxnOptions, Failure> {
        let protocol = P::NAME;
        let options = P::staleness(&self.switches).options(options);
        options.ok_or(Failure::Unbounded { protocol })
    }

    /// See [`Coordinator::peek`].
    #[inline]
    pub fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        effects: &mut Effects<P>,
        out: &mut [Option<SmallBytes>],
    ) -> bool {
        let mut cx = context!(self, Role::Coordinator, effects);
        let here = Here::new(&mut self.participants);
        self.coordinator.peek(txn, space, keys, here, &mut cx, out)
    }

    /// What sessions of this node may have seen, with whose word that is; see
    /// [`Coordinator::session_token`].
    pub fn session_token(&self) -> Option<(NodeId, SmallBytes)> {
        self.coordinator.session_token().map(|session_token| (self.id, session_token))
    }

    /// See [`Coordinator::adopt`].
    pub fn adopt(&mut self, session_token: &SmallBytes) {
        self.coordinator.adopt(session_token);
    }

    /// Ends the transactions that take operations; they are told that the node is gone.
    pub fn abort_open(&mut self, effects: &mut Effects<P>) {
        for txn in self.coordinator.open_transactions() {
            self.operate(Operation::Abort(txn, Failure::Closed), effects);
        }
    }

    /// A message that came from another process: it is judged, and taken or left out.
    ///
    /// # Errors
    /// It is left out, for this reason, and nothing else has changed.
    pub fn receive(
        &mut self,
        sender: Sender,
        envelope: Envelope<P::Message>,
        effects: &mut Effects<P>,
    ) -> Result<(), Rejection> {
        match self.judge(sender, &envelope) {
            Ok(()) => {
                self.deliver(envelope, effects);
                Ok(())
            }
            Err(reason) => {
                self.rejections.count(P::message_name(&envelope.message), reason);
                Err(reason)
            }
        }
    }

    /// Whether a message from another process may be taken.
    fn judge(&self, sender: Sender, envelope: &Envelope<P::Message>) -> Result<(), Rejection> {
        let Envelope { from, to, message } = envelope;
        let is_coordinator = from.role == Role::Coordinator;
        ensure(sender.is_member() || is_coordinator, Rejection::Sender)?;
        ensure(from.node != self.id && to.node == self.id, Rejection::Sender)?;
        ensure(P::is_about(message, &self.catalog), Rejection::Catalog)?;
        let sender = match sender {
            Sender::Member => sender,
            Sender::Client { .. } => sender.knowing(self.issued()),
        };
        let (me, from, catalog, settings) = (*to, *from, &*self.catalog, &*self.settings);
        let view = View { me, from, sender, catalog, settings };
        P::judge(message, view)?;
        match to.role {
            Role::Coordinator => self.coordinator.judge(message, view),
            role => logged_role!(&self, role, |it| it.judge(message, view))
                .unwrap_or(Err(Rejection::Role)),
        }
    }

    /// The largest timestamp that members are known here to have issued.
    pub fn issued(&self) -> Timestamp {
        let here = self.participants.iter().map(|(_, participant)| participant.issued());
        let here = here.chain(self.services.iter().map(|(_, service)| service.issued()));
        here.fold(self.coordinator.issued(), Timestamp::max)
    }

    /// What the versions of this process hold, as its repositories have reported.
    pub fn memory(&self) -> Held {
        self.settings.memory.held()
    }

    /// See [`Coordinator::oldest_snapshot`].
    pub fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)> {
        self.coordinator.oldest_snapshot()
    }

    /// What was left out, by kind and reason: messages, and records of members.
    pub fn rejections(&self) -> Rejections {
        let mut all = self.rejections.clone();
        let judges = self.participants.iter().filter_map(|(_, it)| it.rejections());
        judges.for_each(|more| all.add(more));
        all
    }

    /// A message of this process: of another loop of it, or of this node's own, which waited for
    /// the log. It is not judged.
    pub fn deliver(&mut self, envelope: Envelope<P::Message>, effects: &mut Effects<P>) {
        let before = effects.list.len();
        self.deliver_one(envelope, effects);
        self.deliver_local(effects, before);
    }

    /// A timer that one of the roles set.
    pub fn timer(&mut self, role: Role, timer: u32, effects: &mut Effects<P>) {
        let before = effects.list.len();
        let mut cx = context!(self, role, effects);
        match role {
            Role::Coordinator => {
                let here = Here::new(&mut self.participants);
                self.coordinator.timer(timer_of(timer), here, &mut cx);
            }
            role => {
                logged_role!(&mut self, role, |it| it.timer(timer_of(timer), &mut cx));
            }
        }
        self.deliver_local(effects, before);
    }

    fn deliver_one(&mut self, envelope: Envelope<P::Message>, effects: &mut Effects<P>) {
        let Envelope { from, to, message } = envelope;
        let mut cx = context!(self, to.role, effects);
        match to.role {
            Role::Coordinator => {
                let here = Here::new(&mut self.participants);
                self.coordinator.receive(from, message, here, &mut cx);
            }
            role => {
                logged_role!(&mut self, role, |it| it.receive(from, message, &mut cx));
            }
        }
    }

    /// Delivers the messages that the effects from `start` on have for this node and that wait
    /// for nothing, and what follows from them, in order; then goes by the newest catalog that a
    /// role was told of meanwhile.
    fn deliver_local(&mut self, effects: &mut Effects<P>, start: usize) {
        let (mut local, mut start) = (VecDeque::new(), start);
        loop {
            let id = self.id;
            let is_local = |effect: &mut Effect<P::Message, P::Record>| {
                matches!(effect, Effect::Send { envelope, after }
                    if envelope.to.node == id && *after == LogPosition(0))
            };
            local.extend(effects.list.extract_if(start.., is_local));
            start = effects.list.len();
            if let Some(effect) = local.pop_front() {
                let Effect::Send { envelope, .. } = effect else { unreachable!("is a message") };
                self.deliver_one(envelope, effects);
            } else if let Some(catalog) = effects.newer_catalog.take() {
                self.place(catalog, effects);
            } else {
                return;
            }
        }
    }
}
