//! What a member knows of a command.

use muesli_core::{Nanos, wire_enum, wire_struct};

use crate::command::{Command, CommandId, MemberId};
use crate::id_set::IdSet;

/// A term in which one member leads a command. The first one is of the member that proposed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandEpoch {
    /// 0 in the first one.
    pub round: u32,
    /// Who leads.
    pub member: MemberId,
}

impl CommandEpoch {
    /// The first one of a command.
    pub fn first(id: CommandId) -> CommandEpoch {
        CommandEpoch { round: 0, member: id.leader }
    }

    /// Whether it is the first one.
    pub fn is_first(self) -> bool {
        self.round == 0
    }

    /// The next one, of this member.
    pub(super) fn next(self, member: MemberId) -> CommandEpoch {
        CommandEpoch { round: self.round.saturating_add(1), member }
    }
}

/// How far a command has come at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandStatus {
    /// Nothing but its name is known.
    Unknown,
    /// A position was proposed.
    Pending,
    /// A position was accepted.
    Accepted,
    /// Its position is final.
    Stable,
}

/// What a command says, as far as a member knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CommandContent {
    /// It has not heard of it.
    Unknown,
    /// This.
    Command(Command),
    /// Nobody who could be asked had heard of it: it is to be nothing.
    Nothing,
}

impl CommandContent {
    /// What it says, if it says something.
    pub fn command(&self) -> Option<&Command> {
        match self {
            CommandContent::Command(command) => Some(command),
            CommandContent::Unknown | CommandContent::Nothing => None,
        }
    }

    /// As it is sent with a position that was chosen: nothing, or something.
    pub(super) fn chosen(command: Option<Command>) -> CommandContent {
        command.map_or(CommandContent::Nothing, CommandContent::Command)
    }
}

/// What a member has stored of a command, as it tells who takes it over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// How far it has come.
    pub status: CommandStatus,
    /// The epoch in which it came there; `None`: it has come nowhere.
    pub accepted: Option<CommandEpoch>,
    /// What it says.
    pub content: CommandContent,
    /// Where it is in the order, as far as is known.
    pub position: u64,
    /// The position that its first leader proposed; 0: not known.
    pub first_position: u64,
    /// Commands that conflict with it and may come before it.
    pub dependencies: IdSet,
}

impl Stored {
    /// Nothing.
    fn nothing() -> Stored {
        Stored {
            status: CommandStatus::Unknown,
            accepted: None,
            content: CommandContent::Unknown,
            position: 0,
            first_position: 0,
            dependencies: IdSet::new(),
        }
    }
}

/// A command at a member.
///
/// Invariants: a status that is not unknown has its epoch, which is at most the one promised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownCommand {
    /// Who is of an earlier epoch is refused.
    pub epoch: CommandEpoch,
    pub stored: Stored,
    /// The largest round that was heard of.
    pub observed: u32,
    /// When it is to be taken over, if it has not come to its end by then.
    pub suspected: Nanos,
    /// How often it was taken over from here.
    pub attempts: u32,
}

impl KnownCommand {
    pub fn new(id: CommandId, suspected: Nanos) -> KnownCommand {
        let epoch = CommandEpoch::first(id);
        KnownCommand { epoch, stored: Stored::nothing(), observed: 0, suspected, attempts: 0 }
    }

    pub fn is_stable(&self) -> bool {
        self.stored.status == CommandStatus::Stable
    }

    /// Whether a message of this epoch brings it to `status` for the first time.
    pub fn is_advanced_by(&self, epoch: CommandEpoch, status: CommandStatus) -> bool {
        (self.stored.accepted, self.stored.status) < (Some(epoch), status)
    }

    /// What of its invariants does not hold.
    pub fn unsound(&self, id: CommandId) -> Option<&'static str> {
        let Stored { status, accepted, content, position, dependencies, .. } = &self.stored;
        let is_unknown = *status == CommandStatus::Unknown;
        let conditions = [
            (is_unknown == accepted.is_none(), "a status without its epoch"),
            (*accepted <= Some(self.epoch), "it was accepted beyond the promise"),
            (is_unknown == (*content == CommandContent::Unknown), "a status without its content"),
            (is_unknown == (*position == 0), "a status without its position"),
            (!dependencies.contains(id), "it depends on itself"),
        ];
        conditions.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }

    pub fn assert_invariants(&self, id: CommandId) {
        assert_eq!(self.unsound(id), None, "{id}: {self:?}");
        self.stored.dependencies.assert_invariants();
    }
}

wire_struct!(CommandEpoch { round: u32, member: MemberId });
wire_enum!(CommandStatus, "status" {
    0 => Unknown,
    1 => Pending,
    2 => Accepted,
    3 => Stable,
});
wire_enum!(CommandContent, "content" {
    0 => Unknown,
    1 => Command(command: Command),
    2 => Nothing,
});
wire_struct!(Stored {
    status: CommandStatus,
    accepted: Option<CommandEpoch>,
    content: CommandContent,
    position: u64,
    first_position: u64,
    dependencies: IdSet,
});
