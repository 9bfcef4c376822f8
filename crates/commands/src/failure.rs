//! Why a run came to nothing.

use muesli_sim::time::Span;

use crate::load::NoPlan;
use crate::order::WrongOrder;

/// A run that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The plan is none.
    #[error(transparent)]
    Plan(#[from] NoPlan),
    /// Commands were not in order.
    #[error("the order is wrong: {0}")]
    Order(#[from] WrongOrder),
    /// Members have no more to do, or too much, while commands are open.
    #[error("{open} commands were still open {} after {phase}", Span::from_nanos(*after))]
    Stuck {
        /// How many.
        open: usize,
        /// After what.
        phase: &'static str,
        /// How many nanoseconds.
        after: u64,
    },
    /// A member refused another's message.
    #[error("member {to} refused what member {from} sent: {why}")]
    Refused {
        /// Who sent it.
        from: u16,
        /// Who refused it.
        to: u16,
        /// Why.
        why: String,
    },
    /// The system does not let it.
    #[error("{0}")]
    System(String),
}
