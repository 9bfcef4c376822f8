//! The numbers that a loop says of itself, with what each counts.

use muesli_core::{Maintenance, Nanos, Work};

use crate::connections::connection::ConnectionState;
use crate::dispatch::event_loop::Loop;
use crate::wire::hello::ProcessKind;

/// Whether a number only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// It only grows, from the start of the process.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A number that a loop says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusNumber {
    /// Its name, as in `in-doubt`.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: NumberKind,
    /// What it counts, in a few words.
    pub about: &'static str,
}

const fn counter(name: &'static str, about: &'static str) -> StatusNumber {
    StatusNumber { name, kind: NumberKind::Counter, about }
}

const fn gauge(name: &'static str, about: &'static str) -> StatusNumber {
    StatusNumber { name, kind: NumberKind::Gauge, about }
}

/// All of them, in the order in which they are said; of validators and of messages between drivers
/// that were judged there are further ones.
pub const STATUS_NUMBERS: &[StatusNumber] = &[
    gauge("node", "which node the loop is"),
    gauge("ready", "1: it serves clients, as it has met the others"),
    gauge("epoch", "version of the map of spaces and servers"),
    gauge("placement", "version of where members of groups live"),
    gauge("tree", "version of the tree of validators"),
    gauge("servers", "other servers that are connected"),
    gauge("clients", "clients that are connected"),
    gauge("connections", "connections of all kinds"),
    gauge("outgoing-bytes", "bytes that wait to be sent"),
    gauge("repositories", "repositories that live here"),
    gauge("in-doubt", "transactions that voted yes and do not know their end"),
    gauge("coordinating", "transactions that run here"),
    gauge("tasks", "tasks that run here"),
    counter("messages-sent", "messages that were sent"),
    counter("bytes-written", "bytes that were written to connections"),
    counter("writes", "system calls that wrote"),
    counter("reads", "system calls that read"),
    counter("polls", "system calls that waited for something to happen"),
    counter("keys-read", "keys that repositories here have read"),
    counter("keys-validated", "keys that they have locked and validated"),
    counter("versions-installed", "versions that commits have installed"),
    counter("versions-collected", "old versions and deletions that nobody needed any more"),
    counter("snapshots-moved", "snapshots of running transactions that moved to later ones"),
    counter("claims", "commits refused here whose transactions hold what they have read"),
    counter("partial-aborts", "parts of transactions that were undone alone"),
    counter(
        "operations-given-up",
        "operations of transactions run here that were not answered in time",
    ),
    counter("doubts-ended", "transactions in doubt that participants ended by asking each other"),
    counter(
        "snapshots-aged",
        "snapshots that hold no versions back any more, as they were open for too long",
    ),
    counter(
        "leases-ended",
        "nodes whose snapshots hold no versions back, as nothing was heard of them",
    ),
    counter("clients-forgotten", "clients that repositories forgot, as nothing was heard of them"),
    gauge("log-kept", "bytes of the log"),
    counter("log-syncs", "syncs of the log"),
    counter("messages-unsent", "messages for which there was no connection"),
    counter("messages-oversize", "messages that did not fit into a frame"),
    counter("messages-astray", "messages for a node or repository that is not here"),
    gauge("memory-bytes", "bytes of keys, versions and transactions under way"),
    gauge("old-version-bytes", "bytes of replaced versions that open snapshots hold"),
    gauge("oldest-snapshot-ms", "age of the oldest snapshot, in milliseconds"),
    gauge("oldest-snapshot-node", "whose snapshot that is"),
    counter("messages-rejected", "messages that named what is not there, or broke a rule"),
    counter(
        "connections-misunderstood",
        "connections that said what is no frame, or of another version",
    ),
    counter("connections-turned-away", "connections that were closed because there was no room"),
    gauge("unproven", "servers looked for that have not shown the secret"),
    counter("checkpoints", "checkpoints that were written"),
    gauge("time-ms", "the loop's own clock, in milliseconds"),
];

