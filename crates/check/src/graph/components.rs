//! Strongly connected components (Tarjan), with an explicit stack: histories are deep.

use super::Graph;
use super::sink::AuxiliaryRole;

/// The components of the core of a graph (lone readers are left out).
#[derive(Debug)]
pub(crate) struct Components {
    /// The nodes of every component with more than one node.
    pub(crate) cyclic: Vec<Vec<u32>>,
    /// All core nodes; if nothing is cyclic, every edge leads from a later to an earlier one.
    pub(crate) order: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;

struct ComponentSearch<'g> {
    graph: &'g Graph,
    /// Number of visit, from 0.
    number: Vec<u32>,
    /// The earliest visited node known to be reachable and open; `UNSEEN` once closed.
    low: Vec<u32>,
    visited: u32,
    open: Vec<u32>,
    /// The path of the walk: node and how many of its edges were followed.
    path: Vec<(u32, u32)>,
    found: Components,
}

impl Components {
    /// Walks the graph from its latest transactions to its earliest, so that `order`, reversed,
    /// comes close to the order of recording.
    pub(crate) fn new(graph: &Graph) -> Components {
        let nodes = graph.rows.nodes();
        let mut search = ComponentSearch {
            graph,
            number: vec![UNSEEN; nodes],
            low: vec![UNSEEN; nodes],
            visited: 0,
            open: Vec::new(),
            path: Vec::new(),
            found: Components { cyclic: Vec::new(), order: Vec::with_capacity(nodes) },
        };
        let auxiliary = graph.transactions..nodes as u32;
        for root in (0..graph.transactions).rev().chain(auxiliary) {
            let core =
                graph.roles.get(root as usize).is_none_or(|role| *role == AuxiliaryRole::Core);
            if core && search.number[root as usize] == UNSEEN {
                search.walk(root);
            }
        }
        search.found
    }
}

impl ComponentSearch<'_> {
    fn walk(&mut self, root: u32) {
        self.enter(root);
        while let Some((node, followed)) = self.path.last_mut() {
            let node = *node;
            let Some(&next) = self.graph.rows.of(node).get(*followed as usize) else {
                self.leave(node);
                continue;
            };
            *followed += 1;
            if self.number[next as usize] == UNSEEN {
                self.enter(next);
            } else if self.low[next as usize] != UNSEEN {
                let low = self.number[next as usize].min(self.low[node as usize]);
                self.low[node as usize] = low;
            }
        }
    }

    fn enter(&mut self, node: u32) {
        self.number[node as usize] = self.visited;
        self.low[node as usize] = self.visited;
        self.visited += 1;
        self.open.push(node);
        self.path.push((node, 0));
    }

    fn leave(&mut self, node: u32) {
        self.path.pop();
        let low = self.low[node as usize];
        if let Some((parent, _)) = self.path.last() {
            let parent_low = &mut self.low[*parent as usize];
            *parent_low = low.min(*parent_low);
        }
        if low == self.number[node as usize] {
            self.close(node);
        }
    }

    /// `root` is the first visited node of its component: everything opened since belongs to it.
    fn close(&mut self, root: u32) {
        let start = self.found.order.len();
        while let Some(node) = self.open.pop() {
            self.low[node as usize] = UNSEEN;
            self.found.order.push(node);
            if node == root {
                break;
            }
        }
        let component = &self.found.order[start..];
        if component.len() > 1 {
            self.found.cyclic.push(component.to_vec());
        }
    }
}
