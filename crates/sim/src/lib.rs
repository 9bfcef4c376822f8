//! A deterministic simulator for Muesli's protocols.
//!
//! The nodes and the clients are those of every other driver; what is simulated is everything
//! below them: time, links, processors, disks, clocks, and their faults. All chance comes from
//! one seed, so a run can be repeated to the byte, and a failing seed is a complete bug report.
//!
//! Start at [`world`]: a [`World`](world::World) is made from a [`Setup`](world::Setup), given
//! clients, and run to the end of its [`Plan`](plan::Plan) of faults. What it stands on:
//!
//! | part | what it decides |
//! | --- | --- |
//! | [`time`], [`queue`] | what happens next |
//! | [`random`] | all chance, split by purpose |
//! | [`network`], [`latency`] | when a message arrives, and whether |
//! | [`hardware::processor`], [`hardware::costs`] | how long a node is busy |
//! | [`hardware::disk`] | when a record is stable, and what a crash leaves |
//! | [`hardware::clock`] | what time a node thinks it is |
//! | [`plan`] | what goes wrong, when, and when it is repaired |
//! | [`calibrate`] | what the costs are on this machine |
//! | [`history`] | what the checker is told of all this |
//! | [`trace`] | whether two runs were the same |

pub mod calibrate;
pub mod hardware;
pub mod history;
pub mod latency;
pub mod network;
pub mod plan;
pub mod queue;
pub mod random;
pub mod time;
pub mod trace;
pub mod world;
