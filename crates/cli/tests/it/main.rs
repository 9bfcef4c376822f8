//! The program, run as a person or a script runs it.
//!
//! One program: each further one would be linked with all of it again.

mod backups;
mod cluster;
mod commands;
mod commands_alone;
mod data;
mod driver_messages;
mod files;
mod geography;
mod groups;
mod help;
mod live_placement;
mod logs;
mod lost_disks;
mod metrics;
mod mistakes;
mod moving_keys;
mod namespaces;
mod pages;
mod partition;
mod redis;
mod reproduce;
mod stopping;
mod strangers;
mod suggestions;
mod torture;
mod trees;
mod users;
