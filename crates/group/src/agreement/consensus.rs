//! The consensus of a group: the library behind an interface as narrow as we need it.
//!
//! OmniPaxos (sequence Paxos with a leader election that looks for a connected majority) has no
//! clock, no thread, no random source and no unordered table: it goes by ticks and messages alone,
//! so a seed of the simulator repeats it exactly. What it asks of its storage, to write at once,
//! is kept by whoever holds the messages back ([`ledger`](crate::agreement::ledger)).

mod bounds;

use std::collections::BTreeMap;
use std::fmt;

use muesli_core::SmallBytes;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::{BLEMessage, HeartbeatMsg};
use omnipaxos::messages::sequence_paxos::{PaxosMsg, Promise};
use omnipaxos::util::LogSync;
use omnipaxos::{ClusterConfig, OmniPaxos, ServerConfig};

use crate::agreement::ballot::Ballot;
use crate::agreement::configuration::Configuration;
use crate::agreement::entry::Entry;
use crate::agreement::ledger::Ledger;

/// Ticks between heartbeats; a leader that misses two is followed by another.
pub(crate) const ELECTION_TICKS: u64 = 4;
/// Ticks after which an unanswered message goes out again.
const RESEND_TICKS: u64 = 6;

/// A member's part in the consensus of its group.
pub struct Consensus {
    library: OmniPaxos<Entry, Ledger>,
    /// What others have, told before this member has it for sure; by the number of entries.
    early: BTreeMap<u64, Vec<Message<Entry>>>,
    /// So many entries are stable here.
    stable: u64,
    /// How many entries each other member knew as decided when it promised last.
    decided_when_promised: BTreeMap<u64, u64>,
    member: u16,
    configuration: Configuration,
    ledger: Ledger,
    /// A message has at most so many bytes of decided entries.
    sync_bytes_max: u64,
    /// Neither stands for election nor is heard of by those who look for a leader.
    is_silent: bool,
    /// Does not stand for election.
    is_unfit: bool,
}

