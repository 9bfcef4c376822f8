//! Partitions that move from one repository to another: what a client asks of a protocol that can
//! do it, as calls of procedures that the protocol itself knows.
//!
//! Nothing of the drivers has to know of it: a call of one of these names goes the way of every
//! other one-round transaction, and a protocol that knows none of them says so.

use crate::bytes::SmallBytes;
use crate::ids::RepositoryId;
use crate::procedure::{Call, Class, Fragment, Place, ProcedureId};
use crate::wire::{Wire, WireError};
use crate::wire_struct;

/// The procedure that moves a partition; its arguments are a [`MoveOrder`], its result is the
/// partition's epoch afterwards, as a decimal number.
pub const MOVE_PARTITION: &str = "muesli.move-partition";
/// The procedure that tells where partitions are; without arguments, its result is a
/// [`PlacedPartition`] for each, in order.
pub const PARTITIONS: &str = "muesli.partitions";

/// A partition that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveOrder {
    /// Which one.
    pub partition: u16,
    /// From where; `None`: from the repository that holds it, the last one if several do.
    pub from: Option<RepositoryId>,
    /// To where.
    pub to: RepositoryId,
}

wire_struct!(MoveOrder { partition: u16, from: Option<RepositoryId>, to: RepositoryId });

/// Where a partition is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPartition {
    /// Which one.
    pub partition: u16,
    /// How often it was moved.
    pub epoch: u64,
    /// Who holds it.
    pub holders: Vec<RepositoryId>,
}

wire_struct!(PlacedPartition { partition: u16, epoch: u64, holders: Vec<RepositoryId> });

impl PlacedPartition {
    /// All partitions, from the result of [`partitions`].
    ///
    /// # Errors
    /// It is none.
    pub fn all(result: &SmallBytes) -> Result<Vec<PlacedPartition>, WireError> {
        Wire::decode_all(result.as_slice())
    }
}

fn call(name: &str, place: RepositoryId, arguments: Vec<u8>) -> Call {
    let procedure = ProcedureId { name: name.into(), version: 1 };
    let (place, arguments) = (Place::Repository(place), arguments.into());
    Call { class: Class::Auto, fragments: vec![Fragment { procedure, place, arguments }] }
}

impl MoveOrder {
    /// The call that has it done.
    pub fn call(&self) -> Call {
        let mut arguments = Vec::new();
        self.encode(&mut arguments);
        call(MOVE_PARTITION, self.to, arguments)
    }

    /// The order that a call's arguments are.
    ///
    /// # Errors
    /// They are none.
    pub fn of(arguments: &SmallBytes) -> Result<MoveOrder, WireError> {
        MoveOrder::decode_all(arguments.as_slice())
    }
}

/// The call that tells where partitions are.
pub fn partitions() -> Call {
    call(PARTITIONS, RepositoryId(0), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_back_from_their_calls() {
        let order = MoveOrder { partition: 7, from: None, to: RepositoryId(2) };
        let call = order.call();
        assert_eq!(call.fragments[0].procedure.to_string(), "muesli.move-partition v1");
        assert_eq!(MoveOrder::of(&call.fragments[0].arguments), Ok(order));
        assert!(MoveOrder::of(&"no".into()).is_err());
        assert_eq!(partitions().fragments[0].place, Place::Repository(RepositoryId(0)));
    }
}
