//! What is explored, and what was found.

use std::collections::BTreeMap;

use muesli_check::Level;

use super::client::Do;
use crate::harness::subject::Subject;

/// A transaction: where it runs, and what it does before it commits.
pub type Program = (u32, &'static [Do]);

/// What is explored.
#[derive(Clone, Debug)]
pub struct Scope<P: Subject> {
    pub switches: P::Switches,
    pub replicas: usize,
    /// Transactions that ran before, one after the other.
    pub before: Vec<Program>,
    /// Transactions that run at the same time.
    pub programs: Vec<Program>,
    /// Whether messages of one link may overtake each other.
    pub reordered: bool,
    /// What may go wrong, once.
    pub fault: Option<Fault>,
    /// What else may, once, before or after that.
    pub second: Option<Fault>,
    pub level: Level,
    /// How many procedures a repository runs together at most, the last one first.
    pub at_once: usize,
    /// How many nodes without repositories decide for the others, under protocols with masters.
    pub masters: u32,
    /// Whether the validators of a tree are two below a root, and not a root alone.
    pub two_levels: bool,
    /// Whether nodes tell the oldest snapshot after each transaction, and collect garbage at once.
    pub collects: bool,
}

impl<P: Subject> Scope<P> {
    pub fn of(programs: &[Program]) -> Scope<P> {
        Scope {
            switches: P::Switches::default(),
            replicas: 1,
            before: Vec::new(),
            programs: programs.to_vec(),
            reordered: false,
            fault: None,
            second: None,
            level: Level::Serializable,
            at_once: 1,
            masters: 0,
            two_levels: false,
            collects: false,
        }
    }
}

impl<P: Subject> Scope<P> {
    /// What runs, where, and under which conditions, in one line.
    pub fn title(&self) -> String {
        let programs = self.programs.iter().enumerate();
        let shown = programs.map(|(at, (node, all))| format!("t{} at n{node}: {all:?}", at + 1));
        let mut title = shown.collect::<Vec<_>>().join("; ");
        if self.replicas > 1 {
            title += &format!("; {} replicas", self.replicas);
        }
        if self.at_once > 1 {
            title += &format!("; {} together", self.at_once);
        }
        if self.masters > 0 {
            title += &format!("; {} master", self.masters);
        }
        if self.two_levels {
            title += "; two levels";
        }
        if self.collects {
            title += "; garbage is collected";
        }
        if self.reordered {
            title += "; reordered";
        }
        for fault in self.fault.into_iter().chain(self.second) {
            title += &format!("; {fault:?}");
        }
        title
    }
}

/// Something that goes wrong once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This node crashes.
    Crash(u32),
    /// The same, and nothing arrives any more of what it had sent.
    Outage(u32),
    /// A timer that was set fires, however early.
    Early,
    /// The next message of some link is lost.
    Lose,
    /// The next message of some link arrives a second time, after all that is under way there.
    Repeat,
}

/// What an exploration found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub states: usize,
    /// How each client ended, and how often that was an end state.
    pub outcomes: BTreeMap<String, usize>,
    /// In how many end states so many children were undone.
    pub partial_aborts: BTreeMap<usize, usize>,
    /// The first schedule whose history is not what was promised, with the checker's words.
    pub violation: Option<String>,
}
