//! What the clients of every workload need: [`chance`] and how keys are drawn ([`distribution`],
//! and [`placed_keys`] where it matters on which node they are and who else uses them),
//! [`parameters`], also those that several workloads have in common, what clients note down by
//! themselves ([`per_client`], [`tally`], [`list_history`], [`marks`], [`ledgers`]), whether parts
//! of transactions are children ([`nesting`]), how stale readers may be ([`staleness`]), how data
//! are loaded first and read in the end, and what is said of them then ([`check`]).

pub mod chance;
pub mod check;
pub mod distribution;
pub(crate) mod ledgers;
pub mod list_history;
pub(crate) mod loading;
pub mod marks;
pub mod nesting;
pub mod parameters;
pub(crate) mod per_client;
pub mod placed_keys;
pub(crate) mod reading;
pub mod staleness;
pub mod tally;
