//! A model of what transactions cost repositories, and what a move changes.
//!
//! A transaction costs each repository that takes part the time of a transaction, and a
//! distributed one costs each of them so much more. A placement is judged by the work of all
//! repositories together and, once more, that of the busiest one: it bounds what all of them do. So
//! a move is worth something where it makes transactions whole, and where it takes work from a
//! repository that has more than the others.

use crate::units::UnitGraph;

/// What a transaction costs a repository, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkTerms {
    /// One of one repository.
    pub transaction_us: f64,
    /// How much more one of several costs each of them.
    pub distributed_us: f64,
}

/// The work of repositories under a placement of partitions, kept up as these move.
#[derive(Clone, Debug)]
pub struct PlacedWork<'a> {
    graph: &'a UnitGraph,
    terms: WorkTerms,
    labels: Vec<u32>,
    /// Of each unit, the transactions that touch no other one.
    alone: Vec<u64>,
    /// Of each transaction of several units, how many of them each repository has.
    counts: Vec<Vec<(u32, u32)>>,
    /// Of each repository, in microseconds for all transactions of the graph.
    work: Vec<f64>,
    /// How many transactions are distributed.
    distributed: u64,
}

impl<'a> PlacedWork<'a> {
    /// The work of so many repositories with units where these labels say.
    pub fn new(
        graph: &'a UnitGraph,
        labels: &[u32],
        repositories: u16,
        terms: WorkTerms,
    ) -> PlacedWork<'a> {
        let mut alone = graph.loads.clone();
        for (units, times) in &graph.joint {
            for unit in units {
                let alone = &mut alone[*unit as usize];
                *alone = alone.saturating_sub(*times);
            }
        }
        let counts = vec![Vec::new(); graph.joint.len()];
        let work = vec![0.0; usize::from(repositories).max(1)];
        let labels = labels.to_vec();
        let mut placed = PlacedWork { graph, terms, labels, alone, counts, work, distributed: 0 };
        for (unit, label) in placed.labels.clone().into_iter().enumerate() {
            placed.work[label as usize] += placed.work_alone(unit);
        }
        for number in 0..graph.joint.len() {
            for unit in &graph.joint[number].0 {
                add(&mut placed.counts[number], placed.labels[*unit as usize]);
            }
            placed.count(number, 1.0);
        }
        placed
    }

    fn work_alone(&self, unit: usize) -> f64 {
        self.alone[unit] as f64 * self.terms.transaction_us
    }

    /// Adds the work of a transaction of several units, or takes it away.
    fn count(&mut self, number: usize, sign: f64) {
        let times = self.graph.joint[number].1;
        let is_distributed = self.counts[number].len() > 1;
        let more = if is_distributed { self.terms.distributed_us } else { 0.0 };
        let each = sign * times as f64 * (self.terms.transaction_us + more);
        for (repository, _) in &self.counts[number] {
            self.work[*repository as usize] += each;
        }
        if is_distributed {
            self.distributed = match sign > 0.0 {
                true => self.distributed + times,
                false => self.distributed - times,
            };
        }
    }

    /// Where a unit is.
    pub fn label(&self, unit: usize) -> u32 {
        self.labels[unit]
    }

    /// How many transactions are distributed.
    pub fn distributed(&self) -> u64 {
        self.distributed
    }

    /// The work that a placement is judged by: less is better.
    pub fn value(&self) -> f64 {
        let busiest = self.work.iter().copied().fold(0.0, f64::max);
        self.work.iter().sum::<f64>() + busiest
    }

    /// Moves a unit.
    pub fn relocate(&mut self, unit: usize, to: u32) {
        let from = self.labels[unit];
        if from == to {
            return;
        }
        let alone = self.work_alone(unit);
        self.work[from as usize] -= alone;
        self.work[to as usize] += alone;
        let graph = self.graph;
        for number in &graph.of_unit[unit] {
            let number = *number as usize;
            self.count(number, -1.0);
            take(&mut self.counts[number], from);
            add(&mut self.counts[number], to);
            self.count(number, 1.0);
        }
        self.labels[unit] = to;
    }

    /// By how much less work, and by how many distributed transactions fewer, a move would leave.
    pub fn gain(&mut self, unit: usize, to: u32) -> (f64, i64) {
        let (from, value, distributed) = (self.labels[unit], self.value(), self.distributed);
        self.relocate(unit, to);
        let gain = (value - self.value(), distributed as i64 - self.distributed as i64);
        self.relocate(unit, from);
        gain
    }
}

