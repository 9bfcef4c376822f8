//! The protocol of groups: what is said, what is kept, what can be switched off.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

use muesli_core::{Address, Nanos, NodeId, RepositoryId, SmallBytes};

use crate::agreement::ballot::Ballot;
use crate::agreement::ledger::Change;
use crate::agreement::summary::Summary;
use crate::agreement::transfer::{EntryBatch, Fetch, FetchState, StatePiece};

/// Protocol `P` with each of its repositories on a group of nodes.
///
/// The catalog of a grouped database names the *members*, each with its own home. `P` sees one
/// repository a group ([`layout`](crate::layout)).
#[derive(Clone, Copy, Debug)]
pub struct Grouped<P>(PhantomData<P>);

/// Switches of groups. Those that are true or false break a rule each, to see it noticed.
#[derive(Clone, Debug)]
pub struct GroupSettings<R> {
    /// The switches of the protocol inside.
    pub inner: R,
    /// The time between two ticks of the consensus. A leader that is silent for about ten of them
    /// is followed by another, so it should be well above the time for which a node that is well
    /// may stand still.
    pub tick: Nanos,
    /// A member speaks after what it wrote is stable.
    pub syncs_first: bool,
    /// A leader counts itself among those that have an entry after that is stable.
    pub counts_itself_when_stable: bool,
    /// Answers wait until it is sure that nobody else leads.
    pub confirms_answers: bool,
    /// Answers wait until the group has decided all that they depend on.
    pub decides_first: bool,
    /// Followers replay, and answer readers by, nothing that is not decided.
    pub answers_decided: bool,
    /// A follower replays every entry.
    pub replays_all: bool,
    /// A member without memory asks the others before it votes.
    pub asks_before_voting: bool,
    /// Where a majority of a group has lost its memory, members go on with what the others know,
    /// though that may be too little. For whoever runs servers, who accepts the loss.
    pub accepts_loss: bool,
    /// Members that moved away stop, and nobody listens to them there any more.
    pub keeps_to_placement: bool,
    /// A configuration begins where the one before has decided to end.
    pub ends_configurations: bool,
    /// A transferred state counts only once all of its pieces are there and all entries that they
    /// hold effects of were replayed.
    pub installs_whole: bool,
    /// A member's checkpoint is published only once all entries in it are decided.
    pub publishes_decided: bool,
    /// A piece of a leader's state leaves once all is decided that it may hold effects of.
    pub sends_decided: bool,
    /// A member without memory votes once it has all the entries of the member that it learns from.
    pub joins_whole: bool,
    /// A leader that is deposed returns to a moment before which everything is decided.
    pub returns_to_decided: bool,
    /// Limits of size and time.
    pub limits: Limits,
}

/// How much a member keeps and sends at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of decided entries a member keeps at least so many bytes in memory.
    pub log_bytes_min: u64,
    /// While others lag, or are away, the members of a node keep entries that these lack, up to so
    /// many bytes together; each has the same share.
    pub log_bytes_max: u64,
    /// About so many bytes of entries or of state go in a message; a larger entry goes alone.
    pub piece_bytes: u64,
    /// So many bytes are sent ahead of what the receiver has on its disk.
    pub window_bytes: u64,
    /// A leader has at most so many bytes undecided, or one entry; the others wait.
    pub undecided_bytes_max: u64,
    /// A member whose disk has not made stable what it was given for so many ticks neither leads
    /// nor stands for election.
    pub disk_ticks_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            log_bytes_min: 1 << 20,
            log_bytes_max: 1 << 30,
            piece_bytes: 256 << 10,
            window_bytes: 16 << 20,
            undecided_bytes_max: 8 << 20,
            disk_ticks_max: 20,
        }
    }
}

impl Limits {
    /// Limits so tight that everything happens within a few entries: for searches.
    pub fn tight() -> Limits {
        Limits {
            log_bytes_min: 300,
            log_bytes_max: 3_000,
            piece_bytes: 400,
            window_bytes: 1_200,
            undecided_bytes_max: 2_000,
            ..Limits::default()
        }
    }
}

