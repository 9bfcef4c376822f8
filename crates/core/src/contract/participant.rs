//! The state machine of a repository.

use std::collections::VecDeque;
use std::fmt::Debug;

use super::{Context, Protocol};
use crate::bytes::SmallBytes;
use crate::catalog::Catalog;
use crate::checkpoint::{Cursor, Readiness};
use crate::ids::{NodeId, RepositoryId, SpaceId, Timestamp};
use crate::judgement::{Rejection, Rejections, Sender, View};
use crate::lag::Lag;
use crate::options::Settings;
use crate::post::Post;
use crate::roles::Address;
use crate::timers::Timer;
use crate::wire::WireError;

/// The state machine of a repository.
pub trait Participant<P: Protocol>: Debug {
    /// The timers that it sets.
    type Timer: Timer;
    /// An empty repository.
    fn new(id: RepositoryId, settings: &Settings, rules: &P::Rules) -> Self;
    /// Called once, before anything else, and again after the last [`replay`](Self::replay): sets
    /// the timers that the role lives by.
    fn start(&mut self, cx: &mut Context<'_, P>);
    /// Repositories have moved; this one has come, is gone, or stays, as the catalog says.
    fn placed(&mut self, cx: &mut Context<'_, P>);
    /// Whether a message agrees with what is known here, as its sender's word.
    ///
    /// # Errors
    /// It does not, and is to be left out.
    fn judge(
        &self,
        from: Address,
        sender: Sender,
        message: &P::Message,
        view: View<'_>,
    ) -> Result<(), Rejection>;
    /// The largest timestamp that was issued here, or that members have told of.
    fn issued(&self) -> Timestamp;
    /// A message for this repository.
    fn receive(&mut self, from: Address, message: P::Message, cx: &mut Context<'_, P>);
    /// A timer that this participant set.
    fn timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, P>);
    /// A link to another node is there from now on: whatever was sent to it before may be lost. A
    /// repository that a group keeps is told nothing of links, which differ from member to member.
    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, P>);
    /// The link to another node is gone.
    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_, P>);
    /// Whether a record can come next, as somebody else says who wrote the log so far: as this role
    /// and the record alone say, so that all who replay one log judge alike. Whatever this role
    /// may log is taken; what is taken can be [replayed](Self::replay). A role's own log is not
    /// judged: a contradiction in it is a fault, and loud.
    ///
    /// # Errors
    /// It contradicts what came before it, and is to be left out.
    fn judge_record(&self, record: &P::Record, catalog: &Catalog) -> Result<(), Rejection>;
    /// Records of others that were left out, if any are judged here.
    fn rejections(&self) -> Option<&Rejections>;
    /// Applies a record of an earlier life, in log order. Nothing is sent.
    fn replay(&mut self, record: P::Record, cx: &mut Context<'_, P>);
    /// Begins a [checkpoint](crate::checkpoint) of the state after everything logged so far:
    /// takes what must be of this very moment. `None`: the protocol has no checkpoints, and a node
    /// keeps its whole log.
    fn begin_checkpoint(&self) -> Option<Cursor>;
    /// Appends the next piece to `out`, of about `bytes` bytes, or longer by one version of a key
    /// or one transaction; false, and nothing is appended: there was no more. The repository may
    /// have changed since the last call.
    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool;
    /// Whether a checkpoint whose last piece was taken may be published.
    fn checkpoint_readiness(&self, cursor: &Cursor) -> Readiness;
    /// Takes a piece of a checkpoint into an empty repository, or after the pieces before it. All
    /// records after the checkpoint's position are [replayed](Self::replay) next; effects that the
    /// pieces have already are left as they are.
    ///
    /// # Errors
    /// The piece is of no checkpoint. Any bytes may be given; a repository that refused some is of
    /// no more use.
    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, P>) -> Result<(), WireError>;
    /// Marks this moment, as one to which [`go_back`](Self::go_back) may be asked to return: gives
    /// all of the state but the keys, and notes from now on what becomes of these. `None`: nothing
    /// is marked, now or in this protocol.
    fn mark(&mut self) -> Option<VecDeque<Vec<u8>>>;
    /// Nobody returns to the oldest mark any more.
    fn forget_mark(&mut self);
    /// Makes this empty repository what `other` was at its oldest mark, of which `marked` was
    /// given. What is logged since is [replayed](Self::replay) next, as far as it stands. False:
    /// that cannot be done, and neither of the two is of any more use.
    fn go_back(
        &mut self,
        other: &mut Self,
        marked: VecDeque<Vec<u8>>,
        cx: &mut Context<'_, P>,
    ) -> bool;
    /// Answers a message of a reader from what was [replayed](Self::replay): a beginning of a log
    /// that somebody else goes on writing. Says everything in this call, and logs nothing. False,
    /// and nothing is done: what was replayed is not enough, and whoever writes must be asked.
    fn answer_behind(&mut self, message: &P::Message, cx: &mut Context<'_, P>) -> bool;
    /// This state machine is dropped, and another one takes its place in the same process: takes
    /// back what it has reported of the process's memory.
    fn end(&mut self, settings: &Settings);
    /// How many transactions are prepared and undecided here.
    fn in_doubt(&self) -> usize;
    /// By how much it is behind where several nodes keep it, as far as it knows; `None`: it knows
    /// nothing of that.
    fn lag(&self) -> Option<Lag>;
    /// Which part it takes where several nodes keep it.
    fn post(&self) -> Post;
    /// The versions of every key that lives here, oldest first, as (space, key, versions), for
    /// histories.
    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>;
    /// Checks what this role says of its own state: that counts match, that what is sorted is, that
    /// nothing is both open and over. It may look at all that there is; transcripts and
    /// explorations call it after each step, searches now and then, and nothing else does.
    ///
    /// # Panics
    /// Something of that does not hold: a fault of the protocol's code.
    fn assert_invariants(&self);
}
