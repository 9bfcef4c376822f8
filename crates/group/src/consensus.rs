//! The consensus of a group: the library behind a door as narrow as we need it.
//!
//! OmniPaxos (sequence Paxos with a leader election that looks for a connected majority) has no
//! clock, no thread, no random source and no unordered table: it goes by ticks and messages alone,
//! so a seed of the simulator repeats it exactly. What it asks of its storage, to write at once,
//! is kept by whoever holds the messages back ([`ledger`](crate::ledger)).

use std::collections::BTreeMap;
use std::fmt;

use muesli_core::SmallBytes;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::BLEMessage;
use omnipaxos::messages::sequence_paxos::PaxosMsg;
use omnipaxos::{ClusterConfig, OmniPaxos, ServerConfig};

use crate::configuration::Configuration;
use crate::ledger::{Entry, Image, Ledger};
use crate::protocol::Ballot;
use omnipaxos::util::LogEntry;

/// Ticks between heartbeats; a leader that misses two is followed by another.
const ELECTION_TICKS: u64 = 4;
/// Ticks after which an unanswered message goes out again.
const RESEND_TICKS: u64 = 6;

/// A member's part in the consensus of its group.
pub struct Consensus {
    library: OmniPaxos<Entry, Ledger>,
    /// What others have, told before this member has it for sure; by the number of entries.
    early: BTreeMap<u64, Vec<Message<Entry>>>,
    /// So many entries are stable here.
    stable: u64,
    member: u16,
    configuration: Configuration,
}

/// A message on its way to another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// To which member, from 0.
    pub to: u16,
    /// What.
    pub bytes: SmallBytes,
    /// What it has to wait for.
    pub waits: Waits,
}

/// What a message of the consensus has to wait for before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nothing: only who may lead is said.
    ForNothing,
    /// The messages before it: a leader's entries, and how many are decided. It promised nobody
    /// else, and says nothing of what it has itself.
    ItsTurn,
    /// All that was written.
    ForTheDisk,
}

/// What is decided from some number on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// The next entry.
    Entry(Entry),
    /// The state after so many entries, instead of them.
    Image(u64, Image),
}

impl fmt::Debug for Consensus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Consensus({} of {:?}, {:?})", self.member, self.configuration, self.ballot())
    }
}

impl Consensus {
    /// The part of `member`, from 0, in a configuration, where `ledger` has what it knows of that.
    ///
    /// # Panics
    /// If fewer than two vote or the member does not: mistakes of whoever configures.
    pub fn new(member: u16, configuration: &Configuration, ledger: Ledger) -> Consensus {
        let nodes = configuration.places.iter().map(|place| u64::from(*place) + 1).collect();
        let configuration_id = configuration.number;
        let cluster = ClusterConfig { configuration_id, nodes, flexible_quorum: None };
        let server = ServerConfig {
            pid: u64::from(member) + 1,
            election_tick_timeout: ELECTION_TICKS,
            resend_message_tick_timeout: RESEND_TICKS,
            ..ServerConfig::default()
        };
        let library = cluster.build_for_server(server, ledger).expect("a sound configuration");
        let configuration = configuration.clone();
        Consensus { library, early: BTreeMap::new(), stable: 0, member, configuration }
    }

    /// Who votes.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Asks to lead, without waiting until nobody else does: for whoever led the configuration
    /// before.
    pub fn stand(&mut self) {
        self.library.try_become_leader();
    }

    /// Some time has passed.
    pub fn tick(&mut self) {
        self.library.tick();
    }

    /// Takes a message of another member; false if it is none.
    pub fn receive(&mut self, from: u16, bytes: &[u8]) -> bool {
        let Ok(message) = postcard::from_bytes::<Message<Entry>>(bytes) else { return false };
        let (sender, receiver) = match &message {
            Message::SequencePaxos(it) => (it.from, it.to),
            Message::BLE(BLEMessage { from, to, .. }) => (*from, *to),
        };
        let other = self.configuration.has(from) && from != self.member;
        let addressed =
            sender == u64::from(from) + 1 && receiver == u64::from(self.member) + 1 && other;
        match accepted_by(&message).filter(|&accepted| accepted > self.stable) {
            _ if !addressed => {}
            Some(accepted) => self.early.entry(accepted).or_default().push(message),
            None => self.library.handle_incoming(message),
        }
        addressed
    }

