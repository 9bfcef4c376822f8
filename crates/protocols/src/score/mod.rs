//! SCORe: a scalable one-copy serializable partial replication protocol (Peluso, Romano and
//! Quaglia, Middleware 2012; described in Diegues and Romano's Bumper paper, section IV-A, and in
//! Turcu's dissertation, section 3.4).
//!
//! # The problem
//! Transactions read and write keys that live on several repositories, each key on some of them.
//! All transactions must seem to run one after the other, those that only read must never abort,
//! and only repositories that hold a key of a transaction may take part in it.
//!
//! # The idea
//! Every key keeps several versions, tagged by the timestamp of their transaction. A transaction
//! reads at one *snapshot*, fixed by its first read: the newest versions at or below it. An update
//! transaction commits in two phases: every repository that holds a key it read or wrote locks its
//! keys, checks that what was read is still newest, and *proposes* a timestamp above everything it
//! has served; the largest proposal is final (Skeen's rule), and every repository applies its
//! transactions in the order of their final timestamps, from a commit queue.
//!
//! # Why it is safe
//! Order transactions by final timestamp, each reader after everything at or below its snapshot.
//! Updates that conflict meet under conflicting locks at some repository, and the second one
//! prepares after the first was applied, so it is proposed a larger timestamp. A reader that was
//! served an old version of a key pushed the repository's clock to its snapshot first, so whoever
//! overwrites the key later is proposed more; and if a writer had proposed less before, the reader
//! waits until that writer is decided. So a snapshot is exactly the transactions at or below it.
//!
//! # Deviations
//! * Timestamps are pairs (counter, repository). The paper's plain integers can tie, and then one
//!   of two tied transactions can be applied and published before the other: a torn snapshot.
//! * A read waits for a lock only while its holder's *proposal* is at or below the snapshot, which
//!   contains the paper's escape (commitId at or above the snapshot) as a special case.
//! * A read of a locked key whose holder would make it stale is refused at prepare instead of
//!   waiting: it could succeed only if the holder aborts. Blind writes, and writes of keys that
//!   others have locked for reading, do wait, bounded.
//! * A transaction whose keys all live at one repository on the coordinator's node commits in one
//!   step, below whatever is queued there if there is room ([`ScalarClock::room_below`]), past it
//!   if not: readers wait by proposals, so nothing rests on the order of application.
//! * The coordinator keeps nothing stable. Votes are stable, the outcome is a function of them,
//!   and any participant can gather them ([`finish`]).
//!
//! [`ScalarClock::room_below`]: muesli_core::parts::clock::ScalarClock::room_below
//!
//! # Rooms
//! [`coordinator`] runs transactions, [`commit`] is its second half; [`participant`] keeps a
//! repository, with [`reads`], [`prepare`] (locks and validation), [`finish`] (transactions
//! whose coordinator died) and [`checkpoint`]; [`gossip`] moves the watermark; [`message`] has all that is said.

use muesli_core::Catalog;
use muesli_core::contract::{Isolation, Protocol};

pub mod checkpoint;
pub mod commit;
pub mod coordinator;
pub mod finish;
pub mod gossip;
pub mod message;
mod operations;
pub mod participant;
pub mod prepare;
pub mod reads;
mod table;
mod wire;

pub use coordinator::Coordinator;
pub use message::{Message, Record};
pub use participant::Participant;

/// The protocol.
#[derive(Clone, Copy, Debug)]
pub enum Score {}

/// Switches that break the protocol, one rule each, to see the checker notice. All are true in
/// the protocol as it should be. Two rules back each other up: without `ordered_queue` or
/// `catch_up_when_idle` nothing breaks as long as reads go by proposals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A prepare is refused if a version read is no longer the newest.
    pub validate: bool,
    /// A read waits for a lock whose holder may come to lie inside the snapshot.
    pub reads_wait: bool,
    /// It tells so by the holder's proposal. Off, it goes by the paper's rule, and waits while the
    /// repository's clock is below the snapshot; that too is right, but only with `ordered_queue`
    /// and `catch_up_when_idle`, neither of which the proposals need.
    pub waits_by_proposal: bool,
    /// A prepare locks what was read, and is refused where a read key is locked by a writer.
    pub lock_reads: bool,
    /// Transactions leave the commit queue in timestamp order.
    pub ordered_queue: bool,
    /// A prepare checks scanned ranges, and locks them.
    pub validate_scans: bool,
    /// A read pushes the repository's clock to its snapshot.
    pub reads_raise: bool,
    /// With nothing queued and only then, the clock catches up with what was heard of.
    pub catch_up_when_idle: bool,
    /// A checkpoint has the transactions that are prepared.
    pub checkpoint_prepared: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            validate: true,
            reads_wait: true,
            waits_by_proposal: true,
            lock_reads: true,
            ordered_queue: true,
            validate_scans: true,
            reads_raise: true,
            catch_up_when_idle: true,
            checkpoint_prepared: true,
        }
    }
}

impl Protocol for Score {
    const NAME: &'static str = "score";
    const ISOLATION: Isolation = Isolation::Serializable;
    type Message = Message;
    type Record = Record;
    type Rules = Rules;
    type Coordinator = Coordinator;
    type Participant = Participant;

    fn is_about(message: &Message, catalog: &Catalog) -> bool {
        wire::is_about(message, catalog)
    }

    fn wire_bytes(message: &Message) -> usize {
        message.wire_bytes()
    }

    fn record_bytes(record: &Record) -> usize {
        record.bytes()
    }

    fn message_name(message: &Message) -> &'static str {
        message.name()
    }
}
