//! Which faults happen, to whom, when and for how long: drawn from a seed before the run.
//!
//! The processes and their timing are real, so a seed repeats the faults of a run and not the run
//! itself. A node suffers one fault at a time; different nodes, and the network beside them, may
//! suffer together.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum TortureKind {
    /// SIGKILL, of one server or of all at once, and a restart
    Kill,
    /// SIGSTOP, and SIGCONT
    Pause,
    /// Links that carry nothing, in one direction or both, or break
    Partition,
    /// Syncs that are slow, fail or hang, disks without room
    Disk,
    /// SIGKILL of one server, whose folder is emptied before the restart; for groups
    Folder,
    /// Members of groups move to other nodes; for groups, with more nodes than members
    Move,
    /// Servers join, take members over, give them back and leave; for groups
    Join,
    /// An older copy of a node's folder is put back: the node must be refused
    Backup,
    /// Clocks leap forwards, or are set forwards or back while their server is down
    Clock,
}

impl TortureKind {
    /// Whether it is made all the while by whoever looks after the cluster, and not drawn.
    pub fn is_beside(self) -> bool {
        matches!(self, TortureKind::Move | TortureKind::Join)
    }
}

/// What is wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Syncs take so much longer.
    Slow(Duration),
    /// Syncs do not end.
    Hang,
    /// Syncs fail.
    Fail,
    /// There is no room for a write.
    Full,
    /// The system lets no file grow.
    Limit,
}

/// Somebody who dials or is dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    Node(usize),
    /// All clients, as dialled from.
    Clients,
}

/// How a link is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Nothing arrives, either way.
    Both,
    /// Nothing arrives at the party that is cut off.
    Inbound,
    /// Nothing of the party that is cut off arrives.
    Outbound,
    /// Connections break, and new ones carry nothing.
    Cut,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TortureFault {
    /// These nodes end at once.
    Kill(Vec<usize>),
    /// This node stands still.
    Pause(usize),
    /// A party is cut off from another, or from all others.
    Partition { party: Party, from: Option<Party>, how: Break },
    /// A node's disk misbehaves.
    Disk(usize, DiskFault),
    /// This node ends at once, and all that it had on its disk is gone.
    Folder(usize),
    /// This node's folder is copied, and the copy put back later.
    Backup(usize),
    /// This node's clock is ahead by so many milliseconds from now on, or behind; it is seen at a
    /// restart, or at once, where it leaps forwards.
    Clock { node: usize, ahead: i64, restarts: bool },
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// From the start of the clients.
    pub at: Duration,
    pub lasts: Duration,
    pub fault: TortureFault,
}

/// The first fault comes after so long.
const FIRST_AFTER: Duration = Duration::from_millis(500);

impl TortureFault {
    /// Its row in the report.
    pub fn name(&self) -> String {
        match self {
            TortureFault::Kill(nodes) if nodes.len() > 1 => "kill all".to_owned(),
            TortureFault::Kill(_) => "kill".to_owned(),
            TortureFault::Pause(_) => "pause".to_owned(),
            TortureFault::Partition { how, .. } => match how {
                Break::Both => "partition".to_owned(),
                Break::Inbound | Break::Outbound => "partition, one way".to_owned(),
                Break::Cut => "partition, broken links".to_owned(),
            },
            TortureFault::Folder(_) => "folder lost".to_owned(),
            TortureFault::Backup(_) => "older copy put back".to_owned(),
            TortureFault::Clock { restarts: true, .. } => "clock set".to_owned(),
            TortureFault::Clock { .. } => "clock leaps".to_owned(),
            TortureFault::Disk(_, DiskFault::Slow(_)) => "disk slow".to_owned(),
            TortureFault::Disk(_, DiskFault::Hang) => "disk hangs".to_owned(),
            TortureFault::Disk(_, DiskFault::Fail) => "disk fails".to_owned(),
            TortureFault::Disk(_, DiskFault::Full | DiskFault::Limit) => "disk full".to_owned(),
        }
    }

