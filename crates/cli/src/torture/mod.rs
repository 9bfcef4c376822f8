//! `muesli torture`: real processes under random faults, their histories judged.
//!
//! Rounds of half a minute follow each other, each with a cluster of its own: clients run
//! transfers between accounts or append to lists while nodes are killed, stopped, cut off and
//! given bad disks. In the end everything heals, the cluster must serve, everything that was
//! acknowledged must be there, and the history must be one that the protocol allows.

mod inflict;
mod links;
mod namespaces;
mod network;
mod plan;
mod probe;
mod proxy;
mod round;
mod system;
mod tally;

use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use signal_hook::consts::{SIGINT, SIGTERM};

use network::{Choice, Means};
use plan::Kind;
use round::Round;
use tally::Tallied;

/// A round is as long, or as what is left.
const ROUND: Duration = Duration::from_secs(30);
/// A round must have time for at least a fault or two.
const ROUND_LEAST: Duration = Duration::from_secs(3);

/// The workloads that take turns, with parameters that make transactions meet.
const WORKLOADS: [(&str, &[&str]); 2] =
    [("bank", &["keys=300", "reads=30", "totals=2"]), ("append", &["keys=15", "length=60"])];

#[derive(Args, Clone, Debug)]
struct TortureOptions {
    /// How long; a fraction is allowed
    #[arg(long, value_name = "M", default_value_t = 1.0)]
    minutes: f64,
    /// What is to go wrong [default: all kinds; folder with groups only]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_enum)]
    faults: Vec<Kind>,
    /// How many servers
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// How many servers keep each repository
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=9))]
    group: u16,
    /// The seed of the first round; the next ones follow it [default: drawn]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Within so many seconds after a leader's death all must be served again, all else being well
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    failover_seconds: f64,
    /// What partitions are made with
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    network: Choice,
    /// The protocol
    #[arg(long, value_name = "NAME", default_value = "score")]
    protocol: String,
    /// Keep data in memory only; for pauses and partitions
    #[arg(long)]
    memory: bool,
}

/// The command's options.
pub fn command() -> Command {
    let about = "Look for lost promises on real processes under random faults";
    TortureOptions::augment_args(Command::new("torture").about(about))
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let mut options = TortureOptions::from_arg_matches(matches)?;
    if options.faults.is_empty() {
        options.faults = vec![Kind::Kill, Kind::Pause, Kind::Partition, Kind::Disk];
        options.faults.extend((options.group > 1).then_some(Kind::Folder));
    }
    let length = length(&options)?;
    let over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, over.clone()).context("cannot wait for signals")?;
    }
    let first = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let mut out = stdout();
    let (means, said) = options.network.settle()?;
    let _ = writeln!(out, "{said}"); // Here and below: a reader that has gone away is no matter.
    let (start, mut tallied) = (Instant::now(), Tallied::default());
    for number in 0.. {
        let left = length.saturating_sub(start.elapsed());
        if over.load(Ordering::Relaxed) || (number > 0 && left < ROUND_LEAST) {
            break;
        }
        let round = options.round(first + number, left.clamp(ROUND_LEAST, ROUND), means);
        let _ = write!(out, "{round} … ").and_then(|()| out.flush());
        let dir = tempfile::Builder::new().prefix("muesli-torture-").tempdir()?;
        let ran = round.run(dir.path(), &over)?;
        let _ = writeln!(out, "{}", tallied.count(&ran));
        if let Some(violation) = ran.violation {
            let kept = dir.keep();
            let again = options.again(round.seed, means);
            let _ = writeln!(
                out,
                "\nVIOLATION with seed {}: {violation}\n\nIts files are in {}; the same faults \
                 once more:\n  {again}",
                round.seed,
                kept.display()
            );
            return Ok(1);
        }
    }
    let fail_overs = tallied.fail_overs(options.fails_over_within());
    let fail_overs = fail_overs.map(|line| line + "\n").unwrap_or_default();
    let _ = writeln!(
        out,
        "\n{}\n{fail_overs}Nothing was lost, and every history holds.",
        tallied.table()
    );
    Ok(0)
}

fn length(options: &TortureOptions) -> anyhow::Result<Duration> {
    let minutes = options.minutes;
    if !(minutes > 0.0 && minutes <= 1e4) {
        bail!("--minutes {minutes}: allowed are numbers above 0, to ten thousand");
    }
    if !(options.failover_seconds > 0.0 && options.failover_seconds <= 1e4) {
        let seconds = options.failover_seconds;
        bail!("--failover-seconds {seconds}: allowed are numbers above 0, to ten thousand");
    }
    if options.group <= 1 && options.faults.contains(&Kind::Folder) {
        bail!(
            "--faults folder: without groups a folder holds what is nowhere else; give --group 3"
        );
    }
    let lethal = [Kind::Kill, Kind::Disk, Kind::Folder]
        .into_iter()
        .find(|kind| options.faults.contains(kind));
    if let (true, Some(kind)) = (options.memory, lethal) {
        bail!(
            "--memory: a node loses what it holds in memory by the fault {kind:?}; leave one out"
        );
    }
    if !muesli_protocols::NAMES.contains(&&*options.protocol) {
        let names = muesli_protocols::NAMES.join(", ");
        bail!("there is no protocol `{}`; there are: {names}", options.protocol);
    }
    Ok(Duration::from_secs_f64(minutes * 60.0))
}

impl TortureOptions {
    fn round(&self, seed: u64, length: Duration, means: Means) -> Round {
        let (workload, parameters) = WORKLOADS[(seed % 2) as usize];
        let nodes = usize::from(self.nodes);
        let mut kinds = self.faults.clone();
        kinds.sort_unstable();
        kinds.dedup();
        Round {
            seed,
            length,
            kinds,
            nodes,
            replicas: (1 + seed as usize / 2 % 2).min(nodes),
            group: self.group,
            means,
            protocol: self.protocol.clone(),
            durable: !self.memory,
            workload,
            parameters,
            fails_over_within: self.fails_over_within(),
        }
    }

    fn fails_over_within(&self) -> Duration {
        Duration::from_secs_f64(self.failover_seconds)
    }

    /// The command that repeats the faults of a round.
    fn again(&self, seed: u64, means: Means) -> String {
        use clap::ValueEnum;
        let name = |kind: &Kind| kind.to_possible_value().map(|value| value.get_name().to_owned());
        let faults: Vec<_> = self.faults.iter().filter_map(name).collect();
        let memory = if self.memory { " --memory" } else { "" };
        let faults = faults.join(",");
        let TortureOptions { nodes, protocol, group, .. } = self;
        format!(
            "muesli torture --minutes 0.5 --seed {seed} --faults {faults} --nodes {nodes} \
             --group {group} --network {means} --protocol {protocol}{memory}"
        )
    }
}
