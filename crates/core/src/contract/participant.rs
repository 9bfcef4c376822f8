//! The state machine of a repository.

use std::collections::VecDeque;

use super::{Context, LoggedRole, Protocol};
use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::ids::{RepositoryId, SpaceId, Timestamp};
use crate::judgement::{Rejection, Rejections};
use crate::lag::Lag;
use crate::options::Settings;
use crate::recorder::partition_sizes::{PartitionSizes, SizeCursor};
use crate::replica_role::ReplicaRole;

/// The state machine of a repository.
pub trait Participant<P: Protocol>: LoggedRole<P> {
    /// An empty repository.
    fn new(id: RepositoryId, settings: &Settings, switches: &P::Switches) -> Self;
    /// Whether a record can come next, as somebody else says who wrote the log so far: as this role
    /// and the record alone say, so that all who replay one log judge alike. Whatever this role
    /// may log is taken; what is taken can be [replayed](LoggedRole::replay). A role's own log is
    /// not judged: a contradiction in it is a fault, and loud.
    ///
    /// # Errors
    /// It contradicts what came before it, and is to be left out.
    fn judge_record(&self, record: &P::Record, catalog: &Catalog) -> Result<(), Rejection>;
    /// Records of others that were left out, if any are judged here.
    fn rejections(&self) -> Option<&Rejections>;
    /// Marks this moment, as one to which [`go_back`](Self::go_back) may be asked to return: gives
    /// all of the state but the keys, and notes from now on what becomes of these. `None`: nothing
    /// is marked, now or in this protocol.
    fn mark(&mut self) -> Option<VecDeque<Vec<u8>>>;
    /// Nobody returns to the oldest mark any more.
    fn forget_mark(&mut self);
    /// Makes this empty repository what `other` was at its oldest mark, of which `marked` was
    /// given. What is logged since is [replayed](LoggedRole::replay) next, as far as it stands.
    /// False: that cannot be done, and neither of the two is of any more use.
    fn go_back(
        &mut self,
        other: &mut Self,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_, P>,
    ) -> bool;
    /// Answers a message of a reader from what was [replayed](LoggedRole::replay): a beginning of a
    /// log that somebody else goes on writing. Says everything in this call, and logs nothing.
    /// False, and nothing is done: what was replayed is not enough, and whoever writes must be
    /// asked.
    fn answer_behind(&mut self, message: &P::Message, cx: &mut Context<'_, P>) -> bool;
    /// This state machine is dropped, and another one takes its place in the same process: takes
    /// back what it has reported of the process's memory.
    fn end(&mut self, settings: &Settings);
    /// By how much it is behind where several nodes keep it, as far as it knows; `None`: it knows
    /// nothing of that.
    fn lag(&self) -> Option<Lag>;
    /// Which part it takes where several nodes keep it.
    fn replica_role(&self) -> ReplicaRole;
    /// Adds up the rows of the partitions that are here, of the next
    /// [`SIZE_STEP_SLOTS`](crate::recorder::partition_sizes::SIZE_STEP_SLOTS) slots from where the
    /// cursor is; false: all was counted, or nothing is counted in this protocol. Any cursor may
    /// be given.
    fn add_sizes(
        &self,
        cursor: &mut SizeCursor,
        sizes: &mut PartitionSizes,
        catalog: &Catalog,
    ) -> bool;
    /// The versions of every key that lives here, oldest first, as (space, key, versions), for
    /// histories.
    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>;
}
