//! A member of a group: it keeps the group's log, and runs or replays the participant.

mod checkpoint;
mod disk;
mod long;
mod reach;
mod receive;
mod regroup;
mod roles;
mod run;
mod stay;
mod step_down;
mod ticks;
mod transfer;

use std::collections::{BTreeMap, VecDeque};

use std::fmt;

use muesli_core::{
    Address, LoggedRole, Participant, Protocol, Rejections, RepositoryId, Role, Settings,
};

use self::disk::DiskPace;
use self::reach::MemberProgress;
use self::step_down::Mark;
use self::transfer::catch_up::Fetching;
use self::transfer::load::Loading;
use self::transfer::serve::Serving;
use crate::agreement::consensus::{Consensus, ELECTION_TICKS, Outgoing};
use crate::agreement::entry::Entry;
use crate::agreement::join::Joining;
use crate::agreement::lead::Leading;
use crate::agreement::ledger::{Ledger, ReplicaState};
use crate::agreement::written::StableEntries;
use crate::inside::{Context, Inside, send_now};
use crate::layout;
use crate::protocol::{GroupSettings, Message};

/// A leader says that it leads once in so many ticks.
const ANNOUNCE_TICKS: u64 = 8;
/// A member without memory asks again after so many ticks.
const ASK_TICKS: u64 = 10;
/// A member that has not heard of a leader for so many ticks does not count as settled.
const SILENT_TICKS: u64 = 4 * ANNOUNCE_TICKS;
/// A message is passed on at most so often.
const HOPS_MAX: u8 = 2;

/// The member.
pub struct Replica<P: Protocol> {
    group: u16,
    place: u16,
    group_settings: GroupSettings<P::Switches>,
    settings: Settings,
    inside: Inside<P>,
    ledger: Ledger,
    /// `None` as long as it has no memory, or does not vote.
    consensus: Option<Consensus>,
    joining: Joining,
    inner: P::Participant,
    /// Records of the group's log that this member left out.
    rejections: Rejections,
    /// How many entries the participant has seen, those of `lazy` included.
    applied: u64,
    /// Of a leader: entries that nothing waits for. They are appended with the next that something
    /// does wait for, or at the next tick.
    lazy: Vec<Entry>,
    leading: Option<Leading<P::Message>>,
    /// Which entries it fetches from whom, if it lacks so many that the consensus does not bring
    /// them. It does not vote meanwhile.
    fetching: Option<Fetching>,
    /// From whom it fetches the participant's state.
    loading: Option<Loading>,
    /// Of a leader: moments to which its participant can return, the oldest first.
    marks: VecDeque<Mark>,
    /// How many bytes of entries the participant has run since it leads, and how many entries were
    /// decided when it led for sure.
    ran: u64,
    sure: u64,
    /// How often it led and returned to what was decided.
    returned: u64,
    /// While a log is replayed: the participant that a transfer installs. Where the log ends before
    /// that is whole, the one from before still stands.
    installing: Option<P::Participant>,
    /// While a log is replayed: the participant from before a transfer was of use.
    was_whole: bool,
    /// Whom it sends what.
    serving: BTreeMap<u16, Serving>,
    /// How far the other members have come, as they said last.
    reached: BTreeMap<u16, MemberProgress>,
    /// At which tick each other member was heard of last, whatever it said.
    last_seen: BTreeMap<u16, u64>,
    /// The participant has done what may never be decided, or has forgotten what was.
    is_void: bool,
    /// What its disk holds makes up the participant's state, though the participant may be void.
    is_on_disk: bool,
    /// How many bytes of entries it has reported as memory of the process.
    reported: u64,
    /// When another member was heard of last that has the participant's state.
    served: u64,
    /// The number of the participant: it is another one after each time that it began anew.
    generation: u64,
    /// Entries up to here are to be appended, because something waits for them.
    wanted_upto: u64,
    /// A note under way through its log, and when it was sent.
    probe: Option<(u64, u64)>,
    /// How long its disk has taken lately.
    pace: DiskPace,
    ticks: u64,
    /// When a leader was last heard of.
    seen_at: Option<u64>,
    /// It lives on another node now.
    moved: bool,
    /// Which places of the group are to have a member, as the placement says.
    wanted: Vec<u16>,
    /// What is to be said of configurations that have ended, with their numbers.
    parting: Vec<(u32, Outgoing)>,
    /// When it asked last what is known of a later configuration.
    asked: Option<u64>,
    /// Whether its memory of being here is stable.
    settled: Settled,
    /// How much of what it wrote is stable.
    written: StableEntries,
    /// Long messages that are taken in once the others know of them.
    long: Vec<(Address, Message<P::Message>)>,
    /// Who takes in a long message, and until when nobody looks for another leader for that.
    busy: BTreeMap<u16, u64>,
    /// How many ticks were one of the consensus while an entry was long, and until when they are.
    patient: (u64, u64),
    /// Messages of the consensus before this note wait for the disk, and those after for them.
    spoke: u64,
}

