//! A member that lacks entries fetches them from another one, a few at a time.
//!
//! It does not vote meanwhile: it is as if it had not come back yet. What it gets as decided stands
//! whoever leads, and is written over what is here. Entries of its own that differ were never
//! decided, and neither was anything after them; entries that do not differ stay, with those
//! after them, for the member may have been one of the majority that accepted them. When it has
//! all that is decided, it takes part again, and the consensus brings it the short rest.
//!
//! A member without memory ([`join`](crate::agreement::join)) fetches what is not decided, too: all
//! that the chosen member has under one ballot. Only then does it know what its promise and its
//! entries are, and keep that.

use muesli_core::Protocol;

use crate::agreement::ballot::Ballot;
use crate::agreement::entry::Entry;
use crate::agreement::ledger::{Change, ReplicaState};
use crate::agreement::summary::{Formed, Summary};
use crate::agreement::transfer::{EntryBatch, Fetch};
use crate::inside::Context;
use crate::protocol::Message;
use crate::replica::Replica;
use crate::replica::receive::is_entry;

/// Ticks after which an unanswered request goes out again.
pub(in crate::replica) const PATIENCE_TICKS: u64 = 25;
/// What its own disk holds back it waits for longer, up to so many ticks after a request: whoever
/// is asked may be gone meanwhile.
pub(in crate::replica) const OWN_DISK_TICKS: u64 = 4 * PATIENCE_TICKS;
/// After so many unanswered requests another member is asked.
pub(in crate::replica) const MISSES_MAX: u32 = 3;

/// Entries under way to this member.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Fetching {
    source: u16,
    /// Where this member has no memory: what the others know.
    joins: Option<Summary>,
    /// The ballot of the entries that it has and that are not decided.
    label: Option<Ballot>,
    /// When something came last, and how often nothing came since.
    seen_at: u64,
    misses: u32,
    /// When it asked last.
    asked: u64,
    /// How many members have been asked since for nothing.
    silent: usize,
    /// How many entries it had when it began, and how many there are to be.
    begun: u64,
    target: u64,
}

impl Fetching {
    /// How much of what is missing is there, of 100, where so many entries are.
    pub(in crate::replica) fn percent(&self, have: u64) -> u8 {
        let (had, of) = (have.saturating_sub(self.begun), self.target.saturating_sub(self.begun));
        (100 * had.min(of)).checked_div(of).unwrap_or(0) as u8
    }
}

impl<P: Protocol> Replica<P> {
    /// Stops voting and fetches what is missing.
    pub(in crate::replica) fn start_fetching(
        &mut self,
        source: u16,
        joins: Option<Summary>,
        cx: &mut Context<'_, P>,
    ) {
        if self.leading.is_some() {
            self.step_down(cx);
        }
        self.consensus = None;
        let (decided, length) = self.ledger.look(|it| (it.decided, it.length()));
        if joins.is_some() && length > decided {
            // Of an earlier attempt, from whoever it was.
            self.ledger.make(vec![Change::Entries(decided, Vec::new())]);
        }
        let (label, seen_at, misses, asked) = (None, self.ticks, 0, self.ticks);
        let (begun, target) = (decided, decided);
        let silent = 0;
        self.fetching =
            Some(Fetching { source, joins, label, seen_at, misses, asked, silent, begun, target });
        self.ask_for_entries(true, cx);
    }

    fn ask_for_entries(&mut self, again: bool, cx: &mut Context<'_, P>) {
        let Some(fetching) = &mut self.fetching else { return };
        fetching.asked = self.ticks;
        let (whole, source) = (fetching.joins.is_some(), fetching.source);
        let fetch = self.ledger.look(|it| {
            let after = if whole { it.length() } else { it.decided };
            Fetch { after, whole, again, accepted: it.accepted, length: it.length() }
        });
        let to = self.address_of(source, cx);
        if let Some(to) = to {
            // Once what it has is stable: so its disk sets the pace.
            cx.send(to, Message::Fetch(fetch));
        }
    }

    /// Another member says that so many entries are decided, too many for a message.
    pub(in crate::replica) fn on_behind(
        &mut self,
        member: u16,
        decided: u64,
        cx: &mut Context<'_, P>,
    ) {
        let (remembers, mine) = self.ledger.look(|it| (it.formed == Formed::Begun, it.decided));
        let may = self.leading.is_none() && self.fetching.is_none();
        if remembers && decided > mine && may && !self.is_full_of_entries(cx) {
            self.start_fetching(member, None, cx);
        }
    }