/// A message on its way to another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// To which member, from 0.
    pub to: u16,
    /// What; `None`: the other member lacks more than fits into a message, and has to fetch it.
    pub bytes: Option<SmallBytes>,
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
    NextInOrder,
    /// All that was written.
    ForTheDisk,
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
    pub fn new(
        member: u16,
        configuration: &Configuration,
        ledger: Ledger,
        sync_bytes_max: u64,
    ) -> Consensus {
        let nodes = configuration.places.iter().map(|place| u64::from(*place) + 1).collect();
        let configuration_id = configuration.number;
        let cluster = ClusterConfig { configuration_id, nodes, flexible_quorum: None };
        let server = ServerConfig {
            pid: u64::from(member) + 1,
            election_tick_timeout: ELECTION_TICKS,
            resend_message_tick_timeout: RESEND_TICKS,
            ..ServerConfig::default()
        };
        let library =
            cluster.build_for_server(server, ledger.clone()).expect("a sound configuration");
        Consensus {
            library,
            early: BTreeMap::new(),
            stable: 0,
            decided_when_promised: BTreeMap::new(),
            member,
            configuration: configuration.clone(),
            ledger,
            sync_bytes_max,
            is_silent: false,
            is_unfit: false,
        }
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

    /// This part, [restrained](Self::restrain) from its first message on. With a part that is
    /// restrained with its next tick, what it hears until then may be enough to be elected.
    #[must_use]
    pub fn restrained(mut self, is_silent: bool, is_unfit: bool) -> Consensus {
        self.restrain(is_silent, is_unfit);
        self
    }

    /// Whether this member is to be silent in elections, and whether it is to vote in them without
    /// standing itself.
    ///
    /// A member stands once it has replies of a majority. One that hears none never does, and says
    /// that it knows of no leader, which keeps nobody else from standing.
    pub fn restrain(&mut self, is_silent: bool, is_unfit: bool) {
        (self.is_silent, self.is_unfit) = (is_silent, is_unfit);
    }

    /// Some time has passed.
    pub fn tick(&mut self) {
        if !self.is_silent {
            self.library.tick();
        }
    }

    /// Takes a message of another member; false if it is none, or one that no member sends: with
    /// entries that are no records, by `is_record`, or to go after entries that are not here, or
    /// with numbers that no election comes to.
    pub fn receive(&mut self, from: u16, bytes: &[u8], is_record: impl Fn(&Entry) -> bool) -> bool {
        let Ok(message) = postcard::from_bytes::<Message<Entry>>(bytes) else { return false };
        let carried = Carried::by(&message).filter(|_| bounds::has_capacity(&message));
        if !carried
            .is_some_and(|it| it.after <= self.accepted() && it.entries.iter().all(is_record))
        {
            return false;
        }
        let (sender, receiver) = match &message {
            Message::SequencePaxos(it) => (it.from, it.to),
            Message::BLE(BLEMessage { from, to, .. }) => (*from, *to),
        };
        let other = self.configuration.has(from) && from != self.member;
        let addressed =
            sender == u64::from(from) + 1 && receiver == u64::from(self.member) + 1 && other;
        if let (Some(decided), true) = (decided_by_promise(&message), addressed) {
            self.decided_when_promised.insert(sender, decided);
        }
        match accepted_by(&message).filter(|&accepted| accepted > self.stable) {
            _ if !addressed || self.ignores(&message) => {}
            Some(accepted) => self.early.entry(accepted).or_default().push(message),
            None => self.library.handle_incoming(message),
        }
        addressed
    }

    /// Whether a message is of an election that this member keeps out of, or would have it write
    /// again what it knows as decided: it was sent before the member fetched that.
    fn ignores(&self, message: &Message<Entry>) -> bool {
        match message {
            Message::BLE(it) => match it.msg {
                HeartbeatMsg::Request(_) => self.is_silent,
                HeartbeatMsg::Reply(_) => self.is_silent || self.is_unfit,
            },
            Message::SequencePaxos(it) => {
                let PaxosMsg::AcceptSync(sync) = &it.msg else { return false };
                (sync.log_sync.sync_idx as u64) < self.decided()
            }
        }
    }

    /// Whether a message needs entries that were trimmed, or has too many that are decided. Of
    /// those that are not, it has no more than a leader lets there be.
    fn is_too_much(&self, message: &PaxosMsg<Entry>) -> bool {
        let sync: &LogSync<Entry> = match message {
            PaxosMsg::AcceptSync(it) => &it.log_sync,
            PaxosMsg::Promise(Promise { log_sync: Some(it), .. }) => it,
            _ => return false,
        };
        let from = sync.sync_idx as u64;
        if from < self.ledger.look(|replica_state| replica_state.log.base()) {
            return true;
        }
        let decided = self.decided().saturating_sub(from) as usize;
        let bytes = sync.suffix.iter().take(decided).map(Entry::message_bytes);
        bytes.sum::<u64>() > self.sync_bytes_max
    }

    /// Leaves out of what a member is sent after its promise what it knew as decided by then.
    ///
    /// The library begins where the ballot ended under which the member accepted something last, if
    /// the leader was elected by what was accepted under that one. But the member may have fetched
    /// all since (`replica/catch_up`), which is no acceptance. It would be told that it lacks too
    /// much for a message after each promise, until somebody else leads. What is decided is the
    /// same at both.
    fn leave_out_decided(&self, to: u64, sync: &mut LogSync<Entry>) {
        let known = self.decided_when_promised.get(&to).copied().unwrap_or(0);
        let known = known.min(self.decided());
        self.ledger.look(|replica_state| {
            // What was trimmed is not in the suffix. Nothing is trimmed from the promise to this.
            let from = (sync.sync_idx as u64).max(replica_state.log.base());
            let Some(left_out) = known.checked_sub(from).map(|it| it as usize) else { return };
            if left_out > sync.suffix.len() {
                return; // Only where a member lies about what is decided.
            }
            let rest = sync.suffix.get(left_out).zip(replica_state.log.entry(known + 1));
            assert!(rest.is_none_or(|(sent, kept)| sent == kept), "the rest follows what it knew");
            sync.suffix.drain(..left_out);
            sync.sync_idx = known as usize;
        });
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
        let each = |mut message: Message<Entry>| {
            if let Message::SequencePaxos(it) = &mut message
                && let PaxosMsg::AcceptSync(sync) = &mut it.msg
            {
                self.leave_out_decided(it.to, &mut sync.log_sync);
            }
            let too_much = match &message {
                Message::SequencePaxos(it) => self.is_too_much(&it.msg),
                Message::BLE(_) => false,
            };
            let (to, waits) = match &message {
                Message::SequencePaxos(it) => match it.msg {
                    PaxosMsg::AcceptDecide(_) | PaxosMsg::Decide(_) => (it.to, Waits::NextInOrder),
                    _ => (it.to, Waits::ForTheDisk),
                },
                Message::BLE(it) => (it.to, Waits::ForNothing),
            };
            let encode = || postcard::to_allocvec(&message).expect("messages have a form");
            let bytes = (!too_much).then(|| SmallBytes::from(encode()));
            Outgoing { to: to as u16 - 1, bytes, waits }
        };
        let silent = self.is_silent;
        // A ballot that another member made up may name as leader who does not vote.
        let votes =
            |to: u64| u16::try_from(to).is_ok_and(|to| to > 0 && self.configuration.has(to - 1));
        let sent = messages.into_iter().filter(|it| match it {
            Message::SequencePaxos(it) => votes(it.to),
            Message::BLE(it) => !silent && votes(it.to),
        });
        sent.map(each).collect()
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

    /// How many of them are decided. The library takes a member's word for it, which may lie.
    pub fn decided(&self) -> u64 {
        self.accepted().min(self.library.get_decided_idx() as u64)
    }

    /// Messages of the member that leads were lost: asks it for what is missing.
    pub fn catch_up(&mut self) {
        let leader = self.ballot().member;
        if leader != u64::from(self.member) + 1 && leader > 0 {
            self.library.reconnected(leader);
        }
    }
}

#[cfg(test)]
mod tests;

/// The entries of a message, and after how many they go.
struct Carried<'a> {
    after: u64,
    entries: &'a [Entry],
}

