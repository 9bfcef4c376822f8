//! A member without its participant's state fetches that from another one, piece by piece, and logs
//! each piece.
//!
//! It may vote meanwhile, for what it promised and accepted is in its log; but it does not stand
//! for election ([`Consensus::restrain`](crate::agreement::consensus::Consensus::restrain)). So
//! whoever is elected has the state. A member loses it only by being deposed, by somebody who has
//! been elected; so there is always one that has it, or whose disk does.
//!
//! The pieces are of a moment after which other entries were applied, and may hold effects of
//! these. The state is of use once this member has replayed so many itself. Its own log holds them:
//! it begins before the state that it takes, and is not trimmed while there is none.

use muesli_core::{LoggedRole, Protocol};

use crate::agreement::ledger::{Change, ReplicaState, StateOnDisk};
use crate::agreement::summary::Formed;
use crate::agreement::transfer::{FetchState, StatePiece};
use crate::inside::Context;
use crate::protocol::Message;
use crate::replica::Replica;
use crate::replica::transfer::catch_up::{MISSES_MAX, OWN_DISK_TICKS, PATIENCE_TICKS};

/// After so many unanswered requests for the next piece another member is asked for all of them.
const MISSES_IN_TRANSFER_MAX: u32 = 12;
/// After so many ticks without word of a member that has the state, one whose own disk has it asks
/// for its node's next life.
const ALONE_TICKS: u64 = 150;

/// A state under way to this member.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Loading {
    source: u16,
    /// The number of the transfer, once it has begun.
    transfer: Option<u64>,
    /// A transfer that is to begin, and after how many entries: more than are decided here.
    ahead: Option<(u64, u64)>,
    /// Pieces are missing before one that has come, and were asked for again.
    asked_again: bool,
    /// When a piece came last that it could take, and how often none came since.
    seen_at: u64,
    misses: u32,
    /// When it asked last.
    asked: u64,
    /// How much of it is there, of 100.
    pub(in crate::replica) percent: u8,
}

impl Loading {
    /// Whether a first piece has come.
    pub(in crate::replica) fn has_begun(&self) -> bool {
        self.transfer.is_some()
    }
}

impl<P: Protocol> Replica<P> {
    /// Whether the participant has the state that the log says it has, or is to be loaded.
    pub(in crate::replica) fn lacks_state(&self) -> bool {
        self.is_void || self.ledger.look(|it| it.held != StateOnDisk::Whole)
    }

    /// Whether the participant is what the entries replayed so far make it.
    pub(in crate::replica) fn has_state(&self) -> bool {
        !self.lacks_state() && self.applied >= self.ledger.look(|it| it.needs)
    }

    /// Begins where there is no state, and asks again where nothing comes.
    pub(in crate::replica) fn go_on_loading(&mut self, cx: &mut Context<'_, P>) {
        let remembers = self.ledger.look(|it| it.formed == Formed::Begun);
        if !remembers || !self.lacks_state() {
            (self.loading, self.served) = (None, self.ticks);
            return;
        }
        // The entries may begin after a state that is asked for now. One that is under way goes on:
        // entries are fetched again and again where a member lags under load, and a transfer that
        // began anew each time would never end.
        if self.fetching.is_some() && self.loading.is_none() {
            self.served = self.ticks;
            return;
        }
        if self.is_on_disk && self.ticks > self.served + ALONE_TICKS {
            return cx.restart();
        }
        if self.begin_what_was_ahead() {
            return self.ask_for_state(true, cx);
        }
        let (waits_for_itself, pieces) =
            (self.waits_for_its_disk(), self.ledger.look(ReplicaState::pieces));
        let Some(loading) = &mut self.loading else { return self.start_loading(None, cx) };
        if waits_for_itself && self.ticks < loading.asked + OWN_DISK_TICKS {
            loading.seen_at = self.ticks;
        }
        if self.ticks < loading.seen_at + PATIENCE_TICKS {
            return;
        }
        loading.seen_at = self.ticks;
        loading.misses += 1;
        loading.asked_again = true;
        // Another member would begin with its state from the first piece.
        let has_some = loading.transfer.is_some() && pieces > 0 || loading.ahead.is_some();
        if loading.misses >= if has_some { MISSES_IN_TRANSFER_MAX } else { MISSES_MAX } {
            let from = loading.source;
            return self.start_loading(Some(from), cx);
        }
        self.ask_for_state(true, cx);
    }

