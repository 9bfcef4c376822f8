//! Words, contract and shared parts of Muesli's transaction protocols.
//!
//! A protocol is a set of deterministic state machines ([`contract`]); a [`node`] is a map of them
//! by [role](roles): one coordinator, the participants of its repositories, and its services. A
//! driver gives the node inputs and performs its [effects](contract::Effect). What several
//! protocols need stands in [`parts`], each part knowing no protocol.

pub mod catalog;
pub mod client;
pub mod contract;
mod data;
pub mod judgement;
pub mod machine;
pub mod node;
pub mod parts;
pub mod recorder;
mod requests;
pub mod roles;
#[doc(hidden)]
pub mod sabotage;
mod settings;

pub use client::{deadlines, operations, traffic};
pub use data::{bytes, formats, ids, ranges, time, wire};
pub use requests::{actions, delay, exceeded, issuance, limits, moving, outcome, procedure};
pub use roles::{checkpoint, lag, links, positions, replica_role, timers};
pub use settings::{batching, memory, options, parallel, secret};

pub use actions::{Action, ActionCode, ActionFn, Actions};
pub use batching::{BatchLinks, Batching, CommitBatch, LinkBatch, LinkClass};
pub use bytes::SmallBytes;
pub use catalog::{
    Catalog, EVERYWHERE, Index, Partitioning, Space, SpaceOptions, UnitMap, UnitPart, UnitRange,
    Units,
};
pub use checkpoint::{Checkpoint, Cursor, Readiness};
pub use contract::{
    Answer, Context, Coordinator, Deferral, Effect, Effects, Envelope, Environment, Here,
    Isolation, LoggedRole, Maintenance, Modes, Nesting, NoService, Operation, Participant,
    Protocol, Put, Service, StalenessSupport, StateMachine, Step, Work,
};
pub use delay::{Delay, DelayedCall, Gave};
pub use exceeded::Limit;
pub use ids::{NodeId, OpId, RepositoryId, SpaceId, Timestamp, Txn, TxnId};
pub use judgement::{Rejection, Rejections, Sender, View};
pub use lag::Lag;
pub use limits::Limits;
pub use links::Links;
pub use machine::{
    AnyMachine, AnyProtocol, BatchCounts, Driver, Encode, Machine, Note, OutgoingMessage, Outside,
    RecoverableMachine, Typed,
};
pub use node::Node;
pub use options::{LevelRole, Pace, Settings, Staleness, TxnLevel, TxnOptions};
pub use outcome::{Abort, Committed, Decision, Doubt, Failure, Outcome};
pub use parallel::Parallel;
pub use positions::{LogPosition, Positions, RolePositions};
pub use procedure::{
    Call, Class, Footprint, Fragment, Invoked, LocatedKey, Place, Procedure, ProcedureId,
    Procedures, Refuses, Stop, Store, Touched,
};
pub use ranges::{KeyRange, Row, Scan};
pub use recorder::Recorder;
pub use replica_role::ReplicaRole;
pub use roles::{Address, Role, ServiceId, ServiceKind};
pub use secret::{Secret, Tag};
pub use time::Nanos;
pub use timers::{MachineTimer, NoTimer, Timer};
pub use traffic::Traffic;
pub use wire::{Reader, Wire, WireError};
