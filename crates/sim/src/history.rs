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
    BuildError, Header, History, HistoryBuilder, Kind, Seen, TransactionBuilder, TxnId, Value,
    Version,
};
use muesli_core::recorder::{Operation, PartRan, Status, TxnRecord};
use muesli_core::{Catalog, RepositoryId, SmallBytes, SpaceId, Timestamp};
use serde_json::{Map, Value as Json};

/// A transaction as its node recorded it, and what its client was told.
#[derive(Clone, Debug)]
pub struct Told {
    /// The record as its coordinator made it; its end and times may be wrong for its client.
    pub record: TxnRecord,
    /// How it ended as far as its client was told.
    pub status: Status,
    /// In nanoseconds, on one clock for all nodes.
    pub begin: u64,
    /// When its client was told of its end; `None` if it never was.
    pub end: Option<u64>,
    /// What it did, in order.
    pub operations: Vec<Operation>,
    /// Whether a crash ended it: what it read may be lost with writes that were not stable.
    pub crashed: bool,
}

impl Told {
    /// A transaction whose client was told what was recorded, on a node whose clock is that of
    /// all.
    pub fn as_recorded((record, operations): (TxnRecord, impl Iterator<Item = Operation>)) -> Told {
        Told {
            record,
            status: record.status,
            begin: record.begin.0,
            end: record.end.map(|end| end.0),
            operations: operations.collect(),
            crashed: false,
        }
    }
}

/// The versions of a key, oldest first.
pub type Chain = (SpaceId, SmallBytes, Vec<Timestamp>);

