//! The points of a figure: simulated runs, as many at once as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use muesli_workloads::embedded::Length;
use muesli_workloads::registry;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome};
use muesli_workloads::tally::Tallies;

use super::figure::{Figure, Line, Setting};
use super::point::Point;

/// How a figure is run.
#[derive(Clone, Debug)]
pub struct Course {
    pub quick: bool,
    pub seed: u64,
    /// Instead of the figure's, where they have the same name.
    pub parameters: Vec<String>,
    pub clients_a_node: Option<u32>,
    /// Values of the axis; none: the figure's.
    pub xs: Vec<f64>,
    /// Instead of the protocols of the figure's lines, in their order.
    pub protocols: Vec<&'static str>,
    pub replicas: Option<usize>,
    /// Changes of the machine, as `name=value`.
    pub machine: Vec<String>,
}

impl Course {
    /// How the figure is run at `x`, for one of its lines.
    pub fn setting(&self, figure: &Figure, line: &Line, x: f64) -> Setting {
        let mut setting = Setting {
            protocol: line.protocol,
            machine: (figure.machine)(),
            nodes: figure.nodes,
            masters: 0,
            clients: None,
            parameters: figure.parameters.iter().map(|text| (*text).to_owned()).collect(),
        };
        (figure.axis.set)(x, &mut setting);
        (line.set)(&mut setting);
        let number = figure.lines.iter().position(|other| other.name == line.name);
        if let Some(protocol) = number.and_then(|number| self.protocols.get(number)) {
            setting.protocol = protocol;
        }
        for given in &self.parameters {
            let name = given.split('=').next().unwrap_or_default();
            setting.parameters.retain(|other| other.split('=').next() != Some(name));
            setting.parameters.push(given.clone());
        }
        let (nodes, clients) = (setting.nodes.to_string(), self.clients(figure, &setting));
        for text in &mut setting.parameters {
            *text = text.replace("{nodes}", &nodes).replace("{clients}", &clients.to_string());
        }
        setting
    }

    /// How many clients there are.
    fn clients(&self, figure: &Figure, setting: &Setting) -> u32 {
        let a_node = self.clients_a_node.unwrap_or(figure.clients_a_node);
        setting.clients.unwrap_or(a_node * setting.nodes as u32)
    }
}

/// Runs all points of a figure, in order of the axis and of its lines.
///
/// # Errors
/// A run cannot be made.
pub fn run(figure: &Figure, course: &Course) -> anyhow::Result<Vec<Point>> {
    let xs = match (&course.xs[..], course.quick) {
        ([], true) => figure.quick_xs,
        ([], false) => figure.xs,
        (xs, _) => xs,
    };
    let (least, most) = figure.axis.range;
    if let Some(x) = xs.iter().find(|x| !(least..=most).contains(x)) {
        bail!("{}: {x} {} cannot be; allowed are {least} to {most}", figure.name, figure.axis.name);
    }
    // The largest first, so that all cores end at about the same time.
    let all: Vec<(f64, &Line)> =
        xs.iter().rev().flat_map(|x| figure.lines.iter().map(|line| (*x, line))).collect();
    let style = ProgressStyle::with_template("{prefix} {bar:40} {pos}/{len} runs  {elapsed}");
    let bar = ProgressBar::new(all.len() as u64)
        .with_style(style.expect("the template is one"))
        .with_prefix(figure.name);
    let (next, points) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((x, line)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let point = run_one(figure, *x, line, course);
            points.lock().unwrap_or_else(PoisonError::into_inner).push(point);
            bar.inc(1);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores.min(all.len())).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let points = points.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut points: Vec<Point> = points.into_iter().collect::<Result<_, _>>()?;
    let place = |name: &str| figure.lines.iter().position(|line| line.name == name);
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(place(a.line).cmp(&place(b.line))));
    Ok(points)
}

fn run_one(figure: &Figure, x: f64, line: &Line, course: &Course) -> anyhow::Result<Point> {
    let mut setting = course.setting(figure, line, x);
    course.machine.iter().try_for_each(|change| setting.machine.change(change))?;
    let Setting { protocol, ref machine, nodes, .. } = setting;
    let clients = course.clients(figure, &setting);
    let workload = registry::find(figure.workload)?.build(&setting.parameters, clients)?;
    let seconds = if course.quick { figure.seconds.1 } else { figure.seconds.0 };
    let length = Length::Time(Duration::from_secs_f64(seconds));
    let calm = Simulated::calm(protocol, nodes, course.seed, length);
    let (masters, replicas) = (setting.masters, course.replicas.unwrap_or(figure.replicas));
    let replicas = replicas.min(nodes);
    let plan = Simulated { masters, replicas, ..calm };
    let tallies = Arc::new(Tallies::new(clients));
    let outcome = simulated::run_on(machine, &workload, &plan, &tallies)
        .with_context(|| format!("{} at {x} under {protocol}", figure.name))?;
    Ok(point(figure, &setting, (line.name, x, clients), &outcome))
}

/// What came of a run.
fn point(
    figure: &Figure,
    setting: &Setting,
    (line, x, clients): (&'static str, f64, u32),
    outcome: &SimulatedOutcome,
) -> Point {
    let (tally, length) = &outcome.in_time;
    let (length, modes) = (length.as_secs_f64(), &outcome.run.modes);
    let updates = tally.committed as f64 * figure.updates;
    let aborted = tally.aborted as f64;
    let at = |quantile| tally.latency.value_at_quantile(quantile) as f64 / 1e6;
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    // Neither promises what workloads count on.
    let judged = !["repeatable-read", "repeatable-read-at-commit", "granola-unordered"]
        .contains(&setting.protocol);
    let broken = outcome.checks.iter().filter(|check| judged && !check.ok);
    Point {
        line,
        x,
        nodes: setting.nodes,
        clients,
        throughput: tally.committed as f64 / length,
        several_a_second: tally.several.committed as f64 / length,
        several_ms: tally.several.mean().map_or(0.0, |mean| mean.0 as f64 / 1e6),
        aborts: if aborted > 0.0 { aborted / (aborted + updates) } else { 0.0 },
        mean_ms: tally.latency.mean() / 1e6,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        messages_a_commit: share(outcome.messages, outcome.tally.committed),
        locked: share(modes.locked, modes.transactions),
        transition_ms: share(modes.waiting.0, modes.transitions) / 1e6,
        broken: broken.map(|check| format!("{}: {}", check.name, check.details)).collect(),
    }
}
