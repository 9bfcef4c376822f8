//! What passes between loops, and wakes them.

pub(super) mod delayed_messages;
pub(super) mod neighbours;
pub(super) mod ring;
pub(super) mod signal;
