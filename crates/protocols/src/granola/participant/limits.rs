//! The limits of a transaction: its coordinator refuses before anything is sent, and a participant
//! judges a request once more, since a client may run with other limits. And those of memory: what
//! a repository holds is counted once in a while, and where the process has too much, a request
//! that may write is refused as it comes. That is a vote against it like others, so all who take
//! part come to the same end, and copies stay alike; what was voted on is done, whatever it takes.

use std::fmt;

use muesli_core::judgement::ensure;
use muesli_core::limits::{ENTRY_BYTES, Limit, check_size, range_bytes, read_bytes, writes_bytes};
use muesli_core::links::patience_for;
use muesli_core::memory::{Held, REPORT_BYTES};
use muesli_core::{
    Abort, Failure, Limits, Nanos, Rejection, Sender, Settings, SmallBytes, SpaceId, Timestamp,
    TxnId, View,
};

use super::outcomes::Room;
use super::{Context, Participant};
use crate::granola::message::{Agreement, Install, Message, Part, Request, Seen, Task, Write};

/// What a repository has told its process of its memory.
#[derive(Clone, Copy, Default)]
pub(super) struct Reported {
    held: Held,
    /// How many bytes of that are of transactions under way.
    active: usize,
    /// Transactions since.
    since: u32,
    /// Bytes installed since.
    installed: usize,
}

impl Reported {
    /// So many bytes of keys and values were installed.
    pub fn note_installed(&mut self, bytes: usize) {
        self.installed += bytes;
    }
}

/// Without the bytes that came and went since: of little, they make no state another one.
impl fmt::Debug for Reported {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reported { held, since, .. } = self;
        out.debug_struct("Reported").field("held", held).field("since", since).finish()
    }
}

impl Participant {
    /// Why there is no room for a request, if there is none. At the limit what adds nothing is
    /// taken up all the same, as long as what is under way of that takes no more together than a
    /// transaction may, or is nothing: it may have to wait for votes of others that never come.
    pub(in crate::granola) fn lacks_room(
        &self,
        request: &Request,
        cx: &Context<'_>,
    ) -> Option<Abort> {
        if !cx.settings.memory.is_full() {
            return None;
        }
        if request.may_add() {
            return Some(Abort::OutOfMemory);
        }
        let (others, most) = (self.active.adding_nothing(), cx.settings.limits.transaction_bytes);
        let is_much = others > 0 && others.saturating_add(request.held_bytes()) > most;
        is_much.then_some(Abort::Overloaded)
    }

    /// A transaction is over: once in a while what is held is counted.
    #[inline]
    pub(in crate::granola) fn count_for_memory(&mut self, settings: &Settings) {
        self.reported.since += 1;
        if self.reported.since >= settings.pace.collect_after {
            self.report_memory(settings);
        } else {
            self.report_what_moved(settings);
        }
    }

    /// Counts what is held at once, where much of it came or went since that was counted.
    #[inline]
    pub(super) fn report_what_moved(&mut self, settings: &Settings) {
        let under_way = self.active.bytes().abs_diff(self.reported.active);
        if self.reported.installed >= REPORT_BYTES || under_way >= REPORT_BYTES {
            self.report_memory(settings);
        }
    }

    /// Tells the process what is held here: keys, requests under way, and ends that are kept for
    /// clients.
    pub(super) fn report_memory(&mut self, settings: &Settings) {
        let (spaces, active) = (self.spaces.held(), self.active.bytes());
        let all = spaces.all + (self.memory.bytes() + active) as u64;
        let held = Held { all, ..spaces };
        settings.memory.report(self.reported.held, held);
        self.reported = Reported { held, active, since: 0, installed: 0 };
    }

    /// Nothing is held here any more.
    pub(super) fn take_back_report(&mut self, settings: &Settings) {
        settings.memory.report(self.reported.held, Held::default());
        self.reported = Reported::default();
    }

    /// What is remembered of clients from now on is remembered at this time.
    pub(super) fn tell_time(&mut self, cx: &Context<'_>) {
        if cx.catalog.visiting_coordinators {
            self.memory.tell_time(cx.now());
        }
    }

    /// A client is heard of, and what is kept for others for a while may be forgotten.
    pub(super) fn hear_client(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        if cx.catalog.is_client(txn.node) {
            self.memory.hear_client(txn.node, cx.now());
            self.memory.forget_retired(cx.now(), cx.settings.snapshot_lease);
            self.set_silent_timer(cx);
        }
    }

    /// Whether there is room for what a client's request would leave: a client that does not settle
    /// its transactions gets no further ones in.
    pub(super) fn judge_room(
        &self,
        sender: Sender,
        message: &Message,
        view: View<'_>,
    ) -> Result<(), Rejection> {
        let Message::Request(request) = message else { return Ok(()) };
        let reads_alone = request.read_only && request.agreement == Agreement::Alone;
        let txn = request.txn;
        let known = || self.active.contains_key(&txn) || self.memory.get(txn).is_some();
        if sender.is_member() || reads_alone || known() {
            return Ok(());
        }
        let (most, bytes) = (view.settings.unsettled_max, view.settings.limits.transaction_bytes);
        let room = Room { ends: most, bytes, all: view.settings.unsettled_total_max };
        let has_room = self.memory.has_room(txn, request.settled_below, self.active.len(), room);
        ensure(has_room, Rejection::Full)?;
        // What is under way is counted only where there is much of it.
        let first = TxnId { incarnation: 0, sequence: 0, ..txn };
        let last = TxnId { incarnation: u32::MAX, sequence: u64::MAX, ..txn };
        let is_full =
            self.active.len() >= most && self.active.range(first..=last).nth(most - 1).is_some();
        ensure(!is_full, Rejection::Full)
    }
}

