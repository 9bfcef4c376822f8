//! What can go wrong in the simulated world, and its kinds as a command line names them.
//!
//! Every fault has a text of its own (`crash n3`, `partition n0,n1`, `disk n2 x30`), which a plan
//! prints and reads back.

use std::fmt;
use std::str::FromStr;

use muesli_core::NodeId;

use crate::hardware::clock::Drift;
use crate::time::Span;

/// Something that goes wrong at one moment, and is repaired at a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The node loses everything that was not stable; the repair starts it anew.
    Crash(NodeId),
    /// The same, and its disk is gone with all that was on it: the repair brings an empty one.
    LoseDisk(NodeId),
    /// The node's next sync fails, and so the node stops; the repair starts it anew.
    FailSync(NodeId),
    /// Client number so-and-so is gone in the middle of what it does; the repair begins a new one.
    Vanish(u32),
    /// Nothing passes between these nodes and the others, in the given direction.
    Partition(Direction, Vec<NodeId>),
    /// The link breaks. It is made anew when both ends know, or at the repair if that is later.
    Break(NodeId, NodeId),
    /// The node begins nothing new.
    Pause(NodeId),
    /// All work of the node takes so many times as long.
    Slow(NodeId, u64),
    /// All syncs of the node's disk take so many times as long.
    SlowDisk(NodeId, u64),
    /// The node's clock leaps forward and drifts. The repair ends the drift; the leap stays.
    Skew(NodeId, Span, Drift),
    /// Validators form another tree from now on, so-and-so of those that there are for it, and
    /// these nodes hear of it; the others do at the repair.
    Tree(u32, Vec<NodeId>),
}

/// Which messages a partition stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those to and from the nodes named.
    Both,
    /// Those from the nodes named to the others.
    Out,
    /// Those from the others to the nodes named.
    In,
}

/// A kind of fault, as asked for on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Nodes crash and restart.
    Crash,
    /// Clients vanish.
    Client,
    /// Groups of nodes are cut off, one or both ways.
    Partition,
    /// Links break.
    Link,
    /// Nodes pause or are slow.
    Pause,
    /// Disks are slow.
    Disk,
    /// Clocks leap and drift.
    Skew,
    /// A node loses its disk. Only where others keep the same data; never two in a run.
    Loss,
    /// Syncs fail.
    Sync,
    /// The tree of validators changes. Only under protocols that have some.
    Tree,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [FaultKind; 10] = [
        FaultKind::Crash,
        FaultKind::Client,
        FaultKind::Partition,
        FaultKind::Link,
        FaultKind::Pause,
        FaultKind::Disk,
        FaultKind::Skew,
        FaultKind::Loss,
        FaultKind::Sync,
        FaultKind::Tree,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Crash => "crash",
            FaultKind::Client => "client",
            FaultKind::Partition => "partition",
            FaultKind::Link => "link",
            FaultKind::Pause => "pause",
            FaultKind::Disk => "disk",
            FaultKind::Skew => "skew",
            FaultKind::Loss => "loss",
            FaultKind::Sync => "sync",
            FaultKind::Tree => "tree",
        }
    }
}

/// A set of kinds of faults. Prints as `none`, `all` or `crash,partition`, and reads that back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultKinds(Vec<FaultKind>);

impl FaultKinds {
    /// No faults at all.
    pub const NONE: FaultKinds = FaultKinds(Vec::new());

    /// Every kind.
    pub fn all() -> Self {
        FaultKinds(FaultKind::ALL.to_vec())
    }

    /// These kinds.
    pub fn of(kinds: &[FaultKind]) -> Self {
        let mut kinds = kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        FaultKinds(kinds)
    }

    /// These kinds but one.
    pub fn without(&self, kind: FaultKind) -> Self {
        FaultKinds(self.0.iter().copied().filter(|other| *other != kind).collect())
    }

    /// The kinds, in the order of [`FaultKind::ALL`].
    pub fn as_slice(&self) -> &[FaultKind] {
        &self.0
    }
}

/// A text that names no fault or no kind of fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// An unknown kind.
    #[error(
        "`{0}` is no kind of fault: expected none, all, or some of crash, client, partition, link, \
         pause, disk, skew, loss, sync, tree, with commas between"
    )]
    Kind(String),
    /// All or none of them, and others.
    #[error("`{0}` stands alone, and takes no other kinds of faults beside it")]
    Alone(String),
    /// An unknown fault.
    #[error(
        "`{0}` is no fault: expected one of `crash n3`, `lose n3`, `fail-sync n3`, `vanish 7`, \
         `partition n0,n1`, `partition-out n0`, `partition-in n0`, `break n1 n4`, `pause n2`, \
         `slow n2 x8`, `disk n2 x30`, `skew n1 +35ms -200ppm`, `tree 2 n0,n3`"
    )]
    Fault(String),
}

