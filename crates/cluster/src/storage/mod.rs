//! What survives the end of a process.
//!
//! A server has a [`folder`], in which its log lives. [`log`] is a log as the loop knows it, and
//! `write_ahead` the durable one, which `replaying` reads back into a node at its start;
//! [`stopped`] is about folders that nobody uses, and [`trouble`] is a disk that misbehaves on
//! demand, for tests, whose changes `disk_record` writes down. [`node_log`] is what a loop does
//! with its log and with checkpoints, and [`loop_folders`] has the folders of several loops, and
//! of an embedded database. What survives of a client is its [`timestamp_lease`]. `small_files`
//! writes whatever is written as a whole.

pub(crate) mod disk_record;
pub mod folder;
pub mod log;
pub mod loop_folders;
pub mod node_log;
pub(crate) mod replaying;
pub(crate) mod small_files;
pub mod stopped;
pub mod timestamp_lease;
pub mod trouble;
pub(crate) mod write_ahead;
