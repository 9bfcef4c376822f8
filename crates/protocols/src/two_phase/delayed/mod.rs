//! Delayed actions (Diegues and Romano, section IV-C): changes of keys that the transaction does
//! not look at, done when its turn has come.
//!
//! # The idea
//! Two transactions that add to one counter conflict only because each reads it first. An action
//! that is named instead of done takes part in the vote with a lock of its own mode, which such
//! actions share with each other and with nobody else. A transaction that has been decided is
//! applied in its turn, at every replica; there its actions are run, on what the one before left.
//!
//! # Why it is safe
//! From its vote on the key is closed to readers of later snapshots and to writers, and when its
//! turn has come everything before it is applied: the newest version is what it finds, everywhere.
//! So a transaction lies where its turn is, with its actions, and must not lie in the past: its
//! lower bound is as high as can be. Turns are the same at all replicas, and actions are functions
//! of what they are given, so replicas stay alike, through crashes too: the log has the actions and
//! the decisions, and replaying it runs them again from the same state.
//!
//! # Where it ends
//! Whoever uses a key that it has a delayed action on *leaves its footprint*: it is aborted and run
//! again with its actions done at once, as reads and writes. A key that it has used before is no
//! reason to start again: there its action is done at once.
//!
//! # How much they may leave
//! The value that an action leaves may be as long as any value, by the limit of whoever delays it,
//! which goes with the transaction ([`Extra::result_bytes`](crate::two_phase::message::Extra)); a
//! repository with a smaller limit has it done at once instead. At its vote a repository adds up
//! what those that append may come to, with all that are under way on the key, and what a user's
//! own would leave now; where that is over the limit, they are done at once as well. What is over
//! it all the same when the turn has come, by what others did meanwhile, changes nothing, on every
//! replica alike, and says so to whoever asked.
//!
//! # Several keys
//! A procedure that is declared to touch some keys may be delayed too ([`procedures`]),
//! and what is delayed may be asked what it gave ([`answers`]). [`deferring`] is the coordinator's
//! half, [`actions`] the participants'.
//!
//! # Beyond the paper
//! A transaction whose keys have no other delayed actions under way when it votes may lie in the
//! past all the same ([`DelayedTimeWarp`](super::DelayedTimeWarp)), below what it proposes: its
//! actions are then run as it is decided, on what was there when it voted. Whoever delays an action
//! on such a key later has a later proposal: it lies above, is not applied before this one is
//! decided, and runs on what it left. Its locks stay until its turn.
//!
//! Deviation: who must lie in the past and has delayed actions is aborted, as in the paper,
//! but delays them again when it runs again: it then reads what it missed.

pub(in crate::two_phase) mod actions;
pub(in crate::two_phase) mod answers;
mod deferring;
pub(in crate::two_phase) mod procedures;
