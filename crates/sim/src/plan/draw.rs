//! Drawing a plan from a seed.

use muesli_core::NodeId;

use super::{Plan, TimedFault};
use crate::hardware::clock::Drift;
use crate::plan::fault::{Direction, Fault, FaultKind, FaultKinds};
use crate::random::{Random, Seed};
use crate::time::{Span, VirtualTime};

/// What plans may be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanShape {
    /// How many nodes there are.
    pub nodes: u32,
    /// How many clients there are.
    pub clients: u32,
    /// By when every fault is repaired.
    pub horizon: VirtualTime,
    /// The kinds of faults.
    pub kinds: FaultKinds,
    /// How many trees there are that validators may change to; 0: trees stay as they are, and other
    /// faults are drawn as if there were none such.
    pub trees: u32,
    /// How many faults there are at most; a fault for which there is no room is left out.
    pub faults_max: u32,
}

const LENGTH_LEAST: Span = Span::from_millis(1);
const LENGTH_MOST: Span = Span::from_secs(2);

impl PlanShape {
    /// Draws a plan. The same seed and shape draw the same plan.
    pub fn draw(&self, seed: Seed) -> Plan {
        let mut random = seed.split("fault plan").stream();
        let kinds = match self.trees {
            0 => self.kinds.without(FaultKind::Tree),
            _ => self.kinds.clone(),
        };
        let mut faults: Vec<TimedFault> = Vec::new();
        let count = random.between(u64::from(self.faults_max.min(1)), self.faults_max.into());
        for _ in 0..count {
            let Some(timed) = self.draw_fault(&kinds, &mut random) else { continue };
            if faults.iter().all(|other| !clash(other, &timed)) {
                faults.push(timed);
            }
        }
        Plan::new(self.horizon, faults).expect("drawn faults end by the horizon")
    }

    fn draw_fault(&self, kinds: &FaultKinds, random: &mut Random) -> Option<TimedFault> {
        let kind = *random.pick(kinds.as_slice())?;
        let horizon = self.horizon.as_nanos();
        let at = random.below(horizon / 10 * 9);
        let available = Span::from_nanos(horizon - at).min(LENGTH_MOST);
        let length = short_or_long(random, LENGTH_LEAST.min(available), available);
        let fault = self.draw_kind(kind, random)?;
        // Rounded, so that plans are short to print.
        let at = VirtualTime::from_nanos(at / 1_000 * 1_000);
        Some(TimedFault { at, length, fault })
    }

    fn draw_kind(&self, kind: FaultKind, random: &mut Random) -> Option<Fault> {
        if self.nodes == 0 {
            return None;
        }
        let node = NodeId(random.below(self.nodes.into()) as u32);
        Some(match kind {
            FaultKind::Crash => Fault::Crash(node),
            FaultKind::Loss => Fault::LoseDisk(node),
            FaultKind::Sync => Fault::FailSync(node),
            FaultKind::Client if self.clients == 0 => return None,
            FaultKind::Client => Fault::Vanish(random.below(self.clients.into()) as u32),
            FaultKind::Partition => self.draw_partition(random)?,
            FaultKind::Tree => {
                let tree = random.below(self.trees.into()) as u32;
                Fault::Tree(tree, self.draw_half(random)?)
            }
            FaultKind::Link if self.nodes == 1 => return None,
            FaultKind::Link => {
                let step = 1 + random.below(u64::from(self.nodes) - 1) as u32;
                Fault::Break(node, NodeId((node.0 + step) % self.nodes))
            }
            FaultKind::Pause if random.chance(0.5) => Fault::Pause(node),
            FaultKind::Pause => Fault::Slow(node, random.between(2, 50)),
            FaultKind::Disk => Fault::SlowDisk(node, random.between(2, 100)),
            FaultKind::Skew => {
                let leap = short_or_long(random, Span::from_micros(1), Span::from_secs(2));
                let drift = random.between(0, 2 * 100_000) as i32 - 100_000;
                Fault::Skew(node, leap, Drift::new(drift))
            }
        })
    }

    fn draw_partition(&self, random: &mut Random) -> Option<Fault> {
        let nodes = self.draw_half(random)?;
        let direction = match random.below(4) {
            0 => Direction::Out,
            1 => Direction::In,
            _ => Direction::Both,
        };
        Some(Fault::Partition(direction, nodes))
    }

    /// Some nodes, never more than a half, so that the text is short: the others are the other
    /// side.
    fn draw_half(&self, random: &mut Random) -> Option<Vec<NodeId>> {
        if self.nodes < 2 {
            return None;
        }
        let mut nodes: Vec<NodeId> = (0..self.nodes).map(NodeId).collect();
        random.shuffle(&mut nodes);
        nodes.truncate(random.between(1, u64::from(self.nodes) / 2) as usize);
        nodes.sort_unstable();
        Some(nodes)
    }
}

/// Even in the logarithm, so that short and long lengths are equally common; whole microseconds.
fn short_or_long(random: &mut Random, least: Span, most: Span) -> Span {
    let (least, most) = (least.as_nanos().max(1) as f64, most.as_nanos().max(1) as f64);
    let nanos = least * libm::pow((most / least).max(1.0), random.fraction());
    Span::from_nanos(nanos as u64 / 1_000 * 1_000)
}

/// Whether two faults overlap and are of one kind on one thing, so that the repair of the first
/// would also repair the second.
fn clash(first: &TimedFault, second: &TimedFault) -> bool {
    // Two lost disks may be a majority of a group, and whether the first is back nobody here knows.
    if matches!((&first.fault, &second.fault), (Fault::LoseDisk(_), Fault::LoseDisk(_))) {
        return true;
    }
    let apart = first.repaired_at() < second.at || second.repaired_at() < first.at;
    !apart
        && match (&first.fault, &second.fault) {
            (Fault::Crash(a), Fault::Crash(b))
            | (Fault::FailSync(a), Fault::FailSync(b))
            | (Fault::Pause(a), Fault::Pause(b))
            | (Fault::Slow(a, _), Fault::Slow(b, _))
            | (Fault::SlowDisk(a, _), Fault::SlowDisk(b, _))
            | (Fault::Skew(a, _, _), Fault::Skew(b, _, _)) => a == b,
            (Fault::Vanish(a), Fault::Vanish(b)) => a == b,
            (Fault::Break(a, b), Fault::Break(c, d)) => (a, b) == (c, d) || (a, b) == (d, c),
            _ => false,
        }
}
