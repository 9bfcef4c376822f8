//! The choice of a nesting model while a program runs.
//!
//! Whether the parts of a transaction are better run as parts of it, as closed children or as open
//! ones depends on how often and where others are in the way, on how long a transaction is, and on
//! what the network and the protocol cost: who writes a program cannot know. So a place of a
//! program that runs such a transaction can leave it to a [`NestingChoice`]: the
//! [children](crate::Tx::nested) of transactions that are run on
//! [`Db::choosing`](crate::Db::choosing) are run as is found to be the best there, and so are [open
//! children](crate::open_nesting), for which the program gives locks and compensations. How it is
//! found, [`NestingChoice`] says.
//!
//! (A dissertation on nested transactions, Turcu 2015, chapter 12, leaves it as future work.)

mod call_sites;
mod comparison;
mod meter;
mod observation;
mod policy;
mod pooled;
mod running;
mod took;
mod tried;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub use call_sites::CallSites;
pub use comparison::ComparisonCause;
pub use observation::NestingObservation;
use policy::{ChoicePolicy, Decided};
pub(crate) use pooled::exchange::{NextReport, PoolRow, RowChange, RowExchange};
pub(crate) use running::{Choosing, ChoosingHandle, PartRun};
use serde::{Deserialize, Serialize};
pub use tried::LeftOut;
use tried::Tried;

/// How the parts of a transaction are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NestingModel {
    /// As its own operations: what is in the way of one is in the way of all.
    Flat,
    /// As children, each of which can be undone and run again alone.
    Closed,
    /// As open children, which commit before it does, hold abstract locks, and are compensated.
    Open,
}

impl fmt::Display for NestingModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            NestingModel::Flat => "flat",
            NestingModel::Closed => "closed",
            NestingModel::Open => "open",
        })
    }
}

/// So many decisions are kept to be looked at: the last ones.
const DECISIONS_KEPT: usize = 32;

/// What is known of the transactions of one place of a program, and the nesting model that is best
/// for them. Clones are one: all tasks of a process that run these transactions share it.
///
/// After eight transactions the models are tried in turn, in slots that are as long as 16 attempts
/// or up to four times as long, until one is faster than the others and that is no chance, or 200
/// transactions have committed with each. The one with which they take the least time is kept for
/// 32 times as long as that was tried, up to 512 times where later comparisons say the same; all
/// are tried again when the time has changed by 30 %, or when attempts end otherwise: of all
/// attempts a fifth more end within a part, after one, or by a lock that was refused, or a fifth
/// fewer where children are chosen. So the warm-up is some 700 transactions at most, often a
/// hundred, and comparisons are 3 % of all later ones.
///
/// A model goes early that has [nothing to save](LeftOut::SavesNothing) by what is
/// [observed](NestingObservation): closed children, where hardly any attempt ends within a part;
/// open ones, where hardly any ends after a part, or fewer than they cost.
///
/// Processes whose clocks began at the same time, and whose transactions take about as long, try
/// the same at the same time.
///
/// ```
/// use muesli::nesting_choice::NestingChoice;
/// use muesli::{Db, Error, Options, SpaceOptions};
///
/// # fn main() -> Result<(), Error> {
/// let db = Db::open(Options::default().space("accounts", SpaceOptions::default()))?;
/// let accounts = db.space("accounts")?.typed::<u64, i64>();
/// let choice = NestingChoice::new();
/// let db = db.choosing(&choice);
/// db.blocking().transact(async move |tx| {
///     tx.nested(async |child| accounts.put(child, &1, &100).await).await
/// })?;
/// assert!(choice.chosen().is_none(), "it is being tried");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct NestingChoice {
    inner: Arc<Mutex<ChoiceState>>,
    /// Where nodes that choose together find each other.
    row: Option<PoolRow>,
}

#[derive(Debug, Default)]
struct ChoiceState {
    /// Made when the first transaction begins: then it is known what there is to choose from.
    policy: Option<ChoicePolicy>,
    /// Children were undone alone, which flat ones cannot be.
    undoes: bool,
    /// A task tells the other nodes what is observed.
    reports: bool,
    decisions: Vec<ChoiceDecision>,
    made: u64,
}

