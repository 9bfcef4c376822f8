//! The points of a figure: simulated runs, as many at once as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use muesli_sim::plan::Plan;
use muesli_sim::time::{Span, VirtualTime};
use muesli_workloads::embedded::Length;
use muesli_workloads::registry;
use muesli_workloads::simulated::{self, Simulated, Upkeep};
use muesli_workloads::tally::Tallies;

use super::figures::Figure;

/// Keys have so many replicas in both papers.
const REPLICAS: usize = 2;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub protocol: &'static str,
    pub nodes: usize,
    pub clients: u32,
    /// Committed transactions a second.
    pub throughput: f64,
    /// Share of the attempts of updates that aborted, from 0 to 1.
    pub aborts: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub messages_a_commit: f64,
    /// Checks of the workload that do not hold. Those of a protocol that promises less than
    /// serializability are left out.
    pub broken: Vec<String>,
}

/// How a figure is run.
#[derive(Clone, Debug)]
pub struct Course {
    pub quick: bool,
    pub seed: u64,
    /// Instead of the figure's, where they have the same name.
    pub parameters: Vec<String>,
    pub clients_a_node: Option<u32>,
    /// None: the figure's.
    pub nodes: Vec<usize>,
}

impl Course {
    /// The figure's parameters, with those that are given differently.
    fn parameters_of(&self, figure: &Figure, nodes: usize) -> Vec<String> {
        let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
        let given = |text: &&&str| !self.parameters.iter().any(|other| name(other) == name(text));
        let fill = |text: &&str| text.replace("{nodes}", &nodes.to_string());
        let kept = figure.parameters.iter().filter(given).map(fill);
        kept.chain(self.parameters.iter().cloned()).collect()
    }
}

/// Runs all points of a figure, in order of nodes and protocols.
///
/// # Errors
/// A run cannot be made.
pub fn run(figure: &Figure, course: &Course) -> anyhow::Result<Vec<Point>> {
    let nodes = match (&course.nodes[..], course.quick) {
        ([], true) => figure.quick_nodes,
        ([], false) => figure.nodes,
        (nodes, _) => nodes,
    };
    // The longest first, so that all cores end at about the same time.
    let all: Vec<(usize, &'static str)> = nodes
        .iter()
        .rev()
        .flat_map(|nodes| figure.protocols.iter().map(|protocol| (*nodes, *protocol)))
        .collect();
    let style = ProgressStyle::with_template("{prefix} {bar:40} {pos}/{len} runs  {elapsed}");
    let bar = ProgressBar::new(all.len() as u64)
        .with_style(style.expect("the template is one"))
        .with_prefix(figure.name);
    let (next, points) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((nodes, protocol)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let point = run_one(figure, *nodes, protocol, course);
            points.lock().unwrap_or_else(PoisonError::into_inner).push(point);
            bar.inc(1);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores.min(all.len())).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let points = points.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut points: Vec<Point> = points.into_iter().collect::<Result<_, _>>()?;
    let place = |name: &str| figure.protocols.iter().position(|known| *known == name);
    points.sort_by_key(|point| (point.nodes, place(point.protocol)));
    Ok(points)
}

fn run_one(
    figure: &Figure,
    nodes: usize,
    protocol: &'static str,
    course: &Course,
) -> anyhow::Result<Point> {
    let clients = course.clients_a_node.unwrap_or(figure.clients_a_node) * nodes as u32;
    let parameters = course.parameters_of(figure, nodes);
    let workload = registry::find(figure.workload)?.build(&parameters, clients)?;
    let seconds = if course.quick { figure.seconds.1 } else { figure.seconds.0 };
    let plan = Simulated {
        protocol: protocol.to_owned(),
        nodes,
        repositories: nodes,
        replicas: REPLICAS.min(nodes),
        seed: course.seed,
        plan: Plan::calm(VirtualTime::ZERO),
        length: Length::Time(Duration::from_secs_f64(seconds)),
        transactions_least: 0,
        pause_most: Span::ZERO,
        logging: false,
        upkeep: Upkeep::default(),
        history: false,
        trace: false,
    };
    let tallies = Arc::new(Tallies::new(clients));
    let outcome = simulated::run_on(&(figure.machine)(), &workload, &plan, &tallies)
        .with_context(|| format!("{} on {nodes} nodes under {protocol}", figure.name))?;
    let (tally, length) = &outcome.in_time;
    let updates = tally.committed as f64 * figure.updates;
    let aborted = tally.aborted as f64;
    let at = |quantile| tally.latency.value_at_quantile(quantile) as f64 / 1e6;
    let judged = protocol != "rr";
    let broken = outcome.checks.iter().filter(|check| judged && !check.ok);
    Ok(Point {
        protocol,
        nodes,
        clients,
        throughput: tally.committed as f64 / length.as_secs_f64(),
        aborts: if aborted > 0.0 { aborted / (aborted + updates) } else { 0.0 },
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        messages_a_commit: outcome.messages as f64 / outcome.tally.committed.max(1) as f64,
        broken: broken.map(|check| format!("{}: {}", check.name, check.details)).collect(),
    })
}
