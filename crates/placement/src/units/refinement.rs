//! Refinement from where units are: moves that save transactions from being distributed, each of
//! which costs something, within caps and a budget.
//!
//! A move's worth is how many transactions it makes whole, minus those that it tears; of moves that
//! are worth the same, the one that makes transactions narrower. The best move of each unit is made
//! in the order of their worth, pass after pass, until none is worth its price. There is no chance
//! in it: the same graph and placement give the same moves.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::graph::UnitGraph;

/// What refinement goes by.
#[derive(Clone, Copy, Debug)]
pub struct RefinementTerms {
    /// How many partitions there are.
    pub partitions: u32,
    /// Transactions that a move must save to be made.
    pub price: u64,
    /// The most load of a partition, by the mean.
    pub load_cap: f64,
    /// The most rows of a partition, by the mean.
    pub rows_cap: f64,
    /// The most units that may move.
    pub budget: usize,
}

impl Default for RefinementTerms {
    fn default() -> RefinementTerms {
        RefinementTerms {
            partitions: 8,
            price: 0,
            load_cap: 1.1,
            rows_cap: 1.5,
            budget: usize::MAX,
        }
    }
}

/// So many passes at most.
const PASSES: usize = 24;
/// No price is above so many transactions: there are no more in a trace.
const PRICE_MOST: u64 = 1 << 40;
/// A transaction that becomes whole counts as much as this many that become narrower.
const WHOLE: i64 = 64;

/// What refinement made of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refined {
    /// By the numbers of the units.
    pub labels: Vec<u32>,
    /// How many of them have moved.
    pub moved: usize,
}

/// Refines a placement.
pub fn refine(graph: &UnitGraph, labels: &[u32], terms: &RefinementTerms) -> Refined {
    refine_priced(graph, labels, terms, &[])
}

/// Refines a placement whose units have a price each, by their numbers, beside that of all moves.
pub fn refine_priced(
    graph: &UnitGraph,
    labels: &[u32],
    terms: &RefinementTerms,
    prices: &[u64],
) -> Refined {
    let mut state = RefinementState::new(graph, labels.to_vec(), *terms);
    state.prices = prices;
    state.unload();
    for _ in 0..PASSES {
        if !state.pass() {
            break;
        }
    }
    let moved = state.labels.iter().zip(labels).filter(|(now, before)| now != before).count();
    Refined { labels: state.labels, moved }
}

/// What moves of a unit are worth: transactions that become whole, and a little for those that
/// become narrower.
#[derive(Clone, Debug, Default)]
struct MoveWorths {
    /// To a partition where no other unit of its transactions is.
    elsewhere: i64,
    /// How much more to each of the others.
    near: BTreeMap<u32, i64>,
}

impl MoveWorths {
    /// What the move to a partition is worth, which is not where the unit is.
    fn to(&self, label: u32) -> i64 {
        self.elsewhere + self.near.get(&label).copied().unwrap_or(0)
    }
}

struct RefinementState<'a> {
    graph: &'a UnitGraph,
    terms: RefinementTerms,
    /// Of each unit, beside the price of all; none where it names none.
    prices: &'a [u64],
    begun: Vec<u32>,
    labels: Vec<u32>,
    loads: Vec<u64>,
    rows: Vec<u64>,
    /// Of each transaction of several units, how many of them each partition has.
    counts: Vec<Vec<(u32, u32)>>,
    moved: usize,
}

impl<'a> RefinementState<'a> {
    fn new(graph: &'a UnitGraph, labels: Vec<u32>, terms: RefinementTerms) -> Self {
        let partitions = terms.partitions.max(1) as usize;
        let (mut loads, mut rows) = (vec![0; partitions], vec![0; partitions]);
        for (unit, label) in labels.iter().enumerate() {
            loads[*label as usize] += graph.loads[unit];
            rows[*label as usize] += graph.rows[unit];
        }
        let count = |(units, _): &(Vec<u32>, u64)| {
            let mut counts: Vec<(u32, u32)> = Vec::new();
            units.iter().for_each(|unit| add(&mut counts, labels[*unit as usize]));
            counts
        };
        let counts = graph.joint.iter().map(count).collect();
        let begun = labels.clone();
        let (prices, moved): (&[u64], usize) = (&[], 0);
        RefinementState { graph, terms, prices, begun, labels, loads, rows, counts, moved }
    }

