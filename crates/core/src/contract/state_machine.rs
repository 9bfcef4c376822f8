//! What the roles of a node have in common.
//!
//! Every role is a [`StateMachine`]. Those that log are [`LoggedRole`]s as well: they come back
//! from their records and checkpoints, and need nobody else of their node in a step. A
//! [coordinator](super::Coordinator) logs nothing, and is given the participants of its node with
//! each input.

use std::fmt::Debug;

use super::{Context, Protocol};
use crate::checkpoint::{Cursor, Readiness};
use crate::ids::{NodeId, Timestamp};
use crate::judgement::{Rejection, View};
use crate::roles::Address;
use crate::timers::Timer;
use crate::wire::WireError;

/// A role of a node: coordinator, participant or service. Drivers may move it between threads, of
/// which one at a time works with it.
pub trait StateMachine<P: Protocol>: Debug + Send {
    /// The timers that it sets.
    type Timer: Timer;
    /// Whether a message agrees with what is known here, as its sender's word.
    ///
    /// # Errors
    /// It does not, and is to be left out.
    fn judge(&self, message: &P::Message, view: View<'_>) -> Result<(), Rejection>;
    /// The largest timestamp that was issued here, or that members have told of.
    fn issued(&self) -> Timestamp;
    /// A link to another node is there from now on: whatever was sent to it before may be lost. A
    /// repository that a group keeps is told nothing of links, which differ from member to member.
    fn linked(&mut self, node: NodeId, cx: &mut Context<'_, P>);
    /// The link to another node is gone, or could not be made; a driver may say so several times.
    fn unlinked(&mut self, node: NodeId, cx: &mut Context<'_, P>);
    /// How many transactions have not ended as far as is known here: at a coordinator those that
    /// run, or have committed and are not known to be so everywhere; elsewhere those in doubt.
    fn unfinished(&self) -> usize;
    /// Checks what this role says of its own state: that counts match, that what is sorted is, that
    /// nothing is both open and over. It may look at all that there is; transcripts and
    /// explorations call it after each step, searches now and then, and nothing else does.
    ///
    /// # Panics
    /// Something of that does not hold: a fault of the protocol's code.
    fn assert_invariants(&self);
}

/// A role that logs, and comes back after a crash: participant or service.
pub trait LoggedRole<P: Protocol>: StateMachine<P> {
    /// Called once, before anything else, and again after the last [`replay`](Self::replay): sets
    /// the timers that the role lives by.
    fn start(&mut self, cx: &mut Context<'_, P>);
    /// The placement has changed: a repository has come, is gone, or stays, as the catalog says.
    fn placed(&mut self, cx: &mut Context<'_, P>);
    /// A message for this role.
    fn receive(&mut self, from: Address, message: P::Message, cx: &mut Context<'_, P>);
    /// A timer that this role set.
    fn timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, P>);
    /// Applies a record of an earlier incarnation, in log order. Nothing is sent.
    fn replay(&mut self, record: P::Record, cx: &mut Context<'_, P>);
    /// Begins a [checkpoint](crate::checkpoint) of the state after everything logged so far:
    /// takes what must be of this very moment. `None`: the role has no checkpoints, and a node
    /// keeps its whole log. A role that logs nothing begins an empty one.
    fn begin_checkpoint(&self) -> Option<Cursor>;
    /// Appends the next piece to `out`, of about `bytes` bytes, or longer by one version of a key
    /// or one transaction; false, and nothing is appended: there was no more. The role may have
    /// changed since the last call.
    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool;
    /// Whether a checkpoint whose last piece was taken may be published.
    fn checkpoint_readiness(&self, cursor: &Cursor) -> Readiness;
    /// Takes a piece of a checkpoint into an empty role, or after the pieces before it. All records
    /// after the checkpoint's position are [replayed](Self::replay) next; effects that the pieces
    /// have already are left as they are.
    ///
    /// # Errors
    /// The piece is of no checkpoint. Any bytes may be given; a role that refused some is of no
    /// more use.
    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, P>) -> Result<(), WireError>;
}
