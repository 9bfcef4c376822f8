//! What the nodes recorded, as a history for the checker.
//!
//! The problem: nodes on every driver record their transactions in the same form, but know times
//! and ends in forms of their own. The idea: each driver says what its nodes leave behind
//! ([`Remains`]), and one place puts the transactions of all nodes into one history, with the
//! chains of versions that the repositories hold in the end. A key is named by its space and
//! itself, with a slash between, so that ranges of keys stay ranges.
//!
//! Where a coordinator did not learn the end of a transaction, any participant that applied it
//! tells the version of its writes.

use std::collections::{BTreeMap, BTreeSet};

use muesli_check::{
    BuildError, History, HistoryBuilder, HistoryHeader, Kind, RootRole, Seen, TransactionBuilder,
    TxnId, Value, Version,
};
use muesli_core::recorder::{PartRan, RecordedOperation, Sampling, Status, TxnRecord};
use muesli_core::{
    Catalog, LevelRole, Nanos, RepositoryId, SmallBytes, SpaceId, Timestamp, TxnLevel,
};
use serde_json::{Map, Value as Json};

use ran::ran;
use sampled::Sampled;

mod ran;
mod sampled;

/// A transaction as its node recorded it, and what its client was told.
#[derive(Clone, Debug)]
pub struct ReportedTransaction {
    /// The record as its coordinator made it; its end and times may be wrong for its client.
    pub record: TxnRecord,
    /// How it ended as far as its client was told.
    pub status: Status,
    /// In nanoseconds, on one clock for all nodes.
    pub begin: u64,
    /// When its client was told of its end; `None` if it never was.
    pub end: Option<u64>,
    /// Of one that may be stale: what had ended before this it must see.
    pub as_of: Option<u64>,
    /// What it did, in order.
    pub operations: Vec<RecordedOperation>,
    /// Whether its node crashed in it or after it, and its client was not told that it committed:
    /// what it read may be lost with writes that were not stable.
    pub crashed: bool,
    /// What it is within its root.
    pub level: TxnLevel,
}

impl ReportedTransaction {
    /// A transaction whose client was told what was recorded, on a node whose clock is that of
    /// all.
    pub fn as_recorded(
        (record, operations): (TxnRecord, impl Iterator<Item = RecordedOperation>),
    ) -> ReportedTransaction {
        ReportedTransaction {
            record,
            status: record.status,
            begin: record.begin.0,
            end: record.end.map(|end| end.0),
            as_of: None,
            operations: operations.collect(),
            crashed: false,
            level: TxnLevel::default(),
        }
    }
}

/// The versions of a key, oldest first.
pub type Chain = (SpaceId, SmallBytes, Vec<Timestamp>);

/// What a node leaves behind, on any driver.
pub trait Remains {
    /// The transactions begun there.
    fn reported(&self) -> impl Iterator<Item = ReportedTransaction>;
    /// What a transaction begun there is within its root.
    fn level_of(&self, txn: muesli_core::TxnId) -> TxnLevel;
    /// Where a participant there applied a transaction.
    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp>;
    /// What the delayed actions of a transaction read and wrote, as participants there saw it.
    fn executed(&self, txn: muesli_core::TxnId) -> Vec<Vec<RecordedOperation>>;
    /// What the parts of a one-round transaction did, as participants there saw it, each with the
    /// place of the transaction.
    fn ran(&self, txn: muesli_core::TxnId) -> Vec<PartRan>;
    /// Which transactions were recorded whole.
    fn sampling(&self) -> Sampling;
    /// The moment since which its clock counted so long until `moment`.
    fn counted_before(&self, moment: u64, length: Nanos) -> u64 {
        moment.saturating_sub(length.0)
    }
    /// The version chains of its repositories.
    fn chains(&self) -> &[(RepositoryId, Vec<Chain>)];
}