/// A decision of a [`NestingChoice`], and what it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceDecision {
    /// What was chosen.
    pub model: NestingModel,
    /// Why a comparison was made.
    pub cause: ComparisonCause,
    /// How many transactions had begun by then.
    pub begun: u64,
    /// What the models took.
    pub tried: Vec<TriedModel>,
    /// How many nodes told of the last slot of it, where all nodes chose together by what they took
    /// together; `None`: this node alone chose, by its own transactions.
    pub nodes: Option<u32>,
}

/// What a model took in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriedModel {
    /// Which one.
    pub model: NestingModel,
    /// How long a transaction took, on average, from its first attempt to its commit.
    pub took: Duration,
    /// How many committed.
    pub committed: u64,
    /// How many attempts these took together.
    pub attempts: u64,
    /// What was observed of them besides.
    pub observed: NestingObservation,
    /// Why it was tried no more before the comparison ended; `None`: it was tried to the end.
    pub left_out: Option<LeftOut>,
}

impl TriedModel {
    fn new(tried: &Tried) -> TriedModel {
        TriedModel {
            model: tried.model,
            took: Duration::from_nanos(tried.took.mean() as u64),
            committed: tried.took.committed,
            attempts: tried.took.attempts,
            observed: tried.took.seen,
            left_out: tried.left_out,
        }
    }
}

impl ChoiceDecision {
    fn new(decided: &Decided) -> ChoiceDecision {
        ChoiceDecision {
            model: decided.model,
            cause: decided.cause,
            begun: decided.begun,
            tried: decided.tried.iter().map(TriedModel::new).collect(),
            nodes: decided.nodes,
        }
    }
}

impl fmt::Display for ChoiceDecision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.cause {
            ComparisonCause::First => "first comparison",
            ComparisonCause::Change => "comparison after a change",
            ComparisonCause::Observed => "comparison as attempts ended otherwise",
            ComparisonCause::Due => "comparison that was due",
        };
        write!(out, "{} after {} transactions (", self.model, self.begun)?;
        if let Some(nodes) = self.nodes {
            let them = if nodes == 1 { "node" } else { "nodes" };
            write!(out, "by {nodes} {them} together, ")?;
        }
        write!(out, "{why}: ")?;
        for (at, tried) in self.tried.iter().enumerate() {
            let comma = if at > 0 { "; " } else { "" };
            write!(out, "{comma}{tried}")?;
        }
        out.write_str(")")
    }
}

impl fmt::Display for TriedModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.attempts == 0 {
            write!(out, "{} not tried", self.model)?;
        } else {
            let (micros, attempts) = (self.took.as_secs_f64() * 1e6, self.attempts as f64);
            let attempts = attempts / self.committed.max(1) as f64;
            write!(out, "{} {micros:.0} µs in {attempts:.2} attempts", self.model)?;
            write!(out, "{}", self.observed.of_commits(self.committed))?;
        }
        match self.left_out {
            Some(LeftOut::Slower) => out.write_str(", slower"),
            Some(LeftOut::SavesNothing) => out.write_str(", has nothing to save"),
            None => Ok(()),
        }
    }
}

impl NestingChoice {
    /// Nothing is known yet.
    pub fn new() -> NestingChoice {
        NestingChoice::default()
    }

    /// Whether its first transaction is to begin, and there are other nodes to choose with.
    fn begins_pooling(&self) -> bool {
        self.row.is_some() && self.state().policy.is_none()
    }

    fn state(&self) -> MutexGuard<'_, ChoiceState> {
        self.inner.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// What is chosen at present; `None` while that is being tried.
    pub fn chosen(&self) -> Option<NestingModel> {
        self.state().policy.as_ref().and_then(ChoicePolicy::chosen)
    }

    /// The last decisions, at most 32, the latest last; and how many there were.
    pub fn decisions(&self) -> (Vec<ChoiceDecision>, u64) {
        let state = self.state();
        (state.decisions.clone(), state.made)
    }
}
