//! Workloads: what clients do to a database, to measure it and to find it wrong.
//!
//! [`workload`] says what one is; [`available`] lists those that there are: [`bank`] and its
//! [loans](bank::loan), [`ycsb`], [`objects`], [`tpcc`] (also as procedures), [`append`], [`sets`],
//! [`queues`], [`counters`], [`counter_service`], [`pairs`], [`vacation`], [`epinions`],
//! [`retwis`], [`tpcw`], [`auctionmark`] and those on [`home`] copies; [`planned`] those whose
//! procedures are plans. They are written once against
//! [`muesli::Db`]; [`embedded`] and [`simulated`] run them, [`connected`] on a cluster under
//! faults, and [`history`] turns what was recorded into what the checker judges. A [`seeded_run`]
//! does all of that with one seed; [`calibration`] measures what the simulator's costs stand on.

pub mod append;
pub mod auctionmark;
pub mod available;
pub mod background;
pub mod bank;
pub mod calibration;
mod clients;
pub mod counter_service;
pub mod counters;
pub mod delayed_adds;
pub mod epinions;
pub mod history;
pub mod home;
pub mod objects;
pub mod pairs;
mod parted;
pub mod planned;
pub mod queues;
pub mod retwis;
mod runs;
pub mod seeded_run;
pub mod sets;
pub mod tpcc;
pub mod tpcw;
pub mod vacation;
pub mod workload;
pub mod ycsb;

pub use clients::parameters::{calls, interface};
pub use clients::{
    chance, check, distribution, list_history, marks, nesting, parameters, placed_keys, staleness,
    tally,
};
use clients::{ledgers, loading, per_client, reading};

pub use machines::geography;
use runs::{batches, guarantees, guest, lingering, pauses, trees};
pub use runs::{connected, embedded, machines, simulated, tempo};
