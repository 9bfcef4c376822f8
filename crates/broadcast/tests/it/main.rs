//! Broadcasts in small groups whose every interleaving is tried, and in larger ones among faults.

mod batched;
mod catch_up;
mod checkpoint;
mod contention;
mod epaxos;
mod epochs;
mod exploration;
mod generalized;
mod group;
mod m2paxos;
mod m2paxos_bounded;
mod multipaxos;
mod named;
mod order;
mod pob;
mod proposed;
mod script;
mod simulation;
