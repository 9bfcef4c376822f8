//! A point of a figure: what one run came to.

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    pub line: &'static str,
    /// Where on the axis.
    pub x: f64,
    pub nodes: usize,
    /// The nodes with those that only decide or validate; clients' nodes are not counted.
    pub machines: usize,
    pub clients: u32,
    /// Committed transactions a second.
    pub throughput: f64,
    /// Of these, such with several fragments; and how long they took on average.
    pub several_a_second: f64,
    pub several_ms: f64,
    /// Share of the attempts of updates that aborted, from 0 to 1.
    pub aborts: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub messages_a_commit: f64,
    /// Messages of commits, and packets that they left in, without reads and what nodes tell each
    /// other by themselves.
    pub commit_messages: f64,
    pub commit_packets: f64,
    /// How long a node with data validates for each request to vote, and how long it waits and is
    /// busy with messages for each of them that it takes in.
    pub validation_ms: f64,
    pub between_ms: f64,
    /// Share of transactions done in locking mode, at all repositories, from 0 to 1.
    pub locked: f64,
    /// How long a transition to locking mode took on average.
    pub transition_ms: f64,
    /// Messages, packets and bytes that passed between racks for each commit, and the share of the
    /// time that uplinks were occupied, from 0 to 1.
    pub rack_messages: f64,
    pub rack_packets: f64,
    pub rack_bytes: f64,
    pub links_occupied: f64,
    /// Committed transactions over those of the figure's first line at the same place; 0 where
    /// none were measured.
    pub over_first: f64,
    /// Share of the time that processors of nodes with data were busy, but for the cost of turns.
    pub busy: f64,
    /// Committed transactions a second as a theory has them; 0: there is none.
    pub predicted: f64,
    /// How long those took on average that committed in their first attempt, and that over what it
    /// is of the figure's first line at the same place.
    pub first_ms: f64,
    pub first_over_first: f64,
    /// Aborted attempts for each transaction that committed.
    pub aborts_a_commit: f64,
    /// How long attempts of transactions with open children were on average in each of their
    /// [phases](AttemptPart), of those that committed and of those that did not.
    pub committed_parts: [f64; ATTEMPT_PARTS],
    pub aborted_parts: [f64; ATTEMPT_PARTS],
    /// Of 100 transactions under a placement those that are distributed, those at a partition that
    /// their arguments do not name, and those in which a value crosses; the busiest partition's
    /// load over the mean; and how long a trace had to be.
    pub distributed: f64,
    pub misrouted: f64,
    pub crossing: f64,
    pub placed_load: f64,
    pub trace_length: f64,
    /// Checks of the workload that do not hold. Those of a protocol that promises less than
    /// serializability are left out.
    pub broken: Vec<String>,
}

impl Point {
    /// All that was measured, in one order.
    pub fn numbers_mut(&mut self) -> Vec<&mut f64> {
        let mut all = vec![
            &mut self.throughput,
            &mut self.several_a_second,
            &mut self.several_ms,
            &mut self.aborts,
            &mut self.mean_ms,
            &mut self.p50_ms,
            &mut self.p99_ms,
            &mut self.messages_a_commit,
            &mut self.commit_messages,
            &mut self.commit_packets,
            &mut self.validation_ms,
            &mut self.between_ms,
            &mut self.locked,
            &mut self.transition_ms,
            &mut self.rack_messages,
            &mut self.rack_packets,
            &mut self.rack_bytes,
            &mut self.links_occupied,
            &mut self.over_first,
            &mut self.busy,
            &mut self.predicted,
            &mut self.first_ms,
            &mut self.first_over_first,
            &mut self.aborts_a_commit,
            &mut self.distributed,
            &mut self.misrouted,
            &mut self.crossing,
            &mut self.placed_load,
            &mut self.trace_length,
        ];
        all.extend(&mut self.committed_parts);
        all.extend(&mut self.aborted_parts);
        all
    }

    /// What it shows.
    pub fn shows(&self, quantity: Quantity) -> f64 {
        match quantity {
            Quantity::Throughput | Quantity::Commands => self.throughput,
            Quantity::MedianLatency => self.p50_ms,
            Quantity::ANode => self.throughput / self.nodes as f64,
            Quantity::AMachine => self.throughput / self.machines as f64,
            Quantity::OverFirst => self.over_first,
            Quantity::Predicted => self.predicted,
            Quantity::Operations => self.throughput + self.several_a_second,
            Quantity::Latency => self.mean_ms,
            Quantity::SeveralLatency => self.several_ms,
            Quantity::CommitMessages => self.commit_messages,
            Quantity::CommitPackets => self.commit_packets,
            Quantity::Validation => self.validation_ms,
            Quantity::Between => self.between_ms,
            Quantity::Locked => 100.0 * self.locked,
            Quantity::Transition => self.transition_ms,
            Quantity::FirstLatency => self.first_ms,
            Quantity::FirstOverFirst => self.first_over_first,
            Quantity::AbortsACommit => self.aborts_a_commit,
            Quantity::Distributed => self.distributed,
            Quantity::Misrouted => self.misrouted,
            Quantity::Crossing => self.crossing,
            Quantity::PlacedLoad => self.placed_load,
            Quantity::TraceLength => self.trace_length,
            Quantity::CommittedPart(part) => self.committed_parts[part as usize],
            Quantity::AbortedPart(part) => self.aborted_parts[part as usize],
        }
    }
}

