//! The state machine that runs transactions.

use super::{Context, Here, Operation, Protocol, StateMachine, Step};
use crate::bytes::SmallBytes;
use crate::ids::{NodeId, SpaceId, Txn, TxnId};
use crate::outcome::Outcome;
use crate::recorder::Recorder;
use crate::roles::Address;
use crate::time::Nanos;

/// The state machine that runs transactions on behalf of clients.
///
/// Operations of one transaction may overlap (several gets in flight); commit and abort come last.
/// An operation on a transaction that has ended answers
/// [`Failure::Ended`](crate::outcome::Failure::Ended).
pub trait Coordinator<P: Protocol>: StateMachine<P> + Clone {
    /// A coordinator at `node`, in its life number `incarnation`.
    fn new(node: NodeId, incarnation: u32, switches: &P::Switches) -> Self;
    /// Called once, before anything else: sets the timers that the role lives by.
    fn start(&mut self, here: Here<'_, P>, cx: &mut Context<'_, P>);
    /// Does what a client asks.
    fn operate(&mut self, operation: Operation, here: Here<'_, P>, cx: &mut Context<'_, P>)
    -> Step;
    /// Reads keys if that can be done at once and simply, straight into `out`, which is as long;
    /// false leaves everything to [`operate`](Self::operate), as a protocol may always do: it saves
    /// the hot path the copies of an answer that is handed from call to call.
    fn peek(
        &mut self,
        txn: Txn,
        space: SpaceId,
        keys: &[SmallBytes],
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
        out: &mut [Option<SmallBytes>],
    ) -> bool;
    /// The transactions that take operations: begun, and neither committing nor over.
    fn open_transactions(&self) -> Vec<Txn>;
    /// A message for this coordinator.
    fn receive(
        &mut self,
        from: Address,
        message: P::Message,
        here: Here<'_, P>,
        cx: &mut Context<'_, P>,
    );
    /// A timer that this coordinator set.
    fn timer(&mut self, timer: Self::Timer, here: Here<'_, P>, cx: &mut Context<'_, P>);
    /// Writes the transactions that have not ended into the history, when the node stops.
    fn record_running(&self, recorder: &mut Recorder);
    /// Who is known to hold old versions back, and since when, as far as that is known.
    fn oldest_snapshot(&self) -> Option<(NodeId, Option<Nanos>)>;
    /// The node ends in an orderly way, and nothing is open: says to repositories elsewhere what
    /// they need not keep for it any more.
    fn leave(&mut self, cx: &mut Context<'_, P>);
    /// What sessions of this coordinator may have seen, for another one to [adopt](Self::adopt).
    /// `None`: the timestamp that a session carries says as much.
    fn session_token(&self) -> Option<SmallBytes>;
    /// A session that comes here has seen this elsewhere: what begins here from now on sees at
    /// least as much. Bytes that are no past are of no concern.
    fn adopt(&mut self, session_token: &SmallBytes);
    /// What has become of a transaction whose client was told
    /// [`Failure::Unknown`](crate::outcome::Failure::Unknown). A protocol
    /// that never says so need not offer it.
    fn outcome(&self, txn: TxnId) -> Outcome;
}
