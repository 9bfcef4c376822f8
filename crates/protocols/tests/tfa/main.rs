//! TFA, message by message: transcripts, every interleaving of small scopes,
//! checkpoints, strangers, and limits.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../two_phase/mod.rs"]
mod two_phase;

mod broken;
mod clusters;
mod every_protocol;
mod explore;
mod formats;
mod moves_of_clients;
mod progress;
mod repository;
mod transcripts;
