//! What the parts of one-round transactions did, of what all who ran them say.

use std::collections::BTreeSet;

use muesli_core::recorder::{PartRan, RecordedOperation};
use muesli_core::{Timestamp, TxnId};

use super::Remains;

/// What the parts of a one-round transaction did that lies at `at`: what its client was told of,
/// if it was; else what participants ran there, who must agree: where they do not, the transaction
/// has read one key twice, and the history is none that may be. A run that was lost in a crash
/// before anybody heard of it may lie elsewhere.
pub(super) fn ran<N: Remains>(
    nodes: &[N],
    txn: TxnId,
    at: Timestamp,
) -> impl Iterator<Item = RecordedOperation> + use<N> {
    let runs = nodes.iter().flat_map(|node| node.ran(txn)).filter(|ran| ran.at == at);
    let runs: Vec<_> = runs.collect();
    let shared: BTreeSet<u16> = runs.iter().filter(|ran| ran.shared).map(|ran| ran.part).collect();
    let mut all: Vec<(u16, Vec<RecordedOperation>)> = Vec::new();
    for PartRan { part, operations, .. } in
        runs.into_iter().filter(|ran| ran.shared || !shared.contains(&ran.part))
    {
        match all.iter_mut().find(|(known, run)| *known == part && agree(run, &operations)) {
            Some((_, run)) => tell_deletions(run, &operations),
            None => all.push((part, operations)),
        }
    }
    all.sort_by_key(|(part, _)| *part);
    all.into_iter().flat_map(|(_, operations)| operations)
}

/// Whether two runs saw and did the same. One of them may have found deletions collected that the
/// other one still knew of: to both, those keys were absent.
fn agree(run: &[RecordedOperation], other: &[RecordedOperation]) -> bool {
    run.len() == other.len() && run.iter().zip(other).all(|(one, other)| is_same(one, other))
}

fn is_same(one: &RecordedOperation, other: &RecordedOperation) -> bool {
    use RecordedOperation::Read;
    match (one, other) {
        (
            Read { space, key, version, hash: None },
            Read { space: in_other, key: read, version: found, hash: None },
        ) => {
            let is_known_to_one = *version == Timestamp::ZERO || *found == Timestamp::ZERO;
            space == in_other && key == read && (version == found || is_known_to_one)
        }
        _ => one == other,
    }
}

/// A run that agrees with another one says which deletions it found, if either of them knows.
fn tell_deletions(run: &mut [RecordedOperation], other: &[RecordedOperation]) {
    for (one, other) in run.iter_mut().zip(other) {
        if let (
            RecordedOperation::Read { version, hash: None, .. },
            RecordedOperation::Read { version: found, .. },
        ) = (one, other)
        {
            *version = (*version).max(*found);
        }
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::SpaceId;
    use muesli_core::recorder::RecordedOperations;

    use super::super::tests::{Left, id};
    use super::*;

    fn read(key: &str, version: u64, hash: Option<u64>) -> RecordedOperation {
        let (space, version) = (SpaceId(0), Timestamp(version));
        RecordedOperation::Read { space, key: key.into(), version, hash }
    }

    /// What comes of a part that several ran, each with these reads.
    fn merged(runs: &[&[RecordedOperation]]) -> Vec<RecordedOperation> {
        let left = |run: &&[RecordedOperation]| {
            let mut left = Left::default();
            left.recorder.ran(id(1, 1), 0, Timestamp(9), RecordedOperations::from(*run));
            left
        };
        let all: Vec<Left> = runs.iter().map(left).collect();
        ran(&all, id(1, 1), Timestamp(9)).collect()
    }

    #[test]
    fn who_found_a_deletion_collected_agrees_with_who_knew_of_it() {
        let (known, collected) = ([read("a", 5, None)], [read("a", 0, None)]);
        assert_eq!(merged(&[&known, &collected]), known);
        assert_eq!(merged(&[&collected, &known, &collected]), known);
    }

    #[test]
    fn who_saw_something_else_does_not() {
        let (one, other) = ([read("a", 5, None)], [read("a", 6, None)]);
        assert_eq!(merged(&[&one, &other]).len(), 2, "another deletion");
        let (value, absent) = ([read("a", 5, Some(1))], [read("a", 0, None)]);
        assert_eq!(merged(&[&value, &absent]).len(), 2, "a value, and none");
        assert_eq!(merged(&[&absent, &[read("b", 0, None)]]).len(), 2, "another key");
        assert_eq!(merged(&[&absent, &[]]).len(), 1, "a run of nothing says nothing");
    }
}
