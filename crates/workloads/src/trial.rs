//! One seed of a search for faults: a workload in a simulated world where things go wrong, judged
//! by every route there is.
//!
//! The seed decides the plan of faults, how long the run is, how densely transactions follow each
//! other, and, unless asked for, how many replicas keys have; so many seeds see many shapes. Each
//! seed runs twice: the workload, whose history is judged by version order, and the list
//! workload, whose history is judged by version order and by its lists, which trust no version
//! that the database gave.

use std::sync::Arc;
use std::time::Duration;

use muesli_check::{History, Level, Verdict};
use muesli_sim::fault::{FaultKind, FaultKinds};
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use serde_json::Map;
use thiserror::Error;

use crate::chance::Chance;
use crate::embedded::Length;
use crate::history::by_lists;
use crate::parameters::ParameterError;
use crate::registry::{self, Description};
use crate::simulated::{
    self, Simulated, SimulatedOutcome, SimulationError, Upkeep, is_promised, promise,
};
use crate::tally::Tallies;
use crate::workload::{AnyWorkload, Check};

/// What is tried with every seed.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The workload.
    pub workload: &'static Description,
    /// Its parameters.
    pub parameters: Vec<String>,
    /// The protocol, by name.
    pub protocol: String,
    /// How many nodes there are; each holds a repository.
    pub nodes: usize,
    /// How many nodes there are besides, which decide for the others.
    pub masters: usize,
    /// How many repositories hold each key; drawn from 1 to 3 where it is not given.
    pub replicas: Option<usize>,
    /// How many partitions there are for each repository.
    pub spread: usize,
    /// How many clients there are.
    pub clients: u32,
    /// At least so many transactions are run.
    pub transactions_least: u64,
    /// How many nodes keep each repository.
    pub group: u16,
    /// Whether nodes keep copies of repositories that live elsewhere.
    pub caches: bool,
    /// How many procedures that have nothing to do with each other are run together at most.
    pub together: usize,
    /// What may go wrong.
    pub faults: FaultKinds,
    /// What goes wrong instead of what the seed draws.
    pub plan: Option<Plan>,
}

/// What a seed gave.
#[derive(Debug)]
pub struct Trialled {
    /// What went wrong in the world.
    pub plan: Plan,
    /// How many repositories held each key.
    pub replicas: usize,
    /// Transactions that ended.
    pub transactions: u64,
    /// How many histories were judged.
    pub verdicts: u64,
    /// What does not hold; empty if all is well.
    pub problems: Vec<String>,
    /// The trace of the workload's run, if it was asked for.
    pub trace: Option<String>,
}

/// A trial that cannot be made.
#[derive(Debug, Error)]
pub enum TrialError {
    /// Parameters that the workload does not take.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A world that cannot be.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

/// The most faults in a drawn plan.
const FAULTS_MOST: u32 = 8;
/// Runs are this long, in virtual time, at least and at most.
const HORIZON: (Span, Span) = (Span::from_millis(100), Span::from_millis(1_000));
/// About so many transactions fit into a client's run.
const TRANSACTIONS_A_CLIENT: u64 = 60;

impl Trial {
    /// Tries one seed.
    ///
    /// # Errors
    /// The trial cannot be made. That something does not hold is no error.
    pub fn run(&self, seed: u64, trace: bool) -> Result<Trialled, TrialError> {
        let mut simulated = self.simulated(seed);
        simulated.trace = trace;
        let mut trialled = Trialled {
            plan: simulated.plan.clone(),
            replicas: simulated.replicas,
            transactions: 0,
            verdicts: 0,
            problems: Vec::new(),
            trace: None,
        };
        let workload = self.workload.build(&self.parameters, self.clients)?;
        let lists = if workload.is_one_round() { "append-procedures" } else { "append" };
        let lists = registry::find(lists).expect("it is listed");
        trialled.trace = self.one_run(self.workload, workload, &simulated, &mut trialled)?;
        if self.workload.name != lists.name {
            simulated.trace = false;
            let workload = lists.build(&[], self.clients)?;
            self.one_run(lists, workload, &simulated, &mut trialled)?;
        }
        Ok(trialled)
    }