    /// The node that ends at once by it, alone.
    pub fn killed(&self) -> Option<usize> {
        match self {
            TortureFault::Kill(nodes) if nodes.len() == 1 => nodes.first().copied(),
            TortureFault::Folder(node) => Some(*node),
            TortureFault::Kill(_)
            | TortureFault::Pause(_)
            | TortureFault::Partition { .. }
            | TortureFault::Disk(..)
            | TortureFault::Backup(_)
            | TortureFault::Clock { .. } => None,
        }
    }

    /// The nodes that suffer it.
    pub fn nodes(&self) -> &[usize] {
        match self {
            TortureFault::Kill(nodes) => nodes,
            TortureFault::Pause(node)
            | TortureFault::Disk(node, _)
            | TortureFault::Folder(node)
            | TortureFault::Backup(node)
            | TortureFault::Clock { node, .. } => std::slice::from_ref(node),
            TortureFault::Partition { .. } => &[],
        }
    }

    /// Whether the two cannot be at the same time: both are of one node, or of the network. While
    /// a copy is to be noticed, everybody else must be there to notice it.
    pub fn excludes(&self, other: &TortureFault) -> bool {
        let is_partition = |fault: &TortureFault| matches!(fault, TortureFault::Partition { .. });
        let shared = self.nodes().iter().any(|node| other.nodes().contains(node));
        let both = is_partition(self) && is_partition(other);
        shared || both || self.is_alone() || other.is_alone()
    }

    fn is_alone(&self) -> bool {
        matches!(self, TortureFault::Backup(_))
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{at:6.2} s, for {lasts:4.2} s: {:?}", self.fault)
    }
}

/// The faults of a run of this length over these nodes, in the order of their times.
pub fn draw(seed: u64, kinds: &[TortureKind], nodes: usize, length: Duration) -> Vec<Planned> {
    let mut drawing = Drawing {
        random: fastrand::Rng::with_seed(seed),
        busy: vec![Duration::ZERO; nodes],
        network_busy: Duration::ZERO,
    };
    let kinds: Vec<_> = kinds.iter().copied().filter(|kind| !kind.is_beside()).collect();
    let (mut planned, mut at) = (Vec::new(), FIRST_AFTER);
    while at < length && !kinds.is_empty() {
        let kind = kinds[drawing.random.usize(..kinds.len())];
        let lasts = drawing.span(100, 2_500).min(length - at);
        planned.extend(drawing.fault(kind, at).map(|fault| {
            drawing.book(&fault, at + lasts);
            Planned { at, lasts, fault }
        }));
        // Some faults come before the one before them is over.
        let overlap = drawing.random.u8(..100) < 30;
        at += if overlap { drawing.span(50, 500) } else { lasts + drawing.span(200, 1_500) };
    }
    planned
}

struct Drawing {
    random: fastrand::Rng,
    /// Until when each node suffers something.
    busy: Vec<Duration>,
    network_busy: Duration,
}

impl Drawing {
    /// A time between two numbers of milliseconds, small ones as likely as large ones.
    fn span(&mut self, least: u64, most: u64) -> Duration {
        let (least, most) = (least as f64, most as f64);
        let millis = least * (most / least).powf(self.random.f64());
        Duration::from_millis(millis as u64)
    }

    fn book(&mut self, fault: &TortureFault, until: Duration) {
        // A node that comes back is given time to do so before the next thing happens to it.
        fault.nodes().iter().for_each(|&node| self.busy[node] = until + FIRST_AFTER);
        if let TortureFault::Partition { .. } = fault {
            self.network_busy = until;
        }
        if fault.is_alone() {
            self.network_busy = until;
            self.busy.fill(until + FIRST_AFTER);
        }
    }

