//! One order of all transactions that goes with the edges, as near as may be to another one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Graph;

/// The ranks of the transactions that have one, each after those of all from which a path leads to
/// it, and `free` ranks, which are of no transaction; of what could be next, the lowest comes
/// first. Transactions on a cycle, and what comes after them, follow in the order of their ranks.
pub(crate) fn in_edge_order(
    graph: &Graph,
    rank: impl Fn(u32) -> Option<u32>,
    free: impl IntoIterator<Item = u32>,
) -> Vec<u32> {
    let nodes = graph.rows.nodes() as u32;
    let mut earlier = vec![0_u32; nodes as usize];
    for node in 0..nodes {
        graph.rows.of(node).iter().for_each(|next| earlier[*next as usize] += 1);
    }
    // What has no rank only passes paths on, at once.
    let rank = |node: u32| if graph.is_transaction(node) { rank(node) } else { None };
    let mut ready: BinaryHeap<Reverse<(Option<u32>, u32)>> = (0..nodes)
        .filter(|node| earlier[*node as usize] == 0)
        .map(|node| Reverse((rank(node), node)))
        .chain(free.into_iter().map(|rank| Reverse((Some(rank), nodes))))
        .collect();
    let mut order = Vec::new();
    while let Some(Reverse((rank_of_node, node))) = ready.pop() {
        order.extend(rank_of_node);
        let next_ones = if node < nodes { graph.rows.of(node) } else { &[] };
        for next in next_ones {
            let count = &mut earlier[*next as usize];
            *count -= 1;
            if *count == 0 {
                ready.push(Reverse((rank(*next), *next)));
            }
        }
    }
    let is_left = |node: &u32| earlier[*node as usize] > 0;
    let mut left: Vec<u32> = (0..nodes).filter(is_left).filter_map(rank).collect();
    left.sort_unstable();
    order.extend(left);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::AdjacencyRows;

    /// Transactions below `transactions`; auxiliary nodes above.
    fn graph(transactions: u32, nodes: usize, edges: &[(u32, u32)]) -> Graph {
        Graph {
            transactions,
            roles: Vec::new(),
            rows: AdjacencyRows::new(nodes, edges),
            into_readers: AdjacencyRows::default(),
            auxiliary: Vec::new(),
        }
    }

    #[test]
    fn edges_count_more_than_ranks_and_paths_lead_through_auxiliary_nodes() {
        // 0 comes after 2 by way of the auxiliary node 3; 1 is free.
        let graph = graph(3, 4, &[(2, 3), (3, 0)]);
        assert_eq!(in_edge_order(&graph, Some, []), [1, 2, 0]);
        assert_eq!(in_edge_order(&graph, |node| Some(2 * node), [1, 9]), [1, 2, 4, 0, 9]);
        assert_eq!(in_edge_order(&graph, |node| (node != 2).then_some(node), []), [0, 1]);
    }

    #[test]
    fn what_is_on_a_cycle_comes_last() {
        let graph = graph(4, 4, &[(0, 1), (1, 0), (1, 2)]);
        assert_eq!(in_edge_order(&graph, |node| Some(3 - node), []), [0, 1, 2, 3]);
        assert_eq!(in_edge_order(&graph, Some, [4]), [3, 4, 0, 1, 2]);
    }
}
