//! Histories of a share of the transactions; [`muesli_core::recorder::sampling`] says what they
//! prove.

use std::collections::BTreeSet;

use muesli_core::recorder::{RecordedOperation, Sampling, Status};
use muesli_core::{SmallBytes, SpaceId, Timestamp};

use super::ReportedTransaction;

/// A version of a key.
type KeyVersion = (SpaceId, SmallBytes, Timestamp);

/// What a sampled history is made of: the transactions that were kept whole, and those that wrote
/// what they have read, by their writes.
pub(super) struct Sampled {
    sampling: Sampling,
    /// The versions that transactions which were kept whole have read.
    read: BTreeSet<KeyVersion>,
    /// The versions whose writers are in the history.
    written: BTreeSet<KeyVersion>,
}

impl Sampled {
    /// Of transactions that are gone through as often as need be, each with where it lies. `None`:
    /// everything was recorded.
    pub fn of<A>(sampling: Sampling, all: impl Fn() -> A) -> Option<Sampled>
    where
        A: Iterator<Item = (ReportedTransaction, Option<Timestamp>)>,
    {
        if sampling == Sampling::ALL {
            return None;
        }
        let (read, written) = (BTreeSet::new(), BTreeSet::new());
        let mut sampled = Sampled { sampling, read, written };
        for (reported, _) in all() {
            if sampling.keeps(reported.record.id) {
                sampled.read.extend(reported.operations.iter().flat_map(versions_read));
            }
        }
        for (reported, at) in all() {
            let Some(at) = at.filter(|_| reported.status != Status::Aborted) else { continue };
            if let Some(reported) = sampled.kept(reported, Some(at)) {
                sampled.written.extend(versions_written(&reported, at));
            }
        }
        Some(sampled)
    }

    /// Of so many transactions one was kept whole.
    pub fn share(&self) -> u32 {
        self.sampling.share()
    }

    /// What the history has of a transaction that lies at `at`, if it has any of it.
    pub fn kept(
        &self,
        mut reported: ReportedTransaction,
        at: Option<Timestamp>,
    ) -> Option<ReportedTransaction> {
        if self.sampling.keeps(reported.record.id) {
            return Some(reported);
        }
        let at = at.filter(|_| reported.status != Status::Aborted)?;
        reported.operations.retain(|it| matches!(it, RecordedOperation::Write { .. }));
        let is_read = versions_written(&reported, at).any(|version| self.read.contains(&version));
        is_read.then_some(reported)
    }

    /// Whether a version has its writer in the history.
    pub fn has(&self, space: SpaceId, key: &SmallBytes, at: Timestamp) -> bool {
        self.written.contains(&(space, key.clone(), at))
    }
}

fn versions_written(
    reported: &ReportedTransaction,
    at: Timestamp,
) -> impl Iterator<Item = KeyVersion> + '_ {
    reported.operations.iter().filter_map(move |operation| match operation {
        RecordedOperation::Write { space, key, .. } => Some((*space, key.clone(), at)),
        RecordedOperation::Read { .. }
        | RecordedOperation::ReadOwn { .. }
        | RecordedOperation::Scan { .. } => None,
    })
}

/// The versions that an operation has read and somebody wrote.
fn versions_read(operation: &RecordedOperation) -> Vec<KeyVersion> {
    let all = match operation {
        RecordedOperation::Read { space, key, version, .. } => {
            vec![(*space, key.clone(), *version)]
        }
        RecordedOperation::Scan { space, rows, .. } => {
            rows.iter().map(|(key, version, _)| (*space, key.clone(), *version)).collect()
        }
        RecordedOperation::ReadOwn { .. } | RecordedOperation::Write { .. } => Vec::new(),
    };
    all.into_iter().filter(|(.., version)| *version != Timestamp::ZERO).collect()
}

#[cfg(test)]
mod tests {
    use muesli_check::{Level, Options, check};
    use muesli_core::recorder::{RecordedOperations, Recorder, TxnRecord};
    use muesli_core::{Nanos, RepositoryId};
    use serde_json::Map;

    use super::super::tests::{Left, catalog, id};
    use super::*;
    use crate::history::by_versions;
    use crate::random::{Random, Seed};

    const SPACE: SpaceId = SpaceId(0);
    const KEYS: u64 = 4;

    struct Transaction {
        record: TxnRecord,
        operations: Vec<RecordedOperation>,
    }

    fn key(number: u64) -> SmallBytes {
        number.to_string().as_str().into()
    }

