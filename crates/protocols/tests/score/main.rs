//! SCORe, message by message: transcripts, every interleaving of small scopes, checkpoints,
//! strangers, and limits.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../two_phase/mod.rs"]
mod two_phase;

mod clusters;
mod copies;
mod decisions;
mod every_protocol;
mod explore;
mod formats;
mod gone;
mod judged_answers;
mod judged_messages;
mod late_votes;
mod pages;
mod repository;
mod strangers;
mod transcripts;
mod waiting;
