//! A shortest cycle, counted in transactions: auxiliary nodes cost nothing.

use std::collections::VecDeque;

use super::Graph;

/// How many edges are followed before the best cycle so far is good enough.
const EDGE_VISITS_MAX: u64 = 50_000_000;

const FAR: u32 = u32::MAX;

/// Breadth-first search for cycles, with buffers that are reused from start to start.
#[derive(Debug)]
pub(crate) struct CycleSearch<'g> {
    graph: &'g Graph,
    distance: Vec<u32>,
    parent: Vec<u32>,
    touched: Vec<u32>,
    allowed: Vec<bool>,
    edge_visits: u64,
}

impl<'g> CycleSearch<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Self {
        let nodes = graph.rows.nodes();
        CycleSearch {
            graph,
            distance: vec![FAR; nodes],
            parent: vec![FAR; nodes],
            touched: Vec::new(),
            allowed: vec![true; nodes],
            edge_visits: 0,
        }
    }

    /// A shortest cycle within any of the components; the nodes in order, starting with a
    /// transaction. Beyond a budget of work, the shortest found so far.
    pub(crate) fn in_components(&mut self, components: &[Vec<u32>]) -> Option<Vec<u32>> {
        let mut best: Option<Vec<u32>> = None;
        self.allowed.fill(false);
        let mut components: Vec<&Vec<u32>> = components.iter().collect();
        components.sort_by_key(|component| (component.len(), component.iter().min().copied()));
        for component in components {
            component.iter().for_each(|node| self.allowed[*node as usize] = true);
            let mut starts: Vec<u32> =
                component.iter().copied().filter(|n| self.graph.is_transaction(*n)).collect();
            starts.sort_unstable();
            for start in starts {
                let bound = best.as_ref().map_or(FAR, |cycle| self.length(cycle));
                if bound == 2 || (best.is_some() && self.edge_visits > EDGE_VISITS_MAX) {
                    return best;
                }
                best = self.through(start, bound).or(best);
            }
            component.iter().for_each(|node| self.allowed[*node as usize] = false);
        }
        best
    }

    /// A shortest cycle through `start`, if there is one of fewer than `bound` transactions.
    pub(crate) fn through(&mut self, start: u32, bound: u32) -> Option<Vec<u32>> {
        let closing: Vec<u32> = match (start as usize) < self.graph.into_readers.nodes() {
            true => self.graph.into_readers.of(start).to_vec(),
            false => Vec::new(),
        };
        let end = self.search(start, bound, &closing);
        let cycle = end.map(|end| self.path_to(start, end));
        for node in self.touched.drain(..) {
            self.distance[node as usize] = FAR;
            self.parent[node as usize] = FAR;
        }
        cycle
    }

    /// The last node before the cycle returns to `start`. Distances count the transactions on
    /// the way, `start` included; nodes are settled in order of distance (0-1 search).
    fn search(&mut self, start: u32, bound: u32, closing: &[u32]) -> Option<u32> {
        let mut queue = VecDeque::from([start]);
        self.reach(start, 1, FAR);
        while let Some(node) = queue.pop_front() {
            let distance = self.distance[node as usize];
            if distance >= bound {
                return None;
            }
            let row = self.graph.rows.of(node);
            if node != start && (row.contains(&start) || closing.contains(&node)) {
                return Some(node);
            }
            self.edge_visits += row.len() as u64;
            for &next in row.iter().filter(|next| self.allowed[**next as usize]) {
                let step = u32::from(self.graph.is_transaction(next));
                if distance + step < self.distance[next as usize] {
                    if self.distance[next as usize] == FAR {
                        self.touched.push(next);
                    }
                    self.distance[next as usize] = distance + step;
                    self.parent[next as usize] = node;
                    match step {
                        0 => queue.push_front(next),
                        _ => queue.push_back(next),
                    }
                }
            }
        }
        None
    }

    fn reach(&mut self, node: u32, distance: u32, parent: u32) {
        self.touched.push(node);
        self.distance[node as usize] = distance;
        self.parent[node as usize] = parent;
    }

    fn path_to(&self, start: u32, end: u32) -> Vec<u32> {
        let mut path = vec![end];
        let mut node = end;
        while node != start {
            node = self.parent[node as usize];
            path.push(node);
        }
        path.reverse();
        path
    }

    fn length(&self, cycle: &[u32]) -> u32 {
        cycle.iter().filter(|node| self.graph.is_transaction(**node)).count() as u32
    }
}