impl Loop {
    /// How this process does.
    pub(super) fn status(&self) -> Vec<(String, u64)> {
        let lines: Vec<(&str, u64)> =
            [self.network_numbers(), self.work_numbers(), self.storage_numbers()].concat();
        assert!(lines.len() == STATUS_NUMBERS.len(), "{} numbers", lines.len());
        let in_order = STATUS_NUMBERS.iter().map(|number| {
            let found = lines.iter().find(|(name, _)| *name == number.name);
            (number.name.to_owned(), found.expect("each number is counted").1)
        });
        let inner = self.loop_engine.inner.borrow();
        in_order.chain(self.peers.judged.lines()).chain(inner.machine.figures()).collect()
    }

    /// Who is connected, and what went over connections.
    fn network_numbers(&self) -> Vec<(&'static str, u64)> {
        let inner = self.loop_engine.inner.borrow();
        let ups = |wanted: ProcessKind| {
            let all = self.peers.all();
            let up = |state| match state {
                ConnectionState::Up { process_kind, .. } => process_kind == wanted,
                _ => false,
            };
            all.filter(|(_, connection)| up(connection.state)).count() as u64
        };
        let (counts, peers) = (&inner.outside.counts, &self.peers);
        vec![
            ("node", u64::from(peers.me.node.0)),
            ("ready", u64::from(peers.awaited().is_empty())),
            ("epoch", peers.map.as_ref().map_or(0, |map| map.catalog.epoch)),
            ("placement", inner.machine.catalog().placement),
            ("tree", inner.machine.catalog().tree_epoch),
            ("servers", ups(ProcessKind::Server)),
            ("clients", ups(ProcessKind::Client)),
            ("connections", peers.count() as u64),
            ("outgoing-bytes", inner.outside.outbox.waiting().0 as u64),
            ("messages-sent", counts.traffic.messages),
            ("bytes-written", counts.traffic.bytes),
            ("writes", counts.traffic.writes),
            ("reads", counts.traffic.reads),
            ("polls", counts.traffic.polls),
            ("messages-unsent", counts.unsent),
            ("messages-oversize", counts.oversize),
            ("messages-astray", peers.astray),
            ("messages-rejected", inner.machine.rejections().total()),
            ("connections-misunderstood", peers.misunderstood),
            ("connections-turned-away", peers.refused_at_limit),
            ("unproven", peers.unproven),
        ]
    }

    /// What transactions and repositories here have done.
    fn work_numbers(&self) -> Vec<(&'static str, u64)> {
        let inner = self.loop_engine.inner.borrow();
        let (coordinated, in_doubt) = inner.machine.unfinished();
        let environment = inner.machine.environment();
        let Work { reads, validated, installed } = environment.work;
        let Maintenance {
            collected,
            trimmed: _,
            snapshots_aged,
            leases_ended,
            clients_forgotten,
            finished,
            given_up,
            partial_aborts,
            snapshots_moved,
            claimed,
        } = environment.maintenance;
        vec![
            ("repositories", inner.machine.repositories() as u64),
            ("in-doubt", in_doubt as u64),
            ("coordinating", coordinated as u64),
            ("tasks", self.tasks() as u64),
            ("keys-read", reads),
            ("keys-validated", validated),
            ("versions-installed", installed),
            ("versions-collected", collected),
            ("snapshots-moved", snapshots_moved),
            ("partial-aborts", partial_aborts),
            ("claims", claimed),
            ("operations-given-up", given_up),
            ("doubts-ended", finished),
            ("snapshots-aged", snapshots_aged),
            ("leases-ended", leases_ended),
            ("clients-forgotten", clients_forgotten),
        ]
    }

    /// What is kept, in memory and on the disk.
    fn storage_numbers(&self) -> Vec<(&'static str, u64)> {
        let inner = self.loop_engine.inner.borrow();
        let now: Nanos = inner.now();
        let oldest = inner.machine.oldest_snapshot();
        let holder = oldest.map_or(0, |(node, _)| u64::from(node.0));
        let age = oldest.and_then(|(_, since)| since).map_or(Nanos(0), |since| now - since);
        vec![
            ("log-kept", inner.kept()),
            ("log-syncs", inner.outside.log.as_ref().map_or(0, |log| log.syncs())),
            ("memory-bytes", inner.machine.memory().all),
            ("old-version-bytes", inner.machine.memory().old),
            ("oldest-snapshot-ms", age.as_millis()),
            ("oldest-snapshot-node", holder),
            ("checkpoints", inner.outside.counts.checkpoints),
            ("time-ms", now.as_millis()),
        ]
    }
}