    /// Transactions that read one of the newest versions of some keys, and write others.
    fn draw(random: &mut Random) -> Vec<Transaction> {
        let mut newest = [[0; 3]; KEYS as usize];
        let transaction = |number: u64| {
            let at = number + 1;
            let age = |random: &mut Random| [0, 0, 0, 1, 2][random.below(5) as usize];
            let mut operations = Vec::new();
            for number in 0..KEYS {
                if random.below(3) == 0 {
                    let version = newest[number as usize][age(random)];
                    let hash = (version > 0).then_some(version);
                    let (space, key, version) = (SPACE, key(number), Timestamp(version));
                    operations.push(RecordedOperation::Read { space, key, version, hash });
                }
            }
            for number in 0..KEYS {
                if random.below(4) == 0 {
                    newest[number as usize].rotate_right(1);
                    newest[number as usize][0] = at;
                    let (space, key) = (SPACE, key(number));
                    operations.push(RecordedOperation::Write { space, key, hash: Some(at) });
                }
            }
            let begin = (10 * number).saturating_sub(random.below(40));
            let record = TxnRecord {
                id: id(number as u32 % 3, number),
                session: number % 3,
                begin: Nanos(begin),
                end: Some(Nanos(10 * number + 5)),
                status: Status::Committed,
                read_only: false,
                at: Some(Timestamp(at)),
                staleness: None,
            };
            Transaction { record, operations }
        };
        (0..14).map(transaction).collect()
    }

    fn holds(transactions: &[Transaction], sampling: Sampling, level: Level) -> bool {
        let mut recorder = Recorder::sampling(sampling);
        let mut chains: Vec<_> = (0..KEYS).map(|it| (SPACE, key(it), Vec::new())).collect();
        for Transaction { record, operations } in transactions {
            recorder.transaction(record, &RecordedOperations::from(&operations[..]));
            for (.., versions) in chains.iter_mut().filter(|(_, key, _)| {
                operations
                    .iter()
                    .any(|it| matches!(it, RecordedOperation::Write { key: of, .. } if of == key))
            }) {
                versions.push(record.at.expect("committed"));
            }
        }
        let left = Left { recorder, chains: vec![(RepositoryId(0), chains)], ..Left::default() };
        let history = by_versions(&[left], &catalog(), Map::new()).expect("a history");
        let options = Options { session_order: true, ..Options::default() };
        check(&history, level, &options).holds()
    }

    /// Whatever the history: what a share of it shows is true of all of it.
    #[test]
    fn a_sampled_history_has_no_violation_that_is_false() {
        let (mut sound, mut noticed, mut missed) = (0, 0, 0);
        for seed in 0..600 {
            let transactions = draw(&mut Seed::new(seed).stream());
            for level in Level::ALL {
                let whole = holds(&transactions, Sampling::ALL, level);
                for one_in in [2, 4] {
                    let sampled = holds(&transactions, Sampling::one_in(one_in), level);
                    assert!(sampled || !whole, "seed {seed}, one in {one_in}, {level}");
                    sound += u32::from(whole);
                    noticed += u32::from(!sampled);
                    missed += u32::from(sampled && !whole);
                }
            }
        }
        assert!(sound > 500 && noticed > 500 && missed > 500, "{sound}, {noticed}, {missed}");
    }

    #[test]
    fn who_wrote_what_a_sampled_one_read_is_there_by_its_writes() {
        let sampling = Sampling::one_in(3);
        let number = |kept: bool| (1..).find(|it| sampling.keeps(id(1, *it)) == kept).unwrap();
        let (reader, writer) = (number(true), number(false));
        let other = (writer + 1..).find(|it| !sampling.keeps(id(1, *it))).unwrap();
        let read = |at: u64| RecordedOperation::Read {
            space: SPACE,
            key: key(at),
            version: Timestamp(at),
            hash: Some(at),
        };
        let write =
            |of, at| RecordedOperation::Write { space: SPACE, key: key(of), hash: Some(at) };
        let record = |number, at| TxnRecord {
            id: id(1, number),
            session: number,
            begin: Nanos(at),
            end: Some(Nanos(at + 1)),
            status: Status::Committed,
            read_only: false,
            at: Some(Timestamp(at)),
            staleness: None,
        };
        let mut recorder = Recorder::sampling(sampling);
        let all = [
            (record(other, 2), vec![write(2, 2)]),
            (record(writer, 1), vec![read(2), write(1, 1), write(3, 1)]),
            (record(reader, 9), vec![read(1), write(4, 9)]),
        ];
        for (record, operations) in &all {
            recorder.transaction(record, &RecordedOperations::from(&operations[..]));
        }
        assert_eq!(recorder.len(), 3);
        let history = by_versions(&[Left { recorder, ..Left::default() }], &catalog(), Map::new());
        let mut text = Vec::new();
        history.unwrap().write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(r#""sampled_one_in":3"#), "{text}");
        assert!(text.contains(r#"[["w","s/1",1,1],["w","s/3",1,1]]"#), "by its writes: {text}");
        assert!(text.contains(r#"[["r","s/1",1,1],["w","s/4",9,9]]"#), "{text}");
        assert!(!text.contains(r#""s/2""#), "one step back and no more: {text}");
    }
}
