//! Granola and Sinfonia: in simulated worlds, every class of transaction under every kind of fault;
//! message by message, and in every interleaving of small scopes.

#[path = "../harness/mod.rs"]
mod harness;

mod absent;
mod answers_lost;
mod bounded;
mod checkpoint_page;
mod checkpoints;
mod clients;
mod clusters;
mod copies;
mod counted;
mod data_in_votes;
mod every_protocol;
mod explore;
mod external;
mod follower_reads;
mod formats;
mod full;
mod gone;
mod judged;
mod memory;
mod moves;
mod moving;
mod out_of_order;
mod pages;
mod parallel_execution;
mod placed;
mod procedures;
mod sabotage;
mod seeds;
mod sinfonia;
mod steps;
mod strangers;
mod subject;
mod transcripts;
mod watches;
mod worlds;
