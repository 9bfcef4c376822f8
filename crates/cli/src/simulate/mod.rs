//! `muesli sim`: many simulated runs, in search of one that goes wrong.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};
use muesli_protocols::{check_caches, check_strict, keeps_old_versions};
use muesli_sim::fault::FaultKinds;
use muesli_sim::plan::Plan;
use muesli_sim::time::Span;
use muesli_sim::world::{Heard, Strangers};
use muesli_workloads::background::Backgrounds;
use muesli_workloads::registry::Description;
use muesli_workloads::trial::{Trial, TrialError, Trialled};

use crate::names::{self, check_parameters};
use crate::options::{chosen, workload_commands};
use crate::table::grouped;

#[derive(Args, Clone, Debug)]
struct SimOptions {
    /// The seeds, as 1..101 (the last one is not tried) or one number [default: 1..101, or all
    /// from 1 on with --minutes]
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// What goes wrong: none, all, or some of crash, client, partition, link, pause, disk, skew,
    /// loss (of a disk, where --group is above 1), sync
    #[arg(long, value_name = "KINDS", default_value = "all", value_parser = names::faults)]
    faults: FaultKinds,
    /// Stop after so many minutes, however many seeds are left
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// The protocol
    #[arg(long, value_name = "NAME", default_value = "score",
        value_parser = names::protocols(), hide_possible_values = true)]
    protocol: String,
    /// Nodes with repositories
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    nodes: u32,
    /// Repositories, dealt to the nodes in turn, each to as many as --group says [default: drawn
    /// from the seed, one to three a node; one a node with --group]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=4000))]
    repositories: Option<u16>,
    /// So many nodes more, on which the clients run; 0: they run beside the repositories [default:
    /// drawn from the seed, often 0]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=100))]
    client_nodes: Option<u16>,
    /// Whether the nodes of clients come and go, as processes of applications do: servers do not
    /// know them before, and judge what they say as a client's [default: drawn from the seed]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    visiting: Option<bool>,
    /// So many nodes more, which decide for all others and do nothing else: the masters of
    /// sinfonia, which are the clients' own nodes without this
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=100))]
    masters: u16,
    /// How many repositories hold each key [default: drawn from the seed, 1 to 3]
    #[arg(long, value_name = "R")]
    replicas: Option<usize>,
    /// How many partitions there are for each repository; more than one where partitions move (as
    /// with --param moving=5 of append-procedures)
    #[arg(long, value_name = "P", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    spread: u16,
    /// How many nodes keep each repository, by agreeing on its log; 1 is none but its own
    #[arg(long, value_name = "G", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=9))]
    group: u16,
    /// Nodes keep copies of repositories that live elsewhere, and answer from them readers that
    /// take the nearest copy (as with --param nearby=100 of append-procedures)
    #[arg(long)]
    caches: bool,
    /// How many procedures that touch nothing in common a repository runs together at most, in an
    /// order that the seed draws (under granola and granola-passing)
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    together: u16,
    /// Whether all transactions are strict, under protocols that have such: then histories are
    /// judged by real time, too [default: drawn from the seed, true in a quarter of them]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    strict: Option<bool>,
    /// Collect garbage, log bounds, give up and end leases as often as in production; else that is
    /// drawn from the seed, so that it happens in short runs
    #[arg(long)]
    production: bool,
    /// Clients
    #[arg(long, value_name = "C", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,
    /// At least so many transactions are run with each seed; with more than 300 faults come for
    /// longer
    #[arg(long, value_name = "N", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    transactions: u64,
    /// Faults come for at least so many virtual seconds
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    seconds: f64,
    /// So many messages of strangers in each virtual millisecond: clients that say what no honest
    /// process says. How many of each kind pass the first checks is written at the end
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    strangers: u32,
    /// Strangers pass for members of the cluster: then nodes have to live, and nothing else is
    /// judged
    #[arg(long, requires = "strangers")]
    as_members: bool,
    /// Write the histories that are judged into this folder, as seed-S-WORKLOAD.jsonl, for `muesli
    /// check` and other checkers
    #[arg(long, value_name = "FOLDER")]
    history: Option<PathBuf>,
    /// What goes wrong, instead of what the seed draws, as in `horizon 1s; 12ms+300ms crash n3`
    #[arg(long, value_name = "TEXT")]
    plan: Option<Plan>,
    /// Write every event of the run; takes one seed
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// A parameter of the workload, listed below; here keys=30 unless given
    #[arg(long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("sim")
        .about("Run a workload in simulated worlds where things go wrong, and check every history")
        .after_help(
            "Each seed runs the workload and, on the same seed, the list workload; their histories \
             are judged by version order and by lists. Exit status: 0 all hold, 1 some do not.\n\
             `muesli sim WORKLOAD --help` lists the workload's parameters.",
        );
    workload_commands::<SimOptions>(command)
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong =
        || format!("`{text}` is no range of seeds: expected A..B, as in 1..101, or a number");
    let range = match text.split_once("..") {
        None => {
            let seed: u64 = text.parse().map_err(|_| wrong())?;
            seed..seed.saturating_add(1)
        }
        Some((from, to)) => from.parse().map_err(|_| wrong())?..to.parse().map_err(|_| wrong())?,
    };
    if range.is_empty() { Err(format!("there is no seed in {text}")) } else { Ok(range) }
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let (workload, matches) = chosen(matches);
    let options = SimOptions::from_arg_matches(matches)?;
    let last = if options.minutes.is_some() { u64::MAX } else { 101 };
    let seeds = options.seeds.clone().unwrap_or(1..last);
    if options.trace.is_some() && seeds.end - seeds.start != 1 {
        bail!("--trace takes one seed, as in --seeds {}", seeds.start);
    }
    let deadline = match options.minutes {
        None => None,
        Some(minutes) if minutes > 0.0 && minutes <= 1e6 => {
            Some(Instant::now() + Duration::from_secs_f64(minutes * 60.0))
        }
        Some(minutes) => bail!("--minutes {minutes}: allowed are numbers above 0, to a million"),
    };
    if !(0.0..=1e5).contains(&options.seconds) {
        bail!("--seconds {}: allowed are numbers from 0 to a hundred thousand", options.seconds);
    }
    if options.visiting == Some(true) && options.client_nodes.unwrap_or(0) == 0 {
        bail!("--visiting is of nodes of clients: give --client-nodes, from 1 to 100");
    }
    check_parameters(workload, &options.parameters)?;
    check_strict(&options.protocol, options.strict == Some(true))?;
    check_caches(&options.protocol, options.caches)?;
    if let Some(folder) = &options.history {
        let told = || format!("cannot make the folder {}", folder.display());
        std::fs::create_dir_all(folder).with_context(told)?;
    }
    let _ = writeln!(stdout(), "{}", task(workload.name, &options, &seeds));
    let search = Search {
        trial: trial(workload, &options),
        options: &options,
        workload,
        next: AtomicU64::new(seeds.start),
        end: seeds.end,
        deadline,
        found: Mutex::default(),
        bar: progress(seeds.end - seeds.start),
    };
    let begun = Instant::now();
    search.on_all_cores()?;
    search.bar.finish_and_clear();
    let found = search.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rate = found.seeds as f64 / begun.elapsed().as_secs_f64();
    let Found { seeds, transactions, faults, verdicts, failed, strangers, background, .. } = found;
    let background = background.line(keeps_old_versions(&options.protocol), grouped);
    let line = format!(
        "{} seeds, {} transactions, {} faults, {} histories judged, {} seeds failed, {rate:.1} \
         seeds/s; {background}",
        grouped(seeds),
        grouped(transactions),
        grouped(faults),
        grouped(verdicts),
        grouped(failed),
    );
    // A reader that has gone away is no matter.
    let _ = writeln!(stdout(), "{line}");
    if options.strangers > 0 {
        let _ = write!(stdout(), "{}", of_strangers(&strangers));
    }
    Ok(u8::from(failed > 0))
}

