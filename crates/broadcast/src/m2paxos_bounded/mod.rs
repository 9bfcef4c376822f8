//! M²Paxos whose ownership is bounded by the order of another broadcast (Turcu 2015, section
//! 10.2.3).
//!
//! # The idea
//! Under [M²Paxos](crate::m2paxos) members that want the same objects may take them from each other
//! again and again. Here who wants to own the objects of a command asks for that by a request, and
//! requests are ordered by another broadcast, all of them. A request that is ordered is a *grant*.
//! Its number is the epoch of its owner, and grants are acted on one after the other where they
//! have objects in common (`m2paxos/grants.rs`). A command of one object whose object somebody owns
//! goes there, and needs no grant; each command of several objects does.
//!
//! # What is bounded
//! A command that is granted is decided by the first owner that acts on its grant and is not taken
//! for dead: nobody acts on another grant of these objects before. Each time that an owner is taken
//! for dead, the next one acts, on all grants up to its own; so a command is decided after one
//! grant, and one more for each owner that was taken for dead since.
//!
//! # Why the order is one
//! Places agree as under M²Paxos: an owner has its epoch promised by a majority, as before, and no
//! two grants have the same number. Places do not contradict each other: commands of several
//! objects are everywhere in the order of their first grants. So nothing waits in a cycle.
//!
//! # What touches everything
//! A request for such a command is ordered like the others. Whoever hears of it stops, and says in
//! that order what it has of all places; what a majority has makes a cut (`m2paxos/cut.rs`), behind
//! which the command is delivered. So members can be exchanged.
//!
//! # What it costs
//! A command of several objects has the delays of the other broadcast before it, and those of one
//! owner that have objects in common are not under way side by side.

mod checkpoint;
mod closing;
pub mod message;

use muesli_core::bytes::SmallBytes;
use muesli_core::wire::Wire as _;
use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings, EffectsOf};
use crate::command::{Command, CommandId, MemberId};
use crate::effects::{BroadcastEffect, BroadcastEffects};
use crate::epaxos::Epaxos;
use crate::generalized::Generalized;
use crate::id_set::IdSet;
use crate::m2paxos::message::ObjectSlot;
use crate::m2paxos::{self, M2Paxos, M2PaxosSwitch, WantedGrant};
use crate::member::checkpoint::CheckpointError;
use crate::multipaxos::MultiPaxos;
use crate::objects::ObjectSet;
use crate::pob::Pob;
use checkpoint::RestoredObjects;
use closing::ClosingCommands;
use message::{BoundedMessage, BoundedRecord, BoundedRequest, OwnershipRequest};

/// A broadcast that orders requests for objects.
pub trait OrdersOwnership: Broadcast {
    /// What M²Paxos is called that is bounded by it.
    const BOUNDED_NAME: &'static str;
}

impl OrdersOwnership for MultiPaxos {
    const BOUNDED_NAME: &'static str = "m2paxos-bounded";
}

impl OrdersOwnership for Pob {
    const BOUNDED_NAME: &'static str = "m2paxos-bounded-pob";
}

impl OrdersOwnership for Epaxos {
    const BOUNDED_NAME: &'static str = "m2paxos-bounded-epaxos";
}

impl OrdersOwnership for Generalized {
    const BOUNDED_NAME: &'static str = "m2paxos-bounded-generalized";
}

/// What its user chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BoundedSwitches<S> {
    /// Of the broadcast that orders requests.
    pub order: S,
    /// Of M²Paxos itself.
    pub objects: m2paxos::Switches,
    /// Members acquire objects by themselves, as without that order: it is for commands alone that
    /// touch everything.
    pub acquires: bool,
}

impl<S: Default> BoundedSwitches<S> {
    /// M²Paxos as it is without bounds, with an order for what touches everything.
    pub fn acquiring() -> BoundedSwitches<S> {
        BoundedSwitches { acquires: true, ..BoundedSwitches::default() }
    }
}

/// A member of M²Paxos that is bounded by the order of another broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct M2PaxosBounded<B> {
    objects: M2Paxos,
    order: B,
    closing: ClosingCommands,
    /// So many cuts were made.
    cuts: u64,
    /// Of a checkpoint, what has come so far.
    restoring: Option<RestoredObjects>,
}