    fn cap(total: u64, partitions: u32, cap: f64, largest: u64) -> u64 {
        let mean = total as f64 / f64::from(partitions.max(1));
        // One unit alone may be more than a share.
        ((mean * cap).ceil() as u64).max(largest)
    }

    fn load_cap(&self) -> u64 {
        let largest = self.graph.loads.iter().max().copied().unwrap_or(0);
        Self::cap(self.graph.load(), self.terms.partitions, self.terms.load_cap, largest)
    }

    fn rows_cap(&self) -> u64 {
        let largest = self.graph.rows.iter().max().copied().unwrap_or(0);
        let total = self.graph.rows.iter().sum();
        Self::cap(total, self.terms.partitions, self.terms.rows_cap, largest)
    }

    /// What the moves of a unit are worth, to all partitions in one walk through its transactions.
    fn worths(&self, unit: usize) -> MoveWorths {
        let from = self.labels[unit];
        let mut worths = MoveWorths::default();
        for transaction in &self.graph.of_unit[unit] {
            let counts = &self.counts[*transaction as usize];
            let (units, times) = &self.graph.joint[*transaction as usize];
            let (all, times) = (units.len() as u32, *times as i64);
            // It becomes wider, unless the move is to where another unit of it is.
            worths.elsewhere -= times;
            for (label, count) in counts {
                if *label == from {
                    worths.elsewhere += times * i64::from(*count == 1);
                    worths.elsewhere -= WHOLE * times * i64::from(*count == all);
                } else {
                    let whole = WHOLE * times * i64::from(count + 1 == all);
                    *worths.near.entry(*label).or_default() += times + whole;
                }
            }
        }
        worths
    }

    /// The best move of a unit, if there is room for it.
    fn best(&self, unit: usize, caps: (u64, u64)) -> Option<(i64, u32)> {
        let fits = |to: &u32| {
            let to = *to as usize;
            self.loads[to] + self.graph.loads[unit] <= caps.0
                && self.rows[to] + self.graph.rows[unit] <= caps.1
        };
        let worths = self.worths(unit);
        let others = worths.near.keys().copied().filter(fits);
        let best = others.map(|to| (worths.to(to), Reverse(to))).max();
        best.map(|(worth, Reverse(to))| (worth, to))
    }

    /// The price of a move: none for a unit that goes back to where it began.
    fn price(&self, unit: usize, to: u32) -> i64 {
        let (is_moved, goes_back) = (self.labels[unit] != self.begun[unit], to == self.begun[unit]);
        let own = self.prices.get(unit).copied().unwrap_or(0);
        let transactions = self.terms.price.saturating_add(own).min(PRICE_MOST);
        let price = WHOLE * transactions as i64;
        match (is_moved, goes_back) {
            (true, true) => -price,
            (true, false) => 0,
            (false, _) => price,
        }
    }

    /// Makes the moves that are worth it; whether there were any.
    fn pass(&mut self) -> bool {
        let caps = (self.load_cap(), self.rows_cap());
        let worth_it = |state: &Self, unit: usize| {
            let (worth, to) = state.best(unit, caps)?;
            let gain = worth - state.price(unit, to);
            (gain > 0).then_some((gain, to))
        };
        let mut moves: Vec<(i64, usize)> = (0..self.labels.len())
            .filter_map(|unit| worth_it(self, unit).map(|(gain, _)| (gain, unit)))
            .collect();
        moves.sort_by_key(|(gain, unit)| (Reverse(*gain), *unit));
        let mut any = false;
        for (_, unit) in moves {
            if let Some((_, to)) = worth_it(self, unit) {
                any |= self.move_to(unit, to);
            }
        }
        any
    }

