//! Data kept whole at several sites, whose commits are broadcast and certified: Alvin (Turcu 2015,
//! chapter 9 and appendix A), with a broadcast of choice.
//!
//! # The problem
//! Each site is to have all data, so that reads are near. A leader that orders all commits is far
//! from most of them, and orders what need not be ordered.
//!
//! # The idea
//! Each repository is a *site* with all keys. A transaction runs at the site nearest to its
//! coordinator, which buffers its writes, and reads at a snapshot of that site. Its commit says
//! what was read and what is written, and is [broadcast](muesli_broadcast): commits that conflict
//! are delivered in one order at all sites, others in any. As one is delivered, each site
//! *certifies* it: it takes effect if what it read is still the newest. All sites have applied the
//! same commits that conflict with it, so all come to the same answer, and no one asks another
//! (P-CC).
//!
//! # The argument
//! Two commits conflict if a key, or a part of a range, of both is written by one of them. A commit
//! that takes effect read the newest versions in the order of its delivery; so that order, of
//! conflicting commits, is a serial one. Where who only reads is broadcast as well, all are in it,
//! and it keeps real time: who begins after a commit was answered is delivered after it, wherever
//! both conflict. Under a total order a site that reads alone reads a beginning of it. Under a
//! partial order two sites may have applied commits that do not conflict in different orders, so
//! what reads alone is extended update serializable, and not by sessions: a reader may see one of
//! two updates of a session that do not conflict, and not the one before it.
//!
//! Versions are numbered by what conflicts: a commit's counter is above those of all objects that
//! it touches, so that all sites number alike. Snapshots go by another clock, which each site has
//! for itself (`participant/recent.rs`).
//!
//! # Where this departs from the paper
//! * Validation goes by versions, of which a key has no two alike; by positions it lets lost
//!   updates pass.
//! * A commit is validated and applied in one step, so that nobody reads half of it; the paper
//!   takes the clock anew for each of its versions.
//! * Who only reads is broadcast where all are to be serializable; the paper broadcasts updates
//!   alone.
//! * Versions are collected by what is read at a site, whatever is read elsewhere.
//! * Ranges are read without phantoms: by what they hold, and how many keys went.
//! * An absence is told by how many deletions there were, as sites forget deletions at moments of
//!   their own, and all are to certify alike.

pub mod coordinator;
pub(crate) mod judge;
mod locator;
pub mod message;
pub mod participant;
pub(crate) mod state;
mod switches;

use muesli_broadcast::BroadcastChoice;
use muesli_core::{
    Catalog, Isolation, NoService, NodeId, Protocol, Rejection, ServiceId, StalenessSupport, View,
};

pub use coordinator::CertifiedCoordinator;
pub use message::{Message, Record};
pub use participant::CertifiedSite;
pub use switches::{CertifiedSwitch, LocalReads, Switches};

pub(crate) type Context<'a> = muesli_core::Context<'a, Certified>;

/// Certification on delivery, under the broadcast that its [switches](Switches) name.
#[derive(Clone, Copy, Debug)]
pub struct Certified;

impl Protocol for Certified {
    const NAME: &'static str = "alvin";
    const REPLICATES_ITSELF: bool = true;
    type Message = Message;
    type Record = Record;
    type Switches = Switches;
    type Coordinator = CertifiedCoordinator;
    type Participant = CertifiedSite;
    type Service = NoService;
    const TIMESTAMP_STEP: Option<muesli_core::Nanos> = None;
    const KEEPS_OLD_VERSIONS: bool = true;
    const KEEPS_COPIES: bool = false;
    const KEEPS_EVERYWHERE: bool = true;

    fn isolation(switches: &Switches) -> Isolation {
        match switches.local_reads {
            LocalReads::None => Isolation::StrictSerializable,
            LocalReads::InOneOrder => Isolation::Serializable,
            LocalReads::InAnyOrder => Isolation::ExtendedUpdateSerializableWithoutSessions,
        }
    }

    fn services(_: &Switches, _: NodeId, _: &Catalog) -> Vec<ServiceId> {
        Vec::new()
    }

    muesli_core::protocol_measured_by_encoding!();

    fn is_about(message: &Message, catalog: &Catalog) -> bool {
        judge::is_about(message, catalog)
    }

    fn judge(message: &Message, view: View<'_>) -> Result<(), Rejection> {
        judge::judge(message, view)
    }

    fn as_client(_: &Message, _: NodeId) -> Option<Message> {
        None
    }

    fn offers_strict(_: &Switches) -> bool {
        true
    }

    fn staleness(_: &Switches) -> StalenessSupport {
        StalenessSupport::Bounded
    }

    fn has_masters(_: &Switches) -> bool {
        false
    }

    fn exchanges_members(switches: &Switches) -> bool {
        match switches.broadcast {
            BroadcastChoice::M2Paxos(_) => false,
            BroadcastChoice::Pob(_)
            | BroadcastChoice::Epaxos(_)
            | BroadcastChoice::Generalized(_)
            | BroadcastChoice::MultiPaxos(_)
            | BroadcastChoice::BoundedByMultiPaxos(_)
            | BroadcastChoice::BoundedByPob(_)
            | BroadcastChoice::BoundedByEpaxos(_)
            | BroadcastChoice::BoundedByGeneralized(_) => true,
        }
    }

    fn is_for_all(_: &Message) -> bool {
        false
    }

    fn is_for_any(_: &Message) -> bool {
        false
    }
}
