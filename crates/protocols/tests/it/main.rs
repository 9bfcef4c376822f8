//! Protocols message by message: transcripts, every interleaving of small scopes, checkpoints; and
//! the rules of the house for all code.
//!
//! One program: each further one would be linked with all of it again.

mod bounded;
mod checkpoint;
mod copies;
mod delayable;
mod exploration;
mod explore;
mod explore_baselines;
mod explore_bumper;
mod explore_gmu;
mod explore_granola;
mod fair;
mod golden;
mod gone;
mod granola;
mod house_rules;
mod judge;
mod judged;
mod late_votes;
mod leaving;
mod memory;
mod outstanding;
mod stage;
mod subject;
mod too_old;
mod transcripts;
mod waiting;
