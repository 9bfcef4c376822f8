//! The end of a run: whether everything that was begun has ended, and what the run leaves behind.

use std::fmt;

use muesli_core::recorder::{Operation, TxnRecord};
use muesli_core::{Node, NodeId, Protocol, Recorder, RepositoryId, SmallBytes, SpaceId, Timestamp};

use super::World;
use crate::clock::LocalClock;
use crate::time::{Span, VirtualTime};
use crate::trace::Digest;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run {
    /// What identifies the run: equal iff the traces are.
    pub digest: Digest,
    /// How many events happened.
    pub events: u64,
    /// When it ended.
    pub ended: VirtualTime,
    /// The trace, if its text was asked for.
    pub trace_text: Option<String>,
    /// What each host recorded.
    pub hosts: Vec<HostHistory>,
}

/// The versions of a key, oldest first.
pub type Chain = (SpaceId, SmallBytes, Vec<Timestamp>);

/// What one host recorded.
#[derive(Debug)]
pub struct HostHistory {
    /// The node.
    pub node: NodeId,
    /// The transactions begun there, over all its lives; empty unless a history was asked for.
    pub recorder: Recorder,
    /// The chains that its repositories hold in the end; empty if it is down.
    pub chains: Vec<(RepositoryId, Vec<Chain>)>,
    clock: LocalClock,
}

/// A transaction of the history, its times put back from its node's clock to virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The record. Its times are by the node's own clock.
    pub record: &'a TxnRecord,
    /// What it did, in order.
    pub operations: &'a [Operation],
    /// When it began, or up to 2 ns before.
    pub begin: VirtualTime,
    /// When it ended, or up to 2 ns after; `None` if it never did.
    pub end: Option<VirtualTime>,
}

impl HostHistory {
    /// The transactions begun here, in the order they ended.
    pub fn transactions(&self) -> impl Iterator<Item = Recorded<'_>> {
        self.recorder.transactions().map(|(record, operations)| Recorded {
            record,
            operations,
            begin: self.clock.virtual_at(record.begin),
            // Drift costs the way back up to two nanoseconds; they must not order what overlapped.
            end: record.end.map(|end| self.clock.virtual_at(end) + Span::from_nanos(2)),
        })
    }
}

/// A run in which something that was begun did not end although nothing was wrong any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Stuck {
    /// How long was waited after the last repair.
    pub waited: Span,
    /// How many clients have not ended.
    pub tasks: usize,
    /// Nodes with unfinished transactions: how many at its coordinator, and in doubt at its
    /// repositories.
    pub nodes: Vec<(NodeId, usize, usize)>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not live: {} after the last repair, ", self.waited)?;
        write!(out, "{} clients have not ended", self.tasks)?;
        self.nodes.iter().try_for_each(|(node, running, in_doubt)| {
            write!(out, "; n{} has {running} unfinished, {in_doubt} in doubt", node.0)
        })
    }
}

/// How often is looked whether everything has ended.
const LOOK_EVERY: Span = Span::from_millis(5);

impl<P: Protocol> World<P> {
    /// Runs to the plan's horizon, tells the clients to end, and demands that everything has ended
    /// within `patience` of virtual time.
    ///
    /// # Errors
    /// Something has not.
    pub fn run_to_end(&mut self, patience: Span) -> Result<(), Stuck> {
        self.run_until(self.plan.horizon());
        self.stop_clients();
        self.settle(patience)
    }

    /// Runs until everything that was begun has ended, for at most `patience` of virtual time.
    ///
    /// # Errors
    /// Something has not ended by then.
    pub fn settle(&mut self, patience: Span) -> Result<(), Stuck> {
        let limit = self.now + patience;
        while !self.is_settled() {
            if self.now >= limit {
                return Err(self.stuck(patience));
            }
            self.run_until((self.now + LOOK_EVERY).min(limit));
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.tasks_alive() == 0
            && self.stations.iter().all(|station| station.host.borrow().is_settled())
    }

    fn stuck(&self, waited: Span) -> Stuck {
        let nodes = self.stations.iter().filter_map(|station| {
            let host = station.host.borrow();
            let (running, in_doubt) = host.node.as_ref().map_or((0, 0), Node::unfinished);
            (running + in_doubt > 0).then_some((host.id, running, in_doubt))
        });
        Stuck { waited, tasks: self.tasks_alive(), nodes: nodes.collect() }
    }

    /// Looks at a node that is up, for tests; `None` if it is down.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn with_node<T>(&self, node: NodeId, look: impl FnOnce(&Node<P>) -> T) -> Option<T> {
        self.stations[node.0 as usize].host.borrow().node.as_ref().map(look)
    }

    /// Ends the run. Transactions that are still running are recorded as such.
    pub fn finish(mut self) -> Run {
        for tasks in &mut self.tasks {
            drop(tasks.remove_all());
        }
        let hosts = self.stations.iter().map(|station| {
            let host = &mut *station.host.borrow_mut();
            let mut recorder = host.effects.recorder.take().map_or_else(Recorder::new, |it| *it);
            if let Some(node) = &host.node {
                node.record_running(&mut recorder);
            }
            let chains = host.node.as_ref().map_or_else(Vec::new, Node::chains);
            HostHistory { node: host.id, recorder, chains, clock: host.clock.clone() }
        });
        Run {
            hosts: hosts.collect(),
            digest: self.trace.digest(),
            events: self.trace.events(),
            ended: self.now,
            trace_text: self.trace.text().map(str::to_owned),
        }
    }
}