impl<'a> Carried<'a> {
    /// `None`: a message that members do not send. They append entries where they lead only, cut
    /// their logs by themselves, end a configuration by an entry, and have what is decided.
    fn by(message: &'a Message<Entry>) -> Option<Carried<'a>> {
        let nothing = Carried { after: 0, entries: &[] };
        let Message::SequencePaxos(message) = message else { return Some(nothing) };
        match &message.msg {
            PaxosMsg::AcceptDecide(it) => Some(Carried { after: 0, entries: &it.entries }),
            PaxosMsg::AcceptSync(it) => {
                let end = it.log_sync.sync_idx.checked_add(it.log_sync.suffix.len());
                Carried::by_sync(&it.log_sync)
                    .filter(|_| end.is_some_and(|end| it.decided_idx <= end))
            }
            PaxosMsg::Promise(it) if it.decided_idx > it.accepted_idx => None,
            PaxosMsg::Promise(Promise { log_sync: Some(it), .. }) => Carried::by_sync(it),
            PaxosMsg::PrepareReq(_)
            | PaxosMsg::Prepare(_)
            | PaxosMsg::Promise(_)
            | PaxosMsg::Accepted(_)
            | PaxosMsg::NotAccepted(_)
            | PaxosMsg::Decide(_) => Some(nothing),
            PaxosMsg::ProposalForward(_)
            | PaxosMsg::Compaction(_)
            | PaxosMsg::AcceptStopSign(_)
            | PaxosMsg::ForwardStopSign(_) => None,
        }
    }

    fn by_sync(sync: &'a LogSync<Entry>) -> Option<Carried<'a>> {
        let is_plain = sync.decided_snapshot.is_none() && sync.stopsign.is_none();
        is_plain.then_some(Carried { after: sync.sync_idx as u64, entries: &sync.suffix })
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

/// How many entries the sender knows as decided, if it promises something.
fn decided_by_promise(message: &Message<Entry>) -> Option<u64> {
    match message {
        Message::SequencePaxos(it) => match &it.msg {
            PaxosMsg::Promise(promise) => Some(promise.decided_idx as u64),
            _ => None,
        },
        Message::BLE(_) => None,
    }
}
