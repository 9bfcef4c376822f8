//! The contract between protocols and drivers.
//!
//! A [`Protocol`] is a set of state machines: a [`Coordinator`] that runs transactions for clients,
//! a [`Participant`] per repository, and the [services](Service) that it adds. All are functions of
//! their inputs: [operations](Operation), messages, timers. What they want done they append to the
//! [`Context`](crate::effects::Context)'s effects.
//!
//! What a client asks is a value, an [`Operation`], and so is what it is told, an [`Answer`]: on
//! its way from the library through a driver, a node and whatever decorates a coordinator, it
//! passes one function of each, [`operate`](Coordinator::operate).
//!
//! A coordinator reaches the participants of its own node directly, through [`Here`]: where a
//! transaction's whole footprint is there, its phases collapse into calls, and no message is made.
//! The book's page on the contract shows how each family of protocols is expressed in it.

mod coordinator;
mod delaying;
mod here;
mod operation;
mod participant;
mod protocol;
mod service;
mod without;

pub use coordinator::Coordinator;
pub use delaying::{Later, at_once, known_action, known_procedure};
pub use here::Here;
pub use operation::{Answer, Operation, Put, Scan, Step};
pub use participant::Participant;
pub use protocol::{Isolation, Protocol};
pub use service::{NoService, Service};
