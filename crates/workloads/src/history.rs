//! What a run left behind, as a history for the checker.
//!
//! Two routes: [`by_versions`] takes what the coordinators of an embedded database recorded, with
//! the version of every read and write, as [`muesli_sim::history`] does for those of a simulated
//! one; [`by_lists`] takes what the clients of the list workload saw, on any driver, and knows
//! nothing of versions.

use std::collections::BTreeSet;

use muesli::Report;
use muesli_check::{BuildError, History, HistoryBuilder, HistoryHeader, Kind, TxnId, Value};
use muesli_core::recorder::{PartRan, RecordedOperation, Sampling};
use muesli_core::{Catalog, RepositoryId, SpaceId, Timestamp, TxnLevel};
use muesli_sim::history::{self, Chain, Remains, ReportedTransaction};
use serde_json::{Map, Value as Json};

use crate::append;
use crate::list_history::{ListHistory, ListOperation, ListStatus, ListTransaction};

/// What a loop of a database left behind, but for transactions on the database's own space, if it
/// has one: whoever looks after a cluster works with that as well, and is not recorded.
struct Left<'a>(&'a Report, Option<SpaceId>);

impl Left<'_> {
    fn is_of_clients(&self, reported: &ReportedTransaction) -> bool {
        let space = |operation: &RecordedOperation| match operation {
            RecordedOperation::Read { space, .. }
            | RecordedOperation::ReadOwn { space, .. }
            | RecordedOperation::Write { space, .. }
            | RecordedOperation::Scan { space, .. } => *space,
        };
        !reported.operations.iter().any(|operation| Some(space(operation)) == self.1)
    }
}

impl Remains for Left<'_> {
    fn reported(&self) -> impl Iterator<Item = ReportedTransaction> {
        let all = self.0.recorder.transactions().map(ReportedTransaction::as_recorded);
        all.filter(|reported| self.is_of_clients(reported))
    }

    fn level_of(&self, txn: muesli_core::TxnId) -> TxnLevel {
        self.0.recorder.level_of(txn)
    }

    fn applied_at(&self, txn: muesli_core::TxnId) -> Option<Timestamp> {
        self.0.recorder.applied_at(txn)
    }

    fn executed(&self, txn: muesli_core::TxnId) -> Vec<Vec<RecordedOperation>> {
        self.0.recorder.executed_for(txn).collect()
    }

    fn ran(&self, txn: muesli_core::TxnId) -> Vec<PartRan> {
        self.0.recorder.ran_for(txn).collect()
    }

    fn sampling(&self) -> Sampling {
        self.0.recorder.share()
    }

    fn chains(&self) -> &[(RepositoryId, Vec<Chain>)] {
        &self.0.chains
    }
}

/// The history of an embedded run, or of a cluster's clients, from what its loops left behind, with
/// `meta` in its first line.
///
/// # Errors
/// What was recorded is no history, such as two transactions of one name: a mistake of the
/// protocol.
pub fn by_versions(
    reports: &[Report],
    catalog: &Catalog,
    meta: Map<String, Json>,
) -> Result<History, BuildError> {
    let own = catalog.space_named(muesli_group::placement::SPACE);
    let left: Vec<_> = reports.iter().map(|report| Left(report, own)).collect();
    history::by_versions(&left, catalog, meta)
}

/// The history that the clients of the list workload saw, with `meta` in its first line.
///
/// A client that never returned ended with its node, or by itself, and one whose transaction was
/// aborted may do so afterwards: it may have read what its node had not made stable, and what is
/// lost with it. That proves nothing of what it read, so of the reads of a transaction that had no
/// effect either, those count that show what lasts.
///
/// # Errors
/// More transactions than a history can hold.
pub fn by_lists(lists: &ListHistory, meta: Map<String, Json>) -> Result<History, BuildError> {
    let mut builder = HistoryBuilder::new(Kind::Append);
    builder.meta(meta);
    let lasting = lasting(lists);
    for (number, transaction) in lists.transactions.iter().enumerate() {
        let counts =
            is_answered(transaction) || appended(transaction).any(|it| lasting.contains(&it));
        add_lists(&mut builder, number, transaction, |list| {
            counts || list.iter().all(|element| lasting.contains(element))
        })?;
    }
    Ok(builder.finish())
}

fn appended(transaction: &ListTransaction) -> impl Iterator<Item = u64> {
    transaction.operations.iter().filter_map(|operation| match operation {
        ListOperation::Append { element, .. } => Some(*element),
        ListOperation::Read { .. } => None,
    })
}

