//! The points of a figure: simulated runs, as many at once as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use muesli::open_nesting::NestingTimes;
use muesli_sim::hardware::costs::Costs;
use muesli_sim::hardware::processor::ProcessorLoad;
use muesli_sim::time::Span;
use muesli_sim::world::NodeTraffic;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{self, Simulated, SimulatedOutcome};
use muesli_workloads::tally::Tallies;

use super::alone::commands::CommandClients;
use super::alone::placement::FigureTraces;
use super::alone::{commands as commands_alone, placement as placement_alone};
use super::figure::{Figure, PlottedLine, Setting};
use super::point::{ATTEMPT_PARTS, AttemptPart, Point};
use crate::bench::commands;

/// The kinds of messages that a commit consists of. Acknowledgements follow later, in bundles.
const COMMIT_KINDS: &[&str] =
    &["Prepare", "Vote", "MergedVote", "MergedDecision", "Decide", "Ended"];

/// How a figure is run.
#[derive(Clone, Debug)]
pub struct Course {
    pub quick: bool,
    /// The first seed, and how many there are.
    pub seed: u64,
    pub seeds: u64,
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
    fn seeds(&self) -> impl Iterator<Item = u64> + Clone + use<> {
        (0..self.seeds).zip(self.seed..).map(|(_, seed)| seed)
    }

    /// The values of the figure's axis.
    fn xs<'a>(&'a self, figure: &Figure) -> &'a [f64] {
        match (&self.xs[..], self.quick) {
            ([], true) => figure.quick_xs,
            ([], false) => figure.xs,
            (xs, _) => xs,
        }
    }

    /// How long clients run at each point, in virtual seconds.
    fn seconds(&self, figure: &Figure) -> f64 {
        if self.quick { figure.seconds.1 } else { figure.seconds.0 }
    }

    /// How long they run before that without being measured.
    fn warm_up(&self, figure: &Figure) -> f64 {
        if self.quick { figure.warm_up.1 } else { figure.warm_up.0 }
    }

    /// What is run, and how quick and full runs differ.
    pub fn described(&self, figure: &Figure) -> String {
        let of = |quick: bool, given: &Course| {
            let course = Course { quick, ..given.clone() };
            let xs: Vec<_> = course.xs(figure).iter().map(f64::to_string).collect();
            let of = course.xs(figure).iter().map(|x| course.seconds(figure.at(*x).0));
            let mut seconds: Vec<_> = of.map(|seconds| seconds.to_string()).collect();
            seconds.sort();
            seconds.dedup();
            let warm_up = match course.warm_up(figure) {
                0.0 => String::new(),
                seconds => format!(" after {seconds} s"),
            };
            let nodes = match figure.quick_nodes {
                0 => String::new(),
                fewer if quick => format!(" on {fewer} nodes"),
                _ => format!(" on {} nodes", figure.nodes),
            };
            let (axis, xs) = (figure.axis.name, xs.join(" "));
            if figure.shows.is_of_placement() {
                return format!("{axis} {xs}, {}", placement_alone::described(figure, quick));
            }
            format!("{axis} {xs}{nodes}, {} s each{warm_up}", seconds.join(" or "))
        };
        let (this, other) = if self.quick { ("quick", "full") } else { ("full", "quick") };
        let usual = Course { xs: Vec::new(), ..self.clone() };
        let (first, last) = (self.seed, self.seed + self.seeds.max(1) - 1);
        let seeds = match last - first {
            0 => format!("seed {first}"),
            _ => format!("seeds {first} to {last}"),
        };
        format!(
            "{this}: {}, {seeds}; {other} runs: {}",
            of(self.quick, self),
            of(!self.quick, &usual)
        )
    }

    /// How the figure is run at `x`, for one of its lines.
    pub fn setting(&self, figure: &Figure, line: &PlottedLine, x: f64) -> Setting {
        let (of, at) = figure.at(x);
        let nodes = if self.quick && of.quick_nodes > 0 { of.quick_nodes } else { of.nodes };
        let mut setting = Setting::of(&Figure { nodes, ..*of }, line.protocol, at);
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
        let (nodes, clients) = (setting.nodes.to_string(), self.clients(of, &setting));
        for text in &mut setting.parameters {
            *text = text.replace("{nodes}", &nodes).replace("{clients}", &clients.to_string());
        }
        setting
    }

    /// Clients of a figure about commands alone.
    pub fn commands(&self, figure: &Figure, seed: u64) -> CommandClients {
        CommandClients {
            clients: self.clients_a_node.unwrap_or(figure.clients_a_node),
            warm_up: self.warm_up(figure),
            seconds: self.seconds(figure),
            seed,
        }
    }

    /// How many clients there are.
    fn clients(&self, figure: &Figure, setting: &Setting) -> u32 {
        let a_node = self.clients_a_node.unwrap_or(figure.clients_a_node);
        setting.clients.unwrap_or(a_node * setting.nodes as u32)
    }
}

