//! `muesli torture`: real processes under random faults, their histories judged.
//!
//! Rounds follow each other, each with a cluster of its own: clients run transfers between
//! accounts, append to lists or call procedures, beside data that is loaded once, while nodes are
//! killed, stopped, cut off and given bad disks. In the end everything heals, the cluster must
//! serve, everything that was acknowledged must be there, and the history must be one that the
//! protocol allows.

mod ballast;
mod copies;
mod inflict;
mod network;
mod operator;
mod plan;
mod probe;
mod roster;
mod round;
mod tally;

use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use muesli_registry::check_tree;
use signal_hook::consts::{SIGINT, SIGTERM};

use ballast::Ballast;
use network::{Means, PartitionMeans};
use plan::TortureKind;
use round::TortureRound;
use tally::Tallied;

use crate::names;
use crate::options::tree::TreeOptions;

/// A round must have time for at least a fault or two.
const ROUND_LEAST: Duration = Duration::from_secs(3);

/// The workloads that take turns, with parameters that make transactions meet, and that delete keys
/// and insert them again.
const WORKLOADS: [(&str, &[&str]); 4] = [
    ("bank", &["objects=300", "reads=30", "totals=2", "marks=30", "blind-marks=30"]),
    ("append", &["keys=15", "length=60", "marks=30", "blind-marks=30"]),
    ("append-procedures", &["keys=15", "length=60", "marks=30"]),
    ("counter-procedures", &["keys=20", "distributed=50", "coordinated=30", "conflicts=20"]),
];

/// The workloads whose transactions have parts that can be children of any kind.
const NESTED_WORKLOADS: [(&str, &[&str]); 3] = [
    ("bank", &["objects=300", "reads=30"]),
    ("skiplist", &["objects=24", "initial=8", "rule=random", "calls=3"]),
    ("hashtable", &["objects=24", "initial=8", "rule=random", "calls=3"]),
];

/// Under protocols that begin with one of these, transactions that run may see torn snapshots,
/// in which a skip list is none; there are hash tables in its place.
const TORN_SNAPSHOTS: [&str; 2] = ["granola", "sinfonia"];

/// Protocols whose servers run procedures begin with one of these.
const RUN_PROCEDURES: [&str; 5] = ["granola", "sinfonia", "alvin", "certified-", "sharded-"];

#[derive(Args, Clone, Debug)]
struct TortureOptions {
    /// How long; a fraction is allowed
    #[arg(long, value_name = "M", default_value_t = 1.0)]
    minutes: f64,
    /// What is to go wrong [default: kill, pause, partition, disk; with groups folder]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_enum)]
    faults: Vec<TortureKind>,
    /// How many servers
    #[arg(long, alias = "nodes", value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=16))]
    servers: u16,
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
    /// How long a round is, at most
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    round_seconds: f64,
    /// What clients run, in turn: bank, append, append-procedures, counter-procedures; with
    /// --nesting bank and skiplist (hashtable under granola and sinfonia) [default: all; those
    /// of procedures only where the protocol runs some]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    workloads: Vec<String>,
    /// Parts of transactions are children (in `bank`, auto is the choice of flat or closed; every
    /// other round of sets has open children within open children)
    #[arg(long, value_name = "MODEL", value_parser = ["closed", "open", "auto"])]
    nesting: Option<String>,
    /// So many megabytes are loaded beside, once a round, and read, changed and checked
    #[arg(long, value_name = "MB", default_value_t = 0)]
    data_mb: u64,
    /// The longest value of these, in kilobytes
    #[arg(long, value_name = "KB", default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..=1024))]
    value_kb: u64,
    /// What partitions are made with
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    network: PartitionMeans,
    /// The protocol
    #[arg(long, value_name = "NAME", default_value = "score",
        value_parser = names::protocols(), hide_possible_values = true)]
    protocol: String,
    #[command(flatten)]
    tree: TreeOptions,
    /// Keep data in memory only; for pauses and partitions
    #[arg(long)]
    memory: bool,
}

