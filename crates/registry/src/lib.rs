//! Protocols by name, each node alone or its repositories kept by groups, for drivers that are
//! compiled once: here, and nowhere above, a protocol's state machines are compiled for them.
//!
//! The table begins with the protocols of `muesli-protocols`. A program [registers](register) its
//! own beside them, and then uses them wherever a protocol's name is taken: by the simulator and
//! its searches, by servers, clients and benchmarks. (The embedded driver knows the type of its
//! protocol: `muesli::register_protocol` registers it for both.)

mod abilities;
mod names;
mod table;

pub use abilities::{
    NoCaches, NoMasters, NoShards, NoTimestampLeases, NoTree, NotStrict, bounds_staleness,
    check_caches, check_masters, check_shards, check_strict, check_tree, exchanges_members,
    keeps_old_versions, may_start_empty, offers_strict, timestamp_step, with_caches, with_masters,
    with_shards, with_strict, with_timestamp_leases, with_validators,
};
pub use names::{canonical_name, is_known, stored_name};
pub use table::{Grouping, NoProtocol, NotRegistered, names, protocol, register};