/// What a node leaves behind, on any driver.
pub trait Remains {
    /// The transactions begun there.
    fn told(&self) -> impl Iterator<Item = Told>;
    /// Where a participant there applied a transaction.
    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp>;
    /// What the delayed actions of a transaction read and wrote, as participants there saw it.
    fn executed(&self, txn: muesli_core::TxnId) -> Vec<Vec<Operation>>;
    /// What the parts of a one-round transaction did, as participants there saw it, each with the
    /// place of the transaction.
    fn ran(&self, txn: muesli_core::TxnId) -> Vec<PartRan>;
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
    builder.meta(meta);
    let names = Names { catalog };
    let lasting = Lasting::of(nodes);
    for node in nodes {
        for mut told in node.told() {
            if told.crashed {
                told.operations.retain(|it| lasting.was_seen(it));
            }
            let asked = matches!(told.status, Status::Unknown | Status::Running);
            let applied = || applied(nodes, told.record.id, &lasting);
            let at = told.record.at.or_else(|| if asked { applied() } else { None });
            if asked && at.is_none() {
                told.operations.retain(|it| !finds_a_deletion(it));
            }
            if let Some(at) = at.filter(|_| told.status != Status::Aborted) {
                told.operations.extend(executed(nodes, told.record.id));
                let ran: Vec<_> = ran(nodes, told.record.id, at).collect();
                // What nobody was told of may have run over writes that were not stable, and be
                // lost with them: of what it read counts what lasts.
                let interactive = !told.operations.is_empty();
                let sure = told.status == Status::Committed;
                if interactive {
                    as_found_at_the_end(&mut told.operations, &ran);
                }
                let counts = |it: &Operation| {
                    is_write(it) || (!interactive && (sure || lasting.was_seen(it)))
                };
                told.operations.extend(ran.into_iter().filter(counts));
            }
            names.add(&mut builder, &told, at)?;
        }
    }
    for (repository, chains) in nodes.iter().flat_map(|node| node.chains()) {
        let replica = format!("r{}", repository.0);
        for (space, key, versions) in chains {
            // Version zero is what was there before anybody wrote.
            let written = versions.iter().filter(|version| **version != Timestamp::ZERO);
            let versions: Vec<_> = written.map(|version| Version::Number(version.0)).collect();
            if !versions.is_empty() {
                builder.order(&names.key(*space, key), Value::Text(&replica), &versions)?;
            }
        }
    }
    Ok(builder.finish())
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
    told: BTreeSet<Timestamp>,
    /// Those that somebody has read who has committed.
    read: BTreeSet<Timestamp>,
    held: BTreeSet<(SpaceId, &'a SmallBytes, Timestamp)>,
    /// The versions of these.
    kept: BTreeSet<Timestamp>,
}

impl<'a> Lasting<'a> {
    fn of<N: Remains>(nodes: &'a [N]) -> Lasting<'a> {
        let committed = nodes.iter().flat_map(|node| node.told());
        let committed = committed.filter(|told| told.status == Status::Committed);
        let mut read = BTreeSet::new();
        let committed = committed.inspect(|told| {
            for operation in &told.operations {
                match operation {
                    Operation::Read { version, .. } => read.extend([*version]),
                    Operation::Scan { rows, .. } => read.extend(rows.iter().map(|row| row.1)),
                    Operation::ReadOwn { .. } | Operation::Write { .. } => {}
                }
            }
        });
        let chains = nodes.iter().flat_map(|node| node.chains()).flat_map(|(_, chains)| chains);
        let held = chains.flat_map(|(space, key, versions)| {
            versions.iter().map(move |version| (*space, key, *version))
        });
        let told = committed.filter_map(|told| told.record.at).collect();
        let held: BTreeSet<_> = held.collect();
        let kept = held.iter().map(|(.., version)| *version).collect();
        Lasting { told, read, held, kept }
    }

    /// Whether what a transaction that a crash ended has seen is there for all. It may have seen
    /// writes of its own node that were not stable and are lost with it; nobody who is left has
    /// seen them, so that proves nothing of these writes.
    fn was_seen(&self, operation: &Operation) -> bool {
        let lasts = |space: SpaceId, key: &SmallBytes, version: Timestamp| {
            version == Timestamp::ZERO
                || self.told.contains(&version)
                || self.held.contains(&(space, key, version))
        };
        match operation {
            Operation::Write { .. } | Operation::ReadOwn { .. } => true,
            Operation::Read { space, key, version, .. } => lasts(*space, key, *version),
            Operation::Scan { space, rows, .. } => {
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
) -> impl Iterator<Item = Operation> + use<N> {
    let mut all: Vec<Vec<Operation>> = Vec::new();
    for operations in nodes.iter().flat_map(|node| node.executed(txn)) {
        if !all.contains(&operations) {
            all.push(operations);
        }
    }
    all.into_iter().flatten()
}

/// What the parts of a one-round transaction did that lies at `at`: what its client was told of,
/// if it was; else what participants ran there, who must agree as above. A run that was lost in a
/// crash before anybody heard of it may lie elsewhere.
fn ran<N: Remains>(
    nodes: &[N],
    txn: muesli_core::TxnId,
    at: Timestamp,
) -> impl Iterator<Item = Operation> + use<N> {
    let runs = nodes.iter().flat_map(|node| node.ran(txn)).filter(|ran| ran.at == at);
    let runs: Vec<_> = runs.collect();
    let told: BTreeSet<u16> = runs.iter().filter(|ran| ran.told).map(|ran| ran.part).collect();
    let mut all: Vec<(u16, Vec<Operation>)> = Vec::new();
    for PartRan { part, operations, .. } in
        runs.into_iter().filter(|ran| ran.told || !told.contains(&ran.part))
    {
        if !all.contains(&(part, operations.clone())) {
            all.push((part, operations));
        }
    }
    all.sort_by_key(|(part, _)| *part);
    all.into_iter().flat_map(|(_, operations)| operations)
}

/// A protocol that looks at the end of a transaction whether what it read is the newest takes a key
/// that came and went in the meantime for one that was absent all the time: the transaction has
/// read what it ended with, as participants say it.
fn as_found_at_the_end(operations: &mut [Operation], found: &[Operation]) {
    let absent = found.iter().filter_map(|operation| match operation {
        Operation::Read { space, key, version, hash: None } => Some(((*space, key), *version)),
        _ => None,
    });
    let absent: BTreeMap<(SpaceId, &SmallBytes), Timestamp> = absent.collect();
    let mut written: BTreeSet<(SpaceId, SmallBytes)> = BTreeSet::new();
    for operation in operations {
        match operation {
            Operation::Read { space, key, version, hash: None } => {
                *version = absent.get(&(*space, &*key)).map_or(*version, |at| *at);
            }
            Operation::Write { space, key, .. } => {
                written.insert((*space, key.clone()));
            }
            Operation::Scan { space, lo, hi, rows } => {
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
            Operation::Read { .. } | Operation::ReadOwn { .. } => {}
        }
    }
}

/// Whether an operation found keys absent that had been there. If nobody knows how its transaction
/// ended, nobody knows either which deletions it found in the end (`as_found_at_the_end`).
fn finds_a_deletion(operation: &Operation) -> bool {
    let is_deleted =
        |version: Timestamp, hash: Option<u64>| version != Timestamp::ZERO && hash.is_none();
    match operation {
        Operation::Read { version, hash, .. } => is_deleted(*version, *hash),
        Operation::Scan { rows, .. } => rows.iter().any(|(_, at, hash)| is_deleted(*at, *hash)),
        Operation::ReadOwn { .. } | Operation::Write { .. } => false,
    }
}

fn is_write(operation: &Operation) -> bool {
    matches!(operation, Operation::Write { .. })
}

/// How spaces are named in keys.
struct Names<'a> {
    catalog: &'a Catalog,
}

impl Names<'_> {
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
        told: &Told,
        at: Option<Timestamp>,
    ) -> Result<(), BuildError> {
        let record = told.record;
        let id = record.id.to_string();
        let mut transaction = builder.transaction(Header {
            id: TxnId::Text(&id),
            session: Value::Unsigned(record.session),
            begin: told.begin,
            end: told.end,
            status: checked(told.status),
            read_only: Some(record.read_only),
            timestamp: at.map_or(Value::Unrecorded, |at| Value::Unsigned(at.0)),
        })?;
        let last = last_writes(&told.operations);
        let mut written = BTreeSet::new();
        for (place, operation) in told.operations.iter().enumerate() {
            if let Operation::Write { space, key, .. } = operation {
                written.insert((*space, key));
            }
            let installs = told.status != Status::Aborted && last.contains(&place);
            let version = at.filter(|_| installs).map(|at| Version::Number(at.0));
            self.add_operation(&mut transaction, operation, version, &written)?;
        }
        Ok(())
    }

    fn add_operation(
        &self,
        transaction: &mut TransactionBuilder<'_>,
        operation: &Operation,
        version: Option<Version<'_>>,
        written: &BTreeSet<(SpaceId, &SmallBytes)>,
    ) -> Result<(), BuildError> {
        match operation {
            Operation::Read { space, key, version, hash } => {
                transaction.read(&self.key(*space, key), version.0, value(*hash))?;
            }
            Operation::ReadOwn { space, key, hash } => {
                transaction.read(&self.key(*space, key), Seen::Own, value(*hash))?;
            }
            Operation::Write { space, key, hash: Some(hash) } => {
                let hash = Value::Unsigned(*hash);
                transaction.write(&self.key(*space, key), version, hash)?;
            }
            Operation::Write { space, key, hash: None } => {
                transaction.delete(&self.key(*space, key), version)?;
            }
            Operation::Scan { space, lo, hi, rows } => {
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
fn last_writes(operations: &[Operation]) -> BTreeSet<usize> {
    let mut hidden = BTreeSet::new();
    let newest_first = operations.iter().enumerate().rev();
    let last = newest_first.filter_map(|(place, operation)| match operation {
        Operation::Write { space, key, .. } => hidden.insert((*space, key)).then_some(place),
        _ => None,
    });
    last.collect()
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
mod tests {
    use super::*;
    use muesli_core::recorder::Operations;
    use muesli_core::{Nanos, NodeId, Recorder, SpaceOptions};

    #[derive(Default)]
    struct Left {
        recorder: Recorder,
        chains: Vec<(RepositoryId, Vec<Chain>)>,
        crashed: bool,
    }

    impl Remains for Left {
        fn told(&self) -> impl Iterator<Item = Told> {
            let told = self.recorder.transactions().map(Told::as_recorded);
            told.map(|told| Told { crashed: self.crashed, ..told })
        }

        fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp> {
            self.recorder.applied_at(txn)
        }

        fn executed(&self, txn: muesli_core::TxnId) -> Vec<Vec<Operation>> {
            self.recorder.executed_for(txn).collect()
        }

        fn ran(&self, txn: muesli_core::TxnId) -> Vec<PartRan> {
            self.recorder.ran_for(txn).collect()
        }

        fn chains(&self) -> &[(RepositoryId, Vec<Chain>)] {
            &self.chains
        }
    }

    fn catalog() -> Catalog {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        catalog.with_space("s", SpaceOptions::default()).unwrap()
    }

    fn id(node: u32, sequence: u64) -> muesli_core::TxnId {
        muesli_core::TxnId { node: NodeId(node), incarnation: 1, sequence }
    }

    fn text(nodes: &[Left]) -> String {
        let history = by_versions(nodes, &catalog(), Map::new()).unwrap();
        let mut out = Vec::new();
        history.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn write(key: &str, hash: Option<u64>) -> Operation {
        Operation::Write { space: SpaceId(0), key: key.into(), hash }
    }

    fn left(status: Status, operations: Vec<Operation>) -> Left {
        left_by(id(1, 1), status, operations)
    }

    fn left_by(id: muesli_core::TxnId, status: Status, operations: Vec<Operation>) -> Left {
        let mut recorder = Recorder::new();
        let (end, at) = match status {
            Status::Committed => (Some(Nanos(20)), Some(Timestamp(7))),
            Status::Aborted => (Some(Nanos(20)), None),
            Status::Unknown | Status::Running => (None, None),
        };
        let (session, begin, read_only) = (3, Nanos(10), false);
        let record = TxnRecord { id, session, begin, end, status, read_only, at };
        recorder.transaction(&record, &Operations::from(&operations[..]));
        Left { recorder, ..Left::default() }
    }

    #[test]
    fn only_last_writes_of_committed_transactions_have_versions() {
        let writes = || vec![write("a", Some(1)), write("b", None), write("a", Some(2))];
        let committed = text(&[left(Status::Committed, writes())]);
        let operations = r#"[["w","s/a",null,1],["d","s/b",7],["w","s/a",7,2]]"#;
        assert!(committed.contains(operations), "{committed}");
        let aborted = text(&[left(Status::Aborted, writes())]);
        let operations = r#"[["w","s/a",null,1],["d","s/b",null],["w","s/a",null,2]]"#;
        assert!(aborted.contains(operations), "{aborted}");
    }

    #[test]
    fn of_what_a_crash_ended_reads_count_of_versions_that_last() {
        let version = |at| Operation::Read {
            space: SpaceId(0),
            key: "a".into(),
            version: Timestamp(at),
            hash: (at > 0).then_some(1),
        };
        let reads = vec![version(0), version(7), version(8), version(9)];
        let told = left(Status::Committed, vec![write("a", Some(1))]);
        let crashed = Left { crashed: true, ..left_by(id(2, 1), Status::Running, reads) };
        let chains = vec![(SpaceId(0), "a".into(), vec![Timestamp(7), Timestamp(9)])];
        let holder = Left { chains: vec![(RepositoryId(0), chains)], ..Left::default() };
        let text = text(&[told, holder, crashed]);
        for (version, counts) in [(0, true), (7, true), (8, false), (9, true)] {
            assert_eq!(text.contains(&format!(r#"["r","s/a",{version},"#)), counts, "{text}");
        }
    }

    #[test]
    fn unknown_outcomes_are_filled_from_any_participant() {
        let mut participant = Recorder::new();
        participant.applied(id(1, 1), Timestamp(9));
        let participant = Left { recorder: participant, ..Left::default() };
        let unknown = left(Status::Unknown, vec![write("a", Some(1))]);
        assert!(text(&[unknown]).contains(r#"["w","s/a",null,1]"#));
        let unknown = left(Status::Unknown, vec![write("a", Some(1))]);
        assert!(text(&[unknown, participant]).contains(r#"["w","s/a",9,1]"#));
    }

    #[test]
    fn which_deletions_were_found_is_known_only_with_the_outcome() {
        let (space, version) = (SpaceId(0), Timestamp(3));
        let read = |hash| Operation::Read { space, key: "a".into(), version, hash };
        let rows = |hash| vec![("a".into(), version, hash)];
        let scan = |hash| {
            let (lo, hi) = (SmallBytes::EMPTY, None);
            Operation::Scan { space, lo, hi, rows: rows(hash) }
        };
        let said = |known: bool, operation| {
            let mut participant = Left::default();
            if known {
                participant.recorder.applied(id(1, 1), Timestamp(9));
            }
            text(&[left(Status::Unknown, vec![operation]), participant])
        };
        let is_there = |text: String| text.contains(r#"["s/a",3,"#) || text.contains(r#""s/a",3,"#);
        for (known, hash) in [(true, None), (true, Some(1)), (false, Some(1)), (false, None)] {
            let counts = known || hash.is_some();
            assert_eq!(is_there(said(known, read(hash))), counts, "{known}, {hash:?}");
            assert_eq!(is_there(said(known, scan(hash))), counts, "{known}, {hash:?}");
        }
    }

    #[test]
    fn a_place_that_a_deposed_leader_found_alone_does_not_count() {
        let participant = |at| {
            let mut recorder = Recorder::new();
            recorder.applied(id(1, 1), Timestamp(at));
            Left { recorder, ..Left::default() }
        };
        let unknown = || left(Status::Unknown, vec![write("a", Some(1))]);
        let most = [unknown(), participant(3), participant(9), participant(9)];
        assert!(text(&most).contains(r#"["w","s/a",9,1]"#));
        let (space, version) = (SpaceId(0), Timestamp(3));
        let read = Operation::Read { space, key: "a".into(), version, hash: Some(1) };
        let mut reader = Left::default();
        let record = TxnRecord {
            id: id(1, 2),
            session: 3,
            begin: Nanos(30),
            end: Some(Nanos(40)),
            status: Status::Committed,
            read_only: true,
            at: Some(Timestamp(3)),
        };
        reader.recorder.transaction(&record, &Operations::from(&[read][..]));
        let seen = text(&[unknown(), participant(9), participant(9), participant(3), reader]);
        assert!(seen.contains(r#"["w","s/a",3,1]"#), "{seen}");
    }

    #[test]
    fn what_participants_ran_counts_where_the_transaction_lies() {
        let mut first = left(Status::Committed, Vec::new());
        let mut second = Left::default();
        let ran = |left: &mut Left, part, at, keys: &[&str]| {
            let all: Vec<_> = keys.iter().map(|key| write(key, Some(1))).collect();
            let operations = Operations::from(&all[..]);
            left.recorder.ran(id(1, 1), part, at, operations);
        };
        ran(&mut first, 0, Timestamp(7), &["a"]);
        ran(&mut second, 0, Timestamp(7), &["a"]);
        ran(&mut second, 1, Timestamp(5), &["lost"]);
        ran(&mut second, 1, Timestamp(7), &["b"]);
        ran(&mut second, 2, Timestamp(5), &["lost"]);
        ran(&mut second, 3, Timestamp(7), &["not told"]);
        let told = Operations::from(&[write("c", Some(1))][..]);
        first.recorder.told(id(1, 1), 3, Timestamp(7), told);
        let text = text(&[first, second]);
        assert!(text.contains(r#"[["w","s/a",7,1],["w","s/b",7,1],["w","s/c",7,1]]"#), "{text}");
    }

    #[test]
    fn a_key_that_came_and_went_is_read_as_it_was_at_the_end() {
        let absent = |key: &str, version| Operation::Read {
            space: SpaceId(0),
            key: key.into(),
            version: Timestamp(version),
            hash: None,
        };
        let rows = vec![("b".into(), Timestamp(2), None)];
        let scan = Operation::Scan { space: SpaceId(0), lo: "b".into(), hi: None, rows };
        let operations = vec![absent("a", 1), write("c", Some(1)), scan, write("a", Some(1))];
        let left = left(Status::Committed, operations);
        let mut other = Left::default();
        let found = [absent("a", 5), absent("b", 6), absent("c", 4), absent("d", 3)];
        other.recorder.ran(id(1, 1), 0, Timestamp(7), Operations::from(&found[..]));
        let text = text(&[left, other]);
        let expected = concat!(
            r#"[["r","s/a",5,null],["w","s/c",7,1],"#,
            r#"["s","s/b","s0",[["s/b",6,null],["s/d",3,null],["s/c","own"]]],["w","s/a",7,1]]"#,
        );
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn scans_end_with_their_space_and_chains_begin_after_version_zero() {
        let rows = vec![("b".into(), Timestamp(4), None)];
        let (space, lo) = (SpaceId(0), SmallBytes::EMPTY);
        let scan = Operation::Scan { space, lo, hi: None, rows };
        let mut left = left(Status::Committed, vec![write("c", Some(1)), scan]);
        let versions = vec![Timestamp::ZERO, Timestamp(4)];
        left.chains = vec![(RepositoryId(2), vec![(space, "\u{e9}".into(), versions)])];
        let text = text(&[left]);
        assert!(text.contains(r#"["s","s/","s0",[["s/b",4,null],["s/c","own"]]]"#), "{text}");
        assert!(text.contains(r#""node":"r2","vs":[4]"#), "{text}");
    }
}
