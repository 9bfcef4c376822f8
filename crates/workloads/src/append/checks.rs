//! What must hold of the lists after a run: each element of a committed append is there, once;
//! none of an aborted one is; of those of unknown outcome, either.

use std::collections::BTreeMap;

use muesli::{Db, Error};
use muesli_core::Nanos;

use super::lists::read;
use super::{Append, SPACE};
use crate::check::{Check, Complaints};
use crate::list_history::{ListHistory, ListOperation, ListStatus};
use crate::tally::Ended;

/// So many lists are read in one transaction.
const CHUNK: usize = 500;

/// Checks the lists, of which `read` reads some in one transaction.
pub(super) async fn check(
    append: &Append,
    db: &Db,
    read: impl AsyncFn(&Db, &[u64]) -> Result<Vec<(u64, Vec<u64>)>, Error>,
) -> Result<Vec<Check>, Error> {
    let lists = read_all(append, db, read).await?;
    let (lost, ghosts) = judge(&append.notebooks.history(), &lists);
    let counted = || {
        let elements: usize = lists.values().map(Vec::len).sum();
        format!("{elements} elements in {} lists", lists.len())
    };
    Ok(vec![
        Check::none_wrong("committed appends are in their lists", &lost, counted()),
        Check::none_wrong("nothing else is in the lists, and nothing twice", &ghosts, counted()),
    ])
}

/// Reads every list, as the last client of the history.
async fn read_all(
    append: &Append,
    db: &Db,
    read: impl AsyncFn(&Db, &[u64]) -> Result<Vec<(u64, Vec<u64>)>, Error>,
) -> Result<BTreeMap<u64, Vec<u64>>, Error> {
    let (notebooks, last) = (&append.notebooks, append.notebooks.last());
    let now = after(&notebooks.history());
    let keys: Vec<u64> = append.keys().collect();
    let mut lists = BTreeMap::new();
    for chunk in keys.chunks(CHUNK) {
        notebooks.of(last).begin(now);
        let found = read(db, chunk).await?;
        for (key, list) in &found {
            let (key, list) = (*key, list.clone());
            notebooks.of(last).note(ListOperation::Read { key, list });
        }
        notebooks.of(last).end(&Ended::Committed, now);
        lists.extend(found);
    }
    Ok(lists)
}

/// Reads lists in one transaction, key by key.
pub(super) async fn read_in_transaction(
    db: &Db,
    keys: &[u64],
) -> Result<Vec<(u64, Vec<u64>)>, Error> {
    let (space, strict) = (db.space(SPACE)?, db.strict().read_only());
    let read_all = async |tx: &muesli::Tx| {
        let mut found = Vec::with_capacity(keys.len());
        for &key in keys {
            found.push((key, read(tx, space, key).await?));
        }
        Ok(found)
    };
    strict.transact_here(read_all).await
}

/// A time after everything in the history.
fn after(history: &ListHistory) -> Nanos {
    let times = history.transactions.iter().map(|txn| txn.end.unwrap_or(txn.begin));
    times.max().unwrap_or_default() + Nanos(1)
}

/// Elements that should be there and are not, and those that should not be there and are.
fn judge(history: &ListHistory, lists: &BTreeMap<u64, Vec<u64>>) -> (Complaints, Complaints) {
    let (mut lost, mut ghosts) = (Complaints::default(), Complaints::default());
    let mut expected: BTreeMap<(u64, u64), ListStatus> = BTreeMap::new();
    for transaction in &history.transactions {
        for operation in &transaction.operations {
            if let ListOperation::Append { key, element } = *operation {
                expected.insert((key, element), transaction.status);
            }
        }
    }
    for (&key, list) in lists {
        for &element in list {
            match expected.remove(&(key, element)) {
                Some(ListStatus::Committed | ListStatus::Unknown) => {}
                Some(ListStatus::Aborted) => {
                    ghosts.add(|| format!("list {key} has {element} of an aborted transaction"));
                }
                None => ghosts.add(|| format!("list {key} has {element} twice or from nobody")),
            }
        }
    }
    for ((key, element), status) in expected {
        if status == ListStatus::Committed {
            lost.add(|| format!("list {key} lacks {element}, which was committed"));
        }
    }
    (lost, ghosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list_history::ListTransaction;

    #[test]
    fn lost_repeated_and_aborted_elements_are_found() {
        let append = |element, status| ListTransaction {
            client: 0,
            incarnation: 1,
            begin: Nanos(0),
            end: None,
            status,
            operations: vec![ListOperation::Append { key: 5, element }],
        };
        let history = ListHistory {
            transactions: vec![
                append(1, ListStatus::Committed),
                append(2, ListStatus::Committed),
                append(3, ListStatus::Aborted),
                append(4, ListStatus::Unknown),
            ],
        };
        let judged = |list: &[u64]| {
            let (lost, ghosts) = judge(&history, &BTreeMap::from([(5, list.to_vec())]));
            (lost != Complaints::default(), ghosts != Complaints::default())
        };
        assert_eq!(judged(&[1, 2]), (false, false));
        assert_eq!(judged(&[2, 4, 1]), (false, false));
        assert_eq!(judged(&[1]), (true, false));
        assert_eq!(judged(&[1, 2, 3]), (false, true));
        assert_eq!(judged(&[1, 2, 2]), (false, true));
        assert_eq!(judged(&[1, 2, 9]), (false, true));
    }
}