    /// Asks again where nothing comes, and another member where nothing came again and again, and
    /// gives up once all were asked; a member that does not vote asks where another one has come
    /// further.
    pub(in crate::replica) fn go_on_fetching(&mut self, cx: &mut Context<'_, P>) {
        let (others, waits_for_itself) = (self.others(cx), self.waits_for_its_disk());
        let Some(fetching) = &mut self.fetching else { return self.follow_without_vote(cx) };
        if waits_for_itself && self.ticks < fetching.asked + OWN_DISK_TICKS {
            fetching.seen_at = self.ticks;
        }
        if self.ticks < fetching.seen_at + PATIENCE_TICKS {
            return;
        }
        fetching.seen_at = self.ticks;
        fetching.misses += 1;
        if fetching.misses >= MISSES_MAX {
            if fetching.joins.is_some() {
                // The others are asked again what they know.
                self.fetching = None;
                return;
            }
            fetching.silent += 1;
            if fetching.silent > others.len() {
                // Nobody has them who could be reached: it takes part with what it has, as it would
                // after a crash.
                return self.begin(cx);
            }
            let next = others.iter().find(|it| **it > fetching.source).or(others.first());
            (fetching.source, fetching.misses) = (next.copied().unwrap_or(fetching.source), 0);
        }
        self.ask_for_entries(true, cx);
    }

    /// A member has neither the entries that this one lacks nor a state that stands for them: with
    /// the next tick another one is asked.
    pub(in crate::replica) fn asks_another_for_entries(&mut self, member: u16) {
        if let Some(fetching) = self.fetching.as_mut().filter(|it| it.source == member) {
            fetching.misses = MISSES_MAX;
            fetching.seen_at = self.ticks.saturating_sub(PATIENCE_TICKS);
        }
    }

    fn follow_without_vote(&mut self, cx: &mut Context<'_, P>) {
        let (remembers, mine) = self.ledger.look(|it| (it.formed == Formed::Begun, it.decided));
        let furthest = self.reached.iter().max_by_key(|(_, it)| it.decided);
        if let (Some((member, it)), None, true) = (furthest, &self.consensus, remembers)
            && it.decided > mine
            && !self.is_full_of_entries(cx)
        {
            self.start_fetching(*member, None, cx);
        }
    }

    /// Entries have come.
    pub(in crate::replica) fn on_batch(
        &mut self,
        member: u16,
        batch: EntryBatch,
        cx: &mut Context<'_, P>,
    ) {
        let EntryBatch { summary, base, from, entries } = batch;
        let ticks = self.ticks;
        let Some(fetching) = self.fetching.as_mut().filter(|it| it.source == member) else {
            return;
        };
        if !entries.iter().all(is_entry::<P>) {
            return; // No member has such entries.
        }
        (fetching.seen_at, fetching.misses, fetching.silent) = (ticks, 0, 0);
        fetching.target = summary.decided;
        let joins = fetching.joins.is_some();
        if let Some(base) = base.filter(|it| it.upto > self.ledger.look(|known| known.decided)) {
            let configuration = if joins { None } else { Some(summary.configuration.clone()) };
            let configuration = configuration.unwrap_or_default();
            let (upto, bytes) = (base.upto, base.bytes);
            self.ledger.make(vec![Change::Rebased { upto, bytes, configuration }]);
            (self.is_on_disk, self.loading) = (false, None);
            self.start_over();
        }
        if joins && !self.keep_undecided(&summary) {
            return self.ask_for_entries(true, cx);
        }
        let mut have = self.ledger.look(|it| if joins { it.length() } else { it.decided });
        if from > have && !joins && self.has_up_to(from, &summary) {
            self.ledger.make(vec![Change::Decided(from)]);
            have = from;
        }
        if from > have {
            return self.ask_for_entries(true, cx); // Some were lost on their way.
        }
        let is_last = entries.is_empty();
        let known = (have - from).min(entries.len() as u64) as usize;
        let decided = (summary.decided.saturating_sub(have) as usize).min(entries.len() - known);
        let rest = &entries[known..];
        self.write_decided(&rest[..decided]);
        let undecided = &rest[decided..];
        if joins && !undecided.is_empty() {
            let length = self.ledger.look(|it| it.length());
            self.ledger.make(vec![Change::Entries(length, undecided.to_vec())]);
        }
        self.replay_decided(cx);
        if !is_last && self.is_full_of_entries(cx) {
            self.fetching = None; // The rest is fetched once the state is there, or comes no more.
            return;
        }
        let early = joins && !self.group_settings.joins_whole;
        if is_last || early { self.fetched(&summary, cx) } else { self.ask_for_entries(false, cx) }
    }