/// How far the memory of a stay has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// There is none.
    No,
    /// It is to be logged.
    Soon,
    /// It is logged, and stable when this note arrives.
    Logged(u64),
    /// It is stable.
    Yes,
}

impl<P: Protocol> fmt::Debug for Replica<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replica { group, place, consensus, applied, fetching, loading, is_void, .. } = self;
        let (known, held, needs) = self.ledger.look(|it| (it.summary(), it.held, it.needs));
        write!(
            out,
            "Replica({place} of group {group}, {consensus:?}, {applied} applied, {known:?}, \
             {held:?}, needs {needs}, void {is_void}, leads {}, {} marks, {fetching:?}, \
             {loading:?})",
            self.leading.is_some(),
            self.marks.len(),
        )
    }
}

impl<P: Protocol> Replica<P> {
    /// Whether it leads, and answers.
    pub fn leads(&self) -> bool {
        self.leading.is_some()
    }

    /// Whether it lives here, votes in a group of just those who are to be in it, and will remember
    /// so: no other member of its group may be moved before.
    pub fn takes_part(&self) -> bool {
        let votes = self.settled == Settled::Yes && self.consensus.is_some();
        votes && self.has_state() && self.is_as_wanted()
    }

    /// How often it was deposed and took back what was not decided.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// What it knows.
    pub fn look<T>(&self, look: impl FnOnce(&ReplicaState) -> T) -> T {
        self.ledger.look(look)
    }

    fn role(&self) -> Role {
        Role::Repository(RepositoryId(self.group))
    }

    /// All other members that there are.
    fn others(&self, cx: &Context<'_, P>) -> Vec<u16> {
        layout::taken(cx.catalog, self.group).filter(|&other| other != self.place).collect()
    }

    fn new_participant(&self) -> P::Participant {
        let id = RepositoryId(self.group);
        P::Participant::new(id, &self.settings, &self.group_settings.inner)
    }

    /// A message of the protocol inside: for the participant if it leads, or for whoever does.
    fn on_inside(&mut self, from: Address, hops: u8, message: P::Message, cx: &mut Context<'_, P>) {
        let catalog = self.inside.catalog(cx.catalog);
        let is_known = layout::is_inner(from, cx.catalog);
        if !is_known || !P::is_about(&message, &catalog) {
            return;
        }
        if self.leading.is_some() {
            return self.step(cx, |inner, cx| inner.receive(from, message, cx));
        }
        if P::is_for_all(&message) {
            if !self.has_state() {
                return;
            }
            let (role, inner) = (self.role(), &mut self.inner);
            // Nothing is said about it.
            let _ = self.inside.run(role, cx, |cx| inner.receive(from, message, cx));
            return;
        }
        if P::is_for_any(&message) && self.answer_behind(&message, cx) {
            return;
        }
        let leader = self.inside.leader(self.group);
        let elsewhere = |leader| leader != self.place || !self.is_home(cx);
        if hops < HOPS_MAX && leader.is_some_and(elsewhere) {
            let to = Address { node: cx.me.node, role: self.role() };
            self.inside.pass_on(from, to, hops + 1, message, cx);
        }
    }

    /// After every input: leads or follows, writes down, speaks.
    fn after_event(&mut self, cx: &mut Context<'_, P>) {
        self.check_leadership(cx);
        if self.leading.is_none() {
            self.replay_decided(cx);
            self.check_leadership(cx);
        }
        self.end_configuration(cx);
        self.check_leadership(cx);
        self.append_wanted();
        self.mark_now_and_then();
        self.ask_round(cx);
        self.write_down(cx);
        self.tell_news(cx);
        self.send_decided(cx);
        self.send_of_consensus(cx);
        self.release(cx);
    }

    /// Begins a round for the answers that wait for one.
    fn ask_round(&mut self, cx: &mut Context<'_, P>) {
        let (Some(consensus), Some(leading)) = (&self.consensus, &mut self.leading) else { return };
        let ballot = leading.ballot;
        if consensus.leading() != Some(ballot) {
            return; // It is between two configurations.
        }
        if let Some(round) = leading.begin_round() {
            self.tell_others(&Message::Confirm { ballot, round }, cx);
        }
    }

    fn tell_others(&self, message: &Message<P::Message>, cx: &mut Context<'_, P>) {
        for other in self.others(cx) {
            if let Some(to) = self.address_of(other, cx) {
                send_now(to, message.clone(), cx);
            }
        }
    }

    fn release(&mut self, cx: &mut Context<'_, P>) {
        let (Some(consensus), Some(leading)) = (&self.consensus, &mut self.leading) else { return };
        let decided = consensus.decided();
        while let Some(envelope) = leading.release(decided) {
            self.inside.send(envelope, cx);
        }
    }
}
