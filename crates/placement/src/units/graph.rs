//! Units and the transactions that touch them.

use std::collections::BTreeMap;

use crate::scheme::{PlacedUnit, Scheme};
use crate::trace::{AccessTrace, TracedTransaction};

/// Units, and for each transaction of several the units that it touches. Transactions of one unit
/// count for its load, and for nothing else.
#[derive(Clone, Debug, Default)]
pub struct UnitGraph {
    /// The units, in order.
    pub units: Vec<PlacedUnit>,
    /// How many transactions touch each.
    pub loads: Vec<u64>,
    /// How many rows of each were seen, about.
    pub rows: Vec<u64>,
    /// The units of each transaction of several, by their numbers, in order; equal ones once, with
    /// how many they are.
    pub joint: Vec<(Vec<u32>, u64)>,
    /// The transactions that each unit is in, by their places there.
    pub of_unit: Vec<Vec<u32>>,
}

impl UnitGraph {
    /// The graph of transactions under a scheme.
    pub fn new(
        trace: &AccessTrace,
        transactions: &[TracedTransaction],
        scheme: &Scheme,
    ) -> UnitGraph {
        let mut seen: BTreeMap<PlacedUnit, (u64, u64)> = BTreeMap::new();
        let mut sets: BTreeMap<Vec<PlacedUnit>, u64> = BTreeMap::new();
        for transaction in transactions {
            let mut units = Vec::new();
            for access in &transaction.accesses {
                if let Some(unit) = scheme.unit(trace, access) {
                    units.push(unit);
                    seen.entry(unit).or_default().1 += 1;
                }
            }
            units.sort_unstable();
            units.dedup();
            for unit in &units {
                seen.entry(*unit).or_default().0 += 1;
            }
            if units.len() > 1 {
                *sets.entry(units).or_default() += 1;
            }
        }
        let mut graph = UnitGraph::default();
        for (unit, (load, rows)) in seen {
            graph.units.push(unit);
            graph.loads.push(load);
            graph.rows.push(rows);
        }
        graph.of_unit = vec![Vec::new(); graph.units.len()];
        for (units, count) in sets {
            let numbers: Vec<u32> = units.iter().map(|unit| graph.number(*unit)).collect();
            for number in &numbers {
                graph.of_unit[*number as usize].push(graph.joint.len() as u32);
            }
            graph.joint.push((numbers, count));
        }
        graph
    }

    fn number(&self, unit: PlacedUnit) -> u32 {
        self.units.binary_search(&unit).expect("all units are known") as u32
    }

    /// The sum of all loads.
    pub fn load(&self) -> u64 {
        self.loads.iter().sum()
    }
}
