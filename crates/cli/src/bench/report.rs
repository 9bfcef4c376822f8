//! What a benchmark says: as JSON for scripts, as a table for people.

use std::collections::BTreeMap;

use comfy_table::Table;
use muesli_core::BatchCounts;
use muesli_workloads::check::Check;
use muesli_workloads::embedded::EARLIER;
use muesli_workloads::simulated::is_guaranteed;
use muesli_workloads::tally::Tally;
use serde::Serialize;

use crate::table::{self, grouped, micros};

/// The result of one benchmark. The names of the fields are what scripts read.
#[derive(Clone, Debug, Serialize)]
pub struct BenchResult {
    pub workload: &'static str,
    pub protocol: String,
    pub driver: &'static str,
    pub nodes: usize,
    pub repositories: usize,
    pub replicas: usize,
    pub clients: u32,
    pub seed: u64,
    pub parameters: Vec<String>,
    /// How long the clients ran; virtual in the simulator.
    pub seconds: f64,
    pub committed: u64,
    /// Attempts that met a conflict; they were tried again.
    pub aborted: u64,
    /// Transactions that the workload's own logic rolled back.
    pub rolled_back: u64,
    /// Transactions that gave up.
    pub failed: u64,
    pub unknown: u64,
    /// Committed transactions a second.
    pub throughput: f64,
    /// Share of all attempts that met a conflict, from 0 to 1.
    pub abort_rate: f64,
    pub latency_us: CommitLatency,
    /// How many messages for one node leave together at most, where they wait for each other.
    pub batch: usize,
    /// Messages between nodes per committed transaction, those of aborted attempts included.
    pub messages_per_commit: f64,
    /// Packets that they left in: all that leaves for one node at one time is one. On a cluster,
    /// messages and packets of the clients' process.
    pub packets_per_commit: f64,
    /// Bytes of these messages, in the simulator.
    pub bytes_per_commit: Option<f64>,
    /// What of all this passed between racks, in the simulator with racks.
    pub between_racks: Option<BetweenRacks>,
    /// How long messages waited for others, in the simulator.
    pub held_us: Option<HeldTimes>,
    /// The messages per committed transaction by their kind, in the simulator.
    pub messages_by_kind: Option<BTreeMap<&'static str, f64>>,
    pub checks: Vec<Checked>,
    /// What else the workload tells of the run.
    pub notes: Vec<String>,
}

/// From the first attempt of a transaction to its commit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CommitLatency {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// What passes from racks to others, for each committed transaction.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BetweenRacks {
    pub messages: f64,
    pub packets: f64,
    pub bytes: f64,
    /// Share of the time that uplinks were occupied, on average, from 0 to 1.
    pub occupied: f64,
}

/// How long messages waited until they left together with others.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeldTimes {
    /// Of those that waited.
    pub mean: f64,
    pub max: f64,
}

impl HeldTimes {
    /// As they were counted.
    pub fn of(counts: &BatchCounts) -> HeldTimes {
        HeldTimes {
            mean: counts.held.0 as f64 / counts.messages.max(1) as f64 / 1e3,
            max: counts.held_longest.0 as f64 / 1e3,
        }
    }
}

/// A check and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    pub name: String,
    pub ok: bool,
    /// Whether the protocol promises that it holds.
    pub guaranteed: bool,
    pub details: String,
}

impl Checked {
    /// A check under a protocol.
    pub fn new(check: Check, protocol: &str) -> Checked {
        let guaranteed = is_guaranteed(protocol, check.name);
        Checked { name: check.name.to_owned(), ok: check.ok, guaranteed, details: check.details }
    }

    /// Whether all is as promised.
    fn is_fine(&self) -> bool {
        self.ok || !self.guaranteed
    }

    fn short_verdict(&self) -> &'static str {
        match (self.ok, self.guaranteed) {
            _ if self.name == EARLIER => "not checked",
            (true, _) => "holds",
            (false, true) => "BROKEN",
            (false, false) => "broken, not promised",
        }
    }
}

