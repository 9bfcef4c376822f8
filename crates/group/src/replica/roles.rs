//! A member as the contract has it: a state machine with a log, and a participant.

use std::collections::{BTreeMap, VecDeque};

use muesli_core::recorder::partition_sizes::{PartitionSizes, SizeCursor};
use muesli_core::wire::WireError;
use muesli_core::{
    Address, Catalog, Cursor, Lag, LoggedRole, Participant, Protocol, Readiness, Rejection,
    Rejections, ReplicaRole, RepositoryId, Settings, SmallBytes, SpaceId, StateMachine, Timestamp,
    View,
};

use super::disk::DiskPace;
use super::{Replica, SILENT_TICKS, Settled};
use crate::agreement::join::Joining;
use crate::agreement::ledger::Ledger;
use crate::agreement::written::StableEntries;
use crate::inside::{Context, Inside};
use crate::judge::{inner_address, judge_inside};
use crate::layout;
use crate::protocol::{GroupSettings, Grouped, Message, Record};
use crate::timers::{InnerTimer, MemberTimer};

impl<P: Protocol> StateMachine<Grouped<P>> for Replica<P> {
    type Timer = MemberTimer<InnerTimer<P>>;

    muesli_core::role_without_links!(Grouped<P>);

    fn judge(&self, message: &Message<P::Message>, view: View<'_>) -> Result<(), Rejection> {
        let Message::Inside { from: first, message, .. } = message else { return Ok(()) };
        if self.leading.is_none() && !P::is_for_all(message) && !P::is_for_any(message) {
            return Ok(()); // It is passed on, to a leader that judges it.
        }
        let inner = self.inside.known_catalog(view.catalog);
        let (sent, issued) = ((*first, message), self.inner.issued());
        let me = inner_address(view.me, &inner);
        let view = judge_inside::<P>(sent, (me, &inner), issued, view)?;
        match self.leading {
            Some(_) => self.inner.judge(message, view),
            None => Ok(()),
        }
    }

    fn issued(&self) -> Timestamp {
        self.inner.issued()
    }

    fn unfinished(&self) -> usize {
        let seen_at = self.seen_at.is_some_and(|seen_at| seen_at + SILENT_TICKS >= self.ticks);
        match &self.leading {
            Some(leading) => {
                let others = usize::from(!self.is_as_wanted());
                self.inner.unfinished() + leading.waiting() + others
            }
            None if self.moved => 0,
            None if !self.wanted.contains(&self.place) => 0,
            None => usize::from(!seen_at || !self.takes_part()),
        }
    }

    fn assert_invariants(&self) {
        // While the state of another member comes in, piece by piece, it is of no moment.
        if self.loading.is_none() && self.installing.is_none() {
            self.inner.assert_invariants();
        }
    }
}

impl<P: Protocol> LoggedRole<Grouped<P>> for Replica<P> {
    fn start(&mut self, cx: &mut Context<'_, P>) {
        cx.set_timer(MemberTimer::<InnerTimer<P>>::Tick, self.group_settings.tick);
        self.wanted = layout::wanted(cx.catalog, self.group);
        self.end_replay(cx);
        if self.is_home(cx) {
            self.take_place(cx);
        }
        self.after_event(cx);
    }

    fn placed(&mut self, cx: &mut Context<'_, P>) {
        self.come_or_go(cx);
        self.after_event(cx);
    }

    fn receive(&mut self, from: Address, message: Message<P::Message>, cx: &mut Context<'_, P>) {
        self.take_in_order(from, message, cx);
        self.after_event(cx);
    }

    fn timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, P>) {
        match timer {
            MemberTimer::Tick => self.on_tick(cx),
            MemberTimer::Long => self.take_long(cx),
            MemberTimer::Inside(timer) if self.leading.is_some() => {
                self.step(cx, |inner, cx| inner.timer(timer, cx));
            }
            MemberTimer::Inside(_) => {}
        }
        self.after_event(cx);
    }

    fn replay(&mut self, record: Record<P::Record>, cx: &mut Context<'_, P>) {
        let Record::Changes(changes) = record else { unreachable!("a member logs changes") };
        self.replay_changes(changes, cx);
    }

    fn begin_checkpoint(&self) -> Option<Cursor> {
        self.checkpoint_of_now()
    }

    fn checkpoint_piece(&self, cursor: &mut Cursor, bytes: usize, out: &mut Vec<u8>) -> bool {
        self.next_piece(cursor, bytes, out)
    }

    fn checkpoint_readiness(&self, cursor: &Cursor) -> Readiness {
        self.readiness(cursor)
    }

    fn restore(&mut self, piece: &[u8], cx: &mut Context<'_, P>) -> Result<(), WireError> {
        self.restore_piece(piece, cx)
    }
}

