//! Whether a message can name the commands that it names.

use muesli_core::Rejection;
use muesli_core::judgement::ensure;

use super::own::OwnCommands;
use crate::command::{CommandId, MemberId};
use crate::id_set::IdSet;

/// What is known of the members of a group, and of the commands of who judges.
#[derive(Clone, Copy)]
pub(crate) struct NameJudge<'a> {
    pub members: usize,
    pub own: &'a OwnCommands,
}

impl NameJudge<'_> {
    /// That there is such a member.
    pub fn member(&self, member: MemberId) -> Result<(), Rejection> {
        ensure(member.place() < self.members, Rejection::Range)
    }

    /// That a command is of a member, and has a number that can be; one of this member's own is
    /// proposed.
    pub fn id(&self, id: CommandId) -> Result<(), Rejection> {
        self.member(id.leader)?;
        let is_number = (1..=CommandId::SEQUENCE_MAX).contains(&id.sequence);
        ensure(is_number && !self.own.is_beyond(id), Rejection::Range)
    }

    /// The same of many commands, by the last ones.
    pub fn ids(&self, ids: &IdSet) -> Result<(), Rejection> {
        ids.last_of_each().try_for_each(|id| self.id(id))
    }
}
