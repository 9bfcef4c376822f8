//! What a seed decides: how a run looks, and what goes wrong in it.

use std::time::Duration;

use muesli_core::Nanos;
use muesli_registry::{check_tree, exchanges_members, offers_strict};
use muesli_sim::plan::fault::{FaultKind, FaultKinds};
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};

use super::SeededRun;
use crate::batches;
use crate::chance::Chance;
use crate::embedded::Length;
use crate::simulated::{SITES_LEAST, Simulated, Upkeep};
use crate::tempo::Tempo;
use crate::trees;

/// The most faults in a drawn plan of a short run, and of any.
const FAULTS_MOST: (u32, u32) = (8, 64);

/// Runs of so many transactions and fewer are this long, in virtual time, at least and at most;
/// longer ones are longer by as much.
const HORIZON: (u64, Span, Span) = (300, Span::from_millis(100), Span::from_millis(1_000));

/// In a run of so many transactions as in [`HORIZON`] each node begins so many checkpoints, at
/// least and at most; in a quarter of the runs ten times as many.
const CHECKPOINTS: (u64, u64) = (6, 40);

/// No run has more of them: each holds all that there is, which grows with the run.
const CHECKPOINTS_MOST: f64 = 400.0;

/// About so many transactions fit into a client's run for each that it has to run.
const MARGIN: f64 = 1.6;

/// The time between two ticks of the consensus of groups on servers.
const TICK_OF_SERVERS: Nanos = Nanos::from_millis(20);

/// Of so many seeds one runs strict transactions alone.
const STRICT_ONCE_IN: u64 = 4;

/// Of so many seeds one has timers that fire early.
const EARLY_ONCE_IN: u64 = 4;

impl SeededRun {
    pub(super) fn simulated(&self, seed: u64) -> Simulated {
        let mut chance = Chance::new(seed, u32::MAX, 0);
        let drawn = chance.between(1, self.nodes.min(3) as u64) as usize;
        let (usual, shortest, longest) = HORIZON;
        let scale = (self.transactions_least as f64 / usual as f64).max(1.0);
        let nanos = chance.between(shortest.as_nanos(), longest.as_nanos()) as f64 * scale;
        let nanos = (nanos as u64).max(self.least.as_nanos());
        let horizon = VirtualTime::ZERO + Span::from_nanos(nanos / 1_000_000 * 1_000_000);
        let client_nodes = match chance.below(6) {
            few @ 0..3 => few as usize,
            _ => 0,
        };
        let client_nodes = self.client_nodes.unwrap_or(client_nodes);
        let nodes = self.nodes + client_nodes + self.masters + self.validator_nodes;
        let plan = self.plan.clone().unwrap_or_else(|| self.draw_plan(seed, nodes, horizon, scale));
        let run = plan.horizon().as_nanos();
        let part = chance.between(CHECKPOINTS.0, CHECKPOINTS.1);
        let often = if chance.below(4) == 0 { 10.0 * scale } else { scale };
        let every = (run as f64 / (part as f64 * often).min(CHECKPOINTS_MOST)) as u64;
        let checkpoint_every = Some(Span::from_nanos(every.max(1)));
        let repositories = self.nodes * chance.between(1, 3) as usize;
        let usual = if self.group > 1 { self.nodes } else { repositories };
        let repositories = self.repositories.unwrap_or(usual);
        let tree_nodes = self.tree_nodes(repositories);
        let strict = chance.below(STRICT_ONCE_IN) == 0 && !self.reads_at_followers();
        let share = (self.transactions_least as f64 / f64::from(self.clients)).max(1.0);
        let tempo = (!self.production).then(|| Tempo::draw(&mut chance, Span::from_nanos(run)));
        // As on servers, whose clients are processes of applications.
        let visiting = self.visiting.unwrap_or(chance.below(2) == 0) && client_nodes > 0;
        let early_timers = chance.below(EARLY_ONCE_IN) == 0 && tempo.is_some();
        Simulated {
            nodes: self.nodes,
            masters: self.masters,
            repositories,
            replicas: self.replicas.unwrap_or(drawn.min(repositories)),
            partitions_per_repository: self.partitions_per_repository,
            tree: self.tree.clone().or_else(|| tree_nodes?.first(seed)),
            trees: tree_nodes.map(|it| it.others(seed)).unwrap_or_default(),
            validator_nodes: self.validator_nodes,
            batching: self.batching.unwrap_or_else(|| batches::draw(seed)),
            plan,
            transactions_least: self.transactions_least,
            pause_most: Span::from_nanos((run as f64 / (share * MARGIN)) as u64),
            logging: true,
            upkeep: Upkeep {
                group: self.group,
                tick: self.production.then_some(TICK_OF_SERVERS),
                caches: self.caches,
                parallel: self.parallel,
                checkpoint_every,
                strangers: self.strangers,
                ..Upkeep::default()
            },
            client_nodes,
            strict: self.strict.unwrap_or(strict) && offers_strict(&self.protocol),
            visiting,
            guest: tempo.is_some(),
            tempo,
            early_timers,
            history: true,
            ..Simulated::calm(&self.protocol, self.nodes, seed, Length::Time(Duration::ZERO))
        }
    }

    /// Whether readers take the nearest copy: they see the database as it once was.
    fn reads_at_followers(&self) -> bool {
        self.caches || self.parameters.iter().any(|given| given.starts_with("nearby="))
    }

    fn draw_plan(&self, seed: u64, nodes: usize, horizon: VirtualTime, scale: f64) -> Plan {
        let (short, any) = FAULTS_MOST;
        let faults = ((f64::from(short) * scale) as u32).min(any);
        let shape = PlanShape {
            nodes: nodes as u32,
            // The loader is one too.
            clients: self.clients + 1,
            horizon,
            kinds: match self.group {
                1 if !self.may_lose_disks() => self.faults.without(FaultKind::Loss),
                _ => self.faults.clone(),
            },
            trees: if check_tree(&self.protocol, true).is_ok() { trees::OTHERS } else { 0 },
            faults_max: if self.faults == FaultKinds::NONE { 0 } else { faults },
        };
        shape.draw(Seed::new(seed))
    }

    /// Whether one of the nodes may lose its disk though no group keeps its data.
    fn may_lose_disks(&self) -> bool {
        let sites = self.repositories.map_or(self.nodes, |it| it.min(self.nodes));
        exchanges_members(&self.protocol) && sites >= SITES_LEAST
    }
}
