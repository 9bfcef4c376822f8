//! Validation by a tree, message by message: transcripts, every interleaving of small scopes,
//! checkpoints, and limits; by intervals of timestamps, and by locks.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../two_phase/mod.rs"]
mod two_phase;

mod broken;
mod changed_tree;
mod client_coordinator;
mod clusters;
mod every_protocol;
mod explore;
mod formats;
mod judged;
mod repository;
mod scopes;
mod transcripts;
mod unreachable;
mod values_climb;