impl<R: Default> Default for GroupSettings<R> {
    fn default() -> GroupSettings<R> {
        GroupSettings {
            inner: R::default(),
            tick: Nanos::from_millis(2),
            syncs_first: true,
            counts_itself_when_stable: true,
            confirms_answers: true,
            decides_first: true,
            answers_decided: true,
            replays_all: true,
            keeps_to_placement: true,
            asks_before_voting: true,
            accepts_loss: false,
            ends_configurations: true,
            installs_whole: true,
            publishes_decided: true,
            sends_decided: true,
            joins_whole: true,
            returns_to_decided: true,
            limits: Limits::default(),
        }
    }
}

/// What is said.
#[derive(Clone, Debug)]
pub enum Message<M> {
    /// Of the protocol inside, to a coordinator or to whoever leads a group.
    Inside {
        /// Who says it, by the inner catalog.
        from: Address,
        /// How often it was passed on by members that do not lead.
        hops: u8,
        /// What.
        message: M,
    },
    /// Member to member: of the consensus, in the configuration of this number.
    Consensus(u32, SmallBytes),
    /// Leader to member: do you still follow this ballot?
    Confirm {
        /// The leader's.
        ballot: Ballot,
        /// Which time it asks.
        round: u64,
    },
    /// Member to leader: I had promised nobody else when you asked.
    Confirmed {
        /// Whom I follow.
        ballot: Ballot,
        /// Which time was asked.
        round: u64,
    },
    /// Leader to everyone: I lead this group.
    Leads {
        /// The group.
        group: u16,
        /// The member, from 0.
        member: u16,
        /// Its ballot: larger ones are believed.
        ballot: Ballot,
        /// The epoch of the placement that its node goes by.
        epoch: u64,
    },
    /// Coordinator to coordinator: you know a newer catalog than I.
    AskPlacement,
    /// The answer, and what whoever seems not to know it is told.
    Placement {
        /// The placement's epoch.
        epoch: u64,
        /// For each member its home, and since which epoch.
        homes: Vec<(NodeId, u64)>,
        /// Members that are to go.
        leaving: Vec<RepositoryId>,
    },
    /// Member to member: I know that this configuration has begun, and have all before it.
    At(u32),
    /// A member without memory to the others: what do you know?
    Ask,
    /// A member without memory to coordinators, where nobody remembers: had this group begun?
    AskBegun(u16),
    /// The answer.
    Begun(bool),
    /// The answer.
    Knows(Box<Summary>),
    /// Member to itself, behind its log: what was written before this note is stable.
    Stable(u64),
    /// Leader to member: messages were lost; ask me for what is missing.
    Resync(Ballot),
    /// Member to member: you lack so much that it does not fit into a message of the consensus; so
    /// many entries are decided. Fetch what you lack.
    Behind(u64),
    /// Member to member, now and then: so many entries of so many bytes are decided, and I have
    /// them and replayed them.
    Reached {
        /// How many.
        decided: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// Member to member: send me the entries after these.
    Fetch(Fetch),
    /// The answer.
    Entries(Box<EntryBatch>),
    /// Member to member: send me the state of the participant.
    FetchState(FetchState),
    /// The answer.
    State(Box<StatePiece>),
    /// The answer, if that cannot be had here, or not any more.
    NoState,
    /// Member to member: I take in a message of so many bytes, and am silent meanwhile.
    Long(u64),
}

/// The messages of one member of a group to another: a pattern, which stands for all of them where
/// others are matched one by one.
macro_rules! between_members {
    () => {
        Message::Consensus(..)
            | Message::At(_)
            | Message::Confirm { .. }
            | Message::Confirmed { .. }
            | Message::Ask
            | Message::Knows(_)
            | Message::Behind(_)
            | Message::Reached { .. }
            | Message::Fetch(_)
            | Message::Entries(_)
            | Message::FetchState(_)
            | Message::State(_)
            | Message::NoState
            | Message::Long(_)
            | Message::Resync(_)
    };
}

pub(crate) use between_members;

/// What a node's log holds: changes of what a member knows, made together or not at all, or what a
/// service says.
#[derive(Clone, PartialEq, Eq)]
pub enum Record<R> {
    /// Of a member.
    Changes(Vec<Change>),
    /// A record of a service of the protocol inside.
    Service(R),
}

impl<R: Debug> Debug for Record<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_tuple("Record");
        match self {
            Record::Changes(changes) => shown.field(changes),
            Record::Service(record) => shown.field(record),
        };
        shown.finish()
    }
}
