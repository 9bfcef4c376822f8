//! Who may connect, and what they may take of this process.
//!
//! `handshake` has how connections begin and end, and `judging` who is let in. `timeouts` ends
//! those who are silent or slow. `older_copies` notices that somebody's data, or this server's
//! own, are an older copy. `budget` bounds what clients and strangers take of a server's memory.

pub(crate) mod budget;
pub(crate) mod handshake;
pub(crate) mod judging;
pub(crate) mod older_copies;
pub(crate) mod timeouts;