/// What is going to be run.
fn task(workload: &str, options: &SimOptions, seeds: &Range<u64>) -> String {
    let SimOptions { faults, protocol, transactions, .. } = options;
    let (first, last) = (seeds.start, seeds.end - 1);
    let seeds = match (seeds.end, last - first) {
        (u64::MAX, _) => format!("seeds from {first} on"),
        (_, 0) => format!("seed {first}"),
        (_, more) => format!("{} seeds, {first} to {last}", grouped(more + 1)),
    };
    format!(
        "{workload} under {protocol}, faults {faults}, {transactions} transactions or more: {seeds}"
    )
}

fn trial(workload: &'static Description, options: &SimOptions) -> Trial {
    let mut parameters = vec!["keys=30".to_owned()];
    parameters.extend(options.parameters.iter().cloned());
    Trial {
        parameters,
        protocol: options.protocol.clone(),
        nodes: options.nodes as usize,
        repositories: options.repositories.map(usize::from),
        client_nodes: options.client_nodes.map(usize::from),
        visiting: options.visiting,
        strict: options.strict,
        production: options.production,
        least: Span::from_nanos((options.seconds * 1e9) as u64),
        histories: options.history.clone(),
        masters: usize::from(options.masters),
        replicas: options.replicas,
        spread: usize::from(options.spread),
        group: options.group,
        caches: options.caches,
        together: usize::from(options.together),
        clients: options.clients,
        transactions_least: options.transactions,
        faults: options.faults.clone(),
        plan: options.plan.clone(),
        strangers: strangers(options),
        ..Trial::of(workload)
    }
}

