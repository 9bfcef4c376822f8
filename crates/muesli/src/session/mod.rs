//! What a session has seen.

pub(crate) mod token;
