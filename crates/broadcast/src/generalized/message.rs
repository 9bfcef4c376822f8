//! What members say to each other, and what they write down.

use muesli_core::{wire_enum, wire_struct};

use crate::command::{Command, CommandId, MemberId};
use crate::dependencies::OrderedAfter;
use crate::id_set::IdSet;
use crate::reports::ProgressReport;

/// A ballot of all commands: one member leads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupBallot {
    /// 0 in the first one, whose leader is placed.
    pub round: u32,
    /// Who leads.
    pub member: MemberId,
}

/// How far a command has come at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LearningPhase {
    /// Nothing but its name is known.
    Named,
    /// What it says is known.
    Known,
    /// This member has voted: it comes after what it conflicts with here.
    Voted,
    /// This member has accepted a leader's order of it.
    Accepted,
    /// Its place is final.
    Learned,
}

/// What a member has of a command, as it says to who begins a ballot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredVote {
    /// How far it has come.
    pub phase: LearningPhase,
    /// The last ballot in which this member has voted on it, or accepted an order.
    pub ballot: GroupBallot,
    /// What it says, if that is known, and what it comes after.
    pub value: OrderedAfter,
    /// Whether it was accepted that it is nothing.
    pub is_nothing: bool,
}

impl StoredVote {
    /// What was voted, accepted or learned.
    pub(super) fn ordered(&self) -> OrderedAfter {
        if self.is_nothing { OrderedAfter::nothing() } else { self.value.clone() }
    }
}

/// What a member has of one command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReportedVote {
    /// Which.
    pub id: CommandId,
    /// What.
    pub stored: StoredVote,
}

/// A member's vote on a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FreeVote {
    /// In which ballot.
    pub ballot: GroupBallot,
    /// What was there before it that it conflicts with.
    pub dependencies: IdSet,
    /// Up to where the member has forgotten what all have delivered, by proposer.
    pub collected: Vec<u64>,
}