/// Of so few messages of a kind the share that was taken says little.
const FEW: u64 = 60;

fn strangers(options: &SimOptions) -> Option<Strangers> {
    let every = Span::from_nanos(1_000_000 / u64::from(options.strangers.max(1)));
    let as_members = options.as_members;
    (options.strangers > 0).then_some(Strangers { every, as_members })
}

/// How many messages of strangers passed the first checks, by kind and in all. A kind of which only
/// few do is marked: what it does behind these checks is hardly looked at.
fn of_strangers(heard: &BTreeMap<&'static str, Heard>) -> String {
    let line = |name: &str, it: Heard| {
        let all = it.taken + it.rejected;
        let share = 100.0 * it.taken as f64 / all.max(1) as f64;
        format!("strangers: {name}: {} of {} taken, {share:.0} %", grouped(it.taken), grouped(all))
    };
    let mut sum = Heard::default();
    let mut text = String::new();
    for (name, it) in heard {
        sum += *it;
        let all = it.taken + it.rejected;
        let is_low = all >= FEW && it.taken > 0 && 5 * it.taken < all;
        text += &line(name, *it);
        text += if is_low { " BELOW A FIFTH\n" } else { "\n" };
    }
    text + &line("all", sum) + "\n"
}

fn progress(seeds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds  {msg}  {eta} left");
    ProgressBar::new(seeds).with_style(style.expect("the template is one"))
}

struct Search<'a> {
    trial: Trial,
    options: &'a SimOptions,
    workload: &'static Description,
    next: AtomicU64,
    end: u64,
    deadline: Option<Instant>,
    found: Mutex<Found>,
    bar: ProgressBar,
}

#[derive(Default)]
struct Found {
    seeds: u64,
    transactions: u64,
    faults: u64,
    verdicts: u64,
    failed: u64,
    strangers: BTreeMap<&'static str, Heard>,
    background: Backgrounds,
    /// Why the search cannot go on.
    error: Option<anyhow::Error>,
}

