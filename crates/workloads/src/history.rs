//! What the nodes recorded, as a history for the checker.
//!
//! Two routes: [`by_versions`] takes what the coordinators recorded, with the version of every
//! read and write; [`by_lists`] takes what the clients of the list workload saw, and knows nothing
//! of versions. A key is named by its space and itself, with a slash between, so that ranges of
//! keys stay ranges.
//!
//! Where a coordinator did not learn the end of a transaction, any participant that applied it
//! tells the version of its writes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use muesli::{Report, SmallBytes};
use muesli_check::{
    BuildError, Header, History, HistoryBuilder, Kind, Seen, TransactionBuilder, TxnId, Value,
    Version,
};
use muesli_core::recorder::{Operation, Status, TxnRecord};
use muesli_core::{Catalog, RepositoryId, SpaceId, Timestamp};
use muesli_sim::world::HostHistory;
use serde_json::{Map, Value as Json};

use crate::append::{self, ListHistory, ListOperation, ListStatus, ListTransaction};

/// A transaction as its node recorded it, and what its client was told.
pub struct Told<'a> {
    record: &'a TxnRecord,
    status: Status,
    /// In nanoseconds, on one clock for all nodes.
    begin: u64,
    end: Option<u64>,
    operations: Cow<'a, [Operation]>,
}

/// The version chains of a repository.
pub type Chains = (RepositoryId, Vec<(SpaceId, SmallBytes, Vec<Timestamp>)>);

/// What a node leaves behind, on any driver.
pub trait Remains {
    /// The transactions begun there.
    fn transactions(&self) -> Box<dyn Iterator<Item = Told<'_>> + '_>;
    /// Where a participant there applied a transaction.
    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp>;
    /// The version chains of its repositories.
    fn chains(&self) -> &[Chains];
}

impl Remains for Report {
    fn transactions(&self) -> Box<dyn Iterator<Item = Told<'_>> + '_> {
        Box::new(self.recorder.transactions().map(|(record, operations)| Told {
            record,
            status: record.status,
            begin: record.begin.0,
            end: record.end.map(|end| end.0),
            operations: Cow::Borrowed(operations),
        }))
    }

    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp> {
        self.recorder.applied_at(txn)
    }

    fn chains(&self) -> &[Chains] {
        &self.chains
    }
}

impl Remains for HostHistory {
    fn transactions(&self) -> Box<dyn Iterator<Item = Told<'_>> + '_> {
        Box::new(HostHistory::transactions(self).map(|recorded| Told {
            record: recorded.record,
            status: recorded.status,
            begin: recorded.begin.as_nanos(),
            end: recorded.end.map(|end| end.as_nanos()),
            operations: recorded.operations,
        }))
    }

    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp> {
        HostHistory::applied_at(self, txn)
    }

