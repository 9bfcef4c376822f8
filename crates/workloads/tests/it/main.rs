//! Workloads in simulated worlds, with faults, with groups, and with broken rules.
//!
//! One program: each further one would be linked with all of it again.

mod among_faults;
mod available;
mod batches;
mod behind;
mod blocking;
mod calls;
mod carried_on;
mod certified;
mod certified_losers;
mod delays;
mod deposed;
mod follower_reads;
mod following;
mod groups;
mod home_copies;
mod hung_disk;
mod lost;
mod lost_directory;
mod near;
mod nested;
mod objects;
mod one_group;
mod one_round;
mod open_nesting;
mod queues;
mod recovery;
mod routes;
mod sabotage;
mod searches;
mod sharded;
mod stale_reads;
mod starved;
mod stepped_down;
mod strangers;
mod traces;
mod validators;
mod workloads;
