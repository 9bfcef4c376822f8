//! A first placement: by METIS, or where units are few, the largest first into the lightest
//! partition.

use super::child::{Child, ChildError};
use super::graph::UnitGraph;

/// Below so many units for each partition METIS may put all of them into one.
const UNITS_A_PARTITION: usize = 8;

/// A partition for each unit of a graph, and who said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstPlacement {
    /// By the numbers of the units.
    pub labels: Vec<u32>,
    /// Whether it was METIS.
    pub by_metis: bool,
}

/// Places units into so many partitions. METIS is asked in a child process, if there is one to be
/// had; what it answers is a start, which is refined and whose caps are checked.
///
/// # Errors
/// The child process failed, or took too long.
pub fn first_placement(
    graph: &UnitGraph,
    partitions: u32,
    child: Option<&Child>,
) -> Result<FirstPlacement, ChildError> {
    let is_small = graph.units.len() < UNITS_A_PARTITION * partitions as usize;
    match child.filter(|_| !is_small && partitions > 1) {
        None => Ok(FirstPlacement { labels: largest_first(graph, partitions), by_metis: false }),
        Some(child) => {
            let labels = child.partition(graph, partitions)?;
            Ok(FirstPlacement { labels, by_metis: true })
        }
    }
}

/// The largest unit first, each into the partition with the least load.
pub(super) fn largest_first(graph: &UnitGraph, partitions: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..graph.units.len()).collect();
    order.sort_by_key(|unit| (std::cmp::Reverse(graph.loads[*unit]), *unit));
    let (mut labels, mut loads) = (vec![0; order.len()], vec![0_u64; partitions.max(1) as usize]);
    for unit in order {
        let lightest = (0..loads.len()).min_by_key(|it| (loads[*it], *it)).unwrap_or(0);
        labels[unit] = lightest as u32;
        loads[lightest] += graph.loads[unit];
    }
    labels
}
