//! The options of `muesli sim`, and the command that repeats one of its seeds.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Command};
use muesli_sim::plan::Plan;
use muesli_sim::plan::fault::FaultKinds;
use muesli_workloads::available::Description;

use crate::names;
use crate::options::tree::TreeOptions;
use crate::options::{BatchOptions, workload_commands};
use crate::table::grouped;

/// What is asked for.
#[derive(Args, Clone, Debug)]
pub struct SimOptions {
    /// The seeds, as 1..101 (the last one is not tried) or one number [default: 1..101, or all
    /// from 1 on with --minutes]
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    pub seeds: Option<Range<u64>>,
    /// What goes wrong: none, all, or some of crash, client, partition, link, pause, disk, skew,
    /// loss (of a disk, where --group is above 1), sync
    #[arg(long, value_name = "KINDS", default_value = "all", value_parser = names::faults)]
    pub faults: FaultKinds,
    /// Stop after so many minutes, however many seeds are left
    #[arg(long, value_name = "M")]
    pub minutes: Option<f64>,
    /// The protocol
    #[arg(long, value_name = "NAME", default_value = "score",
        value_parser = names::protocols(), hide_possible_values = true)]
    pub protocol: String,
    /// Nodes with repositories; those behind the first --repositories have none, under alvin,
    /// certified-* and sharded-*, and use those of others
    #[arg(long, value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub nodes: u32,
    /// Repositories, dealt to the nodes in turn, each to as many as --group says [default: drawn
    /// from the seed, one to three a node; one a node with --group]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=4000))]
    pub repositories: Option<u16>,
    /// So many nodes more, on which the clients run; 0: they run beside the repositories [default:
    /// drawn from the seed, often 0]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=100))]
    pub client_nodes: Option<u16>,
    /// Whether the nodes of clients come and go, as processes of applications do: servers do not
    /// know them before, and judge what they say as a client's [default: drawn from the seed]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub visiting: Option<bool>,
    /// So many nodes more, which decide for all others and do nothing else: the masters of
    /// sinfonia, which are the clients' own nodes without this
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=100))]
    pub masters: u16,
    /// How many repositories hold each key [default: drawn from the seed, 1 to 3]
    #[arg(long, value_name = "R")]
    pub replicas: Option<usize>,
    #[command(flatten)]
    pub tree: TreeOptions,
    /// How many partitions there are for each repository; more than one where partitions move (as
    /// with --param moving=5 of append-procedures)
    #[arg(long = "spread", value_name = "P", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    pub partitions_per_repository: u16,
    /// How many nodes keep each repository, by agreeing on its log; 1 is none but its own
    #[arg(long, value_name = "G", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=9))]
    pub group: u16,
    /// Nodes keep copies of repositories that live elsewhere, and answer from them readers that
    /// take the nearest copy (as with --param nearby=100 of append-procedures)
    #[arg(long)]
    pub caches: bool,
    /// How many procedures that touch nothing in common a repository runs together at most, in an
    /// order that the seed draws (under granola and granola-passing)
    #[arg(long = "together", value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub parallel: u16,
    #[command(flatten)]
    pub batches: BatchOptions,
    /// Whether all transactions are strict, under protocols that have such: then histories are
    /// judged by real time, too [default: drawn from the seed, true in a quarter of them]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub strict: Option<bool>,
    /// Collect garbage, log bounds, give up and end leases as often as in production; else that is
    /// drawn from the seed, so that it happens in short runs
    #[arg(long)]
    pub production: bool,
    /// Clients
    #[arg(long, value_name = "C", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: u32,
    /// At least so many transactions are run with each seed; with more than 300 faults come for
    /// longer
    #[arg(long, value_name = "N", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub transactions: u64,
    /// Faults come for at least so many virtual seconds
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    pub seconds: f64,
    /// So many messages of strangers in each virtual millisecond: clients that say what no honest
    /// process says. How many of each kind pass the first checks is written at the end
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub strangers: u32,
    /// Strangers pass for members of the cluster: then nodes have to live, and nothing else is
    /// judged
    #[arg(long, requires = "strangers")]
    pub as_members: bool,
    /// Write the histories that are judged into this folder, as seed-S-WORKLOAD.jsonl, for `muesli
    /// check` and other checkers
    #[arg(long, value_name = "FOLDER")]
    pub history: Option<PathBuf>,
    /// What goes wrong, instead of what the seed draws, as in `horizon 1s; 12ms+300ms crash n3`
    #[arg(long, value_name = "TEXT")]
    pub plan: Option<Plan>,
    /// Write every event of the run; takes one seed
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// A parameter of the workload, listed below with what it is here unless given
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub parameters: Vec<String>,
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
    workload_commands::<SimOptions>(command, small)
}

/// What is said of a workload's size here.
fn small(workload: &Description) -> String {
    format!("Here these are the defaults: {}.\n", workload.small.join(", "))
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

/// What is going to be run.
pub fn task(workload: &str, options: &SimOptions, seeds: &Range<u64>) -> String {
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

/// The command that runs this seed again.
pub fn command_again(
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
    if options.parallel > 1 {
        command += &format!(" --together {}", options.parallel);
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
    command += &options.tree.again();
    command += &options.batches.arguments();
    if options.partitions_per_repository > 1 {
        command += &format!(" --spread {}", options.partitions_per_repository);
    }
    for parameter in &options.parameters {
        command += &format!(" --param '{parameter}'");
    }
    if let Some(plan) = shorter.or(options.plan.as_ref()) {
        command += &format!(" --plan '{plan}'");
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::options::chosen;

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
             --group 3 --repositories 8 --caches --together 4 --spread 3 --tree 2x3 \
             --validators 2 --validator-nodes 3 --clients 3 --transactions 50 \
             --client-nodes 2 --visiting true --strict false --production \
             --batch 10 --batch-timeout 500us --batch-links tree \
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
    fn seeds_are_a_range_or_one() {
        assert_eq!(seeds("3..5"), Ok(3..5));
        assert_eq!(seeds("7"), Ok(7..8));
        for wrong in ["", "a", "5..3", "4..4", "1-2", "..", "1..x"] {
            assert!(seeds(wrong).is_err(), "{wrong} was taken");
        }
    }

    #[test]
    fn what_is_going_to_be_run_is_told() {
        let intro = |line: &str| {
            let options = parsed(line);
            task("bank", &options, &options.seeds.clone().expect("they are given"))
        };
        let all = "bank under score, faults all, 300 transactions or more: ";
        assert_eq!(intro("muesli sim bank --seeds 1..20"), format!("{all}19 seeds, 1 to 19"));
        assert_eq!(intro("muesli sim bank --seeds 5"), format!("{all}seed 5"));
    }
}
