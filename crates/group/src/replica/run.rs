//! A member's participant: it works where the member leads, and replays where it follows.

use muesli_core::wire::Wire;
use muesli_core::{Effect, LogPosition, LoggedRole, Participant, Protocol, RolePositions};

use super::Replica;
use crate::agreement::configuration::MARK;
use crate::agreement::consensus::Consensus;
use crate::agreement::entry::Entry;
use crate::agreement::lead::Leading;
use crate::agreement::ledger::ReplicaState;
use crate::inside::{Context, InnerContext, InnerEffects};
use crate::protocol::GroupSettings;
use crate::timers::{self, InnerTimer, MemberTimer};

/// Which entries a follower leaves out where it is to make that mistake.
const LEFT_OUT: u64 = 20;

impl<P: Protocol> Replica<P> {
    /// Lets the participant of a leader do something. What it logs is appended to the group's log,
    /// what it says is held back.
    pub(super) fn step(
        &mut self,
        cx: &mut Context<'_, P>,
        run: impl FnOnce(&mut P::Participant, &mut InnerContext<'_, P>),
    ) {
        let before = self.applied;
        let (role, inner) = (self.role(), &mut self.inner);
        let ((), sent) = self.inside.run(role, cx, |cx| run(inner, cx));
        self.take_sent(sent, before, cx);
    }

    pub(super) fn take_sent(
        &mut self,
        sent: InnerEffects<P>,
        before: u64,
        cx: &mut Context<'_, P>,
    ) {
        let GroupSettings { confirms_answers, decides_first, .. } = self.group_settings;
        let Some(leading) = &mut self.leading else { return };
        let mut needed = 0;
        for effect in sent {
            match effect {
                Effect::Log { record, .. } => {
                    let mut bytes = Vec::new();
                    record.encode(&mut bytes);
                    assert_ne!(bytes.first(), Some(&MARK), "records begin otherwise");
                    self.ran += bytes.len() as u64;
                    self.lazy.push(Entry::from(bytes));
                    self.applied += 1;
                }
                Effect::Send { envelope, after } => {
                    needed = needed.max(after.0);
                    let after = if decides_first { after.0 } else { 0 };
                    leading.hold(envelope, after, before, confirms_answers && decides_first);
                }
                Effect::SetTimer { timer, after, .. } => {
                    let timer: InnerTimer<P> = timers::inner(timer);
                    cx.set_timer(MemberTimer::Inside(timer), after);
                }
                Effect::Complete { .. } => unreachable!("participants answer by messages"),
            }
        }
        assert_eq!(self.applied, self.inside.positions.logged.0, "an entry a record");
        self.wanted_upto = self.wanted_upto.max(needed.min(self.applied));
        self.append_wanted();
    }

    /// Appends entries if something waits for one of them.
    pub(super) fn append_wanted(&mut self) {
        if self.applied - (self.lazy.len() as u64) < self.wanted_upto {
            self.append_lazy();
        }
    }

    /// Appends the entries that wait to be, as long as not too much is undecided. Between two
    /// configurations they go on waiting.
    pub(super) fn append_lazy(&mut self) {
        let is_ending = self.is_ending();
        let (Some(consensus), Some(leading)) = (&mut self.consensus, &self.leading) else { return };
        if is_ending || consensus.leading() != Some(leading.ballot) {
            return;
        }
        let most = self.group_settings.limits.undecided_bytes_max;
        let mut undecided = self.ledger.look(ReplicaState::undecided_bytes);
        let mut fit = 0;
        for entry in &self.lazy {
            let bytes = entry.message_bytes();
            if undecided > 0 && undecided + bytes > most {
                break;
            }
            undecided += bytes;
            fit += 1;
        }
        for entry in self.lazy.drain(..fit) {
            consensus.append(entry);
        }
    }

    /// Takes over where this member was elected and has everything, and gives up where another was.
    pub(super) fn check_leadership(&mut self, cx: &mut Context<'_, P>) {
        let Some(consensus) = &self.consensus else { return };
        let elected = consensus.leading();
        if self.leading.as_ref().is_some_and(|leading| Some(leading.ballot) != elected) {
            if self.hand_over(cx) {
                return;
            }
            self.step_down(cx);
        }
        let Some(consensus) = &self.consensus else { return };
        let complete = consensus.decided() == consensus.accepted();
        if let Some(ballot) = elected
            && self.leading.is_none()
            && complete
            && self.applied == consensus.decided()
            && self.has_state()
        {
            self.leading = Some(Leading::new(ballot, consensus.configuration()));
            self.wanted_upto = 0;
            self.mark_beginning();
            let applied = LogPosition(self.applied);
            self.inside.positions = RolePositions { logged: applied, gate: applied };
            self.step(cx, |inner, cx| inner.start(cx));
            self.announce(cx);
        }
    }

    /// Whether it led the configuration before and leads this one, or may be elected yet: then the
    /// participant goes on. Nobody else has decided anything meanwhile.
    fn hand_over(&mut self, cx: &mut Context<'_, P>) -> bool {
        let (Some(consensus), Some(leading)) = (&self.consensus, &mut self.leading) else {
            return false;
        };
        let is_next = consensus.configuration().number > leading.ballot.configuration;
        let decided = consensus.decided();
        let is_alone = decided + self.lazy.len() as u64 == self.applied;
        let complete = decided == consensus.accepted();
        match consensus.leading() {
            Some(ballot) if is_next && is_alone && complete => {
                leading.go_on(ballot, consensus.configuration());
                self.append_lazy();
                self.announce(cx);
                true
            }
            None => {
                let stands = consensus.ballot().member == u64::from(self.place) + 1;
                is_next && is_alone && stands
            }
            Some(_) => false,
        }
    }

    /// Forgets the participant. What is decided will be replayed, if its entries are all there;
    /// otherwise the state is to be fetched.
    pub(super) fn start_over(&mut self) {
        let new = self.new_participant();
        self.replace_participant(new);
        self.begin_anew(0);
        self.is_void = self.ledger.look(|it| it.log.base() > 0);
    }

    /// The participant is another one, which has seen so many entries.
    pub(super) fn begin_anew(&mut self, applied: u64) {
        self.applied = applied;
        self.lazy.clear();
        self.marks.clear();
        self.wanted_upto = 0;
        self.generation += 1;
    }

    /// Another participant takes the place of the present one, which is dropped.
    pub(super) fn replace_participant(&mut self, new: P::Participant) {
        std::mem::replace(&mut self.inner, new).end(&self.settings);
    }

    /// Answers a reader from what this member has replayed, if that is enough. It was decided, so
    /// it stands whoever leads: the answer needs no round, and waits for nothing.
    pub(super) fn answer_behind(&mut self, message: &P::Message, cx: &mut Context<'_, P>) -> bool {
        // After a transfer, only with the entries that its pieces have seen something of.
        let upto = |consensus: &Consensus| match self.group_settings.answers_decided {
            true => consensus.decided(),
            false => consensus.accepted(),
        };
        if self.consensus.as_ref().map(upto) != Some(self.applied) || !self.has_state() {
            return false;
        }
        let (role, inner) = (self.role(), &mut self.inner);
        let (answered, sent) = self.inside.run(role, cx, |cx| inner.answer_behind(message, cx));
        for effect in sent {
            match effect {
                Effect::Send { envelope, .. } => self.inside.send(envelope, cx),
                other => unreachable!("a reader's answer is a message, not {other:?}"),
            }
        }
        answered
    }

    /// Replays entries that are decided, a quarter of a window of them at a time.
    pub(super) fn replay_decided(&mut self, cx: &mut Context<'_, P>) {
        if self.leading.is_none() {
            self.replay_some(cx);
        }
    }

    /// Replays some entries; false if there were none.
    pub(super) fn replay_some(&mut self, cx: &mut Context<'_, P>) -> bool {
        if self.lacks_state() {
            return false;
        }
        let (applied, bytes) = (self.applied, self.group_settings.limits.window_bytes / 4);
        let entries = self.ledger.look(|it| {
            let upto = if self.group_settings.answers_decided { it.decided } else { it.length() };
            assert!(applied >= it.log.base() || upto == 0, "entries to replay were trimmed");
            it.log.chunk(applied, upto, bytes)
        });
        entries.iter().for_each(|entry| self.replay_entry(entry, cx));
        !entries.is_empty()
    }

    /// A record that contradicts those before it is left out: a member of the group has lied.
    ///
    /// # Panics
    /// If the entry is no record: such are not taken in.
    fn replay_entry(&mut self, entry: &Entry, cx: &mut Context<'_, P>) {
        self.applied += 1;
        let leaves_out = !self.group_settings.replays_all && self.applied.is_multiple_of(LEFT_OUT);
        if entry.begins().is_some() || leaves_out {
            return;
        }
        let record = P::Record::decode_all(&entry.0).expect("entries are records");
        let catalog = self.inside.catalog(cx.catalog);
        if let Err(reason) = self.inner.judge_record(&record, &catalog) {
            return self.rejections.count("Record", reason);
        }
        let (role, inner) = (self.role(), &mut self.inner);
        // A replay says nothing; what it would have said was said by the leader.
        let _ = self.inside.run(role, cx, |cx| inner.replay(record, cx));
    }
}
