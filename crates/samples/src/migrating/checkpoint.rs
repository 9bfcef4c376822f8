//! What an owner of objects keeps, for its checkpoints: all of it is copied at once.

use muesli_core::checkpoint::CopiedAtOnce;
use muesli_core::parts::locator::{Holding, Owners};
use muesli_core::parts::single_repository::KnownOutcomes;
use muesli_core::{Timestamp, wire_enum};

use super::owner::{Leaving, ObjectOwner};
use super::{Key, Object};

/// One of what an owner keeps.
#[derive(Clone, Debug)]
pub enum OwnerPiece {
    /// An object that is here.
    Object { key: Key, object: Object },
    /// An object that came or went.
    Holding { key: Key, holding: Holding },
    /// Who owned an object when last heard of: whoever gave it away must not forget to whom.
    Hint { key: Key, owners: Owners },
    /// An object that has not been received for certain.
    Leaving { key: Key, leaving: Leaving },
}

wire_enum!(OwnerPiece, "piece of what an owner of objects keeps" {
    0 => Object { key: Key, object: Object },
    1 => Holding { key: Key, holding: Holding },
    2 => Leaving { key: Key, leaving: Leaving },
    3 => Hint { key: Key, owners: Owners },
});

impl CopiedAtOnce for ObjectOwner {
    type Head = (Timestamp, KnownOutcomes);
    type Item = OwnerPiece;

    fn head(&self) -> Self::Head {
        (self.latest, self.outcomes.clone())
    }

    fn items(&self) -> impl Iterator<Item = OwnerPiece> {
        let objects = self.objects.iter();
        let objects =
            objects.map(|(key, it)| OwnerPiece::Object { key: key.clone(), object: it.clone() });
        let holdings = self.holdings.all();
        let holdings =
            holdings.map(|(key, it)| OwnerPiece::Holding { key: key.clone(), holding: *it });
        let leaving = self.leaving.iter();
        let leaving =
            leaving.map(|(key, it)| OwnerPiece::Leaving { key: key.clone(), leaving: it.clone() });
        let hints = self.hints.all();
        let hints =
            hints.map(|(key, it)| OwnerPiece::Hint { key: key.clone(), owners: it.clone() });
        objects.chain(holdings).chain(leaving).chain(hints)
    }

    fn take_head(&mut self, head: Self::Head) {
        (self.latest, self.outcomes) = head;
    }

    fn take_item(&mut self, item: OwnerPiece) {
        match item {
            OwnerPiece::Object { key, object } => drop(self.objects.insert(key, object)),
            OwnerPiece::Holding { key, holding } => self.holdings.recall([(key, holding)]),
            OwnerPiece::Hint { key, owners } => self.hints.learn(key, owners),
            OwnerPiece::Leaving { key, leaving } => drop(self.leaving.insert(key, leaving)),
        }
    }
}