    /// Whether it keeps as many entries as it may for a state of which pieces come. Up to where
    /// that begins, it needs them all; and where no pieces come, they may wait for what is decided
    /// only with its vote.
    pub(in crate::replica) fn is_full_of_entries(&self, cx: &Context<'_, P>) -> bool {
        let is_coming =
            |it: &Loading| it.transfer.is_some() && self.ticks < it.seen_at + PATIENCE_TICKS / 2;
        let held = || self.ledger.look(|it| it.log.held_bytes());
        self.loading.as_ref().is_some_and(is_coming)
            && self.lacks_state()
            && held() >= self.share_in_any_case(cx)
    }

    /// A member whose state is on its way cannot replay what comes meanwhile, and keeps it. Where
    /// that becomes too much it votes no more, as if it had not come back: once it has the state it
    /// replays what it has kept, and fetches the rest.
    pub(in crate::replica) fn bound_entries(&mut self, cx: &mut Context<'_, P>) {
        if self.is_full_of_entries(cx) {
            assert!(self.leading.is_none(), "who leads has the state");
            self.consensus = None;
        } else if self.consensus.is_none() && self.fetching.is_none() {
            let remembers = self.ledger.look(|it| it.formed == Formed::Begun);
            if remembers && self.configuration().has(self.place) {
                self.begin(cx);
            }
        }
    }

    /// Asks the next member after one that did not do: rather one that follows, for it holds
    /// nothing that is not decided.
    fn start_loading(&mut self, after: Option<u16>, cx: &mut Context<'_, P>) {
        let leader = self.inside.leader(self.group);
        let mut sources: Vec<u16> = self.others(cx);
        sources.sort_by_key(|it| (Some(*it) == leader, *it));
        let known: Vec<u16> =
            sources.iter().copied().filter(|it| self.reached.contains_key(it)).collect();
        let sources = if known.is_empty() { sources } else { known };
        let at = after.and_then(|it| sources.iter().position(|source| *source == it));
        let next = at.map_or(0, |at| (at + 1) % sources.len().max(1));
        let Some(&source) = sources.get(next) else { return };
        self.loading = Some(Loading {
            source,
            transfer: None,
            ahead: None,
            asked_again: false,
            seen_at: self.ticks,
            misses: 0,
            asked: self.ticks,
            percent: 0,
        });
        self.ask_for_state(true, cx);
    }

    /// Begins with a transfer once all is here that was decided before it. True if it has begun.
    fn begin_what_was_ahead(&mut self) -> bool {
        let decided = self.ledger.look(|it| it.decided);
        let loading = self.loading.as_ref().filter(|it| it.transfer.is_none());
        let ahead = loading.and_then(|it| it.ahead).filter(|(_, covers)| *covers <= decided);
        let Some((transfer, covers)) = ahead else { return false };
        self.begin_transfer(transfer, covers, true);
        true
    }

    /// Begins with a transfer, whose first piece is here, or is asked for now.
    fn begin_transfer(&mut self, transfer: u64, covers: u64, asks: bool) {
        let Some(loading) = &mut self.loading else { return };
        (loading.transfer, loading.ahead, loading.asked_again) = (Some(transfer), None, asks);
        (loading.seen_at, loading.misses) = (self.ticks, 0);
        self.ledger.make(vec![Change::Install(covers)]);
        self.start_over();
    }

    fn ask_for_state(&mut self, again: bool, cx: &mut Context<'_, P>) {
        let pieces = self.ledger.look(ReplicaState::pieces);
        let Some(loading) = &mut self.loading else { return };
        loading.asked = self.ticks;
        let begun = loading.transfer.map(|transfer| (transfer, pieces));
        let have = begun.or(loading.ahead.map(|(transfer, _)| (transfer, 0)));
        let source = loading.source;
        if let Some(to) = self.address_of(source, cx) {
            cx.send(to, Message::FetchState(FetchState { have, again }));
        }
    }

