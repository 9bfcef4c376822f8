//! How much the parts of one transaction may give and write together at a repository.
//!
//! # The problem
//! Each result is as long as a value at most, but a call may have many fragments, and all that a
//! repository has to say of them is one reply, and with what they write one record of its log. Both
//! have to be within the largest transaction.
//!
//! # The idea
//! Where there is one participant, or nothing is written, a repository counts all that it gives and
//! writes. Else copies have to agree: all who hold a partition do the same parts of it, but may
//! hold other partitions beside it. So each partition has an equal share, by the most partitions of
//! the transaction that one participant holds: which all participants count alike.
//!
//! Parts of interactive transactions that install what these wrote were judged as they came.

use muesli_core::exceeded::Limit;
use muesli_core::limits::ENTRY_BYTES;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::{Catalog, RepositoryId, SmallBytes};
use smallvec::SmallVec;

use crate::granola::message::{Agreement, FoundVersion, PartAnswer, Refusal, Request, Task};
use crate::sight::Sight;

/// What the parts that were done have given and written.
#[derive(Debug, Default)]
pub(in super::super) struct Spent {
    /// By partition.
    partitions: SmallVec<[(u16, usize); 2]>,
    all: usize,
}

impl PartAnswer {
    /// What it counts.
    fn counted_bytes(&self) -> usize {
        let value =
            |found: &FoundVersion| ENTRY_BYTES + found.value.as_ref().map_or(0, SmallBytes::len);
        match self {
            PartAnswer::Given(result) => ENTRY_BYTES + result.len(),
            PartAnswer::Found(all) => all.iter().map(value).sum(),
            PartAnswer::Rows(rows, _) => rows.iter().map(|(key, row)| key.len() + value(row)).sum(),
            PartAnswer::Installed
            | PartAnswer::Absent(_)
            | PartAnswer::Taken { .. }
            | PartAnswer::Names(_) => 0,
        }
    }
}

impl Spent {
    /// Counts what a part of `partition` has given, and what it wrote: `before` had been written
    /// when it began.
    ///
    /// # Errors
    /// It is too much.
    #[inline]
    pub fn count(
        &mut self,
        (request, partition): (&Request, u16),
        answer: &PartAnswer,
        (before, sets): (usize, &TransactionSets),
        cx: Sight<'_>,
    ) -> Result<(), Refusal> {
        // What was written before may have been replaced by less.
        let bytes = (sets.written_bytes() + answer.counted_bytes()).saturating_sub(before);
        self.all += bytes;
        let (most, parts) = (cx.settings.limits.transaction_bytes, request.parts.len());
        if parts == 1 && bytes <= most {
            return Ok(());
        }
        match self.partitions.iter_mut().find(|(known, _)| *known == partition) {
            Some((_, spent)) => *spent += bytes,
            None => self.partitions.push((partition, bytes)),
        }
        if self.all <= most / parts.max(1) {
            return Ok(()); // No share is less.
        }
        self.judge(request, most, cx.catalog)
    }

    #[cold]
    fn judge(&self, request: &Request, most: usize, catalog: &Catalog) -> Result<(), Refusal> {
        let installs = |task: &Task| matches!(task, Task::Install(_));
        if request.parts.iter().all(|part| installs(&part.task)) {
            return Ok(());
        }
        let key = Limit::Transaction.key();
        if request.read_only || request.agreement == Agreement::Alone {
            let all = self.all;
            return within(all, most).map_err(|()| {
                Refusal::Faulty(format!(
                    "what a call gives and writes is {all} bytes, over the limit of {most} bytes \
                     (`{key}`)"
                ))
            });
        }
        let held = |it: &RepositoryId| partitions_of(request, *it, catalog);
        let sharers = request.participants.iter().map(held).max().unwrap_or(1).max(1);
        let share = most / sharers;
        self.partitions.iter().try_for_each(|&(partition, spent)| {
            within(spent, share).map_err(|()| {
                Refusal::Faulty(format!(
                    "what a call gives and writes in partition {partition} is {spent} bytes, over \
                     the limit of {share} bytes (`{key}`, shared by {sharers} partitions)"
                ))
            })
        })
    }
}

fn within(bytes: usize, most: usize) -> Result<(), ()> {
    if bytes <= most { Ok(()) } else { Err(()) }
}