/// # Errors
/// A transaction of these parts is too large to be sent.
pub(in super::super) fn check_parts_size(parts: &[Part], limits: &Limits) -> Result<(), Failure> {
    for part in parts {
        if let Task::Call { arguments, .. } = &part.task {
            check_size(Limit::Argument, arguments.len(), limits.value_bytes)?;
        }
    }
    check_size(Limit::Transaction, counted_bytes(parts), limits.transaction_bytes)
}

/// What parts count towards the limit of a transaction.
fn counted_bytes(parts: &[Part]) -> usize {
    let each = |task: &Task| match task {
        Task::Call { procedure, arguments, .. } => {
            2 * ENTRY_BYTES + procedure.name.len() + arguments.len()
        }
        Task::Read(keys) => keys.iter().map(|(_, key)| read_bytes(key)).sum(),
        Task::Scan { range, .. } => range_bytes(range),
        Task::Install(install) => install.counted_bytes(),
        Task::Take { .. } | Task::Move(_) | Task::Names => 0,
    };
    parts.iter().map(|part| each(&part.task)).sum()
}

impl Request {
    /// How much longer than others it may take to be answered, for its size.
    pub(in crate::granola) fn patience(&self) -> Nanos {
        patience_for(self.counted_bytes())
    }

    /// What it counts towards the limit of a transaction.
    pub(super) fn counted_bytes(&self) -> usize {
        counted_bytes(&self.parts)
    }

    /// How many bytes it takes while it is under way, about: not only its keys and values, but also
    /// what stands for each of them.
    pub(super) fn held_bytes(&self) -> usize {
        let parts = self.parts.len() * size_of::<Part>();
        let entries: usize = self.parts.iter().map(|part| part.task.entries_bytes()).sum();
        size_of::<Request>() + self.counted_bytes() + parts + entries
    }

    /// Whether it may leave more than there was.
    pub(super) fn may_add(&self) -> bool {
        self.parts.iter().any(|part| part.task.may_add(self))
    }

    /// Why it is refused for its size, if it is.
    pub(super) fn judge_size(&self, limits: &Limits) -> Option<Abort> {
        let mut tasks = self.parts.iter().map(|part| &part.task);
        let judged = tasks.find_map(|task| task.judge_entries(limits));
        judged.or_else(|| limits.judge_transaction(counted_bytes(&self.parts)))
    }
}

impl Task {
    /// Whether it may leave more than there was: it does more than read and delete. What a
    /// procedure does, nobody knows beforehand.
    fn may_add(&self, request: &Request) -> bool {
        match self {
            Task::Call { .. } => !request.read_only,
            Task::Install(install) => install.writes.iter().any(|(_, _, value)| value.is_some()),
            Task::Take { .. } => true,
            Task::Read(_) | Task::Scan { .. } | Task::Move(_) | Task::Names => false,
        }
    }

    /// What stands for its keys and values beside their bytes.
    fn entries_bytes(&self) -> usize {
        match self {
            Task::Read(keys) => keys.len() * size_of::<(SpaceId, SmallBytes)>(),
            Task::Install(install) => {
                install.reads.len() * size_of::<(SpaceId, SmallBytes, Timestamp)>()
                    + install.scans.len() * size_of::<Seen>()
                    + install.writes.len() * size_of::<Write>()
            }
            Task::Call { .. } | Task::Scan { .. } => 0,
            Task::Take { .. } | Task::Move(_) | Task::Names => 0,
        }
    }

    /// Why a key or a value of it is refused for its size, if one is.
    fn judge_entries(&self, limits: &Limits) -> Option<Abort> {
        match self {
            Task::Call { arguments, .. } => {
                (arguments.len() > limits.value_bytes).then_some(Abort::ValueTooLarge)
            }
            Task::Read(keys) => keys.iter().find_map(|(_, key)| limits.judge_key(key)),
            Task::Install(install) => {
                let mut reads = install.reads.iter();
                let mut writes = install.writes.iter();
                let read = reads.find_map(|(_, key, _)| limits.judge_key(key));
                read.or_else(|| {
                    writes.find_map(|(_, key, value)| limits.judge_write(key, value.as_ref()))
                })
            }
            Task::Scan { .. } | Task::Take { .. } | Task::Move(_) | Task::Names => None,
        }
    }
}

impl Install {
    fn counted_bytes(&self) -> usize {
        let reads: usize = self.reads.iter().map(|(_, key, _)| read_bytes(key)).sum();
        // When a range was seen, and how many keys it held.
        let scans = self.scans.iter().map(|seen| ENTRY_BYTES + range_bytes(&seen.range));
        reads + scans.sum::<usize>() + writes_bytes(&self.writes)
    }
}