/// What this broadcast wants done.
type Effects<B> = BroadcastEffects<
    BoundedMessage<<B as Broadcast>::Message>,
    BoundedRecord<<B as Broadcast>::Record>,
>;

impl<B: OrdersOwnership> M2PaxosBounded<B> {
    /// How many commands it knows, those that are delivered and may be asked for still among them.
    pub fn known(&self) -> usize {
        self.objects.known()
    }

    /// All places of which it knows what is decided there.
    pub fn decided(&self) -> impl Iterator<Item = (ObjectSlot, Option<CommandId>)> + '_ {
        self.objects.decided()
    }

    /// Commands that were delivered here.
    pub fn delivered(&self) -> &IdSet {
        self.objects.delivered()
    }

    /// Whether members own objects by grants alone.
    pub fn is_bounded(&self) -> bool {
        self.objects.is_granted()
    }

    /// How many requests for objects were ordered, as far as it knows.
    pub fn granted(&self) -> u32 {
        self.objects.granted()
    }

    /// Has objects and places do something, and does what that leads to.
    fn act(
        &mut self,
        out: &mut Effects<B>,
        act: impl FnOnce(&mut M2Paxos, &mut EffectsOf<M2Paxos>),
    ) {
        self.act_on_objects(out, act);
        self.settle(out);
    }

    fn act_on_objects(
        &mut self,
        out: &mut Effects<B>,
        act: impl FnOnce(&mut M2Paxos, &mut EffectsOf<M2Paxos>),
    ) {
        let mut inside = BroadcastEffects::at(out.now);
        act(&mut self.objects, &mut inside);
        let cuts = self.cuts;
        out.effects.extend(inside.effects.into_iter().map(|effect| match effect {
            BroadcastEffect::Send { to, message } => {
                BroadcastEffect::Send { to, message: BoundedMessage::Objects { cuts, message } }
            }
            BroadcastEffect::Log(record) => BroadcastEffect::Log(BoundedRecord::Objects(record)),
            BroadcastEffect::Deliver(delivered) => BroadcastEffect::Deliver(delivered),
            BroadcastEffect::GivenUp(id) => BroadcastEffect::GivenUp(id),
        }));
    }

    /// Goes on with what was granted, and has ordered what is wanted, until nothing is.
    fn settle(&mut self, out: &mut Effects<B>) {
        loop {
            self.report_frozen(out);
            self.act_on_objects(out, M2Paxos::go_on_with_grants);
            let Some(WantedGrant { owner, command }) = self.objects.next_wanted() else { return };
            let request = match command.command.objects.is_everything() {
                true => BoundedRequest::Everything(command),
                false => BoundedRequest::Ownership(OwnershipRequest { owner, command }),
            };
            self.propose_request(&request, out);
        }
    }

    /// Has a request ordered.
    fn propose_request(&mut self, request: &BoundedRequest, out: &mut Effects<B>) {
        let mut payload = Vec::new();
        request.encode(&mut payload);
        let objects = ObjectSet::writes([0]).into();
        let request = Command { objects, payload: SmallBytes::from(payload) };
        self.have_ordered(out, |it, inside| _ = it.propose(request, inside));
    }

    /// Has the order of requests do something, and does what that leads to.
    fn have_ordered(&mut self, out: &mut Effects<B>, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut inside = BroadcastEffects::at(out.now);
        act(&mut self.order, &mut inside);
        for effect in inside.effects {
            match effect {
                BroadcastEffect::Send { to, message } => {
                    out.send(to, BoundedMessage::Order(message));
                }
                BroadcastEffect::Log(record) => out.log(BoundedRecord::Order(record)),
                BroadcastEffect::Deliver(delivered) => {
                    self.grant(delivered.command.payload.as_slice(), out);
                }
                BroadcastEffect::GivenUp(_) => {} // It is asked for again.
            }
        }
    }

    /// A request was ordered.
    fn grant(&mut self, request: &[u8], out: &mut Effects<B>) {
        match BoundedRequest::decode_all(request) {
            Ok(BoundedRequest::Ownership(OwnershipRequest { owner, command })) => {
                self.act_on_objects(out, |it, inside| it.grant(owner, &command, inside));
            }
            Ok(BoundedRequest::Everything(command)) => {
                let mut is_due = false;
                self.act_on_objects(out, |it, inside| is_due = it.know_uncut(&command, inside));
                if is_due {
                    self.close(command.id);
                }
            }
            Ok(BoundedRequest::Frozen(report)) => self.on_frozen(report, out),
            Err(_) => {} // No member of ours has said it.
        }
    }
}