/// Whether its client was told that it committed, or that it may have done so.
fn is_answered(transaction: &ListTransaction) -> bool {
    transaction.end.is_some() && transaction.status != ListStatus::Aborted
}

/// The elements that are in lists whose readers were answered, and those that were committed.
fn lasting(lists: &ListHistory) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    for transaction in lists.transactions.iter().filter(|it| is_answered(it)) {
        if transaction.status == ListStatus::Committed {
            all.extend(appended(transaction));
        }
        for operation in &transaction.operations {
            if let ListOperation::Read { list, .. } = operation {
                all.extend(list);
            }
        }
    }
    all
}

fn add_lists(
    builder: &mut HistoryBuilder,
    number: usize,
    reported: &ListTransaction,
    counts: impl Fn(&[u64]) -> bool,
) -> Result<(), BuildError> {
    let id = TxnId::Numbered { node: reported.client.into(), sequence: number as u64 };
    // Each life of a client is a session of its own.
    let session = u64::from(reported.client) << 32 | u64::from(reported.incarnation);
    let status = match reported.status {
        ListStatus::Committed => muesli_check::Status::Committed,
        ListStatus::Aborted => muesli_check::Status::Aborted,
        ListStatus::Unknown => muesli_check::Status::Unknown,
    };
    let mut transaction = builder.transaction(HistoryHeader {
        id,
        session: Value::Unsigned(session),
        begin: reported.begin.0,
        end: reported.end.map(|end| end.0),
        status,
        read_only: None,
        timestamp: Value::Unrecorded,
        as_of: None,
    })?;
    let name = |key: u64| format!("{}/{key}", append::SPACE).into_bytes();
    for operation in &reported.operations {
        match operation {
            ListOperation::Append { key, element } => {
                transaction.append(&name(*key), Value::Unsigned(*element))?;
            }
            ListOperation::Read { key, list } if counts(list) => {
                let elements = list.iter().map(|element| Value::Unsigned(*element));
                transaction.read_list(&name(*key), elements)?;
            }
            ListOperation::Read { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use muesli_check::{Level, Options, check};
    use muesli_core::Nanos;

    use super::*;

    #[test]
    fn a_lost_append_breaks_a_list_history() {
        let transaction = |client, operations| ListTransaction {
            client,
            incarnation: 1,
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

    /// Lists of one key: what a client appends or reads, whether it returns, and how it ended.
    fn holds(all: &[(&[u64], &[u64], bool, ListStatus)]) -> bool {
        let transactions = all.iter().zip(0..).map(|((read, append, returned, status), client)| {
            let mut operations = vec![ListOperation::Read { key: 1, list: read.to_vec() }];
            operations
                .extend(append.iter().map(|it| ListOperation::Append { key: 1, element: *it }));
            let at = Nanos(u64::from(client) * 10);
            let end = returned.then_some(Nanos(at.0 + 5));
            ListTransaction { client, incarnation: 1, begin: at, end, status: *status, operations }
        });
        let lists = ListHistory { transactions: transactions.collect() };
        let history = by_lists(&lists, Map::new()).unwrap();
        check(&history, Level::Eus, &Options::default()).holds()
    }

    #[test]
    fn what_nobody_saw_who_is_left_may_be_lost_and_nothing_else() {
        use ListStatus::{Aborted, Committed, Unknown};
        let first: (&[u64], &[u64], bool, ListStatus) = (&[], &[5], true, Committed);
        let lost: (&[u64], &[u64], bool, ListStatus) = (&[5], &[6], false, Unknown);
        let after: (&[u64], &[u64], bool, ListStatus) = (&[5], &[7], true, Committed);
        let end: (&[u64], &[u64], bool, ListStatus) = (&[5, 7], &[], true, Committed);
        assert!(holds(&[first, lost, (&[5, 6], &[], false, Unknown), after, end]));
        assert!(holds(&[first, lost, (&[5, 6], &[], true, Aborted), after, end]));
        assert!(!holds(&[first, lost, (&[5, 6], &[], true, Unknown), after, end]), "it returned");
        let effective = (&[5_u64, 6][..], &[8_u64][..], false, Unknown);
        let end_of_it = (&[5_u64, 7, 8][..], &[][..], true, Committed);
        assert!(!holds(&[first, lost, effective, after, end_of_it]), "it committed");
        let reported = (lost.0, lost.1, true, Committed);
        assert!(
            !holds(&[first, reported, (&[5, 6], &[], false, Unknown), after, end]),
            "it was told"
        );
    }
}