/// The history of a run from what its nodes left behind, with `meta` in its first line.
///
/// # Errors
/// What was recorded is no history, such as two transactions of one name: a mistake of the
/// protocol.
pub fn by_versions<N: Remains>(
    nodes: &[N],
    catalog: &Catalog,
    meta: Map<String, Json>,
) -> Result<History, BuildError> {
    let mut builder = HistoryBuilder::new(Kind::Version);
    let shares = nodes.iter().map(|node| node.sampling());
    let sampling = shares.max_by_key(|it| it.share()).unwrap_or_default();
    let sampled = Sampled::of(sampling, || all(nodes));
    let mut meta = meta;
    if let Some(sampled) = &sampled {
        meta.insert("sampled_one_in".to_owned(), sampled.share().into());
    }
    builder.meta(meta);
    let names = KeyNames { catalog };
    for (reported, at) in all(nodes) {
        match &sampled {
            None => names.add(&mut builder, &reported, at)?,
            Some(sampled) => {
                if let Some(reported) = sampled.kept(reported, at) {
                    names.add(&mut builder, &reported, at)?;
                }
            }
        }
    }
    for (repository, chains) in nodes.iter().flat_map(|node| node.chains()) {
        let replica = format!("r{}", repository.0);
        for (space, key, versions) in chains {
            // Version zero is what was there before anybody wrote.
            let is_known = |at: &&Timestamp| match &sampled {
                None => **at != Timestamp::ZERO,
                Some(sampled) => sampled.has(*space, key, **at),
            };
            let written = versions.iter().filter(is_known);
            let versions: Vec<_> = written.map(|version| Version::Number(version.0)).collect();
            if !versions.is_empty() {
                builder.order(&names.key(*space, key), Value::Text(&replica), &versions)?;
            }
        }
    }
    Ok(builder.finish())
}

/// All transactions of a run with all that is known of each, and where it lies.
fn all<N: Remains>(
    nodes: &[N],
) -> impl Iterator<Item = (ReportedTransaction, Option<Timestamp>)> + use<'_, N> {
    let lasting = Lasting::of(nodes);
    let reported = nodes.iter().flat_map(|node| {
        node.reported().map(|it| ReportedTransaction { level: node.level_of(it.record.id), ..it })
    });
    let reported = reported.map(|it| ReportedTransaction { as_of: as_of(nodes, &it), ..it });
    reported.map(move |reported| completed(nodes, &lasting, reported))
}

/// What a transaction must see that may be stale: how long that is the clock of the node counts
/// that answers, of which the history knows nothing; so the slowest of all is taken.
fn as_of<N: Remains>(nodes: &[N], reported: &ReportedTransaction) -> Option<u64> {
    let staleness = reported.record.staleness?;
    let moments = nodes.iter().map(|node| node.counted_before(reported.begin, staleness));
    Some(moments.min().unwrap_or(0).min(reported.begin))
}

/// A transaction with what participants know of it, and where it lies.
fn completed<N: Remains>(
    nodes: &[N],
    lasting: &Lasting<'_>,
    mut reported: ReportedTransaction,
) -> (ReportedTransaction, Option<Timestamp>) {
    if reported.crashed {
        reported.operations.retain(|it| lasting.was_seen(it));
    }
    let asked = matches!(reported.status, Status::Unknown | Status::Running);
    let applied = || applied(nodes, reported.record.id, lasting);
    let at = reported.record.at.or_else(|| if asked { applied() } else { None });
    if asked && at.is_none() {
        reported.operations.retain(|it| !finds_a_deletion(it));
    }
    if let Some(at) = at.filter(|_| reported.status != Status::Aborted) {
        reported.operations.extend(executed(nodes, reported.record.id));
        let ran: Vec<_> = ran(nodes, reported.record.id, at).collect();
        // What nobody was told of may have run over writes that were not stable, and be
        // lost with them: of what it read counts what lasts.
        let interactive = !reported.operations.is_empty();
        let sure = reported.status == Status::Committed;
        if interactive {
            as_found_at_the_end(&mut reported.operations, &ran);
        }
        let counts = |it: &RecordedOperation| {
            is_write(it) || (!interactive && (sure || lasting.was_seen(it)))
        };
        reported.operations.extend(ran.into_iter().filter(counts));
    }
    (reported, at)
}

