//! How participants agree on a timestamp: proposals, and the votes that carry them.
//!
//! [`requests`] takes a transaction up, proposes and votes; [`counting`] counts the votes of the
//! others, and asks for those that do not come. Votes that come before their request are kept for a
//! while (`early_votes`). What a vote says of the voter's later ones is `implicit`. Under Sinfonia
//! votes go to a [`master`], which decides. Votes that carry [data] tell the other participants
//! what the keys here hold, where a procedure decides by it.

pub mod counting;
pub mod data;
pub(super) mod early_votes;
pub(super) mod implicit;
pub mod master;
pub mod requests;