impl CommitLatency {
    /// Those of a tally.
    pub fn of(tally: &Tally) -> CommitLatency {
        let at = |quantile| tally.latency.value_at_quantile(quantile) as f64 / 1e3;
        CommitLatency {
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: tally.latency.max() as f64 / 1e3,
        }
    }
}

impl BenchResult {
    /// Whether every check holds that the protocol promises to.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(Checked::is_fine)
    }

    /// `holds`, or what does not.
    pub fn verdict(&self) -> String {
        let broken: Vec<_> = self.checks.iter().filter(|check| !check.is_fine()).collect();
        match broken.first() {
            None => format!("{} checks hold", self.checks.len()),
            Some(first) => format!("BROKEN: {}: {}", first.name, first.details),
        }
    }
}

/// One column per result.
pub fn side_by_side(results: &[BenchResult]) -> Table {
    let Some(first) = results.first() else { return table::new(Vec::new()) };
    let title = format!("{} ({})", first.workload, first.driver);
    let header = std::iter::once(title).chain(results.iter().map(|one| one.protocol.clone()));
    let mut table = table::new(header.collect());
    let mut row = |name: &str, cell: &dyn Fn(&BenchResult) -> String| {
        table.add_row(std::iter::once(name.to_owned()).chain(results.iter().map(cell)));
    };
    row("nodes", &|one| one.nodes.to_string());
    row("committed/s", &|one| grouped(one.throughput.round() as u64));
    row("committed", &|one| grouped(one.committed));
    row("aborted attempts", &|one| format!("{:.2} %", one.abort_rate * 100.0));
    row("rolled back", &|one| grouped(one.rolled_back));
    row("gave up", &|one| grouped(one.failed));
    row("unknown", &|one| grouped(one.unknown));
    row("latency p50", &|one| micros(one.latency_us.p50));
    row("latency p95", &|one| micros(one.latency_us.p95));
    row("latency p99", &|one| micros(one.latency_us.p99));
    row("latency max", &|one| micros(one.latency_us.max));
    row("messages/commit", &|one| format!("{:.2}", one.messages_per_commit));
    row("packets/commit", &|one| format!("{:.2}", one.packets_per_commit));
    if results.iter().any(|one| one.bytes_per_commit.is_some()) {
        let bytes = |one: &BenchResult| one.bytes_per_commit.map(|it| format!("{it:.0}"));
        row("bytes/commit", &|one| bytes(one).unwrap_or_default());
    }
    if results.iter().any(|one| one.between_racks.is_some()) {
        let of = |one: &BenchResult, show: fn(BetweenRacks) -> String| {
            one.between_racks.map_or_else(String::new, show)
        };
        row("messages between racks", &|one| of(one, |it| format!("{:.2}", it.messages)));
        row("packets between racks", &|one| of(one, |it| format!("{:.2}", it.packets)));
        row("bytes between racks", &|one| of(one, |it| format!("{:.0}", it.bytes)));
        row("uplinks occupied", &|one| of(one, |it| format!("{:.0} %", it.occupied * 100.0)));
    }
    if results.iter().any(|one| one.batch > 1 && one.held_us.is_some()) {
        row("held for a batch", &|one| one.held_us.map_or_else(String::new, |it| micros(it.mean)));
    }
    for (place, check) in first.checks.iter().enumerate() {
        row(&check.name, &|one| {
            one.checks.get(place).map_or("-", Checked::short_verdict).to_owned()
        });
    }
    table
}

/// What the workload tells of its runs, a line each.
pub fn notes(results: &[BenchResult]) -> String {
    let of = |one: &BenchResult| -> String {
        one.notes.iter().map(|note| format!("\n{}: {note}", one.protocol)).collect()
    };
    results.iter().map(of).collect()
}

/// What does not hold, a line each.
pub fn broken(results: &[BenchResult]) -> String {
    let lines = results.iter().flat_map(|one| {
        let broken = one.checks.iter().filter(|check| !check.ok);
        broken.map(|check| format!("\n{}: {}: {}", one.protocol, check.name, check.details))
    });
    lines.collect()
}
