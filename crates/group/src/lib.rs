//! Replication groups: repositories that outlive the nodes they live on.
//!
//! # The problem
//! A repository's participant survives a crash by its log, and a lost disk not at all. And while
//! its node is down, nobody answers for its keys.
//!
//! # The idea
//! A repository is kept by a *group* of nodes, each with a [`Replica`](replica::Replica). They
//! agree on the repository's log by a consensus library. One of them leads: it runs the
//! participant of the protocol, and its records are stable once the group has decided them. The
//! others replay what is decided, so that any of them can go on. All of it is a protocol again,
//! [`Grouped<P>`]: its participants are replicas, its coordinator is that of `P` behind a
//! [`Front`](front::Front) that knows who leads. So every driver runs groups as it runs anything
//! else, and a group of one is no group: it is `P` itself. A service of `P` is
//! [kept by its node alone](service).
//!
//! # Why nothing acknowledged is lost
//! A replica says nothing before everything that it wrote down is stable on its disk: the gate of
//! the contract, which holds each message of a participant until its records are stable. So to the
//! others it is as if it had written at once, which is what the consensus library asks for. A
//! leader's entries alone leave early, and count as the leader's once it has them
//! (`agreement::written`). What the participant says leaves the group only when all that it depends
//! on is decided: then a majority holds it, and every later leader has it.
//!
//! A replica without memory, because its disk was lost or it is new, votes for nothing until all
//! other members have told it theirs ([`join`](agreement::join)). So it never takes back a vote.
//! Where so many have lost their memory that the others may not know everything, they say so and
//! wait.
//!
//! # Why no deposed leader answers
//! What it answers from was complete when it took over, and stays so as long as nobody else leads.
//! So each answer waits for a *round*: begun after the request was served, and confirmed by a
//! majority none of whom has promised to follow another leader. At that moment no other leader had
//! a majority, and the answer was right. One round serves all answers that wait
//! ([`lead`](agreement::lead)). No clock is asked. An answer that waits for a record of its own
//! needs no round: the majority that accepts the record says the same.
//!
//! # What it costs
//! A write of the log at the leader and at a follower, at the same time; a round trip for reads.
//! Coordinators reach the repositories of their own node by messages too: a leader cannot be sure
//! of itself.

pub mod agreement;
pub mod front;
mod grouped;
mod inside;
mod judge;
pub mod layout;
pub mod placement;
pub mod protocol;
pub mod replica;
pub mod service;
pub mod timers;
mod wire;

pub use protocol::{GroupSettings, Grouped, Limits, Message, Record};