    fn one_run(
        &self,
        description: &Description,
        workload: Arc<dyn AnyWorkload>,
        simulated: &Simulated,
        trialled: &mut Trialled,
    ) -> Result<Option<String>, TrialError> {
        let tallies = Arc::new(Tallies::new(self.clients));
        let outcome = simulated::run(&workload, simulated, &tallies)?;
        trialled.transactions += outcome.tally.ended();
        let counts = |check: &&Check| !check.ok && is_promised(&self.protocol, check.name);
        for check in outcome.checks.iter().filter(counts) {
            let problem = format!("{}: {}: {}", description.name, check.name, check.details);
            trialled.problems.push(problem);
        }
        for verdict in self.verdicts(&*workload, &outcome) {
            trialled.verdicts += 1;
            match verdict {
                Ok(verdict) if verdict.holds() => {}
                Ok(verdict) => {
                    trialled.problems.push(format!("{}: {verdict}", description.name));
                }
                Err(error) => trialled.problems.push(format!("{}: {error}", description.name)),
            }
        }
        Ok(outcome.run.trace_text)
    }

    /// By version order, and by lists where the workload has them.
    fn verdicts(
        &self,
        workload: &dyn AnyWorkload,
        outcome: &SimulatedOutcome,
    ) -> Vec<Result<Verdict, String>> {
        let versions = outcome.run.history(Map::new());
        let lists = workload.history().filter(|_| !self.promises_little());
        let lists = lists.map(|lists| by_lists(&lists, Map::new()));
        let judge = |history: Result<History, _>| {
            let history = history.map_err(|error| format!("no history: {error}"))?;
            let (level, options) = promise(&self.protocol).ok_or("no such protocol")?;
            Ok(muesli_check::check(&history, level, &options))
        };
        std::iter::once(versions).chain(lists).map(judge).collect()
    }

    /// Whether the protocol promises less than what workloads count on: then updates can be lost,
    /// totals change and lists lose elements, and only the version order tells right from wrong.
    fn promises_little(&self) -> bool {
        promise(&self.protocol).is_some_and(|(level, _)| level == Level::Rr)
    }

    fn simulated(&self, seed: u64) -> Simulated {
        let mut chance = Chance::new(seed, u32::MAX, 0);
        let replicas_most = self.nodes.min(3) as u64;
        let drawn = chance.between(1, replicas_most) as usize;
        let (shortest, longest) = (HORIZON.0.as_nanos(), HORIZON.1.as_nanos());
        let nanos = chance.between(shortest, longest);
        let horizon = VirtualTime::ZERO + Span::from_nanos(nanos / 1_000_000 * 1_000_000);
        let shape = PlanShape {
            nodes: (self.nodes + self.masters) as u32,
            // The loader is one too.
            clients: self.clients + 1,
            horizon,
            kinds: match self.group {
                1 => self.faults.without(FaultKind::Loss),
                _ => self.faults.clone(),
            },
            faults_max: if self.faults == FaultKinds::NONE { 0 } else { FAULTS_MOST },
        };
        let plan = self.plan.clone().unwrap_or_else(|| shape.draw(Seed::new(seed)));
        let run = plan.horizon().as_nanos();
        let part = chance.between(3, 40);
        let checkpoint_every = (part < 30).then(|| Span::from_nanos(run / part));
        Simulated {
            protocol: self.protocol.clone(),
            nodes: self.nodes,
            masters: self.masters,
            repositories: self.nodes,
            replicas: self.replicas.unwrap_or(drawn),
            spread: self.spread,
            seed,
            plan,
            length: Length::Time(Duration::ZERO),
            transactions_least: self.transactions_least,
            pause_most: Span::from_nanos(run / TRANSACTIONS_A_CLIENT),
            logging: true,
            upkeep: Upkeep {
                group: self.group,
                caches: self.caches,
                together: self.together,
                checkpoint_every,
                ..Upkeep::default()
            },
            history: true,
            trace: false,
        }
    }

    /// Cuts a plan with which `seed` fails down: leaves out every fault without which it still
    /// does.
    ///
    /// # Errors
    /// The trial cannot be made.
    pub fn shrink(&self, seed: u64, plan: &Plan) -> Result<Plan, TrialError> {
        let mut plan = plan.clone();
        let mut at = 0;
        while at < plan.faults().len() {
            let fewer = plan.without(at);
            let trial = Trial { plan: Some(fewer.clone()), ..self.clone() };
            if trial.run(seed, false)?.problems.is_empty() {
                at += 1;
            } else {
                plan = fewer;
            }
        }
        Ok(plan)
    }
}