impl<B: OrdersOwnership> Broadcast for M2PaxosBounded<B> {
    const NAME: &'static str = B::BOUNDED_NAME;
    type Message = BoundedMessage<B::Message>;
    type Record = BoundedRecord<B::Record>;
    type Switches = BoundedSwitches<B::Switches>;

    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        switches: &BoundedSwitches<B::Switches>,
    ) -> M2PaxosBounded<B> {
        let objects = M2Paxos::new(me, members, settings, &switches.objects).by_grants();
        M2PaxosBounded {
            objects: if switches.acquires { objects.acquiring() } else { objects },
            order: B::new(me, members, settings, &switches.order),
            closing: ClosingCommands::default(),
            cuts: 0,
            restoring: None,
        }
    }

    fn propose(&mut self, command: Command, out: &mut Effects<B>) -> CommandId {
        let mut id = None;
        self.act(out, |it, inside| id = Some(it.propose(command, inside)));
        id.expect("it was proposed")
    }

    fn orders_everything(&self) -> bool {
        true
    }

    fn decided_at(&self, command: &Command) -> Option<MemberId> {
        self.objects.decided_at(command)
    }

    fn proposed(&self) -> impl Iterator<Item = (CommandId, &Command)> {
        self.objects.proposed()
    }

    fn proposed_command(&self, id: CommandId) -> Option<&Command> {
        self.objects.proposed_command(id)
    }

    fn is_behind(&self) -> bool {
        self.objects.is_behind() || self.order.is_behind()
    }

    fn has_forgotten(&self, id: CommandId) -> bool {
        self.objects.has_forgotten(id)
    }

    fn judge(&self, from: MemberId, message: &Self::Message) -> Result<(), Rejection> {
        match message {
            BoundedMessage::Objects { message, .. } => self.objects.judge(from, message),
            BoundedMessage::Order(message) => self.order.judge(from, message),
        }
    }

    fn receive(&mut self, from: MemberId, message: Self::Message, out: &mut Effects<B>) {
        match message {
            // What comes after a cut that was not made here is not to be taken before it, nor what
            // comes before one after it.
            BoundedMessage::Objects { cuts, .. }
                if cuts != self.cuts && self.objects.keeps(M2PaxosSwitch::KeepsCutsApart) => {}
            BoundedMessage::Objects { message, .. } => {
                self.act(out, |it, inside| it.receive(from, message, inside));
            }
            BoundedMessage::Order(message) => {
                self.have_ordered(out, |it, inside| it.receive(from, message, inside));
                self.settle(out);
            }
        }
    }

    fn tick(&mut self, out: &mut Effects<B>) {
        self.have_ordered(out, B::tick);
        self.act(out, M2Paxos::tick);
    }

    fn recover(&mut self, id: CommandId, out: &mut Effects<B>) {
        self.act(out, |it, inside| it.recover(id, inside));
    }

    fn replay(&mut self, record: Self::Record, out: &mut Effects<B>) {
        match record {
            BoundedRecord::Objects(record) => {
                self.act_on_objects(out, |it, inside| it.replay(record, inside));
            }
            BoundedRecord::Order(record) => {
                self.have_ordered(out, |it, inside| it.replay(record, inside));
            }
        }
    }

    fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>> {
        self.pieces()
    }

    fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        self.take_piece(piece, now)
    }

    fn assert_invariants(&self) {
        self.objects.assert_invariants();
        self.order.assert_invariants();
        self.closing.assert_invariants();
    }
}
