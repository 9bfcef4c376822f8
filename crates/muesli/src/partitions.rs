//! Where partitions are, and how they are moved.
//!
//! All spaces are cut into the same number of partitions, and partition 3 of one space is where
//! partition 3 of every other one is. A protocol that can moves one while its keys are read and
//! written; today that is the family of `granola`.

use muesli_core::moving::{MoveOrder, PlacedPartition, partitions};
use muesli_core::{Call, Invoked, RepositoryId, SmallBytes};

use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;

impl Db {
    /// The partition that holds a key.
    pub fn partition_of(&self, space: Space, key: impl Into<SmallBytes>) -> u16 {
        self.catalog_of_keys().partition(space.id(), &key.into())
    }

    /// Where all partitions are, by their numbers, as the database's name service knows it now.
    ///
    /// # Errors
    /// [`Error::Procedure`] where the protocol moves no partitions, and as
    /// [`invoke`](Self::invoke).
    pub async fn partitions(&self) -> Result<Vec<PlacedPartition>, Error> {
        let result = self.ask_protocol(partitions()).await?;
        PlacedPartition::all(&result).map_err(|error| Error::Procedure(error.to_string()))
    }

    /// Moves a partition with all of its keys to another repository while both serve, and tells
    /// how often it was moved, this move included. Transactions on other partitions go on; those
    /// on this one wait for the moment of the switch. Where the partition is there already nothing
    /// happens.
    ///
    /// With several replicas of each key, `from` says which of them goes; without it, the last.
    ///
    /// # Errors
    /// [`Error::Procedure`]: there is no such partition or repository, `from` does not hold it, or
    /// the protocol moves none. [`Error::Timeout`]: nothing came of it for too long, and nothing
    /// was moved. [`Error::Unknown`]: it may yet be moved; [`partitions`](Self::partitions) tells.
    pub async fn move_partition(
        &self,
        partition: u16,
        from: Option<RepositoryId>,
        to: RepositoryId,
    ) -> Result<u64, Error> {
        let order = MoveOrder { partition, from, to };
        let result = self.ask_protocol(order.call()).await?;
        let epoch = String::from_utf8_lossy(result.as_slice()).parse();
        epoch.map_err(|_| Error::Procedure("what came of a move is no epoch".to_owned()))
    }

    async fn ask_protocol(&self, call: Call) -> Result<SmallBytes, Error> {
        let Invoked { results, .. } = self.invoke(call.class, call.fragments).await?;
        Ok(results.into_iter().next().unwrap_or(SmallBytes::EMPTY))
    }
}
