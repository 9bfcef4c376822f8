//! `muesli bench`: measures a workload under one protocol or several.

pub mod commands;
mod files;
pub mod measure;
pub mod report;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use indicatif::{ProgressBar, ProgressStyle};
use muesli_registry::{check_caches, check_masters, check_shards, check_strict, check_tree};
use muesli_workloads::available::Description;
use muesli_workloads::embedded::Length;
use muesli_workloads::machines::MachineModel;
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::AnyWorkload;

use crate::local::namespaces;
use crate::names::{self, check_parameters};
use crate::options::geography::GeographyOptions;
use crate::options::tree::TreeOptions;
use crate::options::{BatchOptions, chosen, workload_commands};
use crate::table::grouped;
use files::write_json;
pub use measure::write_history;
use measure::{BenchDriver, Benchmark};
use report::{BenchResult, broken, notes, side_by_side};

#[derive(Args, Clone, Debug)]
struct BenchOptions {
    /// Where it runs
    #[arg(long, value_enum, default_value = "embedded")]
    driver: BenchDriver,
    /// The protocol; several with commas between are measured one after the other
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "score",
        value_parser = names::protocols(), hide_possible_values = true)]
    protocol: Vec<String>,
    /// Nodes; in this process, loops on threads of their own [default: one a site, or 1, or 3
    /// in the simulator and on a cluster]
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
    /// Loops of each server, each a node with data, on a cluster that is started
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    loops: u16,
    #[command(flatten)]
    tree: TreeOptions,
    /// So many nodes more, which decide for all others and do nothing else: the masters of
    /// sinfonia, which are the clients' own nodes without this
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=100))]
    masters: u16,
    /// Repositories, dealt to the nodes in turn [default: as many as nodes or replicas]
    #[arg(long, value_name = "N")]
    repositories: Option<usize>,
    /// How many repositories hold each key
    #[arg(long, value_name = "R", default_value_t = 1)]
    replicas: usize,
    /// How many threads of each node run procedures that touch nothing in common, under granola
    /// and granola-passing; not in the simulator
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=256))]
    procedure_threads: u16,
    /// How many partitions there are for each repository; more than one where partitions move
    #[arg(long = "spread", value_name = "P", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    partitions_per_repository: u16,
    /// How many procedures that touch nothing in common a repository runs together at most, in
    /// the simulator; elsewhere that is --procedure-threads
    #[arg(long = "together", value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    parallel: u16,
    /// Nodes keep copies of repositories that live elsewhere, and answer from them readers that
    /// take the nearest copy; in the simulator and for clients of a cluster
    #[arg(long)]
    caches: bool,
    /// The server that the clients are near to, by its number, on a cluster: under tfa what they
    /// write moves there [default: it stays where it is]
    #[arg(long, value_name = "SERVER")]
    near: Option<u32>,
    /// So many nodes more, on which the clients run, in the simulator; 0: they run beside the
    /// repositories
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=100))]
    client_nodes: u16,
    /// A change of the simulated machine, whose nodes are Muesli's own as calibrated: as in
    /// `muesli reproduce`, such as message-us=20, or cores=8 for machines of eight nodes each,
    /// which are cores that reach each other without a packet; rack-nodes=8, with rack-packets=N
    /// and rack-mb=N a second, puts them into racks that share a link to the others, on a started
    /// cluster through a proxy, with the clients in the first rack; model=hyflow takes the machine
    /// of figures in its place; several times for several, in their order
    #[arg(long = "machine", value_name = "NAME=VALUE")]
    machine: Vec<String>,
    #[command(flatten)]
    geography: GeographyOptions,
    #[command(flatten)]
    batches: BatchOptions,
    /// All transactions are strict, under protocols that have such
    #[arg(long)]
    strict: bool,
    /// How many nodes keep each repository; on a cluster or in the simulator
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=9))]
    group: u16,
    /// Clients, each of which runs one transaction after the other
    #[arg(long, value_name = "C", default_value_t = 32,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// How long they run; virtual seconds in the simulator
    #[arg(long, value_name = "S", default_value_t = 5.0, conflicts_with = "transactions")]
    seconds: f64,
    /// How long they run before that without being measured, so that memory, caches and the
    /// branches of the code are warm, and nesting models chosen; virtual seconds in the simulator
    /// [default: 0.2, or 0 with --transactions and in the simulator]
    #[arg(long, value_name = "S")]
    warm_up: Option<f64>,
    /// How many transactions they run, instead of a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    transactions: Option<u64>,
    /// Where chance comes from
    #[arg(long, value_name = "X", default_value_t = 1)]
    seed: u64,
    /// Record what happens, for `muesli check`; costs speed
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Write the results as JSON, an array if there are several protocols; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What a started cluster promises to survive: memory or log
    #[arg(long, value_name = "D", default_value = "memory", value_parser = ["memory", "log"])]
    durability: String,
    /// Each server of a started cluster has a network namespace of its own, on a virtual network
    /// that joins them and the clients; for root, with the command ip
    #[arg(long)]
    namespaces: bool,
    /// Addresses of servers that run already, with commas between; for the driver cluster
    #[arg(long, value_name = "HOST:PORT,…")]
    connect: Option<String>,
    /// A parameter of the workload, listed below
    #[arg(long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
}

