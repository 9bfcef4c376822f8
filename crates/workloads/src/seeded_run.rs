//! One seed of a search for faults: a workload in a simulated world where things go wrong, judged
//! by every route there is.
//!
//! The seed decides the plan of faults, how long the run is, how densely transactions follow each
//! other, and, unless asked for, how many replicas keys have; so many seeds see many shapes. Each
//! seed runs twice: the workload, whose history is judged by version order, and the list
//! workload, whose history is judged by version order and by its lists, which trust no version
//! that the database gave.
//!
//! The run of the list workload, whose transactions are small whatever was asked for, is also
//! judged by the longest record, piece of a checkpoint and message in it: what is longer than
//! [`MOST_BYTES`] there grows with the data, and would be over the limits of production one day.

mod drawn;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;

use muesli_check::{HandlerStats, History, Level, Options, RootStats, Verdict};
use muesli_core::Batching;
use muesli_core::catalog::TreePlan;
use muesli_core::checkpoint::HEAD_PIECE_BYTES;
use muesli_registry::check_tree;
use muesli_sim::plan::Plan;
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::time::Span;
use muesli_sim::world::{Background, Longest, Routes, StrangerCount, Strangers};
use serde_json::{Map, Value as Json};
use thiserror::Error;

use crate::available::{self, Description};
use crate::check::Check;
use crate::history::by_lists;
use crate::marks;
use crate::parameters::ParameterError;
use crate::simulated::{
    self, Simulated, SimulatedOutcome, SimulationError, guarantee, guarantee_of,
    guarantee_of_attempts, is_guaranteed,
};
use crate::tally::Tallies;
use crate::trees::NodesForTree;
use crate::workload::AnyWorkload;

/// What is tried with every seed.
#[derive(Clone, Debug)]
pub struct SeededRun {
    /// The workload.
    pub workload: &'static Description,
    /// Its parameters.
    pub parameters: Vec<String>,
    /// The protocol, by name.
    pub protocol: String,
    /// How many nodes there are that hold repositories.
    pub nodes: usize,
    /// How many repositories there are, each kept by one group; drawn, up to three for each node,
    /// where it is not given, but with groups there are as many as nodes then.
    pub repositories: Option<usize>,
    /// How many nodes there are besides on which the clients run; drawn where it is not given, and
    /// often none.
    pub client_nodes: Option<usize>,
    /// Whether these are clients that come and go, which servers do not know before; drawn where it
    /// is not given.
    pub visiting: Option<bool>,
    /// How many nodes there are besides, which decide for the others.
    pub masters: usize,
    /// How many repositories hold each key; drawn from 1 to 3 where it is not given.
    pub replicas: Option<usize>,
    /// How many partitions there are for each repository.
    pub partitions_per_repository: usize,
    /// The tree above the nodes, under protocols that validate by one; drawn where it is not given.
    pub tree: Option<TreePlan>,
    /// How many nodes there are besides, without data, on which the tree's validators live.
    pub validator_nodes: usize,
    /// How many messages leave together over a link, and how long they wait for each other; drawn
    /// where it is not given: none wait in most seeds.
    pub batching: Option<Batching>,
    /// How many clients there are.
    pub clients: u32,
    /// At least so many transactions are run.
    pub transactions_least: u64,
    /// How many nodes keep each repository.
    pub group: u16,
    /// Whether nodes keep copies of repositories that live elsewhere.
    pub caches: bool,
    /// How many procedures that have nothing to do with each other are run together at most.
    pub parallel: usize,
    /// Whether all transactions are strict; drawn where it is not given.
    pub strict: Option<bool>,
    /// Whether nodes do what they do once in a while as often as in production, in all seeds; else
    /// in some, and in others far more often.
    pub production: bool,
    /// How long things go wrong at least, in virtual time.
    pub least: Span,
    /// Where the histories that are judged are written to, each to a file of its own.
    pub histories: Option<PathBuf>,
    /// What may go wrong.
    pub faults: FaultKinds,
    /// What goes wrong instead of what the seed draws.
    pub plan: Option<Plan>,
    /// Whether there are strangers, who say what no honest process says. Where they pass for
    /// members, nodes have to live, and nothing else is judged.
    pub strangers: Option<Strangers>,
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
    /// How many roots were judged by what their operations answered.
    pub roots: RootStats,
    /// What was run for roots after their ends.
    pub handlers: HandlerStats,
    /// What does not hold; empty if all is well.
    pub problems: Vec<String>,
    /// The trace of the workload's run, if it was asked for.
    pub trace: Option<String>,
    /// What became of strangers' messages, by kind.
    pub strangers: BTreeMap<&'static str, StrangerCount>,
    /// Records of groups' logs that members left out, since liars had written them.
    pub left_out: u64,
    /// The longest of what was said and kept.
    pub longest: Longest,
    /// Which kinds of messages left, between which roles.
    pub routes: Routes,
    /// What was done beside transactions, in each run.
    pub background: Vec<Background>,
}

