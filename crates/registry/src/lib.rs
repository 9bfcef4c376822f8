//! Protocols by name, each node alone or its repositories kept by groups, for drivers that are
//! compiled once: here, and nowhere above, a protocol's state machines are compiled for them.

use std::sync::Arc;

use muesli_core::{AnyProtocol, Nanos, Protocol, Typed};
use muesli_group::{Grouped, Limits, Rules};
use muesli_protocols::{Choice, UnknownProtocol, choose};

/// How groups keep repositories.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// The time between two ticks of a group's consensus; see [`Rules::tick`].
    pub tick: Nanos,
    /// Whether members go on with less than a majority of memories; see [`Rules::accepts_loss`].
    pub accepts_loss: bool,
    /// Limits of size and time.
    pub limits: Limits,
}

impl Default for Grouping {
    fn default() -> Grouping {
        let Rules { tick, accepts_loss, limits, .. } = Rules::<()>::default();
        Grouping { tick, accepts_loss, limits }
    }
}

/// The protocol called `name`, with its switches as the name says; in groups where a `grouping` is
/// given.
///
/// # Errors
/// There is none of this name.
pub fn protocol(
    name: &str,
    grouping: Option<Grouping>,
) -> Result<Arc<dyn AnyProtocol>, UnknownProtocol> {
    choose(name, Making(grouping))
}

struct Making(Option<Grouping>);

impl Choice for Making {
    type Output = Arc<dyn AnyProtocol>;

    fn chosen<P: Protocol>(self, rules: P::Rules) -> Arc<dyn AnyProtocol> {
        let Some(Grouping { tick, accepts_loss, limits }) = self.0 else {
            return Arc::new(Typed::<P>(rules));
        };
        let rules = Rules { inner: rules, tick, accepts_loss, limits, ..Rules::default() };
        Arc::new(Typed::<Grouped<P>>(rules))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_protocol_alone_and_in_groups() {
        for name in muesli_protocols::NAMES {
            let alone = protocol(name, None).unwrap();
            let grouped = protocol(name, Some(Grouping::default())).unwrap();
            assert_eq!(alone.isolation(), grouped.isolation(), "{name}");
            assert_eq!(alone.timestamp_step(), grouped.timestamp_step(), "{name}");
        }
        assert!(protocol("scores", None).is_err());
    }
}
