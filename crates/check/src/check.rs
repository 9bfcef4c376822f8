//! The entry point: a history and a level in, a verdict out.

use crate::explain::explain;
use crate::finding::Findings;
use crate::further::roots;
use crate::further::sums::{self, SumCheck};
use crate::graph::{Components, CycleSearch, Graph, build, first_broken_reader};
use crate::history::History;
use crate::level::{EdgeSet, Level, RealTime, Scope};
use crate::resolve::Resolved;
use crate::verdict::{Cycle, RootStats, Stats, Verdict};

/// What to judge beyond the level itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Transactions of one session must take effect in the order the session ran them.
    pub session_order: bool,
    /// Real time must be respected among committed update transactions; where the level itself
    /// asks for real time between all, this asks for less.
    pub update_strict: bool,
    /// Totals that every transaction reading all keys of a prefix must see.
    pub sums: Vec<SumCheck>,
}

/// Judges `history` at `level`; histories of both kinds.
pub fn check(history: &History, level: Level, options: &Options) -> Verdict {
    Checker::new(history).check(level, options)
}

/// A history prepared for judging it at several levels.
#[derive(Debug)]
pub struct Checker<'h> {
    resolved: Resolved<'h>,
}

impl<'h> Checker<'h> {
    /// Gives every read and write of `history` its place.
    pub fn new(history: &'h History) -> Self {
        Checker { resolved: Resolved::new(history) }
    }

    /// Judges the history at `level`.
    pub fn check(&self, level: Level, options: &Options) -> Verdict {
        let set = edges(level, options);
        let graph = build(&self.resolved, level.scope(), set);
        let cycle = find_cycle(&graph, level.scope());
        let cycle = cycle.map(|nodes| self.explain(&graph, set, &nodes));
        let (mut finding_count, mut findings) =
            self.resolved.findings.select(|anomaly, committed| level.forbids(anomaly, committed));
        let mut sums = Findings::default();
        for sum_check in &options.sums {
            sums::judge(&self.resolved, sum_check, &mut sums);
        }
        let (roots, root_stats) = roots::judge(&self.resolved, &graph, level, set);
        for further in [sums, roots] {
            let forbids = |anomaly, committed| level.forbids(anomaly, committed);
            let (count, kept) = further.select(forbids);
            finding_count += count;
            findings.extend(kept);
        }
        let stats = Stats { roots: root_stats, ..self.stats(&graph) };
        Verdict { level, findings, finding_count, cycle, stats }
    }

    /// How many transactions read all keys of a sum, and so are judged by it.
    pub fn readers_of(&self, sum: &SumCheck) -> usize {
        sums::readers(&self.resolved, sum)
    }

    fn explain(&self, graph: &Graph, set: EdgeSet, nodes: &[u32]) -> Cycle {
        explain(&self.resolved, graph, set, nodes)
    }

    fn stats(&self, graph: &Graph) -> Stats {
        let history = self.resolved.history;
        Stats {
            transactions: history.transactions(),
            committed: self.resolved.committed.iter().filter(|committed| **committed).count(),
            operations: history.operations(),
            edges: graph.edge_count(),
            roots: RootStats::default(),
            handlers: history.handler_stats(&self.resolved.committed),
        }
    }
}

fn edges(level: Level, options: &Options) -> EdgeSet {
    let mut set = level.edges();
    set.session = options.session_order;
    if options.update_strict {
        set.real_time = RealTime::Updates;
    }
    set
}

fn find_cycle(graph: &Graph, scope: Scope) -> Option<Vec<u32>> {
    let components = Components::new(graph);
    if !components.cyclic.is_empty() {
        return CycleSearch::new(graph).in_components(&components.cyclic);
    }
    match scope {
        Scope::Committed | Scope::All => None,
        Scope::UpdatesAndOneReader { .. } => {
            let reader = first_broken_reader(graph, &components)?;
            CycleSearch::new(graph).through(reader, u32::MAX)
        }
    }
}