fn add(counts: &mut Vec<(u32, u32)>, label: u32) {
    match counts.iter_mut().find(|(it, _)| *it == label) {
        Some((_, count)) => *count += 1,
        None => counts.push((label, 1)),
    }
}

fn take(counts: &mut Vec<(u32, u32)>, label: u32) {
    if let Some(at) = counts.iter().position(|(it, _)| *it == label) {
        counts[at].1 -= 1;
        if counts[at].1 == 0 {
            counts.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::online::samples::{LivePartition, LivePlacement, as_trace, graph};

    const TERMS: WorkTerms = WorkTerms { transaction_us: 10.0, distributed_us: 40.0 };

    fn graph_of(partitions: usize, transactions: &[&[u16]]) -> UnitGraph {
        use muesli_core::recorder::accesses::AccessSample;
        let placement = LivePlacement {
            repositories: 3,
            partitions: vec![LivePartition::default(); partitions],
        };
        let sample = |partitions: &&[u16]| AccessSample {
            partitions: partitions.to_vec(),
            ..AccessSample::default()
        };
        let samples: Vec<_> = transactions.iter().map(sample).collect();
        graph(&as_trace(&samples).transactions, &placement)
    }

    #[test]
    fn whole_transactions_and_even_work_are_worth_something() {
        let graph = graph_of(3, &[&[0, 1], &[0, 1], &[2]]);
        let mut work = PlacedWork::new(&graph, &[0, 1, 1], 2, TERMS);
        assert_eq!((work.distributed(), work.work.clone()), (2, vec![100.0, 110.0]));
        // Whole at either of them, and better where the other one has less to do.
        assert_eq!(work.gain(1, 0), (320.0 - 50.0, 2));
        assert_eq!(work.gain(0, 1), (320.0 - 60.0, 2));
        assert_eq!(work.gain(2, 0), (0.0, 0), "the busiest one is as busy as before");
        let mut one = PlacedWork::new(&graph, &[1, 1, 1], 2, TERMS);
        assert_eq!(one.gain(2, 0), (10.0, 0), "the busiest one has less to do");
    }

    proptest! {
        #[test]
        fn what_is_kept_up_is_what_is_counted_anew(
            transactions in
                prop::collection::vec(prop::collection::btree_set(0..6_u16, 1..4), 1..9),
            labels in prop::collection::vec(0..3_u32, 6),
            moves in prop::collection::vec((0..6_usize, 0..3_u32), 0..9),
        ) {
            let all: Vec<Vec<u16>> =
                transactions.into_iter().map(|it| it.into_iter().collect()).collect();
            let all: Vec<&[u16]> = all.iter().map(|it| &**it).collect();
            let graph = graph_of(6, &all);
            let mut work = PlacedWork::new(&graph, &labels, 3, TERMS);
            for (unit, to) in moves {
                let (before, (gain, fewer)) = (work.clone(), work.gain(unit, to));
                prop_assert!((before.value() - work.value()).abs() < 1e-6);
                work.relocate(unit, to);
                let anew = PlacedWork::new(&graph, &work.labels, 3, TERMS);
                prop_assert!((anew.value() - work.value()).abs() < 1e-6);
                prop_assert!((before.value() - anew.value() - gain).abs() < 1e-6);
                prop_assert_eq!(before.distributed as i64 - anew.distributed as i64, fewer);
            }
        }
    }
}