/// Where a transaction lies whose client never learned it, as participants say who applied it. A
/// leader of a group may have done so before its group had agreed, and have lost that with its
/// post: then others say something else, and the place counts at which copies have what it wrote in
/// the end, at which somebody has seen it, or where most have it.
fn applied<N: Remains>(
    nodes: &[N],
    txn: muesli_core::TxnId,
    lasting: &Lasting<'_>,
) -> Option<Timestamp> {
    let all: Vec<Timestamp> = nodes.iter().filter_map(|node| node.applied_at(txn)).collect();
    let weight = |at: &&Timestamp| {
        let same = all.iter().filter(|other| *other == *at).count();
        (lasting.kept.contains(*at), lasting.read.contains(*at), same)
    };
    all.iter().rev().max_by_key(weight).copied()
}

/// The versions that outlive every crash: those whose clients were told of them, and those that
/// repositories hold in the end.
struct Lasting<'a> {
    reported: BTreeSet<Timestamp>,
    /// Those that somebody has read who has committed.
    read: BTreeSet<Timestamp>,
    held: BTreeSet<(SpaceId, &'a SmallBytes, Timestamp)>,
    /// The versions of these.
    kept: BTreeSet<Timestamp>,
}

impl<'a> Lasting<'a> {
    fn of<N: Remains>(nodes: &'a [N]) -> Lasting<'a> {
        let committed = nodes.iter().flat_map(|node| node.reported());
        let committed = committed.filter(|reported| reported.status == Status::Committed);
        let mut read = BTreeSet::new();
        let committed = committed.inspect(|reported| {
            for operation in &reported.operations {
                match operation {
                    RecordedOperation::Read { version, .. } => read.extend([*version]),
                    RecordedOperation::Scan { rows, .. } => {
                        read.extend(rows.iter().map(|row| row.1))
                    }
                    RecordedOperation::ReadOwn { .. } | RecordedOperation::Write { .. } => {}
                }
            }
        });
        let chains = nodes.iter().flat_map(|node| node.chains()).flat_map(|(_, chains)| chains);
        let held = chains.flat_map(|(space, key, versions)| {
            versions.iter().map(move |version| (*space, key, *version))
        });
        let reported = committed.filter_map(|reported| reported.record.at).collect();
        let held: BTreeSet<_> = held.collect();
        let kept = held.iter().map(|(.., version)| *version).collect();
        Lasting { reported, read, held, kept }
    }

    /// Whether what a transaction that a crash ended has seen is there for all. It may have seen
    /// writes of its own node that were not stable and are lost with it; nobody who is left has
    /// seen them, so that proves nothing of these writes.
    fn was_seen(&self, operation: &RecordedOperation) -> bool {
        let lasts = |space: SpaceId, key: &SmallBytes, version: Timestamp| {
            version == Timestamp::ZERO
                || self.reported.contains(&version)
                || self.held.contains(&(space, key, version))
        };
        match operation {
            RecordedOperation::Write { .. } | RecordedOperation::ReadOwn { .. } => true,
            RecordedOperation::Read { space, key, version, .. } => lasts(*space, key, *version),
            RecordedOperation::Scan { space, rows, .. } => {
                rows.iter().all(|(key, version, _)| lasts(*space, key, *version))
            }
        }
    }
}

/// What the delayed actions of a transaction did. Replicas that saw the same say it once; where
/// they do not agree, the transaction has read one key twice, and the history is none that may be.
fn executed<N: Remains>(
    nodes: &[N],
    txn: muesli_core::TxnId,
) -> impl Iterator<Item = RecordedOperation> + use<N> {
    let mut all: Vec<Vec<RecordedOperation>> = Vec::new();
    for operations in nodes.iter().flat_map(|node| node.executed(txn)) {
        if !all.contains(&operations) {
            all.push(operations);
        }
    }
    all.into_iter().flatten()
}

/// A protocol that looks at the end of a transaction whether what it read is the newest takes a key
/// that came and went in the meantime for one that was absent all the time: the transaction has
/// read what it ended with, as participants say it.
fn as_found_at_the_end(operations: &mut [RecordedOperation], found: &[RecordedOperation]) {
    let absent = found.iter().filter_map(|operation| match operation {
        RecordedOperation::Read { space, key, version, hash: None } => {
            Some(((*space, key), *version))
        }
        _ => None,
    });
    let absent: BTreeMap<(SpaceId, &SmallBytes), Timestamp> = absent.collect();
    let mut written: BTreeSet<(SpaceId, SmallBytes)> = BTreeSet::new();
    for operation in operations {
        match operation {
            RecordedOperation::Read { space, key, version, hash: None } => {
                *version = absent.get(&(*space, &*key)).map_or(*version, |at| *at);
            }
            RecordedOperation::Write { space, key, .. } => {
                written.insert((*space, key.clone()));
            }
            RecordedOperation::Scan { space, lo, hi, rows } => {
                let inside =
                    |key: &SmallBytes| key >= &*lo && hi.as_ref().is_none_or(|hi| key < hi);
                for ((_, key), at) in
                    absent.iter().filter(|((of, key), _)| of == space && inside(key))
                {
                    match rows.binary_search_by(|row| row.0.cmp(key)) {
                        Ok(place) if rows[place].2.is_none() => rows[place].1 = *at,
                        Err(place) if !written.contains(&(*space, (*key).clone())) => {
                            rows.insert(place, ((*key).clone(), *at, None));
                        }
                        _ => {}
                    }
                }
            }
            RecordedOperation::Read { .. } | RecordedOperation::ReadOwn { .. } => {}
        }
    }
}

/// Whether an operation found keys absent that had been there. If nobody knows how its transaction
/// ended, nobody knows either which deletions it found in the end (`as_found_at_the_end`).
fn finds_a_deletion(operation: &RecordedOperation) -> bool {
    let is_deleted =
        |version: Timestamp, hash: Option<u64>| version != Timestamp::ZERO && hash.is_none();
    match operation {
        RecordedOperation::Read { version, hash, .. } => is_deleted(*version, *hash),
        RecordedOperation::Scan { rows, .. } => {
            rows.iter().any(|(_, at, hash)| is_deleted(*at, *hash))
        }
        RecordedOperation::ReadOwn { .. } | RecordedOperation::Write { .. } => false,
    }
}

fn is_write(operation: &RecordedOperation) -> bool {
    matches!(operation, RecordedOperation::Write { .. })
}

/// How spaces are named in keys.
struct KeyNames<'a> {
    catalog: &'a Catalog,
}

