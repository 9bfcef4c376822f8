//! The library, used as an application uses it.
//!
//! One program: each further one would be linked with all of it again.

mod blocking;
mod bodies;
mod checkpoints;
mod closing;
mod cluster;
mod delayed;
mod delayed_procedures;
mod delayed_sizes;
mod durable;
mod endings;
mod faulty_parts;
mod in_state;
mod large;
mod loops;
mod masters;
mod mistakes;
mod nested;
mod object_operations;
mod objects;
mod open_nesting;
mod partitions;
mod plain_closures;
mod plans;
mod procedure_threads;
mod procedures;
mod retrying;
mod sampled;
mod sessions;
mod sizes;
mod stale_reads;
mod structures;
mod timestamp_leases;
mod transfer;
mod typed;
