//! `muesli bench commands`: bare commands over a broadcast, without transactions.

use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use muesli_broadcast::{BroadcastChoice, MemberId};
use muesli_commands::simulated::{CommandMachine, StepCosts};
use muesli_commands::{CommandLoad, CommandOutcome, CommandPlan, real, simulated};
use muesli_core::Nanos;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::time::Span;
use muesli_workloads::geography::Geography;
use muesli_workloads::machines::MachineModel;
use serde::Serialize;

use super::files::write_json;
use crate::options::geography::GeographyOptions;
use crate::table::{self, grouped, micros};

/// As it is called beside the workloads.
pub const NAME: &str = "commands";

const AFTER: &str = "\
A node proposes commands, all members deliver them, and nobody executes them. Each run is checked:
commands on one object are delivered in one order at all members, and at the end all are delivered
everywhere. In the simulator the same seed gives the same run; docs/inside/commands.md has the model
of its costs. Over TCP members are threads of this machine.

Examples:
  muesli bench commands --protocol m2paxos,epaxos,multipaxos --nodes 11
  muesli bench commands --protocol m2paxos --nodes 49 --complex 50 --objects 1000
  muesli bench commands --protocol pob-fast,epaxos --nodes 7 --geo seven --locality 0
  muesli bench commands --driver tcp --protocol m2paxos,epaxos --seconds 2";

/// Where commands are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CommandDriver {
    /// In the simulator, in virtual time
    Sim,
    /// On threads of this machine, each a member, over TCP
    Tcp,
}

impl CommandDriver {
    fn name(self) -> &'static str {
        match self {
            CommandDriver::Sim => "sim",
            CommandDriver::Tcp => "tcp",
        }
    }
}

#[derive(Args, Clone, Debug)]
struct CommandOptions {
    /// Where they are ordered
    #[arg(long, value_enum, default_value = "sim")]
    driver: CommandDriver,
    /// The broadcast; several with commas between are measured one after the other
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "m2paxos",
        value_parser = broadcasts())]
    protocol: Vec<String>,
    /// Nodes, each a member: 1 to 99, or 1 to 9 over TCP
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// Clients of each node
    #[arg(long, value_name = "C", default_value_t = 64)]
    clients: u32,
    /// How long a client sleeps after each command, as in 5ms; 0us: a node issues a command
    /// whenever fewer are in flight than may be
    #[arg(long, value_name = "TIME", default_value = "0us")]
    think: Span,
    /// Commands that a node has in flight at most; its clients skip theirs while it has as many
    #[arg(long, value_name = "N", default_value_t = 64)]
    limit: usize,
    /// Bytes that a command says
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    payload: usize,
    /// Objects of each node
    #[arg(long, value_name = "N", default_value_t = 100)]
    objects: u64,
    /// Share of commands on an object of their own node, in percent; others are on one of another
    /// node
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
    locality: f64,
    /// Share of commands on two objects, one of their own node and one of another, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    complex: f64,
    /// Commands of a node that are ordered as one at most, where they come while others are under
    /// way; 1: each by itself
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// These that a node has under way at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    batches: usize,
    /// Whether all that waits for a member leaves in one packet: on or off; off in the simulator
    /// alone
    #[arg(long, value_name = "ON|OFF", default_value = "on", value_parser = ["on", "off"])]
    batching: String,
    /// Cores of each node, in the simulator
    #[arg(long, value_name = "N", default_value_t = 4)]
    cores: usize,
    /// How long a message is under way at least, as in 75us, in the simulator; a third of that
    /// comes to it at random on average [default: as calibrated]
    #[arg(long, value_name = "TIME", conflicts_with = "geography")]
    delay: Option<Span>,
    #[command(flatten)]
    places: GeographyOptions,
    /// What is not answered in so long is said again [default: 200ms, or as sites are far]
    #[arg(long, value_name = "TIME")]
    retry: Option<Span>,
    /// How long clients are measured; virtual seconds in the simulator [default: 0.2, 3 with sites
    /// or over TCP]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// How long they run before that [default: a tenth of that]
    #[arg(long, value_name = "S")]
    warm_up: Option<f64>,
    /// Clients stop after so many measured commands [default: 50000, or 10000000 over TCP]
    #[arg(long, value_name = "N")]
    most: Option<u64>,
    /// Where chance comes from
    #[arg(long, value_name = "X", default_value_t = 1)]
    seed: u64,
    /// Write the results as JSON, an array if there are several protocols; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The result of one run. The names of the fields are what scripts read.