impl KeyNames<'_> {
    fn key(&self, space: SpaceId, key: &SmallBytes) -> Vec<u8> {
        let mut name = self.space(space).as_bytes().to_vec();
        name.push(b'/');
        name.extend_from_slice(key.as_slice());
        name
    }

    /// After all keys of the space: the byte after the slash is the digit zero.
    fn end_of(&self, space: SpaceId) -> Vec<u8> {
        let mut name = self.space(space).as_bytes().to_vec();
        name.push(b'/' + 1);
        name
    }

    fn space(&self, space: SpaceId) -> &str {
        self.catalog.space(space).map_or("?", |space| &space.name)
    }

    fn add(
        &self,
        builder: &mut HistoryBuilder,
        reported: &ReportedTransaction,
        at: Option<Timestamp>,
    ) -> Result<(), BuildError> {
        let record = reported.record;
        let id = record.id.to_string();
        let mut transaction = builder.transaction(HistoryHeader {
            id: TxnId::Text(&id),
            session: Value::Unsigned(record.session),
            begin: reported.begin,
            end: reported.end,
            status: checked(reported.status),
            read_only: Some(record.read_only),
            timestamp: at.map_or(Value::Unrecorded, |at| Value::Unsigned(at.0)),
            as_of: reported.as_of,
        })?;
        if reported.level.root != 0 {
            let root = root_name(reported.level.root);
            transaction.part_of(TxnId::Text(&root), role(reported.level.role))?;
        }
        let last = last_writes(&reported.operations);
        let mut written = BTreeSet::new();
        for (place, operation) in reported.operations.iter().enumerate() {
            if let RecordedOperation::Write { space, key, .. } = operation {
                written.insert((*space, key));
            }
            let installs = reported.status != Status::Aborted && last.contains(&place);
            let version = at.filter(|_| installs).map(|at| Version::Number(at.0));
            self.add_operation(&mut transaction, operation, version, &written)?;
        }
        Ok(())
    }

    fn add_operation(
        &self,
        transaction: &mut TransactionBuilder<'_>,
        operation: &RecordedOperation,
        version: Option<Version<'_>>,
        written: &BTreeSet<(SpaceId, &SmallBytes)>,
    ) -> Result<(), BuildError> {
        match operation {
            RecordedOperation::Read { space, key, version, hash } => {
                transaction.read(&self.key(*space, key), version.0, value(*hash))?;
            }
            RecordedOperation::ReadOwn { space, key, hash } => {
                transaction.read(&self.key(*space, key), Seen::Own, value(*hash))?;
            }
            RecordedOperation::Write { space, key, hash: Some(hash) } => {
                let hash = Value::Unsigned(*hash);
                transaction.write(&self.key(*space, key), version, hash)?;
            }
            RecordedOperation::Write { space, key, hash: None } => {
                transaction.delete(&self.key(*space, key), version)?;
            }
            RecordedOperation::Scan { space, lo, hi, rows } => {
                let seen = rows.iter().map(|(key, version, hash)| {
                    (self.key(*space, key), Seen::from(version.0), value(*hash))
                });
                // Own writes hide what else is there, so nothing was read under them.
                let inside = |key: &SmallBytes| key >= lo && hi.as_ref().is_none_or(|hi| key < hi);
                let own = written.iter().filter(|(of, key)| of == space && inside(key));
                let own = own.map(|(_, key)| (self.key(*space, key), Seen::Own, Value::Unrecorded));
                let rows: Vec<_> = seen.chain(own).collect();
                let rows = rows.iter().map(|(key, seen, value)| (&key[..], *seen, *value));
                let high =
                    hi.as_ref().map_or_else(|| self.end_of(*space), |hi| self.key(*space, hi));
                transaction.scan(&self.key(*space, lo), Some(&high), rows)?;
            }
        }
        Ok(())
    }
}