/// The command's options.
pub fn command() -> Command {
    TortureOptions::augment_args(Command::new("torture"))
        .about("Look for lost promises on real processes under random faults")
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(matches: &ArgMatches) -> anyhow::Result<u8> {
    let mut options = TortureOptions::from_arg_matches(matches)?;
    if options.faults.is_empty() {
        options.faults =
            vec![TortureKind::Kill, TortureKind::Pause, TortureKind::Partition, TortureKind::Disk];
        options.faults.extend((options.group > 1).then_some(TortureKind::Folder));
    }
    if options.workloads.is_empty() {
        options.workloads = options.known_workloads();
    }
    let length = length(&options)?;
    let longest = Duration::from_secs_f64(options.round_seconds);
    let over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, over.clone()).context("cannot wait for signals")?;
    }
    let first = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let mut out = stdout();
    let (means, printed) = options.network.settle()?;
    let _ = writeln!(out, "{printed}"); // Here and below: a reader that has gone away is no matter.
    let (start, mut tallied) = (Instant::now(), Tallied::default());
    for number in 0.. {
        let left = length.saturating_sub(start.elapsed());
        if over.load(Ordering::Relaxed) || (number > 0 && left < ROUND_LEAST) {
            break;
        }
        let round = options.round(first + number, left.clamp(ROUND_LEAST, longest), means);
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
    let _ = write!(out, "\n{}\n{fail_overs}", tallied.table());
    if let Some(kind) = tallied.never_tried() {
        let _ =
            writeln!(out, "NOT SHOWN: {kind}. The servers or the machine were too slow for it.");
        return Ok(1);
    }
    let _ = writeln!(out, "Nothing was lost, and every history holds.");
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
    let seconds = options.round_seconds;
    if !(ROUND_LEAST.as_secs_f64()..=86_400.0).contains(&seconds) {
        bail!("--round-seconds {seconds}: allowed are 3 to 86400, a day");
    }
    if options.data_mb > 1 << 20 {
        bail!("--data-mb {}: allowed are 0 to 1048576, a terabyte", options.data_mb);
    }
    check_tree(&options.protocol, options.tree.tree.is_some())?;
    let known = options.known_workloads();
    if let Some(name) = options.workloads.iter().find(|name| !known.contains(name)) {
        let (protocol, known) = (&options.protocol, known.join(", "));
        let nested = options.nesting.as_ref().map(|it| format!(" with --nesting {it}"));
        let nested = nested.unwrap_or_default();
        bail!("--workloads {name}: allowed under {protocol}{nested} are {known}");
    }
    if options.group <= 1 && options.faults.contains(&TortureKind::Folder) {
        bail!(
            "--faults folder: without groups a folder holds what is nowhere else; give --group 3"
        );
    }
    if options.faults.contains(&TortureKind::Move)
        && (options.group <= 1 || options.servers <= options.group)
    {
        bail!("--faults move: members move where a server has none; give --group 3 --servers 4");
    }
    if options.faults.contains(&TortureKind::Join) && options.group <= 1 {
        bail!("--faults join: servers join and leave where there are groups; give --group 3");
    }
    let moves = options.faults.iter().any(|kind| kind.is_beside());
    if moves && options.faults.contains(&TortureKind::Folder) {
        bail!("--faults move,folder: a folder lost during a move is one loss too many; choose one");
    }
    let lethal = [
        TortureKind::Kill,
        TortureKind::Disk,
        TortureKind::Folder,
        TortureKind::Backup,
        TortureKind::Clock,
    ]
    .into_iter()
    .find(|kind| options.faults.contains(kind));
    if let (true, Some(kind)) = (options.memory, lethal) {
        bail!(
            "--memory: a server loses what it holds in memory by the fault {kind:?}; leave one out"
        );
    }
    Ok(Duration::from_secs_f64(minutes * 60.0))
}

/// The workloads that can run under a protocol where transactions have no children.
fn workloads_of(protocol: &str) -> Vec<String> {
    let procedures = RUN_PROCEDURES.iter().any(|prefix| protocol.starts_with(prefix));
    let names = WORKLOADS.iter().map(|(name, _)| *name);
    names.filter(|name| procedures || !name.ends_with("-procedures")).map(str::to_owned).collect()
}

/// The workloads that can run under a protocol where transactions have children.
fn nested_workloads_of(protocol: &str) -> Vec<String> {
    let torn = TORN_SNAPSHOTS.iter().any(|prefix| protocol.starts_with(prefix));
    let left_out = if torn { "skiplist" } else { "hashtable" };
    let names = NESTED_WORKLOADS.iter().map(|(name, _)| *name);
    names.filter(|name| *name != left_out).map(str::to_owned).collect()
}

impl TortureOptions {
    /// The workloads that can be run.
    fn known_workloads(&self) -> Vec<String> {
        match self.nesting {
            Some(_) => nested_workloads_of(&self.protocol),
            None => workloads_of(&self.protocol),
        }
    }