#[derive(Clone, Debug, Serialize)]
struct CommandResult {
    workload: &'static str,
    protocol: String,
    driver: &'static str,
    nodes: usize,
    clients: u32,
    limit: usize,
    payload: usize,
    objects: u64,
    locality: f64,
    complex: f64,
    batch: usize,
    batches: usize,
    batching: bool,
    cores: Option<usize>,
    seed: u64,
    /// How long clients were measured; virtual in the simulator.
    seconds: f64,
    commands: u64,
    throughput: f64,
    /// Over that of the first protocol.
    over_first: f64,
    skipped: u64,
    latency_us: CommandLatencies,
    messages_per_command: f64,
    packets_per_command: f64,
    bytes_per_command: f64,
    /// The share of the time that cores were busy, in the simulator: all, those of the busiest
    /// node, and the one that steps its member.
    busy: Option<[f64; 3]>,
    /// Commands that all members delivered, in one order where they conflict.
    checked: u64,
    /// A number made of all orders.
    order: String,
}

/// From the issue of a command to its delivery at its own node.
#[derive(Clone, Copy, Debug, Serialize)]
struct CommandLatencies {
    mean: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

/// The command's options.
pub fn command() -> Command {
    let command = Command::new(NAME);
    let about = "Bare commands over a broadcast, without transactions: how many, and how fast";
    CommandOptions::augment_args(command).about(about).long_about(about).after_help(AFTER)
}

fn broadcasts() -> PossibleValuesParser {
    PossibleValuesParser::new(BroadcastChoice::all().into_iter().map(|(name, _)| name))
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out, or members did not deliver in one order.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let options = CommandOptions::from_arg_matches(matches)?;
    let (plan, model) = (options.plan()?, options.model()?);
    let mut results: Vec<CommandResult> = Vec::new();
    let leader = model.geography.as_ref().map_or(0, Geography::leader) as u16;
    for name in &options.protocol {
        let broadcast = CommandPlan::broadcast(name)?.led_by(MemberId(leader));
        let plan = CommandPlan { broadcast, ..plan.clone() };
        let outcome = match options.driver {
            CommandDriver::Sim => simulated::run(&plan, &machine(&model, plan.load.nodes))?,
            CommandDriver::Tcp => real::run(&plan)?,
        };
        let first = results.first().map_or(outcome.a_second(), |first| first.throughput);
        results.push(options.result(name, &plan, &outcome, first));
    }
    if let Some(path) = &options.json {
        write_json(&results, path)?;
    }
    let table = side_by_side(&results);
    let quiet = options.json.as_deref() == Some(Path::new("-"));
    // A reader that has gone away is no matter.
    let _ = if quiet { writeln!(stderr(), "{table}") } else { writeln!(stdout(), "{table}") };
    Ok(0)
}

/// What nodes of a model are here: its bandwidth is what a node sends to all.
pub fn machine(model: &MachineModel, nodes: usize) -> CommandMachine {
    let class = ChannelClass { bandwidth: 0, ..model.network };
    let mut topology = Topology::uniform(nodes, class);
    if let Some(geography) = &model.geography {
        geography.place(&mut topology, nodes, class);
    }
    CommandMachine {
        costs: model.costs,
        steps: StepCosts::MEASURED,
        topology,
        bandwidth: model.network.bandwidth,
    }
}

impl CommandOptions {
    fn plan(&self) -> anyhow::Result<CommandPlan> {
        let far = self.places.geography.is_some() || self.driver == CommandDriver::Tcp;
        let seconds = self.seconds.unwrap_or(if far { 3.0 } else { 0.2 });
        let warm_up = self.warm_up.unwrap_or(seconds / 10.0);
        if !(seconds > 0.0 && seconds <= 3_600.0) {
            bail!("--seconds {seconds}: allowed are numbers above 0, to 3600");
        }
        if !(0.0..=3_600.0).contains(&warm_up) {
            bail!("--warm-up {warm_up}: allowed are numbers from 0 to 3600");
        }
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        let plan = CommandPlan {
            broadcast: BroadcastChoice::default(),
            load: CommandLoad {
                nodes: self.nodes,
                clients: self.clients,
                think: Nanos(self.think.as_nanos()),
                limit: self.limit,
                payload: self.payload,
                objects: self.objects,
                locality: self.locality,
                complex: self.complex,
            },
            batch: self.batch,
            batches: self.batches,
            batching: self.batching == "on",
            cores: self.cores,
            retry_after: match (self.retry, far) {
                (Some(retry), _) => Nanos(retry.as_nanos()),
                (None, true) => Nanos::from_millis(1_000),
                (None, false) => CommandPlan::default().retry_after,
            },
            warm_up: nanos(warm_up),
            measured: nanos(seconds),
            most: self.most.unwrap_or(match self.driver {
                CommandDriver::Sim => 50_000,
                CommandDriver::Tcp => 10_000_000,
            }),
            seed: self.seed,
        };
        plan.check()?;
        self.check_driver()?;
        Ok(plan)
    }

