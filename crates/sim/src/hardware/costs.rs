//! What a node's work costs in virtual time: figures measured on a real node.
//!
//! The figures are kept in a dated text file, one `name = value` a line, so that a change of the
//! machine or of the code shows as a difference between two files.

use std::fmt;
use std::str::FromStr;

use crate::time::Span;

/// The cost of each kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A turn of the loop, whatever it does.
    pub tick: Span,
    /// Fetching what one other node has sent: once a turn and node.
    pub fetch: Span,
    /// Flushing what there is for one other node: once a turn and node.
    pub flush: Span,
    /// Handing over what there is for another core of the same machine, or taking in what one has
    /// handed over: once a turn and core.
    pub core: Span,
    /// Taking in a message.
    pub receive: Span,
    /// Sending a message.
    pub send: Span,
    /// An operation of a client, or a timer.
    pub operation: Span,
    /// Reading a key.
    pub read: Span,
    /// Locking and validating a key.
    pub validate: Span,
    /// Installing a version.
    pub install: Span,
    /// Logging a record, without making it stable.
    pub log: Span,
    /// Making what was logged stable: time of the disk, not of the processor.
    pub sync: Span,
    /// A byte sent or received, in picoseconds.
    pub byte_picos: u64,
}

impl Costs {
    /// Work that takes no time at all.
    pub const FREE: Costs = Costs {
        tick: Span::ZERO,
        fetch: Span::ZERO,
        flush: Span::ZERO,
        core: Span::ZERO,
        receive: Span::ZERO,
        send: Span::ZERO,
        operation: Span::ZERO,
        read: Span::ZERO,
        validate: Span::ZERO,
        install: Span::ZERO,
        log: Span::ZERO,
        sync: Span::ZERO,
        byte_picos: 0,
    };

    /// The figures kept in the repository.
    ///
    /// # Panics
    /// If the file that was compiled in is no table of costs, which a test rules out.
    pub fn measured() -> Costs {
        let kept = include_str!("../../calibration/2026-11-21.txt");
        kept.parse().expect("the kept figures are a table of costs")
    }

    fn named(&mut self) -> [(&'static str, &mut Span); 12] {
        [
            ("turn", &mut self.tick),
            ("fetch", &mut self.fetch),
            ("flush", &mut self.flush),
            ("core", &mut self.core),
            ("receive", &mut self.receive),
            ("send", &mut self.send),
            ("operation", &mut self.operation),
            ("read", &mut self.read),
            ("validate", &mut self.validate),
            ("install", &mut self.install),
            ("log", &mut self.log),
            ("sync", &mut self.sync),
        ]
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut costs = *self;
        for (name, span) in costs.named() {
            writeln!(out, "{name} = {}ns", span.as_nanos())?;
        }
        writeln!(out, "byte = {}ps", self.byte_picos)
    }
}

/// A text that is no table of costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostsError {
    /// A line that says nothing known.
    #[error(
        "`{0}` is no cost: expected `name = 120ns` with a name of turn, fetch, flush, core, \
         receive, send, operation, read, validate, install, log, sync, or `byte = 80ps`"
    )]
    Line(String),
    /// A cost that no line gives.
    #[error("no line gives the cost `{0}`")]
    Missing(&'static str),
}

impl FromStr for Costs {
    type Err = CostsError;

    /// Reads one cost a line; empty lines and those that start with `#` are skipped.
    fn from_str(text: &str) -> Result<Self, CostsError> {
        let mut costs = Costs::FREE;
        let mut missing: Vec<&'static str> = costs.named().map(|(name, _)| name).to_vec();
        missing.push("byte");
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let name = costs.set(line).ok_or_else(|| CostsError::Line(line.to_owned()))?;
            missing.retain(|wanted| *wanted != name);
        }
        missing.first().map_or(Ok(costs), |name| Err(CostsError::Missing(name)))
    }
}

impl Costs {
    /// Takes one line over and returns its name, if it is one.
    fn set(&mut self, line: &str) -> Option<&'static str> {
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name == "byte" {
            self.byte_picos = value.strip_suffix("ps")?.parse().ok()?;
            return Some("byte");
        }
        let (known, span) = self.named().into_iter().find(|(known, _)| *known == name)?;
        *span = value.parse().ok()?;
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kept_figures_can_be_read() {
        assert!(Costs::measured().tick > Span::ZERO);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let unknown = "turn = 5ns\nlunch = 1s".parse::<Costs>();
        assert_eq!(unknown, Err(CostsError::Line("lunch = 1s".into())));
        assert_eq!("turn = 5ns".parse::<Costs>(), Err(CostsError::Missing("fetch")));
    }

    proptest! {
        #[test]
        fn printed_costs_read_back(nanos: [u32; 12], byte_picos: u32) {
            let mut costs = Costs { byte_picos: u64::from(byte_picos), ..Costs::FREE };
            for ((_, span), nanos) in costs.named().into_iter().zip(nanos) {
                *span = Span::from_nanos(u64::from(nanos));
            }
            prop_assert_eq!(format!("# kept\n\n{costs}").parse(), Ok(costs));
        }
    }
}