    /// So many entries are stable here: what others said of them counts now, together with this
    /// member's having them. The library takes a leader for one that has all its entries.
    pub fn stable_upto(&mut self, entries: u64) {
        self.stable = entries;
        while let Some(earliest) = self.early.first_entry().filter(|it| *it.key() <= entries) {
            earliest.remove().into_iter().for_each(|it| self.library.handle_incoming(it));
        }
    }

    /// What is to be sent.
    pub fn outgoing(&mut self) -> Vec<Outgoing> {
        let mut messages = Vec::new();
        self.library.take_outgoing_messages(&mut messages);
        let each = |message: Message<Entry>| {
            let (to, waits) = match &message {
                Message::SequencePaxos(it) => match it.msg {
                    PaxosMsg::AcceptDecide(_) | PaxosMsg::Decide(_) => (it.to, Waits::ItsTurn),
                    _ => (it.to, Waits::ForTheDisk),
                },
                Message::BLE(it) => (it.to, Waits::ForNothing),
            };
            let bytes = postcard::to_allocvec(&message).expect("messages have a form");
            let bytes = SmallBytes::from(bytes);
            Outgoing { to: to as u16 - 1, bytes, waits }
        };
        messages.into_iter().map(each).collect()
    }

    /// Whom this member follows, itself perhaps.
    pub fn ballot(&self) -> Ballot {
        self.library.get_promise().into()
    }

    /// The ballot under which this member leads, once it has all that was accepted before.
    pub fn leading(&self) -> Option<Ballot> {
        let me = u64::from(self.member) + 1;
        let leads = self.library.get_current_leader() == Some((me, true));
        leads.then(|| self.ballot()).filter(|ballot| ballot.member == me)
    }

    /// Appends an entry; only where this member [leads](Self::leading). Returns its number, from 1.
    pub fn append(&mut self, entry: Entry) -> u64 {
        self.library.append(entry).expect("there is one configuration");
        self.accepted()
    }

    /// How many entries this member has.
    pub fn accepted(&self) -> u64 {
        self.library.get_accepted_idx() as u64
    }

    /// How many of them are decided.
    pub fn decided(&self) -> u64 {
        self.library.get_decided_idx() as u64
    }

    /// What is decided after the first `from` entries.
    pub fn decided_after(&self, from: u64) -> Vec<Decided> {
        let entries = self.library.read_decided_suffix(from as usize).unwrap_or_default();
        let each = |entry| match entry {
            LogEntry::Decided(entry) => Some(Decided::Entry(entry)),
            LogEntry::Snapshotted(it) => Some(Decided::Image(it.trimmed_idx as u64, it.snapshot)),
            LogEntry::Undecided(_) | LogEntry::Trimmed(_) | LogEntry::StopSign(..) => None,
        };
        entries.into_iter().filter_map(each).collect()
    }

    /// As [`decided_after`](Self::decided_after), with what is not decided and may never be.
    pub fn accepted_after(&self, from: u64) -> Vec<Decided> {
        let all = self.library.read_entries(from as usize..).unwrap_or_default();
        let undecided = all.into_iter().filter_map(|entry| match entry {
            LogEntry::Undecided(entry) => Some(Decided::Entry(entry)),
            _ => None,
        });
        self.decided_after(from).into_iter().chain(undecided).collect()
    }

    /// Compacts the first `upto` entries, all decided, by the image made ready for them. False if
    /// they are not, or are compacted already.
    pub fn compact(&mut self, upto: u64) -> bool {
        upto <= self.decided() && self.library.snapshot(Some(upto as usize), true).is_ok()
    }

    /// Messages of the member that leads were lost: asks it for what is missing.
    pub fn catch_up(&mut self) {
        let leader = self.ballot().member;
        if leader != u64::from(self.member) + 1 && leader > 0 {
            self.library.reconnected(leader);
        }
    }
}

/// How many entries the sender has, if that is what it says.
fn accepted_by(message: &Message<Entry>) -> Option<u64> {
    match message {
        Message::SequencePaxos(it) => match &it.msg {
            PaxosMsg::Accepted(accepted) => Some(accepted.accepted_idx as u64),
            _ => None,
        },
        Message::BLE(_) => None,
    }
}
