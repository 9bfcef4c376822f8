//! `muesli demo`: a first look. Two workloads on an embedded database, their histories checked;
//! then a cluster of processes that survives a kill.

mod survive;

use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, Command};
use muesli_workloads::available::find;
use muesli_workloads::embedded::Length;
use muesli_workloads::machines::MachineModel;
use muesli_workloads::simulated::guarantee;
use muesli_workloads::tally::Tallies;

use crate::bench::measure::{BenchDriver, Benchmark};
use crate::bench::report::BenchResult;
use crate::bench::watched;
use crate::options::BatchOptions;
use crate::table::{self, grouped, micros};

const REPOSITORIES: usize = 4;
const REPLICAS: usize = 2;
const CLIENTS: u32 = 16;

/// What is run: name shown, workload, parameters, transactions.
const RUNS: &[(&str, &str, &[&str], u64)] = &[
    ("bank transfers", "bank", &["objects=1000"], 40_000),
    ("YCSB A", "ycsb", &["workload=a"], 40_000),
    (
        "YCSB, 16 keys a transaction",
        "ycsb",
        &["workload=t", "keys=10000", "distribution=uniform"],
        20_000,
    ),
];

const NEXT: &str = "\
Next:
  muesli bench bank --repositories 4 --replicas 2 --seconds 5
  muesli sim bank --seeds 1..50 --faults all
  muesli cluster up --group 3 && muesli cluster status && muesli cluster down
  muesli torture --group 3 --minutes 2
  muesli --help";

/// The command's options.
pub fn command() -> Command {
    let about =
        "A first look, under a minute: workloads run and checked, a cluster survives a kill";
    Command::new("demo").about(about)
}

/// Runs the command.
///
/// # Errors
/// It cannot be carried out.
pub fn run(_: &ArgMatches) -> anyhow::Result<u8> {
    let mut out = stdout();
    let nodes = std::thread::available_parallelism().map_or(1, usize::from).min(REPOSITORIES);
    // Here and below: a reader that has gone away is no matter.
    let _ = writeln!(
        out,
        "An embedded database: {REPOSITORIES} repositories on {nodes} loops, each key on \
         {REPLICAS} of them; {CLIENTS} clients."
    );
    let header = ["workload", "committed/s", "aborted", "p50", "p99", "verdict"];
    let mut table = table::new(header.map(str::to_owned).into());
    let mut holds = true;
    for (name, workload, parameters, transactions) in RUNS {
        let benchmark = Benchmark {
            batches: BatchOptions::default(),
            workload: find(workload)?,
            parameters: parameters.iter().map(|text| (*text).to_owned()).collect(),
            driver: BenchDriver::Embedded,
            protocol: "score".to_owned(),
            nodes,
            loops: 1,
            masters: 0,
            tree: None,
            validator_nodes: 0,
            repositories: REPOSITORIES,
            replicas: REPLICAS,
            procedure_threads: 1,
            group: 1,
            partitions_per_repository: 1,
            parallel: 1,
            caches: false,
            near: None,
            client_nodes: 0,
            machine: MachineModel::measured(),
            strict: false,
            clients: CLIENTS,
            warm_up: Duration::ZERO,
            length: Length::Transactions(*transactions),
            seed: 1,
            history: true,
            durable: false,
            namespaces: false,
            connect: None,
        };
        let (measured, verdict) = measure(&benchmark)?;
        holds &= measured.holds() && verdict.is_ok();
        let verdict = verdict.unwrap_or_else(|broken| broken);
        table.add_row([
            (*name).to_owned(),
            grouped(measured.throughput.round() as u64),
            format!("{:.2} %", measured.abort_rate * 100.0),
            micros(measured.latency_us.p50),
            micros(measured.latency_us.p99),
            if measured.holds() { verdict } else { measured.verdict() },
        ]);
    }
    let _ = writeln!(out, "{table}\nEvery history was recorded and judged.");
    holds &= survive::run()?;
    let _ = writeln!(out, "\n{NEXT}");
    Ok(u8::from(!holds))
}

/// Runs a benchmark and judges its history: the level that it satisfies, or what breaks it.
fn measure(benchmark: &Benchmark) -> anyhow::Result<(BenchResult, Result<String, String>)> {
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let (measured, history) = watched(benchmark, &tallies)?;
    let (level, options) = guarantee(&benchmark.protocol).expect("it was just run");
    let history = history.expect("it was asked for");
    let verdict = muesli_check::check(&history, level, &options);
    let judged =
        if verdict.holds() { Ok(level.name().to_owned()) } else { Err(verdict.to_string()) };
    Ok((measured, judged))
}