/// Clients run for so many seconds before they are measured, unless asked otherwise.
const WARM_UP: f64 = 0.2;

/// The command's options.
pub fn command() -> Command {
    let command = Command::new("bench")
        .about("Measure a workload")
        .after_help("`muesli bench WORKLOAD --help` lists the workload's parameters.");
    workload_commands::<BenchOptions>(command, |_| String::new()).subcommand(commands::command())
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    if let Some((commands::NAME, matches)) = matches.subcommand() {
        return commands::run(matches);
    }
    let (workload, matches) = chosen(matches);
    let mut options = BenchOptions::from_arg_matches(matches)?;
    let given = (options.repositories, options.replicas);
    (options.repositories, options.replicas) =
        options.geography.repositories(given, options.group)?;
    check_parameters(workload, &options.parameters)?;
    if options.history.is_some() && options.protocol.len() > 1 {
        bail!("--history takes one protocol, not {}", options.protocol.len());
    }
    if !(options.seconds > 0.0 && options.seconds <= 1e6) {
        bail!("--seconds {}: allowed are numbers above 0, to a million", options.seconds);
    }
    check_driver(&options)?;
    let masters = usize::from(options.masters);
    options.protocol.iter().try_for_each(|name| check_masters(name, masters))?;
    options.protocol.iter().try_for_each(|name| check_strict(name, options.strict))?;
    options.protocol.iter().try_for_each(|name| check_caches(name, options.caches))?;
    options.protocol.iter().try_for_each(|name| check_tree(name, options.tree.tree.is_some()))?;
    let shards = options.geography.shards.is_some();
    options.protocol.iter().try_for_each(|name| check_shards(name, shards))?;
    options.batches.batching()?;
    check_namespaces(&options)?;
    let (warm_up, machine) = (warm_up(&options)?, machine(&options)?);
    let quiet = options.json.as_deref() == Some(Path::new("-"));
    let mut results = Vec::new();
    for protocol in &options.protocol {
        let benchmark = benchmark(workload, &options, protocol, (warm_up, &machine));
        let tallies = Arc::new(Tallies::new(options.clients));
        let (measured, history) = watched(&benchmark, &tallies)?;
        if let (Some(path), Some(history)) = (&options.history, history) {
            write_history(&history, path)?;
        }
        results.push(measured);
    }
    if let Some(path) = &options.json {
        write_json(&results, path)?;
    }
    let crowded = results.first().and_then(|one| crowded(one.nodes, options.driver));
    let crowded = crowded.map_or(String::new(), |message| format!("\n{message}"));
    let (notes, broken) = (notes(&results), broken(&results));
    let table = format!("{}{crowded}{notes}{broken}", side_by_side(&results));
    // A reader that has gone away is no matter.
    let _ = if quiet { writeln!(stderr(), "{table}") } else { writeln!(stdout(), "{table}") };
    Ok(u8::from(!results.iter().all(BenchResult::holds)))
}