/// A trial that cannot be made.
#[derive(Debug, Error)]
pub enum SeededRunError {
    /// Parameters that the workload does not take.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A world that cannot be.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A history could not be written.
    #[error("cannot write the history to {}: {error}", path.display())]
    History {
        /// Where to.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// The limit of records, pieces of checkpoints and messages in runs of the list workload where
/// everything is done as often as it can be: what is of one moment in a checkpoint is cut at
/// [`HEAD_PIECE_BYTES`], and nothing else is as long.
pub const MOST_BYTES: u64 = HEAD_PIECE_BYTES as u64 + (8 << 10);
/// The share of transactions that use marks, where the workload has any, and of changes of these
/// that look at nothing first.
const MARKS: [&str; 2] = ["marks=30", "blind-marks=30"];
impl SeededRun {
    /// A workload under SCORe on four nodes, with everything drawn and any fault that can be.
    pub fn of(workload: &'static Description) -> SeededRun {
        SeededRun {
            workload,
            parameters: workload.small_parameters(),
            protocol: "score".to_owned(),
            nodes: 4,
            repositories: None,
            client_nodes: None,
            visiting: None,
            masters: 0,
            replicas: None,
            partitions_per_repository: 1,
            tree: None,
            validator_nodes: 0,
            batching: None,
            clients: 8,
            transactions_least: 300,
            group: 1,
            caches: false,
            parallel: 1,
            strict: None,
            production: false,
            least: Span::ZERO,
            histories: None,
            faults: FaultKinds::all(),
            plan: None,
            strangers: None,
        }
    }

    /// Tries one seed.
    ///
    /// # Errors
    /// The trial cannot be made. That something does not hold is no error.
    pub fn run(&self, seed: u64, trace: bool) -> Result<Trialled, SeededRunError> {
        let mut simulated = self.simulated(seed);
        simulated.trace = trace;
        let mut trialled = Trialled {
            plan: simulated.plan.clone(),
            replicas: simulated.replicas,
            transactions: 0,
            verdicts: 0,
            roots: RootStats::default(),
            handlers: HandlerStats::default(),
            problems: Vec::new(),
            trace: None,
            strangers: BTreeMap::new(),
            left_out: 0,
            longest: Longest::default(),
            routes: Routes::default(),
            background: Vec::new(),
        };
        let marks = MARKS.map(str::to_owned);
        let takes = self.workload.takes(marks::PARAMETER.name);
        let own = self.parameters.iter().cloned();
        let parameters: Vec<_> = marks.iter().filter(|_| takes).cloned().chain(own).collect();
        let workload = self.workload.build(&parameters, self.clients)?;
        let lists = if workload.is_one_round() { "append-procedures" } else { "append" };
        let lists = available::find(lists).expect("it is listed");
        trialled.trace = self.one_run(self.workload, workload, &simulated, &mut trialled)?;
        if self.workload.name != lists.name {
            // The trace is of the run in which the first problem was found.
            simulated.trace = trace && trialled.problems.is_empty();
            let workload = lists.build(&marks, self.clients)?;
            let text = self.one_run(lists, workload, &simulated, &mut trialled)?;
            if !trialled.problems.is_empty() {
                trialled.trace = text.or(trialled.trace);
            }
        }
        Ok(trialled)
    }

    fn one_run(
        &self,
        description: &Description,
        workload: Arc<dyn AnyWorkload>,
        simulated: &Simulated,
        trialled: &mut Trialled,
    ) -> Result<Option<String>, SeededRunError> {
        let tallies = Arc::new(Tallies::new(self.clients));
        if let Some(roots) = workload.roots() {
            roots.recorder().switch_on();
        }
        let outcome = simulated::run(&workload, simulated, &tallies)?;
        let is_small = description.name != self.workload.name && simulated.tempo.is_some();
        let longest = &outcome.run.longest;
        if let Some(text) = longest.over(MOST_BYTES).filter(|_| is_small) {
            trialled.problems.push(format!("{}: {text}", description.name));
        }
        trialled.longest = trialled.longest.or(*longest);
        trialled.routes.join(&outcome.run.routes);
        trialled.background.push(outcome.run.background);
        trialled.transactions += outcome.tally.ended();
        for (name, counted) in &outcome.run.strangers {
            *trialled.strangers.entry(name).or_default() += *counted;
        }
        trialled.left_out += outcome.run.records_left_out();
        if self.strangers.is_some_and(|how| how.as_members) {
            return Ok(outcome.run.trace_text);
        }
        if outcome.run.records_left_out() > 0 {
            let problem = "members left out records of their group's log, which contradict it";
            trialled.problems.push(format!("{}: {problem}", description.name));
        }
        let counts = |check: &&Check| !check.ok && is_guaranteed(&self.protocol, check.name);
        for check in outcome.checks.iter().filter(counts) {
            let problem = format!("{}: {}: {}", description.name, check.name, check.details);
            trialled.problems.push(problem);
        }
        for verdict in self.verdicts(description, &*workload, simulated, &outcome)? {
            trialled.verdicts += 1;
            match verdict {
                Ok(verdict) if !verdict.is_broken() => {
                    trialled.roots.add(&verdict.stats.roots);
                    trialled.handlers.add(&verdict.stats.handlers);
                }
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
        description: &Description,
        workload: &dyn AnyWorkload,
        simulated: &Simulated,
        outcome: &SimulatedOutcome,
    ) -> Result<Vec<Result<Verdict, String>>, SeededRunError> {
        let meta = || self.meta(description, simulated);
        let versions = outcome.run.history(meta()).and_then(|mut history| {
            workload.roots().map_or(Ok(()), |roots| roots.add_roots(&mut history))?;
            Ok(history)
        });
        let lists = workload.history().filter(|_| !self.guarantees_little());
        let lists = lists.map(|lists| ("-lists", by_lists(&lists, meta())));
        let mut verdicts = Vec::new();
        for (kind, history) in std::iter::once(("", versions)).chain(lists) {
            let verdict = match history {
                Err(error) => Err(format!("no history: {error}")),
                Ok(history) => {
                    self.write(&history, description, simulated.seed, kind)?;
                    let judge = |(level, options)| muesli_check::check(&history, level, &options);
                    let attempts =
                        guarantee_of_attempts(&self.protocol).filter(|_| kind.is_empty());
                    let attempts = attempts.map(|level| (level, Options::default()));
                    let wrong = attempts.map(judge).filter(|verdict| !verdict.holds());
                    let guarantee = guarantee_of(&self.protocol, simulated.strict);
                    let guarantee = guarantee.ok_or_else(|| "no such protocol".to_owned());
                    wrong.map_or_else(|| guarantee.map(judge), Ok)
                }
            };
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    fn meta(&self, description: &Description, simulated: &Simulated) -> Map<String, Json> {
        let fields = [
            ("workload", Json::from(description.name)),
            ("protocol", Json::from(self.protocol.as_str())),
            ("driver", Json::from("sim")),
            ("seed", Json::from(simulated.seed)),
            ("strict", Json::from(simulated.strict)),
            ("plan", Json::from(simulated.plan.to_string())),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn write(
        &self,
        history: &History,
        description: &Description,
        seed: u64,
        kind: &str,
    ) -> Result<(), SeededRunError> {
        let Some(folder) = &self.histories else { return Ok(()) };
        let path = folder.join(format!("seed-{seed}-{}{kind}.jsonl", description.name));
        let written = File::create(&path).and_then(|file| history.write(BufWriter::new(file)));
        written.map_err(|error| SeededRunError::History { path, error })
    }

    /// The nodes for a tree above so many repositories, if the protocol validates by one.
    fn tree_nodes(&self, repositories: usize) -> Option<NodesForTree> {
        let leaves = self.nodes.min(repositories);
        let for_validators = if self.validator_nodes > 0 { self.validator_nodes } else { leaves };
        let nodes = NodesForTree { leaves, for_validators };
        check_tree(&self.protocol, true).is_ok().then_some(nodes)
    }

    /// Whether the protocol promises less than what workloads count on: then updates can be lost,
    /// totals change and lists lose elements, and only the version order tells right from wrong.
    fn guarantees_little(&self) -> bool {
        guarantee(&self.protocol).is_some_and(|(level, _)| level == Level::Rr)
    }

    /// Cuts a plan with which `seed` fails down: leaves out every fault without which it still
    /// does.
    ///
    /// # Errors
    /// The trial cannot be made.
    pub fn shrink(&self, seed: u64, plan: &Plan) -> Result<Plan, SeededRunError> {
        let mut plan = plan.clone();
        let mut at = 0;
        while at < plan.faults().len() {
            let fewer = plan.without(at);
            let seeded_run =
                SeededRun { plan: Some(fewer.clone()), histories: None, ..self.clone() };
            if seeded_run.run(seed, false)?.problems.is_empty() {
                at += 1;
            } else {
                plan = fewer;
            }
        }
        Ok(plan)
    }
}