    /// Whether this member has these entries, decided at one that knows this, though it does not
    /// know that they are.
    fn has_up_to(&self, from: u64, known: &Summary) -> bool {
        let is_decided = from <= known.decided;
        is_decided && self.ledger.look(|it| it.length() >= from && known.vouches_for(it.accepted))
    }

    /// Writes down entries that are decided, after those that are.
    fn write_decided(&mut self, entries: &[Entry]) {
        let mut rest = entries;
        while !rest.is_empty() {
            // Up to one that ends the configuration.
            let number = self.configuration_number();
            let ends = |entry: &Entry| entry.begins().is_some_and(|it| it.number == number + 1);
            let remembers = self.ledger.look(|it| it.formed == Formed::Begun);
            let end = rest.iter().position(ends).filter(|_| remembers);
            let (now, not_yet) = rest.split_at(end.map_or(rest.len(), |at| at + 1));
            let (from, differs) = self.ledger.look(|it| (it.decided, differs(it, now)));
            let upto = from + now.len() as u64;
            let mut changes = Vec::new();
            if let Some(at) = differs {
                changes.push(Change::Fetched(from + at as u64, now[at..].to_vec()));
            }
            changes.push(Change::Decided(upto));
            if let (Some(at), Some(next)) = (end, end.and_then(|at| now[at].begins())) {
                assert_eq!(at + 1, now.len(), "it ends with that entry");
                changes.push(Change::Configured(upto, next));
            }
            self.ledger.make(changes);
            rest = not_yet;
        }
    }

    /// Whether the entries that are here and not decided belong before those that have come: the
    /// sender has them under the same ballot. Otherwise they are dropped, and are to be fetched
    /// again.
    fn keep_undecided(&mut self, summary: &Summary) -> bool {
        let (decided, length) = self.ledger.look(|it| (it.decided, it.length()));
        let Some(fetching) = &mut self.fetching else { return true };
        if length == decided {
            fetching.label = Some(summary.accepted);
            return true;
        }
        if fetching.label != Some(summary.accepted) || length > summary.length {
            self.ledger.make(vec![Change::Entries(decided, Vec::new())]);
            return false;
        }
        let upto = summary.decided.min(length);
        if upto > decided {
            self.ledger.make(vec![Change::Decided(upto)]);
        }
        true
    }

    /// There were no more entries.
    fn fetched(&mut self, summary: &Summary, cx: &mut Context<'_, P>) {
        let Some(fetching) = self.fetching.take() else { return };
        let (decided, length) = self.ledger.look(|it| (it.decided, it.length()));
        let Some(joins) = fetching.joins else {
            let number = self.configuration_number();
            if summary.configuration.number > number && summary.decided == decided {
                let next = summary.configuration.clone();
                self.ledger.make(vec![Change::Configured(decided, next)]);
            }
            return self.begin(cx);
        };
        if self.group_settings.joins_whole {
            assert_eq!(length, summary.length, "all that the chosen member has");
        }
        let adopted = Summary {
            formed: joins.formed,
            since: self.since(cx),
            configuration: summary.configuration.clone(),
            promise: joins.promise.max(summary.promise),
            accepted: summary.accepted,
            fetched: summary.fetched,
            decided,
            length,
            next: None,
        };
        self.ledger.make(vec![Change::Adopted(Box::new(adopted))]);
        self.begin(cx);
    }
}

/// The first of some decided entries that is not here at its place.
fn differs(replica_state: &ReplicaState, decided: &[Entry]) -> Option<usize> {
    let number = |at: usize| replica_state.decided + at as u64 + 1;
    (0..decided.len()).find(|&at| replica_state.log.entry(number(at)) != Some(&decided[at]))
}