impl Search<'_> {
    fn on_all_cores(&self) -> anyhow::Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| self.work());
            }
        });
        self.lock().error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes seeds until there are none, or no time, or no sense in going on.
    fn work(&self) {
        while self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end || self.lock().error.is_some() {
                return;
            }
            if let Err(error) = self.one(seed) {
                self.lock().error = Some(error);
            }
        }
    }

    fn one(&self, seed: u64) -> anyhow::Result<()> {
        let trialled = attempt(&self.trial, seed, self.options.trace.is_some());
        let (plan, problems) = match trialled {
            Ok(trialled) => {
                let trialled = trialled?;
                self.count(&trialled);
                if let (Some(path), Some(trace)) = (&self.options.trace, &trialled.trace) {
                    let told = || format!("cannot write the trace to {}", path.display());
                    std::fs::write(path, trace).with_context(told)?;
                }
                (Some(trialled.plan), trialled.problems)
            }
            Err(panic) => (None, vec![panic]),
        };
        if !problems.is_empty() {
            self.tell(seed, plan.as_ref(), &problems)?;
        }
        self.bar.inc(1);
        Ok(())
    }

    fn count(&self, trialled: &Trialled) {
        let mut found = self.lock();
        found.seeds += 1;
        found.transactions += trialled.transactions;
        found.faults += trialled.plan.faults().len() as u64;
        found.verdicts += trialled.verdicts;
        for (name, heard) in &trialled.strangers {
            *found.strangers.entry(name).or_default() += *heard;
        }
        trialled.background.iter().for_each(|run| found.background.add(run));
        let message = format!("{} transactions", grouped(found.transactions));
        drop(found);
        self.bar.set_message(message);
    }

    fn again(&self, seed: u64, shorter: Option<&Plan>) -> String {
        command_again(self.workload.name, self.options, seed, shorter)
    }

    fn tell(&self, seed: u64, plan: Option<&Plan>, problems: &[String]) -> anyhow::Result<()> {
        self.lock().failed += 1;
        let mut text = format!("seed {seed} FAILED\n");
        if let Some(plan) = plan {
            text += &format!("  plan: {plan}\n");
        }
        for problem in problems {
            text += &format!("  {}\n", problem.trim_end().replace('\n', "\n  "));
        }
        text += &format!("  again: {}\n", self.again(seed, None));
        if let Some(plan) = plan.filter(|plan| !plan.faults().is_empty()) {
            let shrunk = self.trial.shrink(seed, plan)?;
            if shrunk.faults().len() < plan.faults().len() {
                text += &format!("  shorter: {}\n", self.again(seed, Some(&shrunk)));
            }
        }
        self.bar.suspend(|| {
            // A reader that has gone away is no matter.
            let _ = write!(stdout(), "{text}");
        });
        Ok(())
    }
}

/// The command that runs this seed again.
fn command_again(
    workload: &str,
    options: &SimOptions,
    seed: u64,
    shorter: Option<&Plan>,
) -> String {
    let SimOptions { faults, protocol, nodes, clients, transactions, .. } = options;
    let mut command = format!(
        "muesli sim {workload} --seeds {seed} --faults {faults} --protocol {protocol} \
         --nodes {nodes} --clients {clients} --transactions {transactions}",
    );
    if let Some(repositories) = options.repositories {
        command += &format!(" --repositories {repositories}");
    }
    if let Some(client_nodes) = options.client_nodes {
        command += &format!(" --client-nodes {client_nodes}");
    }
    if let Some(visiting) = options.visiting {
        command += &format!(" --visiting {visiting}");
    }
    if let Some(strict) = options.strict {
        command += &format!(" --strict {strict}");
    }
    if options.production {
        command += " --production";
    }
    if options.seconds > 0.0 {
        command += &format!(" --seconds {}", options.seconds);
    }
    if options.masters > 0 {
        command += &format!(" --masters {}", options.masters);
    }
    if options.group > 1 {
        command += &format!(" --group {}", options.group);
    }
    if options.caches {
        command += " --caches";
    }
    if options.together > 1 {
        command += &format!(" --together {}", options.together);
    }
    if let Some(replicas) = options.replicas {
        command += &format!(" --replicas {replicas}");
    }
    if options.strangers > 0 {
        command += &format!(" --strangers {}", options.strangers);
    }
    if options.as_members {
        command += " --as-members";
    }
    if options.spread > 1 {
        command += &format!(" --spread {}", options.spread);
    }
    for parameter in &options.parameters {
        command += &format!(" --param '{parameter}'");
    }
    if let Some(plan) = shorter.or(options.plan.as_ref()) {
        command += &format!(" --plan '{plan}'");
    }
    command
}