    /// Takes what is over the cap from partitions that have too much, the least worth first.
    fn unload(&mut self) {
        let cap = self.load_cap();
        for full in 0..self.loads.len() {
            while self.loads[full] > cap {
                let lightest = (0..self.loads.len()).min_by_key(|it| (self.loads[*it], *it));
                let Some(lightest) = lightest.filter(|it| *it != full) else { return };
                let capacity = cap.saturating_sub(self.loads[lightest]);
                let of_full = (0..self.labels.len()).filter(|unit| {
                    self.labels[*unit] as usize == full && self.graph.loads[*unit] <= capacity
                });
                let to = lightest as u32;
                let best = of_full
                    .filter(|unit| self.graph.loads[*unit] > 0)
                    .max_by_key(|unit| (self.worths(*unit).to(to), Reverse(*unit)));
                let Some(unit) = best else { break };
                if !self.move_to(unit, to) {
                    return;
                }
            }
        }
    }

    /// Moves a unit; false: the budget does not allow it.
    fn move_to(&mut self, unit: usize, to: u32) -> bool {
        let from = self.labels[unit];
        let (was, is) = (from != self.begun[unit], to != self.begun[unit]);
        if !was && is && self.moved >= self.terms.budget {
            return false;
        }
        self.moved = self.moved + usize::from(is) - usize::from(was);
        self.labels[unit] = to;
        self.loads[from as usize] -= self.graph.loads[unit];
        self.loads[to as usize] += self.graph.loads[unit];
        self.rows[from as usize] -= self.graph.rows[unit];
        self.rows[to as usize] += self.graph.rows[unit];
        for transaction in &self.graph.of_unit[unit] {
            let counts = &mut self.counts[*transaction as usize];
            if let Some(place) = counts.iter().position(|(label, _)| *label == from) {
                counts[place].1 -= 1;
                if counts[place].1 == 0 {
                    counts.swap_remove(place);
                }
            }
            add(counts, to);
        }
        true
    }
}

