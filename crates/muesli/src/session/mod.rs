//! What a session has seen, and what it is not told yet.

pub(crate) mod orphans;
pub(crate) mod token;