/// Whether what was asked for is for this driver.
fn check_driver(options: &BenchOptions) -> anyhow::Result<()> {
    if options.connect.is_some() && options.driver != BenchDriver::Cluster {
        bail!("--connect is for the driver cluster");
    }
    if options.group > 1 && options.driver == BenchDriver::Embedded {
        bail!("--group is for the drivers cluster and sim: in this process nothing is kept twice");
    }
    if options.driver != BenchDriver::Sim && (options.parallel > 1 || options.client_nodes > 0) {
        bail!("--together and --client-nodes are for the driver sim; see --procedure-threads");
    }
    if options.caches && options.driver == BenchDriver::Embedded {
        bail!("--caches is for the drivers cluster and sim: in this process all is near");
    }
    if options.near.is_some() && options.driver != BenchDriver::Cluster {
        bail!("--near is for the driver cluster: elsewhere clients run where data is");
    }
    if options.partitions_per_repository > 1 && options.connect.is_some() {
        bail!("--spread is for nodes that are started: not --connect");
    }
    if options.durability == "log"
        && (options.driver != BenchDriver::Cluster || options.connect.is_some())
    {
        bail!("--durability log is for clusters that are started: the driver cluster");
    }
    if options.loops > 1 && (options.driver != BenchDriver::Cluster || options.connect.is_some()) {
        bail!("--loops is for clusters that are started: the driver cluster");
    }
    if options.masters > 0 && options.connect.is_some() {
        bail!("--masters is for nodes that are started: not --connect");
    }
    if options.tree.tree.is_some() && options.connect.is_some() {
        bail!("--tree is for nodes that are started: not --connect; see `muesli admin tree set`");
    }
    if options.procedure_threads > 1
        && (options.driver == BenchDriver::Sim || options.connect.is_some())
    {
        bail!("--procedure-threads is for processes that are started: not sim, nor --connect");
    }
    Ok(())
}

/// Whether servers can have namespaces, if they are to have them.
fn check_namespaces(options: &BenchOptions) -> anyhow::Result<()> {
    if !options.namespaces {
        return Ok(());
    }
    if options.driver != BenchDriver::Cluster || options.connect.is_some() {
        bail!("--namespaces is for clusters that are started: the driver cluster, not --connect");
    }
    let tried = namespaces::try_out().map(drop);
    tried.context("--namespaces: network namespaces cannot be made here")
}

/// What the nodes are: those of a cluster that is started can be in racks or at sites, and no more.
fn machine(options: &BenchOptions) -> anyhow::Result<MachineModel> {
    let mut machine = MachineModel::measured();
    options.machine.iter().try_for_each(|change| machine.change(change))?;
    machine.geography = options.geography.chosen(options.nodes)?;
    let measured = MachineModel::measured();
    let (racks, geography) = (machine.racks, machine.geography.clone());
    let linked = MachineModel { racks, geography, ..measured };
    let started = options.driver == BenchDriver::Cluster && options.connect.is_none();
    if options.driver != BenchDriver::Sim && machine != linked {
        bail!("--machine is for the driver sim: elsewhere machines are what they are");
    }
    if machine.geography.is_some() && options.connect.is_some() {
        bail!("--geo is for nodes that are started: not --connect");
    }
    if machine.racks.nodes > 0 && !started && options.driver != BenchDriver::Sim {
        bail!("racks are for the driver sim, and for clusters that are started, not --connect");
    }
    if started && machine.racks.nodes > 0 && machine.geography.is_some() {
        bail!("a cluster that is started has racks or --geo, not both");
    }
    Ok(machine)
}

/// What is to be known of figures where more nodes run than there are processors for them.
fn crowded(nodes: usize, driver: BenchDriver) -> Option<String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let is_real = matches!(driver, BenchDriver::Embedded | BenchDriver::Cluster);
    (is_real && nodes > processors).then(|| {
        format!("{nodes} nodes share {processors} processors: this measures waiting for each other")
    })
}