/// Tries a seed; what an assertion of the code under test said, if one failed.
fn attempt(trial: &Trial, seed: u64, trace: bool) -> Result<Result<Trialled, TrialError>, String> {
    catch_unwind(AssertUnwindSafe(|| trial.run(seed, trace))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("an assertion failed: {}", text.unwrap_or("without a message"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> SimOptions {
        // Every second piece between quotes is one argument; the others are split at spaces.
        let pieces = line.split('\'').enumerate();
        let arguments = pieces.flat_map(|(place, piece)| match place % 2 {
            0 => piece.split_whitespace().collect(),
            _ => vec![piece],
        });
        let matches = command().try_get_matches_from(arguments.skip(1)).expect("it is taken");
        let (_, matches) = chosen(&matches);
        SimOptions::from_arg_matches(matches).expect("it is taken")
    }

    #[test]
    fn the_command_that_repeats_a_seed_is_read_back() {
        for line in [
            "muesli sim bank --seeds 5",
            "muesli sim bank --seeds 5 --repositories 6 --strict true",
            "muesli sim ycsb --seeds 5 --faults crash,link --nodes 6 --masters 2 --replicas 2 \
             --group 3 --repositories 8 --caches --together 4 --spread 3 --clients 3 \
             --transactions 50 --client-nodes 2 --visiting true --strict false --production \
             --seconds 2.5 --strangers 3 --as-members \
             --param workload=t --param keys=40 --plan 'horizon 1s; 12ms+300ms crash n3'",
        ] {
            let options = parsed(line);
            let workload = line.split(' ').nth(2).expect("a workload");
            let again = parsed(&command_again(workload, &options, 5, None));
            assert_eq!(format!("{again:?}"), format!("{options:?}"));
        }
    }

    #[test]
    fn kinds_of_which_few_messages_are_taken_are_marked() {
        let heard = |taken, rejected| Heard { taken, rejected };
        let all = [
            ("Few", heard(1, 50)),
            ("Low", heard(10, 50)),
            ("None", heard(0, 90)),
            ("Well", heard(30, 100)),
        ];
        let text = of_strangers(&all.into_iter().collect());
        let marked: Vec<&str> =
            text.lines().filter(|line| line.ends_with(" BELOW A FIFTH")).collect();
        assert_eq!(marked, ["strangers: Low: 10 of 60 taken, 17 % BELOW A FIFTH"]);
        assert!(text.ends_with("strangers: all: 41 of 331 taken, 12 %\n"));
    }

    #[test]
    fn what_is_going_to_be_run_is_told() {
        let told = |line: &str| {
            let options = parsed(line);
            task("bank", &options, &options.seeds.clone().expect("they are given"))
        };
        let all = "bank under score, faults all, 300 transactions or more: ";
        assert_eq!(told("muesli sim bank --seeds 1..20"), format!("{all}19 seeds, 1 to 19"));
        assert_eq!(told("muesli sim bank --seeds 5"), format!("{all}seed 5"));
    }

    #[test]
    fn seeds_are_a_range_or_one() {
        assert_eq!(seeds("3..5"), Ok(3..5));
        assert_eq!(seeds("7"), Ok(7..8));
        for wrong in ["", "a", "5..3", "4..4", "1-2", "..", "1..x"] {
            assert!(seeds(wrong).is_err(), "{wrong} was taken");
        }
    }
}
