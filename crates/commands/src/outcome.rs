//! What came of a run.

use muesli_core::Nanos;

/// What came of a run whose order was right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandOutcome {
    /// How long clients were measured.
    pub measured: Nanos,
    /// Commands that their own members delivered in this time.
    pub commands: u64,
    /// From the issue of a command to its delivery at its own member, of those.
    pub latency: CommandLatency,
    /// Commands that clients skipped in this time, as too many were in flight.
    pub skipped: u64,
    /// Messages, packets and bytes that members sent in this time.
    pub messages: u64,
    /// Packets: in the simulator what leaves together, else calls of the system that write.
    pub packets: u64,
    /// Bytes, with those of frames.
    pub bytes: u64,
    /// The share of this time that cores were busy, on average and at the busiest node, from 0 to
    /// 1; in the simulator.
    pub busy: Option<BusyShares>,
    /// All commands that were proposed, delivered at each member and checked.
    pub checked: u64,
    /// A number made of all orders: two runs that delivered alike have the same.
    pub order: u64,
}

/// How long commands took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandLatency {
    /// On average.
    pub mean: Nanos,
    /// Half of them took less.
    pub p50: Nanos,
    /// 99 of 100 took less.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// How busy nodes were, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusyShares {
    /// All cores of all nodes.
    pub mean: f64,
    /// All cores of the node that was busiest.
    pub busiest: f64,
    /// The core that steps its member, at the node where it did most.
    pub stepping: f64,
}

impl CommandLatency {
    /// Of these, in any order.
    pub fn of(mut all: Vec<u64>) -> CommandLatency {
        all.sort_unstable();
        let Some(&max) = all.last() else { return CommandLatency::default() };
        let at = |share: f64| Nanos(all[((all.len() - 1) as f64 * share) as usize]);
        let mean =
            Nanos((all.iter().map(|it| u128::from(*it)).sum::<u128>() / all.len() as u128) as u64);
        CommandLatency { mean, p50: at(0.5), p99: at(0.99), max: Nanos(max) }
    }
}

impl CommandOutcome {
    /// Commands a second.
    pub fn a_second(&self) -> f64 {
        self.commands as f64 * 1e9 / (self.measured.0.max(1)) as f64
    }

    /// So many of something for each command.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.commands.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_by_their_order() {
        let latency = CommandLatency::of((1..=101).rev().collect());
        let CommandLatency { mean, p50, p99, max } = latency;
        assert_eq!([mean, p50, p99, max].map(|it| it.0), [51, 51, 100, 101]);
        assert_eq!(CommandLatency::of(Vec::new()), CommandLatency::default());
    }
}
