//! Multi-Paxos (Lamport 1998): one order of all commands, by one leader at a time.
//!
//! # The idea
//! It is [M²Paxos](crate::m2paxos) with one object, that all commands are of: its owner is the
//! leader. One is placed at the start; others forward their commands to it, and whoever finds that
//! it does not answer takes its place. Places of the log may be open side by side.
//!
//! It orders what need not be ordered, at one member: what other broadcasts are compared with.

use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings};
use crate::command::{Command, CommandId, MemberId};
use crate::effects::BroadcastEffects;
use crate::id_set::IdSet;
use crate::m2paxos::message::{Message, ObjectSlot, Record};
use crate::m2paxos::{M2Paxos, Switches};
use crate::member::checkpoint::CheckpointError;

/// What this broadcast wants done.
type Effects = BroadcastEffects<Message, Record>;

/// A member of Multi-Paxos.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MultiPaxos {
    log: M2Paxos,
}

impl MultiPaxos {
    /// How many commands it knows, those that are delivered and may be asked for still among them.
    pub fn known(&self) -> usize {
        self.log.known()
    }

    /// Commands that were delivered here.
    pub fn delivered(&self) -> &IdSet {
        self.log.delivered()
    }

    /// All places of the log of which it knows what is decided there.
    pub fn decided(&self) -> impl Iterator<Item = (ObjectSlot, Option<CommandId>)> + '_ {
        self.log.decided()
    }
}

/// Where the leader is placed at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlacedLeader(pub MemberId);

impl Broadcast for MultiPaxos {
    const NAME: &'static str = "multipaxos";
    type Message = Message;
    type Record = Record;
    type Switches = PlacedLeader;

    fn new(
        me: MemberId,
        members: usize,
        settings: &BroadcastSettings,
        PlacedLeader(leader): &PlacedLeader,
    ) -> MultiPaxos {
        assert!(leader.place() < members, "leader {} of {members} members", leader.0);
        let switches = Switches::one_log(*leader);
        MultiPaxos { log: M2Paxos::new(me, members, settings, &switches) }
    }

    fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
        self.log.propose(command, out)
    }

    fn orders_everything(&self) -> bool {
        true
    }

    fn decided_at(&self, command: &Command) -> Option<MemberId> {
        self.log.decided_at(command)
    }

    fn proposed(&self) -> impl Iterator<Item = (CommandId, &Command)> {
        self.log.proposed()
    }

    fn proposed_command(&self, id: CommandId) -> Option<&Command> {
        self.log.proposed_command(id)
    }

    fn is_behind(&self) -> bool {
        self.log.is_behind()
    }

    fn has_forgotten(&self, id: CommandId) -> bool {
        self.log.has_forgotten(id)
    }

    fn judge(&self, from: MemberId, message: &Message) -> Result<(), Rejection> {
        self.log.judge(from, message)
    }

    fn receive(&mut self, from: MemberId, message: Message, out: &mut Effects) {
        self.log.receive(from, message, out);
    }

    fn tick(&mut self, out: &mut Effects) {
        self.log.tick(out);
    }

    fn recover(&mut self, id: CommandId, out: &mut Effects) {
        self.log.recover(id, out);
    }

    fn replay(&mut self, record: Record, out: &mut Effects) {
        self.log.replay(record, out);
    }

    fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>> {
        self.log.checkpoint()
    }

    fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
        self.log.restore(piece, now)
    }

    fn assert_invariants(&self) {
        self.log.assert_invariants();
    }
}