fn add(counts: &mut Vec<(u32, u32)>, label: u32) {
    match counts.iter_mut().find(|(it, _)| *it == label) {
        Some((_, count)) => *count += 1,
        None => counts.push((label, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::PlacedUnit;
    use crate::units::first::largest_first;

    /// Pairs of units that are used together, so often.
    fn graph(units: u32, pairs: &[(u32, u32, u64)]) -> UnitGraph {
        let unit = |value: u32| PlacedUnit { domain: 0, value: value.into() };
        let mut graph = UnitGraph {
            units: (0..units).map(unit).collect(),
            loads: vec![1; units as usize],
            rows: vec![1; units as usize],
            joint: Vec::new(),
            of_unit: vec![Vec::new(); units as usize],
        };
        for (one, other, times) in pairs {
            for unit in [one, other] {
                graph.of_unit[*unit as usize].push(graph.joint.len() as u32);
                graph.loads[*unit as usize] += times;
            }
            graph.joint.push((vec![*one, *other], *times));
        }
        graph
    }

    fn torn(graph: &UnitGraph, labels: &[u32]) -> u64 {
        let is_torn = |units: &[u32]| {
            units.iter().any(|unit| labels[*unit as usize] != labels[units[0] as usize])
        };
        graph.joint.iter().filter(|(units, _)| is_torn(units)).map(|(_, times)| times).sum()
    }

    #[test]
    fn units_that_belong_to_each_other_come_to_one_partition() {
        let pairs: Vec<_> = (0..20).map(|pair| (pair, pair + 20, 3)).collect();
        let graph = graph(40, &pairs);
        let apart: Vec<u32> = (0..40).map(|unit| unit / 20).collect();
        let terms = RefinementTerms { partitions: 2, load_cap: 1.2, ..Default::default() };
        let refined = refine(&graph, &apart, &terms);
        assert!(torn(&graph, &refined.labels) <= 3, "{:?}", refined.labels);
        assert_eq!(refine(&graph, &apart, &terms), refined);
        // What is right stays, and costs nothing.
        assert_eq!(refine(&graph, &refined.labels, &terms).moved, 0);
    }

    /// What a move is worth by what it says: of each transaction, before it and after it.
    fn worth_by_definition(graph: &UnitGraph, labels: &[u32], unit: usize, to: u32) -> i64 {
        let width = |units: &[u32], labels: &[u32]| {
            let all: std::collections::BTreeSet<_> =
                units.iter().map(|unit| labels[*unit as usize]).collect();
            all.len() as i64
        };
        let mut after = labels.to_vec();
        after[unit] = to;
        let of = |(units, times): &(Vec<u32>, u64)| {
            let (was, is) = (width(units, labels), width(units, &after));
            let whole = i64::from(is == 1) - i64::from(was == 1);
            (WHOLE * whole + was - is) * *times as i64
        };
        graph.joint.iter().map(of).sum()
    }

    #[test]
    fn worths_to_all_partitions_at_once_are_those_of_each_move() {
        let mut chance = fastrand::Rng::with_seed(5);
        for _ in 0..20 {
            let mut graph = graph(12, &[]);
            for number in 0..30 {
                let mut units: Vec<u32> =
                    (0..chance.u32(2..5)).map(|_| chance.u32(0..12)).collect();
                units.sort_unstable();
                units.dedup();
                if units.len() > 1 {
                    let place = graph.joint.len() as u32;
                    units.iter().for_each(|it| graph.of_unit[*it as usize].push(place));
                    graph.joint.push((units, number + 1));
                }
            }
            let labels: Vec<u32> = (0..12).map(|_| chance.u32(0..4)).collect();
            let terms = RefinementTerms { partitions: 5, ..Default::default() };
            let state = RefinementState::new(&graph, labels.clone(), terms);
            for (unit, to) in (0..12).flat_map(|unit| (0..5).map(move |to| (unit, to))) {
                if labels[unit] != to {
                    let expected = worth_by_definition(&graph, &labels, unit, to);
                    assert_eq!(state.worths(unit).to(to), expected, "{unit} to {to}");
                }
            }
        }
    }

    #[test]
    fn moves_have_a_price_and_a_budget() {
        let pairs: Vec<_> = (0..20).map(|pair| (pair, pair + 20, 3)).collect();
        let graph = graph(40, &pairs);
        let apart: Vec<u32> = (0..40).map(|unit| unit / 20).collect();
        let of = |price, budget| {
            let terms = RefinementTerms {
                partitions: 2,
                price,
                budget,
                load_cap: 1.2,
                ..Default::default()
            };
            refine(&graph, &apart, &terms).moved
        };
        assert_eq!(of(4, usize::MAX), 0);
        assert_eq!(of(1, 5), 5);
    }

    #[test]
    fn units_have_prices_of_their_own() {
        let graph = graph(8, &[(0, 4, 5), (1, 5, 5), (2, 6, 5), (3, 7, 5)]);
        let apart: Vec<u32> = (0..8).map(|unit| unit / 4).collect();
        let terms = RefinementTerms { partitions: 2, load_cap: 2.0, ..Default::default() };
        let prices = [9, 9, 9, u64::MAX, 9, 0, 9, 0];
        let refined = refine_priced(&graph, &apart, &terms, &prices);
        // Of each pair the unit moves that is cheap enough, and none where neither is.
        assert_eq!(refined.labels, [0, 0, 0, 0, 1, 0, 1, 0]);
        assert_eq!(refine_priced(&graph, &apart, &terms, &[]), refine(&graph, &apart, &terms));
    }

    #[test]
    fn what_is_over_the_cap_is_taken_away() {
        let graph = graph(16, &[]);
        let terms = RefinementTerms { partitions: 4, ..Default::default() };
        let refined = refine(&graph, &[0; 16], &terms);
        let of = |label| refined.labels.iter().filter(|it| **it == label).count();
        assert!((0..4).all(|label| (3..=5).contains(&of(label))), "{:?}", refined.labels);
    }

    #[test]
    fn few_units_go_to_the_lightest_partition() {
        let mut graph = graph(8, &[]);
        graph.loads = vec![8, 7, 6, 5, 4, 3, 2, 1];
        let labels = largest_first(&graph, 4);
        let load = |label| -> u64 {
            let of = (0..8).filter(|unit| labels[*unit] == label);
            of.map(|unit| graph.loads[unit]).sum()
        };
        assert_eq!([load(0), load(1), load(2), load(3)], [9; 4]);
    }
}
