//! The end of a run: whether everything that was begun has ended, and what the run leaves behind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use muesli_check::{BuildError, History};
use muesli_core::recorder::{PartRan, RecordedOperation, Sampling};
use muesli_core::{
    AnyMachine, Catalog, Machine, Modes, Nanos, Node, NodeId, Note, Protocol, Rejection,
    ReplicaRole, RepositoryId, Timestamp, TxnId, TxnLevel,
};
use serde_json::{Map, Value as Json};

use super::World;
use super::host::background::Background;
use super::host::journal::{Recorded, WorldJournal};
use super::host::longest::Longest;
use super::host::routes::Routes;
use super::host::strangers::StrangerCount;
use super::node_traffic::NodeTraffic;
use crate::hardware::clock::LocalClock;
use crate::hardware::processor::ProcessorLoad;
use crate::history::{self, Chain, Remains, ReportedTransaction};
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
    /// How many messages were delivered from one node to another.
    pub messages: u64,
    /// How transactions were done, at all nodes together, in their last lives.
    pub modes: Modes,
    /// The trace, if its text was asked for.
    pub trace_text: Option<String>,
    /// Spaces, and where their keys lived.
    pub catalog: Arc<Catalog>,
    /// What each host recorded.
    pub hosts: Vec<HostHistory>,
    /// What became of strangers' messages, by kind.
    pub strangers: BTreeMap<&'static str, StrangerCount>,
    /// What nodes, in their last lives, left out of what they were told, by kind and reason, and
    /// how often; of strangers, too.
    pub rejections: Vec<(&'static str, Rejection, u64)>,
    /// The longest of what all nodes said and kept.
    pub longest: Longest,
    /// Which kinds of messages left, between which roles.
    pub routes: Routes,
    /// What all nodes did beside transactions.
    pub background: Background,
    /// What each node has sent, in the order of their numbers.
    pub traffic: Vec<NodeTraffic>,
}

impl Run {
    /// The history, for the checker, with `meta` in its first line. Empty unless the setup asked
    /// for one.
    ///
    /// # Errors
    /// What was recorded is no history, such as two transactions of one name: a mistake of the
    /// protocol.
    pub fn history(&self, meta: Map<String, Json>) -> Result<History, BuildError> {
        history::by_versions(&self.hosts, &self.catalog, meta)
    }

    /// How many records of their groups' logs members, in their last lives, left out since they
    /// contradict the state. Honest members write none that does.
    pub fn records_left_out(&self) -> u64 {
        let of_records = self.rejections.iter().filter(|(kind, ..)| *kind == "Record");
        of_records.map(|(.., times)| times).sum()
    }
}

/// What one host recorded.
#[derive(Debug)]
pub struct HostHistory {
    /// The node.
    pub node: NodeId,
    /// The chains that its repositories hold in the end; empty if it is down.
    pub chains: Vec<(RepositoryId, Vec<Chain>)>,
    journal: WorldJournal,
    clock: LocalClock,
}

impl HostHistory {
    /// The transactions begun here over all lives of the node, in the order they ended; none
    /// unless a history was asked for.
    pub fn transactions(&self) -> impl Iterator<Item = Recorded> {
        self.journal.transactions(&self.clock)
    }
}

impl Remains for HostHistory {
    fn reported(&self) -> impl Iterator<Item = ReportedTransaction> {
        self.transactions().map(|recorded| ReportedTransaction {
            record: recorded.record,
            status: recorded.status,
            begin: recorded.begin.as_nanos(),
            end: recorded.end.map(|end| end.as_nanos()),
            as_of: None,
            operations: recorded.operations,
            crashed: recorded.crashed,
            level: TxnLevel::default(),
        })
    }

    fn level_of(&self, txn: TxnId) -> TxnLevel {
        self.journal.level_of(txn)
    }

    fn applied_at(&self, txn: TxnId) -> Option<Timestamp> {
        self.journal.applied_at(txn)
    }

    fn executed(&self, txn: TxnId) -> Vec<Vec<RecordedOperation>> {
        self.journal.executed(txn).collect()
    }

    fn ran(&self, txn: TxnId) -> Vec<PartRan> {
        self.journal.ran(txn)
    }

    fn sampling(&self) -> Sampling {
        Sampling::ALL // A simulated run is short, and judged as a whole.
    }

    fn counted_before(&self, moment: u64, length: Nanos) -> u64 {
        let shown = self.clock.shown_at(VirtualTime::from_nanos(moment));
        // Drift costs the way there and back up to a nanosecond each.
        let since = shown.0.saturating_sub(length.0).saturating_sub(2);
        self.clock.virtual_at(Nanos(since)).as_nanos()
    }

