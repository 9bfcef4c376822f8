//! What members say to each other, and what they write down.

use muesli_core::{wire_enum, wire_struct};

use super::entry::{CommandEpoch, Stored};
use crate::command::{Command, CommandId};
use crate::id_set::IdSet;
use crate::reports::ProgressReport;

/// A position that is proposed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Propose {
    /// Of which command.
    pub id: CommandId,
    /// What it says.
    pub command: Command,
    /// In which epoch.
    pub epoch: CommandEpoch,
    /// Where it may be in the order.
    pub position: u64,
    /// What the leader knows that conflicts with it.
    pub dependencies: IdSet,
}

/// A position that is to be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accept {
    /// Of which command.
    pub id: CommandId,
    /// What it says; `None`: nothing, as nobody knows.
    pub command: Option<Command>,
    /// In which epoch.
    pub epoch: CommandEpoch,
    /// Where it is in the order, unless another epoch says otherwise.
    pub position: u64,
    /// What is known that conflicts with it.
    pub dependencies: IdSet,
}

/// A position that is final.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stable {
    /// Of which command.
    pub id: CommandId,
    /// What it says; `None`: nothing.
    pub command: Option<Command>,
    /// Where it is in the order.
    pub position: u64,
    /// Commands that conflict with it, all with lower positions among them.
    pub dependencies: IdSet,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Leader to all: may the command have this position?
    Propose(Propose),
    /// Member to leader: this is the lowest that it can have, as far as I know. It is stored.
    AckPropose {
        /// Of which command.
        id: CommandId,
        /// In which epoch.
        epoch: CommandEpoch,
        /// The one proposed, or a higher one.
        position: u64,
        /// What the member knows that conflicts with it, and what the leader said.
        dependencies: IdSet,
    },
    /// Leader to all: a majority has answered; the command is to have this position.
    Accept(Accept),
    /// Member to leader: it is stored.
    AckAccept {
        /// Of which command.
        id: CommandId,
        /// In which epoch.
        epoch: CommandEpoch,
        /// All that conflicts with it, as far as the member and the leader know.
        dependencies: IdSet,
    },
    /// Leader to all, or to who has missed it: the position is final.
    Stable(Stable),
    /// Who takes a command over, to all: what do you have?
    Prepare {
        /// Of which command.
        id: CommandId,
        /// In which epoch; members take nothing of an earlier one from now on.
        epoch: CommandEpoch,
    },
    /// Member to who takes a command over: this, and nothing of an earlier epoch from now on.
    Promise {
        /// Of which command.
        id: CommandId,
        /// In which epoch.
        epoch: CommandEpoch,
        /// What it has.
        stored: Stored,
    },
    /// Member to leader: it has promised another one.
    Superseded {
        /// Of which command.
        id: CommandId,
        /// In which epoch.
        epoch: CommandEpoch,
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
}

/// What a member writes down: what it must know after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// It has promised to take nothing of an earlier epoch.
    Promised {
        /// Of which command.
        id: CommandId,
        /// Which one.
        epoch: CommandEpoch,
    },
    /// It has stored a proposal, with its own answer.
    Proposed {
        /// At the lowest position that the command can have, as far as it knows.
        answer: Propose,
        /// The position that was proposed.
        position: u64,
    },
    /// It has accepted a position.
    Accepted(Accept),
    /// It knows a final position.
    Stable(Stable),
    /// All members have delivered the commands of each leader up to here.
    Collected {
        /// By leader.
        upto: Vec<u64>,
        /// No position of theirs was higher.
        floor: u64,
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

wire_struct!(Propose {
    id: CommandId,
    command: Command,
    epoch: CommandEpoch,
    position: u64,
    dependencies: IdSet,
});
wire_struct!(Accept {
    id: CommandId,
    command: Option<Command>,
    epoch: CommandEpoch,
    position: u64,
    dependencies: IdSet,
});
wire_struct!(Stable {
    id: CommandId,
    command: Option<Command>,
    position: u64,
    dependencies: IdSet,
});
wire_enum!(Message, "message" {
    0 => Propose(propose: Propose),
    1 => AckPropose { id: CommandId, epoch: CommandEpoch, position: u64, dependencies: IdSet },
    2 => Accept(accept: Accept),
    3 => AckAccept { id: CommandId, epoch: CommandEpoch, dependencies: IdSet },
    4 => Stable(stable: Stable),
    5 => Prepare { id: CommandId, epoch: CommandEpoch },
    6 => Promise { id: CommandId, epoch: CommandEpoch, stored: Stored },
    7 => Superseded { id: CommandId, epoch: CommandEpoch },
    8 => Delivered { delivered: IdSet },
    9 => Missing { ended: IdSet },
});
wire_enum!(Record, "record" {
    0 => Promised { id: CommandId, epoch: CommandEpoch },
    1 => Proposed { answer: Propose, position: u64 },
    2 => Accepted(accept: Accept),
    3 => Stable(stable: Stable),
    4 => Collected { upto: Vec<u64>, floor: u64 },
});