    /// Whether what was asked for is for this driver.
    fn check_driver(&self) -> anyhow::Result<()> {
        if self.driver == CommandDriver::Sim {
            return Ok(());
        }
        if self.delay.is_some() || self.places.geography.is_some() {
            bail!(
                "--delay and --geo are for the driver sim: over TCP messages take what they take"
            );
        }
        if self.batching == "off" {
            bail!("--batching off is for the driver sim: over TCP what waits leaves in one write");
        }
        if self.nodes > real::NODES_MAX {
            bail!("--nodes {}: over TCP allowed are 1 to {}", self.nodes, real::NODES_MAX);
        }
        Ok(())
    }

    /// What simulated nodes are.
    fn model(&self) -> anyhow::Result<MachineModel> {
        let mut model = MachineModel::measured();
        model.geography = self.places.chosen(Some(self.nodes))?;
        if let Some(least) = self.delay {
            let mean_tail = Span::from_nanos(least.as_nanos() / 3);
            model.network.latency = Latency::Exponential { least, mean_tail };
        }
        Ok(model)
    }

    fn result(
        &self,
        name: &str,
        plan: &CommandPlan,
        outcome: &CommandOutcome,
        first: f64,
    ) -> CommandResult {
        let micros = |nanos: Nanos| nanos.0 as f64 / 1e3;
        let latency = &outcome.latency;
        CommandResult {
            workload: NAME,
            protocol: name.to_owned(),
            driver: self.driver.name(),
            nodes: self.nodes,
            clients: self.clients,
            limit: self.limit,
            payload: self.payload,
            objects: self.objects,
            locality: self.locality,
            complex: self.complex,
            batch: plan.batch,
            batches: plan.batches,
            batching: plan.batching,
            cores: (self.driver == CommandDriver::Sim).then_some(self.cores),
            seed: self.seed,
            seconds: outcome.measured.0 as f64 / 1e9,
            commands: outcome.commands,
            throughput: outcome.a_second(),
            over_first: outcome.a_second() / first,
            skipped: outcome.skipped,
            latency_us: CommandLatencies {
                mean: micros(latency.mean),
                p50: micros(latency.p50),
                p99: micros(latency.p99),
                max: micros(latency.max),
            },
            messages_per_command: outcome.each(outcome.messages),
            packets_per_command: outcome.each(outcome.packets),
            bytes_per_command: outcome.each(outcome.bytes),
            busy: outcome.busy.map(|busy| [busy.mean, busy.busiest, busy.stepping]),
            checked: outcome.checked,
            order: format!("{:016x}", outcome.order),
        }
    }
}

fn side_by_side(results: &[CommandResult]) -> String {
    let header = [
        "broadcast",
        "commands/s",
        "over first",
        "p50",
        "p99",
        "messages",
        "packets",
        "bytes",
        "busy",
        "busiest",
        "stepping",
    ];
    let is_simulated = results.iter().any(|one| one.busy.is_some());
    let columns = if is_simulated { header.len() } else { header.len() - 3 };
    let mut table = table::new(header[..columns].iter().map(|it| (*it).to_owned()).collect());
    for one in results {
        let mut row = vec![
            one.protocol.clone(),
            grouped(one.throughput.round() as u64),
            format!("{:.2}", one.over_first),
            micros(one.latency_us.p50),
            micros(one.latency_us.p99),
            format!("{:.1}", one.messages_per_command),
            format!("{:.1}", one.packets_per_command),
            format!("{:.0}", one.bytes_per_command),
        ];
        let shares = one.busy.into_iter().flatten();
        row.extend(shares.map(|share| format!("{:.0} %", share * 100.0)));
        table.add_row(row);
    }
    let checked: u64 = results.iter().map(|one| one.checked).sum();
    let nodes = results.first().map_or(0, |one| one.nodes);
    format!(
        "{table}\nin one order: {} commands, delivered at all {nodes} members",
        grouped(checked)
    )
}