    fn chains(&self) -> &[(RepositoryId, Vec<Chain>)] {
        &self.chains
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
    /// Members of groups that take no part in them, where they are at home.
    pub members: Vec<(NodeId, RepositoryId, ReplicaRole)>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "not live: {} after the last repair, ", self.waited)?;
        write!(out, "{} clients have not ended", self.tasks)?;
        self.nodes.iter().try_for_each(|(node, running, in_doubt)| {
            write!(out, "; n{} has {running} unfinished, {in_doubt} in doubt", node.0)
        })?;
        self.members.iter().try_for_each(|(node, member, role)| {
            write!(out, "; r{} on n{}: {}", member.0, node.0, format!("{role:?}").to_lowercase())
        })
    }
}

/// How often is looked whether everything has ended.
const LOOK_EVERY: Span = Span::from_millis(5);

impl World {
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
        if let Some(crowd) = &mut self.crowd {
            crowd.silent = true;
        }
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
            && self.engines.iter().all(|host_engine| host_engine.host.borrow().is_settled())
    }

    fn stuck(&self, waited: Span) -> Stuck {
        let nodes = self.engines.iter().filter_map(|host_engine| {
            let host = host_engine.host.borrow();
            let (running, in_doubt) = host.machine().map_or((0, 0), AnyMachine::unfinished);
            (running + in_doubt > 0).then_some((host.id, running, in_doubt))
        });
        let members = self.engines.iter().flat_map(|host_engine| {
            let host = host_engine.host.borrow();
            let replica_roles = host.machine().map_or(Vec::new(), AnyMachine::replica_roles);
            let waits = |role: &ReplicaRole| {
                !(role.takes_part() || matches!(role, ReplicaRole::Alone | ReplicaRole::Moved))
            };
            let waiting = replica_roles.into_iter().filter(|(_, role)| waits(role));
            waiting.map(|(member, role)| (host.id, member, role)).collect::<Vec<_>>()
        });
        let (nodes, members) = (nodes.collect(), members.collect());
        Stuck { waited, tasks: self.tasks_alive(), nodes, members }
    }

    /// Looks at a node that is up, for tests that know its protocol; `None` if it is down.
    ///
    /// # Panics
    /// If there is no such node, or it runs another protocol.
    pub fn with_node<P: Protocol, T>(
        &self,
        node: NodeId,
        look: impl FnOnce(&Node<P>) -> T,
    ) -> Option<T> {
        let host = self.engines[node.0 as usize].host.borrow();
        let machine = host.machine()?.as_any().downcast_ref::<Machine<P, Note>>();
        Some(look(&machine.expect("a machine of this protocol").node))
    }

    /// What all nodes have done so far beside transactions.
    pub fn background(&self) -> Background {
        let mut all = Background::default();
        self.engines.iter().for_each(|host_engine| all += host_engine.host.borrow().background());
        all
    }

    /// What all nodes together have sent so far.
    pub fn traffic(&self) -> NodeTraffic {
        let mut all = NodeTraffic::default();
        self.engines.iter().for_each(|host_engine| all += &host_engine.host.borrow().traffic());
        all
    }

    /// What a node has done so far, over all lives.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn load_of(&self, node: NodeId) -> ProcessorLoad {
        self.engines[node.0 as usize].host.borrow().outside.ended
    }

    fn rejections(&self) -> Vec<(&'static str, Rejection, u64)> {
        let mut all: BTreeMap<_, u64> = BTreeMap::new();
        for host_engine in &self.engines {
            let host = host_engine.host.borrow();
            if let Some(counted) = host.machine().map(AnyMachine::rejections) {
                let each = counted.iter();
                each.for_each(|(name, why, count)| *all.entry((name, why)).or_default() += count);
            }
        }
        all.into_iter().map(|((name, why), count)| (name, why, count)).collect()
    }

    /// Ends the run. Transactions that are still running are recorded as such.
    pub fn finish(mut self) -> Run {
        for tasks in &mut self.tasks {
            drop(tasks.remove_all());
        }
        let strangers = self.count_strangers();
        let rejections = self.rejections();
        let (mut modes, mut longest) = (Modes::default(), Longest::default());
        let mut routes = Routes::default();
        let background = self.background();
        let traffic = self.engines.iter().map(|it| it.host.borrow().traffic()).collect();
        let hosts = self.engines.iter().map(|host_engine| {
            let host = &mut *host_engine.host.borrow_mut();
            host.finish();
            modes += host.environment().modes;
            longest = longest.or(host.outside.longest);
            routes.join(&host.outside.routes);
            let chains = host.machine().map_or_else(Vec::new, AnyMachine::chains);
            let (journal, clock) = (std::mem::take(&mut host.outside.journal), host.clock.clone());
            HostHistory { node: host.id, chains, journal, clock }
        });
        Run {
            hosts: hosts.collect(),
            modes,
            strangers,
            rejections,
            longest,
            routes,
            background,
            traffic,
            digest: self.trace.digest(),
            events: self.trace.events(),
            ended: self.now,
            messages: self.messages,
            catalog: self.catalog,
            trace_text: self.trace.text().map(str::to_owned),
        }
    }
}