impl fmt::Display for FaultKinds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => out.write_str("none"),
            count if count == FaultKind::ALL.len() => out.write_str("all"),
            _ => {
                out.write_str(&self.0.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl FromStr for FaultKinds {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        match text {
            "none" => Ok(FaultKinds::NONE),
            "all" => Ok(FaultKinds::all()),
            _ => {
                // A name that is not known is what is wrong, whatever stands beside it.
                let (alone, others): (Vec<&str>, Vec<&str>) =
                    text.split(',').map(str::trim).partition(|name| ["none", "all"].contains(name));
                let kinds = others.into_iter().map(kind_named).collect::<Result<Vec<_>, _>>()?;
                match alone.first() {
                    Some(name) => Err(FaultError::Alone((*name).to_owned())),
                    None => Ok(Self::of(&kinds)),
                }
            }
        }
    }
}

fn kind_named(name: &str) -> Result<FaultKind, FaultError> {
    let found = FaultKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| FaultError::Kind(name.to_owned()))
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Crash(node) => write!(out, "crash n{}", node.0),
            Fault::LoseDisk(node) => write!(out, "lose n{}", node.0),
            Fault::FailSync(node) => write!(out, "fail-sync n{}", node.0),
            Fault::Vanish(client) => write!(out, "vanish {client}"),
            Fault::Partition(direction, nodes) => {
                write!(out, "{} {}", direction.fault_name(), names(nodes))
            }
            Fault::Break(first, second) => write!(out, "break n{} n{}", first.0, second.0),
            Fault::Pause(node) => write!(out, "pause n{}", node.0),
            Fault::Slow(node, factor) => write!(out, "slow n{} x{factor}", node.0),
            Fault::SlowDisk(node, factor) => write!(out, "disk n{} x{factor}", node.0),
            Fault::Skew(node, leap, drift) => {
                write!(out, "skew n{} +{leap} {:+}ppm", node.0, drift.parts_per_million())
            }
            Fault::Tree(tree, informed) => write!(out, "tree {tree} {}", names(informed)),
        }
    }
}

fn names(nodes: &[NodeId]) -> String {
    nodes.iter().map(|node| format!("n{}", node.0)).collect::<Vec<_>>().join(",")
}

impl Direction {
    fn fault_name(self) -> &'static str {
        match self {
            Direction::Both => "partition",
            Direction::Out => "partition-out",
            Direction::In => "partition-in",
        }
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).ok_or_else(|| FaultError::Fault(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Fault> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let nodes = |names: &str| names.split(',').map(node).collect::<Option<Vec<NodeId>>>();
    let isolated = |direction, names: &str| Some(Fault::Partition(direction, nodes(names)?));
    match words[..] {
        ["crash", crashed] => Some(Fault::Crash(node(crashed)?)),
        ["lose", lost] => Some(Fault::LoseDisk(node(lost)?)),
        ["fail-sync", failing] => Some(Fault::FailSync(node(failing)?)),
        ["vanish", client] => Some(Fault::Vanish(client.parse().ok()?)),
        ["partition", names] => isolated(Direction::Both, names),
        ["partition-out", names] => isolated(Direction::Out, names),
        ["partition-in", names] => isolated(Direction::In, names),
        ["break", first, second] => Some(Fault::Break(node(first)?, node(second)?)),
        ["pause", paused] => Some(Fault::Pause(node(paused)?)),
        ["slow", slow, by] => Some(Fault::Slow(node(slow)?, factor(by)?)),
        ["disk", slow, by] => Some(Fault::SlowDisk(node(slow)?, factor(by)?)),
        ["skew", skewed, leap, drift] => {
            let leap = leap.strip_prefix('+')?.parse().ok()?;
            let drift = drift.strip_suffix("ppm")?.parse().ok()?;
            Some(Fault::Skew(node(skewed)?, leap, Drift::new(drift)))
        }
        ["tree", tree, informed] => Some(Fault::Tree(tree.parse().ok()?, nodes(informed)?)),
        _ => None,
    }
}

fn node(name: &str) -> Option<NodeId> {
    name.strip_prefix('n')?.parse().ok().map(NodeId)
}

fn factor(text: &str) -> Option<u64> {
    text.strip_prefix('x')?.parse().ok().filter(|factor| *factor >= 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kinds_read_back() {
        for text in ["none", "all", "crash", "client,partition,skew", "link,disk", "loss,sync,tree"]
        {
            assert_eq!(text.parse::<FaultKinds>().map(|kinds| kinds.to_string()), Ok(text.into()));
        }
        let mixed = "skew, crash,crash".parse::<FaultKinds>();
        assert_eq!(mixed, Ok(FaultKinds::of(&[FaultKind::Crash, FaultKind::Skew])));
    }

    #[test]
    fn wrong_texts_are_refused_with_what_is_allowed() {
        let kinds = "crash,flood".parse::<FaultKinds>().expect_err("there is no such kind");
        assert!(kinds.to_string().starts_with("`flood` is no kind of fault: expected none, all"));
        let wrong = |text: &str| text.parse::<FaultKinds>().expect_err("it is wrong").to_string();
        assert!(wrong("all,flood").starts_with("`flood` is no kind"));
        assert!(wrong("crash, all").starts_with("`all` stands alone"));
        for text in
            ["", "crash", "crash 3", "slow n1 x0", "skew n1 35ms 2ppm", "break n1", "tree n1"]
        {
            assert!(text.parse::<Fault>().is_err(), "{text} was taken");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Fault>();
            let _ = text.parse::<FaultKinds>();
        }
    }
}
