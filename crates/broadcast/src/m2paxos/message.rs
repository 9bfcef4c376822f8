//! What members say to each other, and what they write down.

use muesli_core::{wire_enum, wire_struct};

use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;
use crate::reports::ProgressReport;

/// A term in which one member owns an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectEpoch {
    /// 0: nobody has owned it yet.
    pub round: u32,
    /// Who owns it, or wants to.
    pub member: MemberId,
}

/// A place in the order of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectSlot {
    /// The object.
    pub object: u64,
    /// Its number there, from 1.
    pub slot: u64,
}

/// A place, and the epoch in which something is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskedSlot {
    /// The object.
    pub object: u64,
    /// Its number there.
    pub slot: u64,
    /// The epoch of the object.
    pub epoch: ObjectEpoch,
}

/// An object that somebody wants to own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WantedObject {
    /// Which.
    pub object: u64,
    /// From this place on.
    pub from: u64,
    /// In this epoch.
    pub epoch: ObjectEpoch,
}

/// A command by its name, and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedCommand {
    /// Its name.
    pub id: CommandId,
    /// What it says.
    pub command: Command,
}

/// What a member has accepted for a place; no command: nothing is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotVote {
    /// The place.
    pub slot: u64,
    /// In which epoch.
    pub epoch: ObjectEpoch,
    /// What.
    pub value: Option<CommandId>,
}

/// What is decided for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotValue {
    /// The place.
    pub slot: u64,
    /// What.
    pub value: Option<CommandId>,
}

/// What a member has of an object that it promises to somebody.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PromisedObject {
    /// Which.
    pub object: u64,
    /// In which epoch.
    pub epoch: ObjectEpoch,
    /// Everything that it has accepted and does not know to be decided.
    pub votes: Vec<SlotVote>,
    /// Everything that it knows to be decided.
    pub decided: Vec<SlotValue>,
}

/// An object, and the epoch that a member has promised for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PromisedEpoch {
    /// The object.
    pub object: u64,
    /// Nothing of an earlier one is taken.
    pub epoch: ObjectEpoch,
}

/// Where a command is decided, with so many places right before it at which nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FilledSlot {
    /// The object.
    pub object: u64,
    /// The command's place.
    pub slot: u64,
    /// Places before it.
    pub nothing_before: u64,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Proposer to owner: you own its objects, propose it.
    Forward(NamedCommand),
    /// Proposer to all: may I own these objects?
    Prepare(Vec<WantedObject>),
    /// Member to proposer: yes, and nothing of earlier epochs from now on.
    Promise {
        /// What was asked for, with what it has of it.
        objects: Vec<PromisedObject>,
        /// What the commands say that are named in it.
        commands: Vec<NamedCommand>,
    },
    /// Owner to all: this is to be at these places; no command: nothing is.
    Accept {
        /// What.
        value: Option<NamedCommand>,
        /// Where.
        slots: Vec<AskedSlot>,
    },
    /// Member to owner, and to who has proposed the command: it is accepted.
    AckAccept {
        /// What.
        value: Option<CommandId>,
        /// Where.
        slots: Vec<AskedSlot>,
    },
    /// Member to who wants to own objects, or to an owner: some of them are promised to others.
    Refuse(Vec<PromisedEpoch>),
    /// Owner to all: this is decided.
    Decide {
        /// What.
        value: Option<CommandId>,
        /// Where.
        slots: Vec<ObjectSlot>,
    },
    /// Member to all: I have delivered these, or they are nothing.
    Delivered {
        /// From the first ones on.
        delivered: IdSet,
    },
    /// Member to one that has delivered more: what has it that I have not?
    Missing {
        /// Whose end I know, or what I have delivered if it is something before that.
        ended: IdSet,
    },
    /// The answer: a command, and all of its places.
    Filled {
        /// What.
        command: NamedCommand,
        /// Where.
        slots: Vec<FilledSlot>,
    },
    /// Member to all: what does this command say?
    AskCommand(CommandId),
    /// The answer.
    ShowCommand(NamedCommand),
}

