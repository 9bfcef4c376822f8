//! Batching: how many messages leave together over a link, and how long the first of them waits.
//!
//! Drivers send by the turn of the loop: all that a turn has for one node leaves together, and
//! nothing waits. Batching comes on top: messages for a node are held back until there are as many
//! as a batch has, or the first of them has waited for the time-out (Amaro's thesis on hierarchical
//! validation, section 3.4). It trades latency for fewer packets.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::time::Nanos;

/// The most messages of a batch.
pub const BATCH_MAX: usize = 1024;
/// How long the first message of a batch waits, unless told otherwise.
pub const BATCH_TIMEOUT: Nanos = Nanos::from_millis(1);
/// The shortest and the longest time-out.
const TIMEOUTS: (Nanos, Nanos) = (Nanos::from_micros(1), Nanos::from_millis(1_000));

/// Which way a link goes in the tree of validators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkClass {
    /// To a node with a validator above something that is here.
    Up,
    /// From a node with a validator to one with something below it.
    Down,
    /// Any other.
    Other,
}

/// How messages leave over one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBatch {
    size: u16,
    timeout: Nanos,
}

impl Default for LinkBatch {
    fn default() -> LinkBatch {
        LinkBatch::NONE
    }
}

impl LinkBatch {
    /// Nothing is held back.
    pub const NONE: LinkBatch = LinkBatch { size: 1, timeout: BATCH_TIMEOUT };

    /// Batches of so many messages, of which the first waits for `timeout` at most.
    ///
    /// # Errors
    /// No or too many messages, or a time-out that is too short or too long.
    pub fn new(size: usize, timeout: Nanos) -> Result<LinkBatch, NoBatch> {
        if !(1..=BATCH_MAX).contains(&size) {
            return Err(NoBatch::Size(size));
        }
        if !(TIMEOUTS.0..=TIMEOUTS.1).contains(&timeout) {
            return Err(NoBatch::Timeout(timeout));
        }
        Ok(LinkBatch { size: size as u16, timeout })
    }

    /// How many messages leave together.
    pub fn size(self) -> usize {
        usize::from(self.size)
    }

    /// How long the first of them waits at most.
    pub fn timeout(self) -> Nanos {
        self.timeout
    }

    /// Whether messages are held back at all.
    pub fn holds(self) -> bool {
        self.size > 1
    }
}

/// How many commits of a site are ordered as one, under protocols that order commits for all sites
/// by a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitBatch {
    size: u16,
}

impl Default for CommitBatch {
    fn default() -> CommitBatch {
        CommitBatch { size: 1 }
    }
}

impl CommitBatch {
    /// So many at most.
    ///
    /// # Errors
    /// None, or too many.
    pub fn new(size: usize) -> Result<CommitBatch, NoBatch> {
        let is_possible = (1..=BATCH_MAX).contains(&size);
        is_possible.then_some(CommitBatch { size: size as u16 }).ok_or(NoBatch::Commits(size))
    }

    /// So many commits are ordered as one at most: those that come while some commands of the site
    /// are under way wait for the end of one. `None`: each is a command of its own, and none waits.
    pub fn most(self) -> Option<usize> {
        (self.size > 1).then_some(usize::from(self.size))
    }
}

/// Numbers that make no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoBatch {
    /// How many messages.
    #[error("a batch of {0} messages: there must be 1 to {BATCH_MAX}, and 1 holds nothing back")]
    Size(usize),
    /// How many commits.
    #[error(
        "a command of {0} commits: there must be 1 to {BATCH_MAX}, and with 1 none waits for others"
    )]
    Commits(usize),
    /// How long the first waits.
    #[error(
        "a batch cannot wait for {} ns: its time-out must be from 1 microsecond to 1 second", .0.0
    )]
    Timeout(Nanos),
}

/// How messages leave a node, by the [class](LinkClass) of the link, and how commits are ordered
/// together. The default holds nothing back. Links to and from clients are of the class
/// [`Other`](LinkClass::Other).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batching {
    /// Over links to validators above.
    pub up: LinkBatch,
    /// Over links from validators to what is below them.
    pub down: LinkBatch,
    /// Over all others.
    pub others: LinkBatch,
    /// Of commits that a broadcast orders.
    pub commits: CommitBatch,
}