    /// A workload with its parameters.
    fn workload(&self, name: &str) -> (&'static str, Vec<String>) {
        let all: &[(&'static str, &[&str])] =
            if self.nesting.is_some() { &NESTED_WORKLOADS } else { &WORKLOADS };
        let found = all.iter().find(|(known, _)| *known == name);
        let (name, parameters) = found.expect("the names were looked at");
        let nesting = self.nesting.iter().map(|model| format!("nesting={model}"));
        (name, parameters.iter().map(|it| (*it).to_owned()).chain(nesting).collect())
    }

    fn round(&self, seed: u64, length: Duration, means: Means) -> TortureRound {
        let name = &self.workloads[(seed % self.workloads.len() as u64) as usize];
        let (workload, mut parameters) = self.workload(name);
        let may_be_open = self.nesting.as_ref().is_some_and(|model| model != "closed");
        // With one copy and with several, by the next bit.
        if may_be_open && workload != "bank" && seed / 8 % 2 == 1 {
            parameters.extend(["open=nested", "again=20"].map(str::to_owned));
        }
        let (with_data, apart) =
            (usize::from(self.servers), usize::from(self.tree.validator_nodes));
        let nodes = with_data + apart;
        let mut kinds = self.faults.clone();
        kinds.sort_unstable();
        kinds.dedup();
        TortureRound {
            seed,
            length,
            kinds,
            nodes,
            replicas: (1 + seed as usize / 2 % 2).min(with_data),
            group: self.group,
            means,
            tree: self.tree.clone(),
            protocol: self.protocol.clone(),
            durable: !self.memory,
            workload,
            parameters,
            ballast: Ballast::of(self.data_mb << 20, self.value_kb << 10),
            short_leases: seed / 4 % 2 == 1,
            fails_over_within: self.fails_over_within(),
        }
    }

    fn fails_over_within(&self) -> Duration {
        Duration::from_secs_f64(self.failover_seconds)
    }

    /// The command that repeats the faults of a round.
    fn again(&self, seed: u64, means: Means) -> String {
        use clap::ValueEnum;
        let name =
            |kind: &TortureKind| kind.to_possible_value().map(|value| value.get_name().to_owned());
        let faults: Vec<_> = self.faults.iter().filter_map(name).collect();
        let memory = if self.memory { " --memory" } else { "" };
        let nesting = self.nesting.iter().map(|model| format!(" --nesting {model}"));
        let nesting = nesting.collect::<String>();
        let (faults, tree) = (faults.join(","), self.tree.again());
        let TortureOptions { servers, protocol, group, data_mb, value_kb, .. } = self;
        let (seconds, workloads) = (self.round_seconds, self.workloads.join(","));
        let failover = self.failover_seconds;
        let minutes = seconds / 60.0;
        format!(
            "muesli torture --minutes {minutes} --round-seconds {seconds} --workloads {workloads} \
             --data-mb {data_mb} --value-kb {value_kb} --seed {seed} --faults {faults} \
             --servers {servers} --group {group} --failover-seconds {failover} --network {means} \
             --protocol {protocol}{tree}{memory}{nesting}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> TortureOptions {
        let words = line.split_whitespace().skip(1);
        TortureOptions::from_arg_matches(&command().try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn the_command_that_is_told_repeats_all_that_was_asked_for() {
        let options = parsed(
            "muesli torture --minutes 0.1 --faults kill,pause --servers 5 --group 3 --seed 7 \
             --failover-seconds 2.5 --round-seconds 6 --workloads bank,skiplist --data-mb 3 \
             --value-kb 9 --network proxy --protocol hierarchy --tree 5 --validators 2 \
             --validator-nodes 2 --memory --nesting open",
        );
        let again = parsed(&options.again(7, Means::Proxy));
        assert_eq!(format!("{again:?}"), format!("{options:?}"));
    }

    #[test]
    fn leases_end_in_half_of_the_rounds_unless_data_are_loaded() {
        let rounds = |line: &str| {
            let mut options = parsed(line);
            options.workloads = workloads_of(&options.protocol);
            let round = move |seed| options.round(seed, ROUND_LEAST, Means::Proxy).to_string();
            (0..40).map(round).collect::<Vec<_>>()
        };
        let short = |round: &&String| round.ends_with(", 3 s, leases of 0.5 s");
        let (bare, loaded) = (rounds("muesli torture"), rounds("muesli torture --data-mb 1"));
        assert_eq!(bare.iter().filter(short).count(), 20, "{bare:?}");
        for part in ["bank", "append", " 1 replicas", " 2 replicas"] {
            assert!(bare.iter().filter(short).any(|round| round.contains(part)), "{bare:?}");
        }
        assert!(loaded.iter().all(|round| round.ends_with(", 3 s")), "{loaded:?}");
    }

    /// Where running transactions may see torn snapshots their children have no skip list.
    #[test]
    fn workloads_with_children_are_those_that_the_protocol_can_run() {
        for (protocol, structure) in
            [("score", "skiplist"), ("granola-locking", "hashtable"), ("sinfonia", "hashtable")]
        {
            let line = format!("muesli torture --nesting open --protocol {protocol}");
            assert_eq!(parsed(&line).known_workloads(), ["bank", structure]);
        }
    }
}