/// What a point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Committed transactions a second.
    Throughput,
    /// Delivered commands a second, of figures about commands alone.
    Commands,
    /// How long half of them took at most, in milliseconds.
    MedianLatency,
    /// Committed transactions a second, for each node.
    ANode,
    /// The same for each machine, those that only decide or validate included.
    AMachine,
    /// The same over that of the figure's first line at the same place.
    OverFirst,
    /// Committed transactions a second as a theory has them.
    Predicted,
    /// Fragments of committed transactions a second.
    Operations,
    /// How long transactions took on average, in milliseconds.
    Latency,
    /// The same of those with several fragments.
    SeveralLatency,
    /// Messages that a commit takes, its reads left out.
    CommitMessages,
    /// Packets in which these left.
    CommitPackets,
    /// How long a node with data validates for each request to vote, in milliseconds.
    Validation,
    /// How long a node with data waits, or is busy with messages, between two requests, in
    /// milliseconds.
    Between,
    /// Transactions done in locking mode, at all repositories, in percent.
    Locked,
    /// How long a repository needed on average to enter locking mode, in milliseconds.
    Transition,
    /// How long transactions took on average that committed in their first attempt, in
    /// milliseconds.
    FirstLatency,
    /// The same over that of the figure's first line at the same place.
    FirstOverFirst,
    /// Aborted attempts for each transaction that committed.
    AbortsACommit,
    /// Distributed transactions under a placement, in percent.
    Distributed,
    /// Transactions at a partition that their arguments do not name, in percent.
    Misrouted,
    /// Transactions in which a value crosses between partitions, in percent.
    Crossing,
    /// The busiest partition's transactions over the mean.
    PlacedLoad,
    /// Transactions of a trace that show the manual scheme.
    TraceLength,
    /// How long an attempt with open children that committed was in a part of it, in milliseconds.
    CommittedPart(AttemptPart),
    /// The same of one that did not.
    AbortedPart(AttemptPart),
}

/// What an attempt of a transaction with open children does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptPart {
    /// Bodies of open children that committed.
    Bodies,
    /// Their commits.
    Commits,
    /// Attempts of open children that did not.
    Lost,
    /// Compensations or commit handlers, and the release of locks.
    Ending,
    /// The transaction's own body and commit.
    Own,
}

/// So many there are.
pub const ATTEMPT_PARTS: usize = 5;

impl Quantity {
    /// Whether it is of a placement, and not of a run.
    pub fn is_of_placement(self) -> bool {
        matches!(
            self,
            Quantity::Distributed
                | Quantity::Misrouted
                | Quantity::Crossing
                | Quantity::PlacedLoad
                | Quantity::TraceLength
        )
    }

    /// What it is, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Throughput => "committed transactions a second",
            Quantity::Commands => "commands a second",
            Quantity::MedianLatency => "median latency, ms",
            Quantity::ANode => "committed transactions a second and node",
            Quantity::AMachine => "committed transactions a second and machine",
            Quantity::OverFirst => "committed transactions over those of the first line",
            Quantity::Predicted => "committed transactions a second by the theory",
            Quantity::Operations => "operations a second",
            Quantity::Latency => "mean latency, ms",
            Quantity::SeveralLatency => "mean latency of distributed transactions, ms",
            Quantity::CommitMessages => "messages of a commit",
            Quantity::CommitPackets => "packets of a commit",
            Quantity::Validation => "processing of a validation request, ms",
            Quantity::Between => "waiting time between requests, ms",
            Quantity::Locked => "transactions in locking mode, %",
            Quantity::Transition => "mean delay of a transition to locking mode, ms",
            Quantity::FirstLatency => "committed at once, mean latency, ms",
            Quantity::FirstOverFirst => "latency of those committed at once over the first line's",
            Quantity::AbortsACommit => "aborted attempts a commit",
            Quantity::Distributed => "distributed transactions, %",
            Quantity::Misrouted => "misrouted transactions, %",
            Quantity::Crossing => "transactions with a value that crosses, %",
            Quantity::PlacedLoad => "load of the busiest partition over the mean",
            Quantity::TraceLength => "transactions of the trace",
            Quantity::CommittedPart(_) => "committed attempts, ms in a part",
            Quantity::AbortedPart(_) => "aborted attempts, ms in a part",
        }
    }
}