impl Batching {
    /// The same batches over the chosen links, and none over others.
    pub fn over(links: BatchLinks, batch: LinkBatch) -> Batching {
        let over = |chosen: bool| if chosen { batch } else { LinkBatch::NONE };
        Batching {
            up: over(links != BatchLinks::Down),
            down: over(links != BatchLinks::Up),
            others: over(links == BatchLinks::All),
            commits: CommitBatch::default(),
        }
    }

    /// The same messages, and commits that are ordered as one.
    pub fn with_commits(self, commits: CommitBatch) -> Batching {
        Batching { commits, ..self }
    }

    /// How messages leave over a link of this class.
    pub fn of(self, class: LinkClass) -> LinkBatch {
        match class {
            LinkClass::Up => self.up,
            LinkClass::Down => self.down,
            LinkClass::Other => self.others,
        }
    }

    /// Whether messages are held back over any link.
    pub fn holds(self) -> bool {
        self.up.holds() || self.down.holds() || self.others.holds()
    }
}

/// Over which links messages leave in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchLinks {
    /// Over all.
    #[default]
    All,
    /// Over those of the tree of validators, both ways.
    Tree,
    /// Over those to validators above.
    Up,
    /// Over those from validators to what is below them.
    Down,
}

/// A text that names no links.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no links: expected all, tree (up and down), up or down")]
pub struct NoBatchLinks(pub String);

impl FromStr for BatchLinks {
    type Err = NoBatchLinks;

    fn from_str(text: &str) -> Result<BatchLinks, NoBatchLinks> {
        match text {
            "all" => Ok(BatchLinks::All),
            "tree" => Ok(BatchLinks::Tree),
            "up" => Ok(BatchLinks::Up),
            "down" => Ok(BatchLinks::Down),
            _ => Err(NoBatchLinks(text.to_owned())),
        }
    }
}

impl fmt::Display for BatchLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BatchLinks::All => "all",
            BatchLinks::Tree => "tree",
            BatchLinks::Up => "up",
            BatchLinks::Down => "down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_timeouts_have_bounds_that_are_named() {
        let new = |size, micros| LinkBatch::new(size, Nanos::from_micros(micros));
        let (least, most) = (new(1, 1).unwrap(), new(BATCH_MAX, 1_000_000).unwrap());
        assert_eq!((least.size(), most.size()), (1, 1024));
        assert!(!least.holds() && most.holds());
        for size in [0, 1025] {
            let error = new(size, 1).unwrap_err();
            assert_eq!(error, NoBatch::Size(size));
            assert!(error.to_string().contains("1 to 1024"), "{error}");
        }
        for micros in [0, 1_000_001] {
            let error = new(2, micros).unwrap_err().to_string();
            assert!(error.contains("from 1 microsecond to 1 second"), "{error}");
        }
    }

    #[test]
    fn of_commits_one_at_least_is_ordered_at_a_time() {
        let most = |size| CommitBatch::new(size).map(CommitBatch::most);
        assert_eq!([most(1), most(2), most(BATCH_MAX)], [Ok(None), Ok(Some(2)), Ok(Some(1024))]);
        assert_eq!(most(0), Err(NoBatch::Commits(0)));
        let error = most(1025).unwrap_err().to_string();
        assert!(error.contains("1 to 1024"), "{error}");
        let batching = Batching::default().with_commits(CommitBatch::new(5).unwrap());
        assert!(!batching.holds(), "messages do not wait");
        assert_eq!(batching.commits.most(), Some(5));
    }

    #[test]
    fn links_are_chosen_by_their_class() {
        let batch = LinkBatch::new(10, BATCH_TIMEOUT).unwrap();
        let sizes = |links| {
            let batching = Batching::over(links, batch);
            let classes = [LinkClass::Up, LinkClass::Down, LinkClass::Other];
            classes.map(|class| batching.of(class).size())
        };
        for (name, expected) in
            [("all", [10, 10, 10]), ("tree", [10, 10, 1]), ("up", [10, 1, 1]), ("down", [1, 10, 1])]
        {
            let links: BatchLinks = name.parse().unwrap();
            assert_eq!((links.to_string().as_str(), sizes(links)), (name, expected));
        }
        let error = "upwards".parse::<BatchLinks>().unwrap_err().to_string();
        assert!(error.contains("`upwards`") && error.contains("all, tree"), "{error}");
        assert!(!Batching::over(BatchLinks::All, LinkBatch::NONE).holds());
        assert_eq!(Batching::over(BatchLinks::All, LinkBatch::NONE), Batching::default());
    }
}