    /// A fault of this kind, if anybody is free to suffer it.
    fn fault(&mut self, kind: TortureKind, at: Duration) -> Option<TortureFault> {
        let free: Vec<usize> = (0..self.busy.len()).filter(|&node| self.busy[node] <= at).collect();
        if kind == TortureKind::Partition {
            return (self.network_busy <= at).then(|| self.partition());
        }
        let &node = free.get(self.random.usize(..free.len().max(1)))?;
        Some(match kind {
            TortureKind::Kill if free.len() == self.busy.len() && self.random.u8(..100) < 20 => {
                TortureFault::Kill(free)
            }
            TortureKind::Kill => TortureFault::Kill(vec![node]),
            TortureKind::Pause => TortureFault::Pause(node),
            TortureKind::Disk => TortureFault::Disk(node, self.trouble()),
            TortureKind::Folder => TortureFault::Folder(node),
            TortureKind::Backup if free.len() < self.busy.len() || self.network_busy > at => {
                return None;
            }
            TortureKind::Backup => TortureFault::Backup(node),
            TortureKind::Clock => self.clock(node),
            TortureKind::Partition | TortureKind::Move | TortureKind::Join => {
                unreachable!("not drawn here")
            }
        })
    }

    fn trouble(&mut self) -> DiskFault {
        match self.random.u8(..5) {
            0 => DiskFault::Slow(self.span(5, 300)),
            1 => DiskFault::Fail,
            2 => DiskFault::Full,
            3 => DiskFault::Hang,
            _ => DiskFault::Limit,
        }
    }

    /// A leap of at most an hour, either way.
    fn clock(&mut self, node: usize) -> TortureFault {
        let millis = self.span(100, 3_600_000).as_millis() as i64;
        let restarts = self.random.bool();
        let back = restarts && self.random.bool();
        TortureFault::Clock { node, ahead: if back { -millis } else { millis }, restarts }
    }

    fn partition(&mut self) -> TortureFault {
        let nodes = self.busy.len();
        let party =
            |number: usize| if number == nodes { Party::Clients } else { Party::Node(number) };
        let one = self.random.usize(..=nodes);
        let other = (one + 1 + self.random.usize(..nodes)) % (nodes + 1);
        let how = [Break::Both, Break::Inbound, Break::Outbound, Break::Cut];
        let how = how[self.random.usize(..how.len())];
        let from = self.random.bool().then(|| party(other));
        TortureFault::Partition { party: party(one), from, how }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [TortureKind; 7] = [
        TortureKind::Kill,
        TortureKind::Pause,
        TortureKind::Partition,
        TortureKind::Disk,
        TortureKind::Folder,
        TortureKind::Backup,
        TortureKind::Clock,
    ];
    const LENGTH: Duration = Duration::from_secs(300);

    #[test]
    fn a_seed_draws_the_same_faults_and_every_kind_of_them() {
        let planned = draw(7, &ALL, 3, LENGTH);
        assert_eq!(planned, draw(7, &ALL, 3, LENGTH));
        assert_ne!(planned, draw(8, &ALL, 3, LENGTH));
        let names: std::collections::BTreeSet<_> =
            planned.iter().map(|planned| planned.fault.name()).collect();
        assert_eq!(names.len(), 14, "{names:?}");
        assert!(planned.iter().all(|planned| planned.at + planned.lasts <= LENGTH));
        assert!(draw(7, &[TortureKind::Pause], 1, LENGTH).len() > 50);
    }

    #[test]
    fn what_excludes_each_other_is_not_planned_for_the_same_time() {
        for seed in 0..50 {
            let planned = draw(seed, &ALL, 3, LENGTH);
            for (place, one) in planned.iter().enumerate() {
                let others = &planned[place + 1..];
                let clash = others.iter().find(|other| {
                    one.fault.excludes(&other.fault) && other.at < one.at + one.lasts
                });
                assert_eq!(clash, None, "beside {one}");
            }
        }
    }
}