/// How many partitions of a transaction a repository holds.
fn partitions_of(request: &Request, repository: RepositoryId, catalog: &Catalog) -> usize {
    let held = request.parts.iter().filter(|part| part.is_held_by(repository, catalog));
    let mut partitions: SmallVec<[u16; 8]> = held.map(|part| part.partition).collect();
    partitions.sort_unstable();
    partitions.dedup();
    partitions.len()
}

#[cfg(test)]
mod tests {
    use muesli_core::limits::Limits;
    use muesli_core::{NodeId, ProcedureId, Settings, TxnId};

    use super::*;
    use crate::granola::message::Part;

    /// A call at these partitions, by repositories 0 to 2.
    fn request(partitions: &[u16], agreement: Agreement) -> Request {
        let procedure = ProcedureId { name: "p".into(), version: 1 };
        let arguments = SmallBytes::EMPTY;
        let task = Task::Call { procedure, arguments, shares: false, spaces: 1 };
        let part = |it: &u16| Part { partition: *it, owners: None, task: task.clone() };
        Request {
            agreement,
            ..Request::new(
                TxnId { node: NodeId(1), incarnation: 1, sequence: 1 },
                (0..3).map(RepositoryId).collect(),
                partitions.iter().map(part).collect(),
            )
        }
    }

    /// What a repository says of parts that give so much.
    fn judged(repository: u16, request: &Request, gives: &[usize]) -> Result<(), Refusal> {
        let homes = [0, 1, 2].map(NodeId);
        let catalog = Catalog::new(&homes, 2, &homes).unwrap();
        let limits = Limits { transaction_bytes: 1_000, ..Limits::default() };
        let settings = Settings { limits, ..Settings::default() };
        let cx = Sight { catalog: &catalog, settings: &settings, recording: false };
        let (mut spent, sets) = (Spent::default(), TransactionSets::default());
        for (part, bytes) in request.parts.iter().zip(gives) {
            if part.is_held_by(RepositoryId(repository), &catalog) {
                let answer = PartAnswer::Given(SmallBytes::from(vec![7; bytes - ENTRY_BYTES]));
                spent.count((request, part.partition), &answer, (0, &sets), cx)?;
            }
        }
        Ok(())
    }

    fn text(judged: Result<(), Refusal>) -> String {
        match judged {
            Err(Refusal::Faulty(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn copies_judge_alike_though_they_hold_other_partitions_beside_theirs() {
        let of = |partitions: &[u16]| request(partitions, Agreement::Independent);
        let three = of(&[0, 1, 2]);
        for gives in [[500, 500, 500], [500, 501, 100], [100, 100, 600]] {
            let holders = |partition: u16| [partition, (partition + 1) % 3];
            for partition in 0..3 {
                let fits = gives[usize::from(partition)] <= 500;
                let answers = holders(partition).map(|holder| {
                    let answers = judged(holder, &three, &gives);
                    answers
                        .err()
                        .map(|it| text(Err(it)).contains(&format!("partition {partition} ")))
                });
                assert!(fits || answers == [Some(true); 2], "{gives:?} {partition}: {answers:?}");
            }
            let all_fit = gives.iter().all(|it| *it <= 500);
            let any = (0..3).any(|holder| judged(holder, &three, &gives).is_err());
            assert_eq!(any, !all_fit, "{gives:?}");
        }
        // Nobody holds more than one of these, so each has all of it.
        assert_eq!(judged(0, &of(&[0, 0]), &[400, 600]), Ok(()));
        assert!(text(judged(0, &of(&[0, 0]), &[400, 601])).contains("`transaction_bytes_max`"));
    }

    #[test]
    fn one_participant_counts_all_that_it_gives() {
        let alone = request(&[0, 0, 2], Agreement::Alone);
        assert_eq!(judged(0, &alone, &[100, 800, 100]), Ok(()));
        let over = text(judged(0, &alone, &[100, 800, 101]));
        assert!(over.contains("1001 bytes, over the limit of 1000"), "{over}");
        let single = request(&[0], Agreement::Alone);
        assert_eq!(judged(0, &single, &[1_000]), Ok(()));
        text(judged(0, &single, &[1_001]));
    }
}
