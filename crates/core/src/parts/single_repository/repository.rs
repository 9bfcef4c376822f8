//! The repository: it answers what coordinators ask, and decides each transaction once.

use super::{
    KnownOutcome, KnownOutcomes, NewValues, ReadVersions, RepositoryReply, RepositoryRequest,
};
use crate::bytes::SmallBytes;
use crate::contract::{Context, Protocol};
use crate::ids::{SpaceId, Timestamp, TxnId};
use crate::outcome::Decision;

/// A repository that coordinators ask.
pub trait SingleRepository<P: Protocol> {
    /// How transactions ended here.
    fn outcomes(&mut self) -> &mut KnownOutcomes;

    /// The newest version of a key, and its value; version zero: it was never written.
    fn read(&self, space: SpaceId, key: SmallBytes) -> (Timestamp, Option<SmallBytes>);

    /// How a transaction that is new here ends, that has read these versions.
    fn decide(&self, txn: TxnId, reads: ReadVersions) -> Decision;

    /// The record of a transaction that has ended.
    fn record(txn: TxnId, decision: Decision, writes: NewValues) -> P::Record;

    /// Applies a record, and [notes](KnownOutcomes::decide) how its transaction has ended.
    fn apply(&mut self, record: P::Record);

    /// What a coordinator is to be told, if it waits for that.
    fn answer(
        &mut self,
        request: RepositoryRequest,
        cx: &mut Context<'_, P>,
    ) -> Option<RepositoryReply> {
        match request {
            RepositoryRequest::Read { op, space, key } => {
                let (version, value) = self.read(space, key);
                Some(RepositoryReply::Value { op, version, value })
            }
            RepositoryRequest::Commit { txn, settled_below, reads, writes } => {
                let decision = match self.outcomes().ask(txn, settled_below) {
                    KnownOutcome::New => self.commit((txn, reads, writes), cx),
                    KnownOutcome::Decided(decision) => decision,
                    KnownOutcome::Gone => return None,
                };
                let noted = self.outcomes().known(txn);
                assert_eq!(noted, KnownOutcome::Decided(decision), "{txn} is decided once");
                if let (Decision::Commit(at), Some(recorder)) = (decision, &mut cx.effects.recorder)
                {
                    recorder.applied(txn, at);
                }
                Some(RepositoryReply::Ended { txn, decision })
            }
        }
    }

    /// Decides a transaction that is new here, logs that, and applies it.
    fn commit(
        &mut self,
        (txn, reads, writes): (TxnId, ReadVersions, NewValues),
        cx: &mut Context<'_, P>,
    ) -> Decision {
        let decision = self.decide(txn, reads);
        let record = Self::record(txn, decision, writes);
        cx.log(|| record.clone());
        self.apply(record);
        let noted = self.outcomes().known(txn);
        assert_eq!(noted, KnownOutcome::Decided(decision), "{txn} is decided, and noted");
        decision
    }
}
