//! What a coordinator asks of replicas on other nodes, and what has come of it so far.

use std::collections::{BTreeMap, VecDeque};

use muesli_core::parts::locator::Static;
use muesli_core::{Catalog, Nanos, OpId, RepositoryId, Scan, SmallBytes, SpaceId, Timestamp, Txn};

use crate::two_phase::Variant;
use crate::two_phase::message::{Few, Found, ReadReply};

/// Something the client waits for.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct WaitingOperation {
    pub txn: Txn,
    /// Requests not yet answered.
    pub missing: usize,
    /// Keys that are to be asked for when some of these are.
    pub queued: Queued,
    /// What it was answered with so far, in bytes.
    pub bytes: usize,
    pub kind: OperationKind,
}

#[derive(Clone, Debug)]
pub(in crate::two_phase) enum OperationKind {
    Get(Option<SmallBytes>),
    Many(Vec<Option<SmallBytes>>),
    Scan(ScannedRows),
    Lock,
    /// The versions of what its transaction has read, at the snapshot that it is to move to.
    Versions(ReadVersions),
}

/// The versions of what a transaction has read, as they come in.
#[derive(Clone, Debug, Default)]
pub(in crate::two_phase) struct ReadVersions {
    pub found: BTreeMap<(SpaceId, SmallBytes), Timestamp>,
    /// Whether the client waits for it: to merge the innermost level.
    pub merges: bool,
}

/// A key asked for, with its place among those of its operation.
pub(in crate::two_phase) type AskedKey = (usize, SpaceId, SmallBytes);

/// Keys asked for.
pub(in crate::two_phase) type AskedKeys = Few<AskedKey>;

/// Keys that are not where they were asked for.
pub(in crate::two_phase) struct SentOn {
    pub keys: AskedKeys,
    /// When they were asked for first.
    pub since: Nanos,
    /// How often they were sent on before.
    pub times: u32,
}

/// Keys by the repository that is asked for them.
pub(in crate::two_phase) type Groups = Few<(RepositoryId, AskedKeys)>;

/// Something asked of one repository.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct PendingRequest {
    pub op: OpId,
    pub to: RepositoryId,
    pub asked: Asked,
    /// Held until the snapshot is known.
    pub held: bool,
    /// How many answers the transaction had when it was sent last.
    pub answers: u32,
    /// When it was sent last.
    pub sent: Nanos,
    /// When it was sent last, or was on its way still: from then on its answer is waited for.
    pub quiet: Nanos,
    /// When it was asked first.
    pub since: Nanos,
    /// How often its keys were sent on since then.
    pub redirects: u32,
}

#[derive(Clone, Debug)]
pub(in crate::two_phase) enum Asked {
    /// Keys, each with its place among those of the operation.
    Keys(AskedKeys),
    /// The next page of the operation's scan.
    Page(AskedPage),
    /// The lock of a key.
    Lock(SpaceId, SmallBytes),
}

/// What of a scan is asked of one repository.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct AskedPage {
    /// The partitions that it holds.
    pub partitions: Vec<u16>,
    /// The last key that it has looked at; `None`: it was asked for nothing yet.
    pub seen_to: Option<SmallBytes>,
    /// Most rows wanted.
    pub limit: usize,
}

/// Keys of an operation that are asked for when others have been answered, by repository.
pub(in crate::two_phase) type Queued = VecDeque<(RepositoryId, AskedKeys)>;
/// Stands for the request that fixes the snapshot while it moves: no request has this number.
pub(in crate::two_phase) const MOVING: u64 = u64::MAX;

/// A snapshot on its way.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct SnapshotMove<V: Variant> {
    /// What the transaction reads at, unless it moves.
    pub from: V::Snapshot,
    /// Where it goes; known from the first answer on, if it was not before.
    pub to: Option<V::Snapshot>,
    /// What was read there already, which is the transaction's when it has moved.
    pub aside: Option<(PendingRequest, ReadReply<V>)>,
}