/// Runs all points of a figure with each seed: for each seed its points, in order of the axis and
/// of the figure's lines.
///
/// # Errors
/// A run cannot be made.
pub fn run(figure: &Figure, course: &Course) -> anyhow::Result<Vec<Vec<Point>>> {
    let xs = course.xs(figure);
    let (least, most) = figure.axis.range;
    if let Some(x) = xs.iter().find(|x| !(least..=most).contains(x)) {
        bail!("{}: {x} {} cannot be; allowed are {least} to {most}", figure.name, figure.axis.name);
    }
    // The largest first, so that all cores end at about the same time.
    let places = || xs.iter().rev().flat_map(|x| figure.lines.iter().map(|line| (*x, line)));
    let all: Vec<(f64, &PlottedLine, u64)> =
        places().flat_map(|(x, line)| course.seeds().map(move |seed| (x, line, seed))).collect();
    let style = ProgressStyle::with_template("{prefix} {bar:40} {pos}/{len} runs  {elapsed}");
    let bar = ProgressBar::new(all.len() as u64)
        .with_style(style.expect("the template is one"))
        .with_prefix(figure.name);
    let (next, points) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let traces = FigureTraces::default();
    let work = || {
        while let Some((x, line, seed)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let point = run_one((figure, &traces), *x, line, *seed, course);
            let point = point.map(|point| (*seed, point));
            points.lock().unwrap_or_else(PoisonError::into_inner).push(point);
            bar.inc(1);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores.min(all.len())).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let points = points.into_inner().unwrap_or_else(PoisonError::into_inner);
    let points: Vec<(u64, Point)> = points.into_iter().collect::<Result<_, _>>()?;
    let place = |name: &str| figure.lines.iter().position(|line| line.name == name);
    let of = |wanted: u64| {
        let of = points.iter().filter(|(seed, _)| *seed == wanted);
        let mut of: Vec<Point> = of.map(|(_, point)| point.clone()).collect();
        of.sort_by(|a, b| a.x.total_cmp(&b.x).then(place(a.line).cmp(&place(b.line))));
        set_beside_first(&mut of);
        of
    };
    Ok(course.seeds().map(of).collect())
}

/// Notes what each point has over that of the first line at the same place, which comes before it.
fn set_beside_first(points: &mut [Point]) {
    let (mut x, mut first, mut first_ms) = (f64::NAN, f64::NAN, f64::NAN);
    for point in points {
        if point.x != x {
            (x, first, first_ms) = (point.x, point.throughput, point.first_ms);
        }
        point.over_first = over(point.throughput, first);
        point.first_over_first = over(point.first_ms, first_ms);
    }
}

/// One number over another one; 0 where nothing was measured that it could be set beside.
fn over(number: f64, first: f64) -> f64 {
    if first > 0.0 { number / first } else { 0.0 }
}

fn run_one(
    (figure, traces): (&Figure, &FigureTraces),
    x: f64,
    line: &PlottedLine,
    seed: u64,
    course: &Course,
) -> anyhow::Result<Point> {
    let mut setting = course.setting(figure, line, x);
    course.machine.iter().try_for_each(|change| setting.machine.change(change))?;
    let Setting { protocol, ref machine, nodes, .. } = setting;
    let (of, _) = figure.at(x);
    if of.workload == commands::NAME {
        let run = commands_alone::run(&setting, course.commands(of, seed), (line.name, x));
        return run.with_context(|| figure.name);
    }
    if of.shows.is_of_placement() {
        let how = (course.quick, seed);
        return placement_alone::run(of, (&setting, traces), how, (line.name, x));
    }
    let clients = course.clients(of, &setting);
    let workload = available::find(of.workload)?.build(&setting.parameters, clients)?;
    let seconds = course.seconds(of);
    let length = Length::Time(Duration::from_secs_f64(seconds));
    let calm = Simulated::calm(protocol, nodes, seed, length);
    let (masters, replicas) = (setting.masters, course.replicas.unwrap_or(of.replicas));
    let replicas = replicas.min(nodes);
    let tree = setting.tree.clone();
    let (validator_nodes, batching) = (setting.validator_nodes, setting.batching);
    let warm_up = Duration::from_secs_f64(course.warm_up(of));
    let plan = Simulated { masters, replicas, tree, validator_nodes, batching, warm_up, ..calm };
    let tallies = Arc::new(Tallies::new(clients));
    let outcome = simulated::run_on(machine, &workload, &plan, &tallies)
        .with_context(|| format!("{} at {x} under {protocol}", figure.name))?;
    let mut point = point(of, &setting, (line.name, x, clients), &outcome);
    if let Some(counts) = workload.open_children() {
        point.committed_parts = parts(&counts.committed);
        point.aborted_parts = parts(&counts.aborted);
    }
    Ok(point)
}

/// How long an attempt was in each of its parts, in milliseconds.
fn parts(times: &NestingTimes) -> [f64; ATTEMPT_PARTS] {
    let of = |part| match part {
        AttemptPart::Bodies => times.bodies,
        AttemptPart::Commits => times.commits,
        AttemptPart::Lost => times.lost,
        AttemptPart::Ending => times.ending,
        AttemptPart::Own => times.own(),
    };
    let all = [
        AttemptPart::Bodies,
        AttemptPart::Commits,
        AttemptPart::Lost,
        AttemptPart::Ending,
        AttemptPart::Own,
    ];
    all.map(|part| of(part).as_secs_f64() * 1e3 / times.attempts.max(1) as f64)
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
    let commit_messages = commit_messages(&outcome.traffic);
    // All others leave one at a time: a client reads one object after the other.
    let others = outcome.traffic.messages - commit_messages;
    let commit_packets = outcome.traffic.packets.saturating_sub(others);
    let (between, racks) = (outcome.between_racks, setting.machine.racks.nodes);
    let uplinks =
        setting.nodes.checked_div(racks).unwrap_or(0) as f64 * outcome.length.as_secs_f64();
    let load = &outcome.load_with_data;
    let votes = outcome.traffic.kinds.get("Prepare").copied().unwrap_or(0);
    let costs = &setting.machine.costs;
    let validating = costs.validate.times(load.validated);
    let processing = validating + processing_but_validation(costs, load);
    let other_ms = 1e3 * length * setting.nodes as f64 - processing.as_nanos() as f64 / 1e6;
    let broken = outcome.checks.iter().filter(|check| judged && !check.ok);
    Point {
        line,
        x,
        nodes: setting.nodes,
        machines: setting.nodes + setting.masters + setting.validator_nodes,
        clients,
        throughput: tally.committed as f64 / length,
        several_a_second: tally.several.committed as f64 / length,
        several_ms: tally.several.mean().map_or(0.0, |mean| mean.0 as f64 / 1e6),
        aborts: if aborted > 0.0 { aborted / (aborted + updates) } else { 0.0 },
        mean_ms: tally.latency.mean() / 1e6,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        messages_a_commit: share(outcome.messages, outcome.tally.committed),
        commit_messages: share(commit_messages, outcome.tally.committed),
        commit_packets: share(commit_packets, outcome.tally.committed),
        validation_ms: share(validating.as_nanos(), votes) / 1e6,
        between_ms: other_ms / load.received.max(1) as f64,
        locked: share(modes.locked, modes.transactions),
        transition_ms: share(modes.waiting.0, modes.transitions) / 1e6,
        rack_messages: share(between.messages, outcome.tally.committed),
        rack_packets: share(between.packets, outcome.tally.committed),
        rack_bytes: share(between.bytes, outcome.tally.committed),
        links_occupied: between.occupied.as_nanos() as f64 / 1e9 / uplinks.max(f64::MIN_POSITIVE),
        busy: load.cost(costs).as_nanos() as f64 / 1e9 / (length * setting.nodes as f64),
        over_first: 1.0,
        first_ms: tally.first.mean().map_or(0.0, |mean| mean.0 as f64 / 1e6),
        first_over_first: 1.0,
        aborts_a_commit: aborted / (tally.committed as f64).max(1.0),
        committed_parts: [0.0; ATTEMPT_PARTS],
        aborted_parts: [0.0; ATTEMPT_PARTS],
        distributed: 0.0,
        misrouted: 0.0,
        crossing: 0.0,
        placed_load: 0.0,
        trace_length: 0.0,
        predicted: figure.theory.map_or(0.0, |theory| theory(setting)),
        broken: broken.map(|check| format!("{}: {}", check.name, check.details)).collect(),
    }
}

/// What processors were occupied with data, but for validating.
fn processing_but_validation(costs: &Costs, load: &ProcessorLoad) -> Span {
    costs.read.times(load.reads)
        + costs.install.times(load.installed)
        + costs.operation.times(load.operations)
}

/// How many of the messages are those of commits.
fn commit_messages(traffic: &NodeTraffic) -> u64 {
    let of = |kind: &&str| traffic.kinds.get(*kind).copied().unwrap_or(0);
    COMMIT_KINDS.iter().map(of).sum()
}
