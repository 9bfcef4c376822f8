//! Order among commands, the same at all members of a group, without a fixed leader.
//!
//! # The problem
//! Several members each have all of some data, and each of them takes commands that change it. Two
//! commands that conflict must be applied in one order everywhere; two that do not may be applied
//! in any. A consensus on a log of everything orders too much, and by one leader.
//!
//! # The idea
//! A command names the [objects](ObjectSet) that it reads and writes. Whoever takes it
//! [proposes](Broadcast::propose) it; each member, whoever it is, [delivers](DeliveredCommand) it
//! once, after all that conflict with it and come before it. Members crash and come back, and
//! messages are lost; a majority that can talk goes on.
//!
//! A [`Broadcast`] is a state machine without clocks, threads, sockets and disks. What it wants
//! done it appends to its [effects](BroadcastEffects): messages to send, records to log, commands
//! that are delivered. Messages leave in this order, each only once the records before it are
//! stable.
//!
//! Instances:
//!
//! * [`multipaxos`]: Multi-Paxos. One leader, one order of everything.
//! * [`pob`]: Partial Order Broadcast of Alvin. Commands carry positions, and only these need to be
//!   agreed on.
//! * [`epaxos`]: EPaxos as it was repaired. Commands carry dependencies, and these are agreed on.
//! * [`generalized`]: Generalized Paxos. Members vote on what comes before a command, and a leader
//!   orders those on which they do not agree.
//! * [`m2paxos`]: M²Paxos. Whoever owns the objects of a command says where it is.
//! * [`m2paxos_bounded`]: M²Paxos. Who comes to own objects is ordered by another broadcast.
//!
//! [`ChosenBroadcast`] is whichever of them a [choice](BroadcastChoice) names. Over any of them
//! members are exchanged, by [epochs]. [`Batched`] is any of them whose members order several
//! commands as one.

mod batched;
mod broadcast;
mod chosen;
mod command;
mod components;
mod conflicts;
mod dependencies;
mod effects;
pub mod epaxos;
pub mod epochs;
pub mod generalized;
mod id_set;
pub mod m2paxos;
pub mod m2paxos_bounded;
mod member;
pub mod multipaxos;
mod objects;
pub mod pob;
mod progress;
mod quorums;
mod reports;

pub use batched::{BatchLimits, BatchSwitch, Batched, BatchedSwitches};
pub use broadcast::{Broadcast, BroadcastSettings, EffectsOf};
pub use chosen::{BroadcastChoice, ChosenBroadcast, ChosenMessage, ChosenRecord};
pub use command::{Command, CommandId, MemberId};
pub use conflicts::{ConflictIndex, Conflicts};
pub use dependencies::OrderedAfter;
pub use effects::{BroadcastEffect, BroadcastEffects, DeliveredCommand};
pub use id_set::IdSet;
pub use member::checkpoint::CheckpointError;
pub use muesli_core::bytes::SmallBytes;
pub use muesli_core::{Nanos, Rejection};
pub use objects::{ObjectAccess, ObjectSet, TouchedObject};
pub use quorums::Quorums;
