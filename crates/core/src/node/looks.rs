//! What operators, histories and tests are shown of a node.

use super::Node;
use crate::bytes::SmallBytes;
use crate::contract::{Coordinator, Participant, Protocol, Service, StateMachine};
use crate::ids::{RepositoryId, SpaceId, Timestamp, TxnId};
use crate::lag::Lag;
use crate::outcome::{Doubt, Outcome};
use crate::recorder::Recorder;
use crate::recorder::partition_sizes::{PartitionSizes, SizeCursor, SizePage};
use crate::replica_role::ReplicaRole;
use crate::roles::ServiceId;

impl<P: Protocol> Node<P> {
    /// Writes the transactions that have not ended into the history.
    pub fn record_running(&self, recorder: &mut Recorder) {
        self.coordinator.record_running(recorder);
    }

    /// What has become of a transaction that this node's client was told nothing of; see
    /// [`Coordinator::outcome`].
    pub fn outcome(&self, txn: TxnId) -> Outcome {
        match txn.node == self.id {
            true => self.coordinator.outcome(txn),
            false => Outcome::NotKnown(Doubt::Elsewhere),
        }
    }

    /// Transactions whose end is not yet known everywhere: at the coordinator, and in doubt at
    /// the participants and services.
    pub fn unfinished(&self) -> (usize, usize) {
        let in_doubt = self.participants.iter().map(|(_, it)| it.unfinished());
        let in_services = self.services.iter().map(|(_, it)| it.unfinished());
        (self.coordinator.unfinished(), in_doubt.chain(in_services).sum())
    }

    /// Which part each repository here takes in its group.
    pub fn replica_roles(&self) -> Vec<(RepositoryId, ReplicaRole)> {
        self.participants
            .iter()
            .map(|(id, participant)| (*id, participant.replica_role()))
            .collect()
    }

    /// By how much each repository here is behind in its group.
    pub fn lags(&self) -> Vec<(RepositoryId, Lag)> {
        let lag = |(id, it): &(RepositoryId, P::Participant)| it.lag().map(|lag| (*id, lag));
        self.participants.iter().filter_map(lag).collect()
    }

    /// What the services here have counted, each by its name and what it counts, as in
    /// `validator-3-merged`.
    pub fn figures(&self) -> Vec<(String, u64)> {
        let of = |(id, service): &(_, P::Service)| {
            let name = id_name(*id);
            let named = move |(what, count)| (format!("{name}-{what}"), count);
            service.figures().into_iter().map(named).collect::<Vec<_>>()
        };
        self.services.iter().flat_map(of).collect()
    }

    /// A step of counting how much the partitions here hold. Any cursor may be given.
    pub fn partition_sizes(&self, mut from: SizeCursor) -> SizePage {
        let mut sizes = PartitionSizes::default();
        let here = self.participants.get(usize::from(from.repository));
        let Some((_, participant)) = here else { return SizePage::default() };
        let next = match participant.add_sizes(&mut from, &mut sizes, &self.catalog) {
            true => Some(from),
            false => {
                let repository = from.repository.saturating_add(1);
                let is_there = usize::from(repository) < self.participants.len();
                is_there.then_some(SizeCursor { repository, ..SizeCursor::default() })
            }
        };
        SizePage { sizes: sizes.into_list(), next }
    }

    /// The version chains of each repository here, for histories.
    #[expect(clippy::type_complexity, reason = "one row a chain, read once by the history writer")]
    pub fn chains(&self) -> Vec<(RepositoryId, Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>)> {
        let chains = |participant: &P::Participant| participant.chains(&self.catalog);
        self.participants.iter().map(|(id, it)| (*id, chains(it))).collect()
    }

    /// The participants, for tests and explorers that look inside.
    pub fn participants(&self) -> &[(RepositoryId, P::Participant)] {
        &self.participants
    }
}

fn id_name(id: ServiceId) -> String {
    id.to_string().replace(' ', "-")
}