    fn chains(&self) -> &[Chains] {
        &self.chains
    }
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
    for node in nodes {
        for told in node.transactions() {
            let asked = matches!(told.status, Status::Unknown | Status::Running);
            let applied = || nodes.iter().find_map(|node| node.applied_at(told.record.id));
            let at = told.record.at.or_else(|| if asked { applied() } else { None });
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
        told: &Told<'_>,
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

/// The history that the clients of the list workload saw, with `meta` in its first line.
///
/// # Errors
/// More transactions than a history can hold.
pub fn by_lists(lists: &ListHistory, meta: Map<String, Json>) -> Result<History, BuildError> {
    let mut builder = HistoryBuilder::new(Kind::Append);
    builder.meta(meta);
    for (number, transaction) in lists.transactions.iter().enumerate() {
        add_lists(&mut builder, number, transaction)?;
    }
    Ok(builder.finish())
}

fn add_lists(
    builder: &mut HistoryBuilder,
    number: usize,
    told: &ListTransaction,
) -> Result<(), BuildError> {
    let id = TxnId::Numbered { node: told.client.into(), sequence: number as u64 };
    // Each life of a client is a session of its own.
    let session = u64::from(told.client) << 32 | u64::from(told.life);
    let status = match told.status {
        ListStatus::Committed => muesli_check::Status::Committed,
        ListStatus::Aborted => muesli_check::Status::Aborted,
        ListStatus::Unknown => muesli_check::Status::Unknown,
    };
    let mut transaction = builder.transaction(Header {
        id,
        session: Value::Unsigned(session),
        begin: told.begin.0,
        end: told.end.map(|end| end.0),
        status,
        read_only: None,
        timestamp: Value::Unrecorded,
    })?;
    let name = |key: u64| format!("{}/{key}", append::SPACE).into_bytes();
    for operation in &told.operations {
        match operation {
            ListOperation::Append { key, element } => {
                transaction.append(&name(*key), Value::Unsigned(*element))?;
            }
            ListOperation::Read { key, list } => {
                let elements = list.iter().map(|element| Value::Unsigned(*element));
                transaction.read_list(&name(*key), elements)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use muesli::SpaceOptions;
    use muesli_check::{Level, Options, check};
    use muesli_core::{Nanos, NodeId, Recorder};

    fn catalog() -> Catalog {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
        catalog.with_space("s", SpaceOptions::default()).unwrap()
    }

    fn id(node: u32, sequence: u64) -> muesli_core::TxnId {
        muesli_core::TxnId { node: NodeId(node), incarnation: 1, sequence }
    }

    fn text(reports: &[Report]) -> String {
        let history = by_versions(reports, &catalog(), Map::new()).unwrap();
        let mut out = Vec::new();
        history.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn write(key: &str, hash: Option<u64>) -> Operation {
        Operation::Write { space: SpaceId(0), key: key.into(), hash }
    }

    fn report(status: Status, operations: Vec<Operation>) -> Report {
        let mut recorder = Recorder::new();
        let (end, at) = match status {
            Status::Committed => (Some(Nanos(20)), Some(Timestamp(7))),
            Status::Aborted => (Some(Nanos(20)), None),
            Status::Unknown | Status::Running => (None, None),
        };
        let mut operations = operations;
        recorder.transaction(id(1, 1), 3, false, Nanos(10), end, status, at, &mut operations);
        Report { recorder, ..Report::default() }
    }

    #[test]
    fn only_last_writes_of_committed_transactions_have_versions() {
        let writes = || vec![write("a", Some(1)), write("b", None), write("a", Some(2))];
        let committed = text(&[report(Status::Committed, writes())]);
        let operations = r#"[["w","s/a",null,1],["d","s/b",7],["w","s/a",7,2]]"#;
        assert!(committed.contains(operations), "{committed}");
        let aborted = text(&[report(Status::Aborted, writes())]);
        let operations = r#"[["w","s/a",null,1],["d","s/b",null],["w","s/a",null,2]]"#;
        assert!(aborted.contains(operations), "{aborted}");
    }

    #[test]
    fn unknown_outcomes_are_filled_from_any_participant() {
        let mut participant = Recorder::new();
        participant.applied(id(1, 1), Timestamp(9));
        let participant = Report { recorder: participant, ..Report::default() };
        let unknown = report(Status::Unknown, vec![write("a", Some(1))]);
        assert!(text(&[unknown]).contains(r#"["w","s/a",null,1]"#));
        let unknown = report(Status::Unknown, vec![write("a", Some(1))]);
        assert!(text(&[unknown, participant]).contains(r#"["w","s/a",9,1]"#));
    }

    #[test]
    fn scans_end_with_their_space_and_chains_begin_after_version_zero() {
        let rows = vec![("b".into(), Timestamp(4), None)];
        let (space, lo) = (SpaceId(0), SmallBytes::EMPTY);
        let scan = Operation::Scan { space, lo, hi: None, rows };
        let mut report = report(Status::Committed, vec![write("c", Some(1)), scan]);
        let versions = vec![Timestamp::ZERO, Timestamp(4)];
        report.chains = vec![(RepositoryId(2), vec![(space, "\u{e9}".into(), versions)])];
        let text = text(&[report]);
        assert!(text.contains(r#"["s","s/","s0",[["s/b",4,null],["s/c","own"]]]"#), "{text}");
        assert!(text.contains(r#""node":"r2","vs":[4]"#), "{text}");
    }

    #[test]
    fn a_lost_append_breaks_a_list_history() {
        let transaction = |client, operations| ListTransaction {
            client,
            life: 1,
            begin: Nanos(0),
            end: Some(Nanos(u64::from(client) + 1)),
            status: ListStatus::Committed,
            operations,
        };
        let append = |element| ListOperation::Append { key: 1, element };
        let read = |list: &[u64]| ListOperation::Read { key: 1, list: list.to_vec() };
        let verdict = |last: &[u64]| {
            let transactions = vec![
                transaction(0, vec![read(&[]), append(5)]),
                transaction(1, vec![read(&[5]), append(6)]),
                transaction(2, vec![read(last)]),
            ];
            let history = by_lists(&ListHistory { transactions }, Map::new()).unwrap();
            check(&history, Level::Serializable, &Options::default()).holds()
        };
        assert!(verdict(&[5, 6]));
        assert!(!verdict(&[6]));
    }
}