/// The places of the writes that no later write of the transaction hides.
fn last_writes(operations: &[RecordedOperation]) -> BTreeSet<usize> {
    let mut hidden = BTreeSet::new();
    let newest_first = operations.iter().enumerate().rev();
    let last = newest_first.filter_map(|(place, operation)| match operation {
        RecordedOperation::Write { space, key, .. } => {
            hidden.insert((*space, key)).then_some(place)
        }
        _ => None,
    });
    last.collect()
}

/// The name of a root in histories, by its number.
pub fn root_name(root: u32) -> String {
    format!("root-{root}")
}

fn role(role: LevelRole) -> RootRole {
    match role {
        LevelRole::Own => RootRole::Own,
        LevelRole::Child => RootRole::Child,
        LevelRole::Compensation => RootRole::Compensation,
        LevelRole::CommitHandler => RootRole::CommitHandler,
    }
}

fn checked(status: Status) -> muesli_check::Status {
    match status {
        Status::Committed => muesli_check::Status::Committed,
        Status::Aborted => muesli_check::Status::Aborted,
        Status::Unknown => muesli_check::Status::Unknown,
        Status::Running => muesli_check::Status::Running,
    }
}

fn value(hash: Option<u64>) -> Value<'static> {
    hash.map_or(Value::Null, Value::Unsigned)
}

#[cfg(test)]
mod tests;
