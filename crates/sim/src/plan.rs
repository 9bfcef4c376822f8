//! Fault plans: what goes wrong when, and when it is repaired.
//!
//! A plan is drawn from a seed, or given. It prints compactly and reads back, so that a failing
//! run can be given again, and so that a long plan can be cut down by hand to what matters:
//!
//! ```text
//! horizon 8s; 12ms+300ms crash n3; 40ms+1s partition n0,n1; 55ms+20ms break n1 n4
//! ```
//!
//! Every fault is repaired by the horizon. From then on the world is sound, and whatever was begun
//! must come to its end: that is where liveness is demanded.

mod draw;
pub mod fault;

use std::fmt;
use std::str::FromStr;

use crate::time::{Span, VirtualTime};

pub use draw::PlanShape;
use fault::{Fault, FaultError};

/// What goes wrong in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// When every fault has been repaired.
    horizon: VirtualTime,
    /// In order of their begin.
    faults: Vec<TimedFault>,
}

/// A fault with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedFault {
    /// When it happens.
    pub at: VirtualTime,
    /// How long until it is repaired.
    pub length: Span,
    /// What happens.
    pub fault: Fault,
}

impl TimedFault {
    /// When it is repaired.
    pub fn repaired_at(&self) -> VirtualTime {
        self.at + self.length
    }
}

/// A plan that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan does not begin with its horizon.
    #[error(
        "a plan begins with its horizon, as in `horizon 8s; 12ms+300ms crash n3`: `{0}` does not"
    )]
    Horizon(String),
    /// A fault's time cannot be read.
    #[error("`{0}`: expected the fault's begin and length before it, as in `12ms+300ms crash n3`")]
    Time(String),
    /// A fault is repaired too late.
    #[error("`{fault}` is repaired after the horizon {horizon}; every fault must end by then")]
    Late {
        /// The fault.
        fault: String,
        /// The horizon.
        horizon: VirtualTime,
    },
    /// A fault cannot be read.
    #[error(transparent)]
    Fault(#[from] FaultError),
}

impl Plan {
    /// Nothing goes wrong; liveness is demanded from `horizon` on.
    pub fn calm(horizon: VirtualTime) -> Self {
        Plan { horizon, faults: Vec::new() }
    }

    /// These faults, in any order.
    ///
    /// # Errors
    /// A fault is repaired after the horizon.
    pub fn new(horizon: VirtualTime, mut faults: Vec<TimedFault>) -> Result<Self, PlanError> {
        if let Some(late) = faults.iter().find(|timed| timed.repaired_at() > horizon) {
            return Err(PlanError::Late { fault: late.to_string(), horizon });
        }
        faults.sort_by_key(|timed| timed.at);
        Ok(Plan { horizon, faults })
    }

    /// When every fault has been repaired.
    pub fn horizon(&self) -> VirtualTime {
        self.horizon
    }

    /// The faults, in order of their begin.
    pub fn faults(&self) -> &[TimedFault] {
        &self.faults
    }

    /// The plan without one of its faults, for cutting a failing plan down.
    pub fn without(&self, fault: usize) -> Plan {
        let mut fewer = self.clone();
        if fault < fewer.faults.len() {
            fewer.faults.remove(fault);
        }
        fewer
    }
}

impl fmt::Display for TimedFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}+{} {}", self.at, self.length, self.fault)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "horizon {}", self.horizon)?;
        self.faults.iter().try_for_each(|timed| write!(out, "; {timed}"))
    }
}

impl FromStr for TimedFault {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = || PlanError::Time(text.to_owned());
        let (time, fault) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let (at, length) = time.split_once('+').ok_or_else(wrong)?;
        Ok(TimedFault {
            at: at.parse().map_err(|_| wrong())?,
            length: length.parse().map_err(|_| wrong())?,
            fault: fault.parse()?,
        })
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut parts = text.split(';');
        let head = parts.next().unwrap_or_default().trim();
        let horizon = head.strip_prefix("horizon ").and_then(|time| time.trim().parse().ok());
        let horizon = horizon.ok_or_else(|| PlanError::Horizon(head.to_owned()))?;
        Plan::new(horizon, parts.map(str::parse).collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests;