/// What members say to each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Proposer to all: vote on it.
    Propose {
        /// Which command.
        id: CommandId,
        /// What it says.
        command: Command,
        /// To the leader: the proposer's own vote.
        vote: Option<FreeVote>,
    },
    /// Member to proposer and leader (2b of a fast round). It is stored.
    Vote {
        /// On which command.
        id: CommandId,
        /// It comes after this.
        vote: FreeVote,
        /// What the command says, where the leader does not know it.
        command: Option<Command>,
    },
    /// Leader to all: vote on it, or never in this ballot.
    Ask {
        /// On which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
        /// What it says, if the leader knows.
        command: Option<Command>,
    },
    /// Member to leader: what it says is not known here, and there will be no vote.
    Refuse {
        /// On which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
    },
    /// Leader to all (2a of a classic round): it is to come after these.
    Accept {
        /// Which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// Member to leader and proposer (2b of a classic round): it is stored.
    AckAccept {
        /// Of which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
    },
    /// Proposer or leader to all, or to who has missed it: its place is final.
    Learned {
        /// Which command.
        id: CommandId,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// Who begins a ballot, to all (1a): what do you have?
    Prepare {
        /// Members take nothing of an earlier one from now on.
        ballot: GroupBallot,
        /// Whose end it knows.
        ended: IdSet,
        /// It has heard of what the member has up to this one.
        after: Option<CommandId>,
    },
    /// Member to who begins a ballot (1b): this, and nothing of an earlier ballot from now on.
    Prepared {
        /// Which ballot.
        ballot: GroupBallot,
        /// What comes after this one, by its name.
        after: Option<CommandId>,
        /// Up to this one; `None`: to the last one.
        next: Option<CommandId>,
        /// Up to where the member has forgotten what all have delivered, by proposer.
        collected: Vec<u64>,
        /// What it has, of all that has not ended there.
        stored: Vec<ReportedVote>,
    },
    /// Leader to all: vote in this ballot (2a of a fast round) once these have a place with you.
    Start {
        /// Which ballot.
        ballot: GroupBallot,
        /// All that the leader has ordered, or has learned.
        known: IdSet,
    },
    /// Member to leader: it votes in this ballot, once it knows these.
    Started {
        /// Which ballot.
        ballot: GroupBallot,
        /// What it does not know yet.
        missing: IdSet,
    },
    /// Member to leader: it takes nothing of an earlier ballot than this.
    Superseded {
        /// Which ballot.
        ballot: GroupBallot,
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
    /// It knows what a command says, and has not voted on it.
    Known {
        /// Which command.
        id: CommandId,
        /// What it says.
        command: Command,
    },
    /// It has voted.
    Voted {
        /// On which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
        /// What it says, and what was there before it.
        value: OrderedAfter,
    },
    /// It will not vote on a command of which it knows nothing.
    Refused {
        /// On which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
    },
    /// It has accepted a leader's order.
    Accepted {
        /// Of which command.
        id: CommandId,
        /// In which ballot.
        ballot: GroupBallot,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// It knows a command's final place.
    Learned {
        /// Of which command.
        id: CommandId,
        /// What it says, and its dependencies.
        value: OrderedAfter,
    },
    /// It takes nothing of an earlier ballot.
    Prepared {
        /// Which ballot.
        ballot: GroupBallot,
    },
    /// It votes in a ballot, once it knows some commands.
    Started {
        /// Which ballot.
        ballot: GroupBallot,
        /// What it does not know yet.
        missing: IdSet,
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

wire_struct!(GroupBallot { round: u32, member: MemberId });
wire_enum!(LearningPhase, "phase of a command" {
    0 => Named,
    1 => Known,
    2 => Voted,
    3 => Accepted,
    4 => Learned,
});
wire_struct!(StoredVote {
    phase: LearningPhase,
    ballot: GroupBallot,
    value: OrderedAfter,
    is_nothing: bool,
});
wire_struct!(ReportedVote { id: CommandId, stored: StoredVote });
wire_struct!(FreeVote { ballot: GroupBallot, dependencies: IdSet, collected: Vec<u64> });
wire_enum!(Message, "message" {
    0 => Propose { id: CommandId, command: Command, vote: Option<FreeVote> },
    1 => Vote { id: CommandId, vote: FreeVote, command: Option<Command> },
    2 => Ask { id: CommandId, ballot: GroupBallot, command: Option<Command> },
    3 => Refuse { id: CommandId, ballot: GroupBallot },
    4 => Accept { id: CommandId, ballot: GroupBallot, value: OrderedAfter },
    5 => AckAccept { id: CommandId, ballot: GroupBallot },
    6 => Learned { id: CommandId, value: OrderedAfter },
    7 => Prepare { ballot: GroupBallot, ended: IdSet, after: Option<CommandId> },
    8 => Prepared {
        ballot: GroupBallot,
        after: Option<CommandId>,
        next: Option<CommandId>,
        collected: Vec<u64>,
        stored: Vec<ReportedVote>,
    },
    9 => Start { ballot: GroupBallot, known: IdSet },
    10 => Started { ballot: GroupBallot, missing: IdSet },
    11 => Superseded { ballot: GroupBallot },
    12 => Delivered { delivered: IdSet },
    13 => Missing { ended: IdSet },
});
wire_enum!(Record, "record" {
    0 => Known { id: CommandId, command: Command },
    1 => Voted { id: CommandId, ballot: GroupBallot, value: OrderedAfter },
    2 => Refused { id: CommandId, ballot: GroupBallot },
    3 => Accepted { id: CommandId, ballot: GroupBallot, value: OrderedAfter },
    4 => Learned { id: CommandId, value: OrderedAfter },
    5 => Prepared { ballot: GroupBallot },
    6 => Started { ballot: GroupBallot, missing: IdSet },
    7 => Collected { upto: Vec<u64> },
});