impl<P: Protocol> Participant<Grouped<P>> for Replica<P> {
    fn new(
        id: RepositoryId,
        settings: &Settings,
        group_settings: &GroupSettings<P::Switches>,
    ) -> Replica<P> {
        let (group, place) = layout::place(id);
        let inner = P::Participant::new(RepositoryId(group), settings, &group_settings.inner);
        Replica {
            group,
            place,
            group_settings: group_settings.clone(),
            settings: settings.clone(),
            inside: Inside::new(),
            ledger: Ledger::default(),
            consensus: None,
            joining: Joining::default(),
            inner,
            rejections: Rejections::default(),
            applied: 0,
            lazy: Vec::new(),
            leading: None,
            fetching: None,
            loading: None,
            marks: VecDeque::new(),
            ran: 0,
            sure: 0,
            returned: 0,
            installing: None,
            was_whole: false,
            serving: BTreeMap::new(),
            reached: BTreeMap::new(),
            last_seen: BTreeMap::new(),
            is_void: false,
            is_on_disk: true,
            reported: 0,
            served: 0,
            generation: 0,
            wanted_upto: 0,
            probe: None,
            pace: DiskPace::default(),
            ticks: 0,
            seen_at: None,
            moved: false,
            wanted: Vec::new(),
            parting: Vec::new(),
            asked: None,
            settled: Settled::No,
            written: StableEntries::default(),
            long: Vec::new(),
            busy: BTreeMap::new(),
            patient: (1, 0),
            spoke: 0,
        }
    }

    /// What a member logs for itself is its own.
    fn judge_record(&self, _: &Record<P::Record>, _: &Catalog) -> Result<(), Rejection> {
        Ok(())
    }

    fn rejections(&self) -> Option<&Rejections> {
        Some(&self.rejections)
    }

    // A member is not itself marked, nor read from behind: who keeps it is its node alone.

    fn mark(&mut self) -> Option<VecDeque<Vec<u8>>> {
        None
    }

    fn forget_mark(&mut self) {}

    fn go_back(
        &mut self,
        _other: &mut Replica<P>,
        _marked: VecDeque<Vec<u8>>,
        _cx: &mut Context<'_, P>,
    ) -> bool {
        false
    }

    fn answer_behind(&mut self, _message: &Message<P::Message>, _cx: &mut Context<'_, P>) -> bool {
        false
    }

    fn end(&mut self, settings: &Settings) {
        self.inner.end(settings);
    }

    fn lag(&self) -> Option<Lag> {
        self.can_tell_lag().then(|| self.behind())
    }

    fn replica_role(&self) -> ReplicaRole {
        match self.leading {
            _ if self.moved => ReplicaRole::Moved,
            _ if self.joining.is_lost() => ReplicaRole::Lost,
            _ if self.consensus.is_none() && self.is_left_out() => ReplicaRole::Leaves,
            _ if self.consensus.is_none() || self.settled != Settled::Yes => ReplicaRole::Joins,
            _ if !self.has_state() => ReplicaRole::Joins,
            _ if !self.takes_part() => ReplicaRole::Regroups,
            Some(_) => ReplicaRole::Leads,
            None => ReplicaRole::Follows,
        }
    }

    fn add_sizes(
        &self,
        cursor: &mut SizeCursor,
        sizes: &mut PartitionSizes,
        catalog: &Catalog,
    ) -> bool {
        self.inner.add_sizes(cursor, sizes, &layout::inner(catalog))
    }

    fn chains(&self, catalog: &Catalog) -> Vec<(SpaceId, SmallBytes, Vec<Timestamp>)> {
        // Where others have decided more, somebody else leads, and this member is to hear of it.
        match self.leading.is_some() && self.behind().entries == 0 {
            true => self.inner.chains(&layout::inner(catalog)),
            false => Vec::new(),
        }
    }
}
