//! What members say to each other, and what they write down.

use muesli_core::{wire_enum, wire_struct};

use crate::command::{Command, CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;
use crate::reports::ProgressReport;

/// A term in which one member leads a command. The first one is of the member that proposed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandBallot {
    /// 0 in the first one.
    pub round: u32,
    /// Who leads.
    pub member: MemberId,
}

impl CommandBallot {
    /// The first one of a command.
    pub fn first(id: CommandId) -> CommandBallot {
        CommandBallot { round: 0, member: id.leader }
    }
}

/// How far a command has come at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandPhase {
    /// Nothing but its name is known.
    Initial,
    /// Its leader's dependencies are known, and this member's.
    PreAccepted,
    /// Dependencies were accepted.
    Accepted,
    /// Its dependencies are final.
    Committed,
}

/// What a member has of a command, as it tells who takes it over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredCommand {
    /// How far it has come.
    pub phase: CommandPhase,
    /// The last ballot in which dependencies of it were accepted, or became final.
    pub accepted: CommandBallot,
    /// What it says, and after what it comes, as far as is known here.
    pub value: OrderedAfter,
    /// What its proposer knew to conflict with it.
    pub initial: IdSet,
}

/// A command that may be in the way of another one, and whether it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Invalidating {
    /// Which.
    pub id: CommandId,
    /// Whether its dependencies are final.
    pub committed: bool,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Proposer to all: what do you know that conflicts with this?
    PreAccept {
        /// Which command.
        id: CommandId,
        /// What it says.
        command: Command,
        /// What the proposer knows to conflict with it.
        dependencies: IdSet,
    },
    /// Member to proposer: this, and what you know. It is stored.
    AckPreAccept {
        /// Of which command.
        id: CommandId,
        /// What conflicts with it.
        dependencies: IdSet,
    },
    /// Leader to all: it is to come after these.
    Accept {
        /// Which command.
        id: CommandId,
        /// In which ballot.
        ballot: CommandBallot,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// Member to leader: it is stored.
    AckAccept {
        /// Of which command.
        id: CommandId,
        /// In which ballot.
        ballot: CommandBallot,
    },
    /// Leader to all, or to who has missed it: its dependencies are final.
    Commit {
        /// Which command.
        id: CommandId,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// Who takes a command over, to all: what do you have?
    Recover {
        /// Which command.
        id: CommandId,
        /// In which ballot; members take nothing of an earlier one from now on.
        ballot: CommandBallot,
    },
    /// Member to who takes a command over: this, and nothing of an earlier ballot from now on.
    Recovered {
        /// Which command.
        id: CommandId,
        /// In which ballot.
        ballot: CommandBallot,
        /// What it has.
        stored: StoredCommand,
    },
    /// Who takes a command over, to those who have answered: may it have come after these alone?
    Validate {
        /// Which command.
        id: CommandId,
        /// In which ballot.
        ballot: CommandBallot,
        /// What it says, and its proposer's dependencies.
        value: OrderedAfter,
    },
    /// Member to who takes a command over: these may be in its way.
    Validated {
        /// Which command.
        id: CommandId,
        /// In which ballot.
        ballot: CommandBallot,
        /// Commands that conflict with it, of which neither comes after the other.
        invalidating: Vec<Invalidating>,
    },
    /// Who takes a command over and waits for others, to all: so many members had it as its
    /// proposer wanted.
    Waiting {
        /// Which command.
        id: CommandId,
        /// How many.
        agreeing: u16,
    },
    /// Member to leader: it takes nothing of this ballot.
    Superseded {
        /// Which command.
        id: CommandId,
        /// It has promised this one.
        ballot: CommandBallot,
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
    /// It has stored what a proposer said, with its own answer.
    PreAccepted {
        /// Which command.
        id: CommandId,
        /// What it says, and what conflicts with it as far as is known here.
        value: OrderedAfter,
        /// What its proposer knew.
        initial: IdSet,
    },
    /// It has promised to take nothing of an earlier ballot.
    Promised {
        /// Of which command.
        id: CommandId,
        /// Which one.
        ballot: CommandBallot,
    },
    /// It has heard what a command says, and what its proposer knew, of who takes it over.
    Validated {
        /// Which command.
        id: CommandId,
        /// What it says, and its proposer's dependencies.
        value: OrderedAfter,
    },
    /// It has accepted dependencies.
    Accepted {
        /// Which command.
        id: CommandId,
        /// In which ballot.
        ballot: CommandBallot,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// It knows final dependencies.
    Committed {
        /// Which command.
        id: CommandId,
        /// What it says, and its dependencies.
        value: OrderedAfter,
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

wire_struct!(CommandBallot { round: u32, member: MemberId });
wire_enum!(CommandPhase, "phase of a command" {
    0 => Initial,
    1 => PreAccepted,
    2 => Accepted,
    3 => Committed,
});
wire_struct!(StoredCommand {
    phase: CommandPhase,
    accepted: CommandBallot,
    value: OrderedAfter,
    initial: IdSet,
});
wire_struct!(Invalidating { id: CommandId, committed: bool });
wire_enum!(Message, "message" {
    0 => PreAccept { id: CommandId, command: Command, dependencies: IdSet },
    1 => AckPreAccept { id: CommandId, dependencies: IdSet },
    2 => Accept { id: CommandId, ballot: CommandBallot, value: OrderedAfter },
    3 => AckAccept { id: CommandId, ballot: CommandBallot },
    4 => Commit { id: CommandId, value: OrderedAfter },
    5 => Recover { id: CommandId, ballot: CommandBallot },
    6 => Recovered { id: CommandId, ballot: CommandBallot, stored: StoredCommand },
    7 => Validate { id: CommandId, ballot: CommandBallot, value: OrderedAfter },
    8 => Validated { id: CommandId, ballot: CommandBallot, invalidating: Vec<Invalidating> },
    9 => Waiting { id: CommandId, agreeing: u16 },
    10 => Superseded { id: CommandId, ballot: CommandBallot },
    11 => Delivered { delivered: IdSet },
    12 => Missing { ended: IdSet },
});
wire_enum!(Record, "record" {
    0 => PreAccepted { id: CommandId, value: OrderedAfter, initial: IdSet },
    1 => Promised { id: CommandId, ballot: CommandBallot },
    2 => Validated { id: CommandId, value: OrderedAfter },
    3 => Accepted { id: CommandId, ballot: CommandBallot, value: OrderedAfter },
    4 => Committed { id: CommandId, value: OrderedAfter },
    5 => Collected { upto: Vec<u64> },
});