    /// A piece has come. One that is of no checkpoint ends the transfer: another member is asked.
    pub(in crate::replica) fn on_state(
        &mut self,
        member: u16,
        piece: StatePiece,
        cx: &mut Context<'_, P>,
    ) {
        let (base, decided) = self.ledger.look(|it| (it.log.base(), it.decided));
        let (ticks, lacks) = (self.ticks, self.lacks_state());
        let Some(loading) = self.loading.as_mut().filter(|it| lacks && it.source == member) else {
            return;
        };
        if piece.covers < base {
            return; // It is behind this member: later, or of another one.
        }
        if piece.covers > decided {
            // Its first piece is asked for again once that is decided here. A newer transfer would
            // be ahead again. That is no piece that it could take: it does not wait for ever.
            if loading.transfer.is_none() {
                loading.ahead = Some((piece.transfer, piece.covers));
            }
            return;
        }
        if loading.transfer.is_none() && piece.number == 0 {
            self.begin_transfer(piece.transfer, piece.covers, false);
        }
        let known = |it: &&mut Loading| it.transfer == Some(piece.transfer);
        let Some(loading) = self.loading.as_mut().filter(known) else { return };
        (loading.seen_at, loading.misses, loading.percent) = (ticks, 0, piece.percent);
        self.served = ticks;
        let have = self.ledger.look(ReplicaState::pieces);
        if piece.number != have {
            let is_new_gap = piece.number > have && !loading.asked_again;
            loading.asked_again |= is_new_gap;
            return if is_new_gap {
                self.ask_for_state(true, cx)
            };
        }
        loading.asked_again = false;
        match piece.piece {
            Some(state) => {
                let (role, inner) = (self.role(), &mut self.inner);
                let (restored, _) = self.inside.run(role, cx, |cx| inner.restore(&state.0, cx));
                if restored.is_err() {
                    return self.start_loading(Some(member), cx);
                }
                self.ledger.make(vec![Change::Piece(have, state)]);
                if self.group_settings.installs_whole {
                    return self.ask_for_state(false, cx);
                }
                self.installed(piece.covers, piece.covers);
            }
            None => self.installed(piece.covers, piece.needs),
        }
        self.replay_decided(cx);
    }

    fn installed(&mut self, covers: u64, needs: u64) {
        self.ledger.make(vec![Change::Installed(needs)]);
        (self.applied, self.is_void, self.loading) = (covers, false, None);
        self.is_on_disk = true;
    }

    /// The other member has no state to give, or not that of this transfer any more: with the next
    /// tick another one is asked. At once two members without state would ask each other without
    /// end.
    pub(in crate::replica) fn on_no_state(&mut self, member: u16) {
        if let Some(loading) = self.loading.as_mut().filter(|it| it.source == member) {
            (loading.transfer, loading.ahead, loading.misses) = (None, None, MISSES_MAX);
            loading.seen_at = self.ticks.saturating_sub(PATIENCE_TICKS);
        }
        self.asks_another_for_entries(member);
    }

    /// Makes changes of an earlier life: the participant goes along.
    pub(in crate::replica) fn replay_changes(
        &mut self,
        changes: Vec<Change>,
        cx: &mut Context<'_, P>,
    ) {
        for change in changes {
            let held = self.ledger.look(|it| it.held);
            match &change {
                Change::Rebased { .. } => self.installing = None,
                Change::Install(_) => {
                    self.installing = Some(self.new_participant());
                    self.was_whole |= held == StateOnDisk::Whole;
                }
                Change::Piece(_, piece) => {
                    let (role, inner) = (self.role(), self.installing.as_mut());
                    let inner = inner.expect("pieces follow the beginning of a transfer");
                    let (restored, _) = self.inside.run(role, cx, |cx| inner.restore(&piece.0, cx));
                    restored.expect("pieces of a checkpoint");
                }
                Change::Installed(_) => {
                    let whole = self.installing.take().expect("a transfer that has begun");
                    self.replace_participant(whole);
                    let StateOnDisk::Part { covers, .. } = held else {
                        unreachable!("it has begun")
                    };
                    (self.applied, self.is_void, self.was_whole) = (covers, false, false);
                }
                Change::Entries(..)
                | Change::Fetched(..)
                | Change::Promise(_)
                | Change::Accepted(_)
                | Change::Decided(_)
                | Change::Configured(..)
                | Change::Adopted(_)
                | Change::Restored { .. } => {}
            }
            let is_rebased = matches!(change, Change::Rebased { .. });
            self.ledger.replay(vec![change]);
            if is_rebased {
                self.was_whole = false;
                self.start_over();
            }
        }
        while self.replay_some(cx) {}
        self.trim_replayed(cx);
    }

    /// The log was replayed. If a transfer had begun and was not whole, what the participant was
    /// before it stands: its entries are all there.
    pub(in crate::replica) fn end_replay(&mut self, cx: &mut Context<'_, P>) {
        self.installing = None;
        if std::mem::take(&mut self.was_whole) {
            self.ledger.keep_participant();
        }
        self.is_on_disk = !self.lacks_state();
        while self.replay_some(cx) {}
    }
}