/// How long clients run unmeasured first.
fn warm_up(options: &BenchOptions) -> anyhow::Result<Duration> {
    let timed = options.transactions.is_none();
    let seconds = match (options.driver, options.warm_up) {
        (BenchDriver::Embedded | BenchDriver::Cluster, None) if timed => WARM_UP,
        (_, None) => 0.0,
        (BenchDriver::Sim, Some(_)) if !timed => {
            bail!("--warm-up in the simulator is before --seconds, and not before --transactions")
        }
        (_, Some(seconds)) => seconds,
    };
    if !(0.0..=1e6).contains(&seconds) {
        bail!("--warm-up {seconds}: allowed are numbers from 0 to a million");
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn benchmark(
    workload: &'static Description,
    options: &BenchOptions,
    protocol: &str,
    (warm_up, machine): (Duration, &MachineModel),
) -> Benchmark {
    let tree = options.tree.plan();
    let loops = usize::from(options.loops);
    let leaves = tree.as_ref().map(|tree| tree.leaves().div_ceil(loops));
    let sites = machine.geography.as_ref().map(|it| it.names().len());
    let nodes = options.nodes.or(leaves).or(sites).unwrap_or(match options.driver {
        BenchDriver::Embedded => 1,
        BenchDriver::Sim | BenchDriver::Cluster => 3,
    });
    let length = match options.transactions {
        Some(transactions) => Length::Transactions(transactions),
        None => Length::Time(Duration::from_secs_f64(options.seconds)),
    };
    Benchmark {
        workload,
        parameters: options.parameters.clone(),
        driver: options.driver,
        protocol: protocol.to_owned(),
        nodes,
        loops,
        masters: usize::from(options.masters),
        tree,
        validator_nodes: usize::from(options.tree.validator_nodes),
        batches: options.batches.clone(),
        repositories: options.repositories.unwrap_or((nodes * loops).max(options.replicas)),
        replicas: options.replicas,
        procedure_threads: usize::from(options.procedure_threads),
        group: options.group,
        partitions_per_repository: usize::from(options.partitions_per_repository),
        parallel: usize::from(options.parallel),
        caches: options.caches,
        near: options.near,
        client_nodes: usize::from(options.client_nodes),
        machine: machine.clone(),
        strict: options.strict,
        clients: options.clients,
        warm_up,
        length,
        seed: options.seed,
        history: options.history.is_some(),
        durable: options.durability == "log",
        namespaces: options.namespaces,
        connect: options.connect.clone(),
    }
}

/// Runs a benchmark and shows on the terminal how far it is.
///
/// # Errors
/// It cannot be run.
pub fn watched(
    benchmark: &Benchmark,
    tallies: &Arc<Tallies>,
) -> anyhow::Result<(BenchResult, Option<muesli_check::History>)> {
    let over = AtomicBool::new(false);
    let workload = benchmark.workload.build(&benchmark.parameters, benchmark.clients)?;
    std::thread::scope(|scope| {
        if stderr().is_terminal() {
            scope.spawn(|| show_progress(benchmark, &*workload, tallies, &over));
        }
        let done = benchmark.run(&workload, tallies);
        over.store(true, Ordering::Release);
        done
    })
}

fn show_progress(
    benchmark: &Benchmark,
    workload: &dyn AnyWorkload,
    tallies: &Tallies,
    over: &AtomicBool,
) {
    let name = format!("{} {}", benchmark.workload.name, benchmark.protocol);
    let whole = match benchmark.length {
        Length::Time(length) => length.as_millis() as u64,
        Length::Transactions(all) => all,
    };
    let bar = ProgressBar::new(whole).with_prefix(name);
    let style = ProgressStyle::with_template("{prefix:24} {bar:32} {msg}");
    bar.set_style(style.expect("the template is one"));
    let mut begun: Option<Instant> = None;
    while !over.load(Ordering::Acquire) {
        let ended = tallies.ended();
        let loading = workload.load_progress().filter(|(done, all)| done < all);
        if ended > 0 {
            let since = begun.get_or_insert_with(Instant::now).elapsed();
            let done = match (benchmark.length, benchmark.driver) {
                (Length::Time(_), BenchDriver::Embedded | BenchDriver::Cluster) => {
                    since.as_millis() as u64
                }
                // Virtual time is not seen from here.
                (Length::Time(_), BenchDriver::Sim) => 0,
                (Length::Transactions(_), _) => ended,
            };
            bar.set_position(done.min(whole));
        } else if loading.is_none() {
            bar.set_position(0);
        }
        match loading {
            Some((done, all)) => {
                bar.set_position((whole as f64 * (done as f64 / all as f64)) as u64);
                bar.set_message(format!("{} of {} loaded", grouped(done), grouped(all)));
            }
            None => bar.set_message(format!("{ended} transactions")),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_more_nodes_than_processors_say_so() {
        let message = crowded(100_000, BenchDriver::Embedded);
        assert!(message.is_some_and(|it| it.starts_with("100000 nodes share ")));
        assert_eq!(crowded(1, BenchDriver::Cluster), None);
        assert_eq!(crowded(100_000, BenchDriver::Sim), None, "simulated nodes have their own time");
    }
}
