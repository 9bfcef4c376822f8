//! The participants of a coordinator's own node, as it reaches them.

use super::Protocol;
use crate::ids::RepositoryId;

/// The participants that live on the coordinator's own node.
pub struct Here<'a, P: Protocol> {
    participants: &'a mut [(RepositoryId, P::Participant)],
}

impl<'a, P: Protocol> Here<'a, P> {
    /// A view of a node's participants.
    #[inline]
    pub fn new(participants: &'a mut [(RepositoryId, P::Participant)]) -> Here<'a, P> {
        Here { participants }
    }

    /// The participant of `repository`, if it lives here.
    #[inline]
    pub fn repository(&mut self, repository: RepositoryId) -> Option<&mut P::Participant> {
        self.participants.iter_mut().find(|(id, _)| *id == repository).map(|(_, found)| found)
    }

    /// The first of these repositories that lives here: of those that hold a key, as the protocol's
    /// [locator](crate::parts::locator) says.
    #[inline]
    pub fn first_of(
        &mut self,
        repositories: impl Iterator<Item = RepositoryId>,
    ) -> Option<(RepositoryId, &mut P::Participant)> {
        let place = |repository| self.participants.iter().position(|(id, _)| *id == repository);
        let found = repositories.filter_map(place).next()?;
        self.participants.get_mut(found).map(|(id, participant)| (*id, participant))
    }

    /// Whether `repository` lives here.
    #[inline]
    pub fn holds(&self, repository: RepositoryId) -> bool {
        self.participants.iter().any(|(id, _)| *id == repository)
    }

    /// All participants here, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (RepositoryId, &mut P::Participant)> {
        self.participants.iter_mut().map(|(id, participant)| (*id, participant))
    }

    /// The same view, for a while.
    #[inline]
    pub fn reborrow(&mut self) -> Here<'_, P> {
        Here { participants: self.participants }
    }

    /// All participants here.
    pub fn all(&self) -> impl Iterator<Item = &P::Participant> {
        self.participants.iter().map(|(_, participant)| participant)
    }
}
