//! What is asked of a message from another process before it touches any state.
//!
//! First who may say it, and whether its numbers can be ([`judge`]); then whether it agrees with
//! what the role knows: [`judge_state`](super::Participant::judge_state), at a
//! coordinator [as well](super::Coordinator::judge_state). A message that
//! is left out changes nothing; whoever is honest and was left out says it again.
//!
//! A client owns the transactions of its own node and no others. It may read, prepare and decide
//! those, and tell the bound of its snapshots. A timestamp in what it says raises clocks, so it is
//! taken only where members are known to have issued it; and what it says of an end is taken only
//! with the votes that decide it ([`shown_votes`](super::shown_votes)).

mod messages;
mod moves;
mod records;
mod state;

pub(in crate::two_phase) use messages::{as_client, judge};