impl Message {
    /// Whether a command in it touches everything.
    pub(super) fn names_everything(&self) -> bool {
        let is_everything = |named: &NamedCommand| named.command.objects.is_everything();
        match self {
            Message::Forward(named) | Message::ShowCommand(named) => is_everything(named),
            Message::Filled { command, .. } => is_everything(command),
            Message::Accept { value, .. } => value.as_ref().is_some_and(is_everything),
            Message::Promise { commands, .. } => commands.iter().any(is_everything),
            Message::Prepare(_)
            | Message::AckAccept { .. }
            | Message::Refuse(_)
            | Message::Decide { .. }
            | Message::Delivered { .. }
            | Message::Missing { .. }
            | Message::AskCommand(_) => false,
        }
    }
}

/// What a member writes down: what it must know after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// It knows what a command says, perhaps its own.
    Known(NamedCommand),
    /// It has promised epochs.
    Promised(Vec<PromisedEpoch>),
    /// It has accepted something at these places.
    Accepted {
        /// What.
        value: Option<NamedCommand>,
        /// Where.
        slots: Vec<AskedSlot>,
    },
    /// It knows that something is decided at these places.
    Decided {
        /// What.
        value: Option<CommandId>,
        /// Where.
        slots: Vec<ObjectSlot>,
    },
    /// All members have delivered the commands of each proposer up to here.
    Collected {
        /// By proposer.
        upto: Vec<u64>,
    },
}

impl From<ProgressReport> for Message {
    fn from(report: ProgressReport) -> Message {
        match report {
            ProgressReport::Delivered(delivered) => Message::Delivered { delivered },
            ProgressReport::Missing(ended) => Message::Missing { ended },
        }
    }
}

wire_struct!(ObjectEpoch { round: u32, member: MemberId });
wire_struct!(ObjectSlot { object: u64, slot: u64 });
wire_struct!(AskedSlot { object: u64, slot: u64, epoch: ObjectEpoch });
wire_struct!(WantedObject { object: u64, from: u64, epoch: ObjectEpoch });
wire_struct!(NamedCommand { id: CommandId, command: Command });
wire_struct!(SlotVote { slot: u64, epoch: ObjectEpoch, value: Option<CommandId> });
wire_struct!(SlotValue { slot: u64, value: Option<CommandId> });
wire_struct!(PromisedObject {
    object: u64,
    epoch: ObjectEpoch,
    votes: Vec<SlotVote>,
    decided: Vec<SlotValue>,
});
wire_struct!(PromisedEpoch { object: u64, epoch: ObjectEpoch });
wire_struct!(FilledSlot { object: u64, slot: u64, nothing_before: u64 });
wire_enum!(Message, "message" {
    0 => Forward(command: NamedCommand),
    1 => Prepare(objects: Vec<WantedObject>),
    2 => Promise { objects: Vec<PromisedObject>, commands: Vec<NamedCommand> },
    3 => Accept { value: Option<NamedCommand>, slots: Vec<AskedSlot> },
    4 => AckAccept { value: Option<CommandId>, slots: Vec<AskedSlot> },
    5 => Refuse(promised: Vec<PromisedEpoch>),
    6 => Decide { value: Option<CommandId>, slots: Vec<ObjectSlot> },
    7 => Delivered { delivered: IdSet },
    8 => Missing { ended: IdSet },
    9 => Filled { command: NamedCommand, slots: Vec<FilledSlot> },
    10 => AskCommand(id: CommandId),
    11 => ShowCommand(command: NamedCommand),
});
wire_enum!(Record, "record" {
    0 => Known(command: NamedCommand),
    1 => Promised(promised: Vec<PromisedEpoch>),
    2 => Accepted { value: Option<NamedCommand>, slots: Vec<AskedSlot> },
    3 => Decided { value: Option<CommandId>, slots: Vec<ObjectSlot> },
    4 => Collected { upto: Vec<u64> },
});