/// The rows of a scan as they come in from the repositories.
#[derive(Clone, Debug)]
pub(in crate::two_phase) struct ScannedRows {
    pub scan: Scan,
    /// In no order; each key once.
    pub rows: Vec<(SmallBytes, Found)>,
    /// For histories: keys with collected deletions, and the newest of these that was seen.
    pub collected: BTreeMap<SmallBytes, Timestamp>,
    /// The nearest place at which some repository stopped: what lies beyond was not seen.
    pub edge: Option<SmallBytes>,
}

impl WaitingOperation {
    /// Whether the client waits for it.
    pub fn is_clients(&self) -> bool {
        match &self.kind {
            OperationKind::Versions(versions) => versions.merges,
            OperationKind::Get(_)
            | OperationKind::Many(_)
            | OperationKind::Scan(_)
            | OperationKind::Lock => true,
        }
    }
}

impl PendingRequest {
    /// Asked for the first time, now; not sent yet.
    pub fn new(op: OpId, to: RepositoryId, asked: Asked, now: Nanos) -> PendingRequest {
        let (sent, quiet, since) = (now, now, now);
        PendingRequest { op, to, asked, held: true, answers: 0, sent, quiet, since, redirects: 0 }
    }

    /// Whether so many keys may be its answer, or the first page of it.
    pub fn asks_for(&self, count: usize) -> bool {
        matches!(&self.asked, Asked::Keys(keys) if (1..=keys.len()).contains(&count))
    }

    /// Whether it asks for a range.
    pub fn is_scan(&self) -> bool {
        matches!(self.asked, Asked::Page(_))
    }
}

impl Asked {
    /// Its parts by the replicas that follow `asked`, the one asked before.
    pub fn by_next_replica(
        self,
        asked: RepositoryId,
        catalog: &Catalog,
    ) -> Vec<(RepositoryId, Asked)> {
        let next = |partition: u16| {
            let replicas: Vec<_> = Static.replicas_of(partition, catalog).collect();
            let place = replicas.iter().position(|&replica| replica == asked);
            assert!(!replicas.is_empty(), "partition {partition} lives nowhere");
            replicas[place.map_or(0, |place| place + 1) % replicas.len()]
        };
        match self {
            Asked::Keys(keys) => {
                assert!(!keys.is_empty(), "{asked:?} was asked for nothing");
                let to = |key: &AskedKey| next(catalog.partition(key.1, &key.2));
                grouped(keys, to).map(|(to, keys)| (to, Asked::Keys(keys))).collect()
            }
            Asked::Lock(..) => vec![(asked, self)], // All replicas are asked.
            Asked::Page(AskedPage { partitions, seen_to, limit }) => {
                assert!(!partitions.is_empty(), "{asked:?} was asked for rows of no partition");
                let page = |(to, partitions)| {
                    let seen_to = seen_to.clone();
                    (to, Asked::Page(AskedPage { partitions, seen_to, limit }))
                };
                grouped(partitions, |&partition| next(partition)).map(page).collect()
            }
        }
    }
}

/// What goes to each repository, in order.
fn grouped<T, C: Default + Extend<T> + IntoIterator<Item = T>>(
    all: C,
    to: impl Fn(&T) -> RepositoryId,
) -> impl Iterator<Item = (RepositoryId, C)> {
    let mut groups: BTreeMap<RepositoryId, C> = BTreeMap::new();
    for one in all {
        groups.entry(to(&one)).or_default().extend([one]);
    }
    groups.into_iter()
}

impl ScannedRows {
    /// Takes the rows that only histories need out of an answer.
    pub fn take_collected(&mut self, rows: &mut Vec<(SmallBytes, Found)>) {
        rows.retain(|(key, found)| {
            let is_row = found.version != Timestamp::ZERO;
            if !is_row {
                self.collected.insert(key.clone(), found.collected);
            }
            is_row
        });
    }

    /// Some repository saw nothing beyond `last`.
    pub fn limit_to(&mut self, last: Option<SmallBytes>) {
        let Some(last) = last else { return };
        self.edge = Some(match self.edge.take() {
            Some(edge) if self.scan.reverse => edge.max(last),
            Some(edge) => edge.min(last),
            None => last,
        });
    }
}
