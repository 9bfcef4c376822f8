//! Granola in simulated worlds: every class of transaction, under every kind of fault.

mod absent;
mod bounded;
mod checkpoints;
mod clients;
mod counted;
mod data_in_votes;
mod external;
mod follower_reads;
mod moves;
mod moving;
mod out_of_order;
mod pages;
mod parallel_execution;
mod procedures;
mod sabotage;
mod seeds;
mod sinfonia;
mod steps;
mod strangers;
mod worlds;
