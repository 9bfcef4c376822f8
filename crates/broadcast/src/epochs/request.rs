//! What members ask for, by names that stay the same from epoch to epoch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use muesli_core::bytes::SmallBytes;
use muesli_core::wire::Wire as _;
use muesli_core::{wire_enum, wire_struct};

use super::list::{MemberChange, MemberName};
use crate::command::{Command, CommandId};
use crate::objects::ObjectSet;

/// What a member has asked to be ordered. It keeps this name where it is proposed anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// Whose it is.
    pub member: MemberName,
    /// Its number among those of that member, from 1, without gaps.
    pub sequence: u64,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.member, self.sequence)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum RequestContent {
    /// The user's command says this.
    Command(SmallBytes),
    /// A member is to be exchanged.
    Change(MemberChange),
}

/// What a command of the broadcast says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderedRequest {
    pub sequence: u64,
    pub content: RequestContent,
}

/// A request of this member that was not delivered yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnRequest {
    /// As its user gave it; that of a change touches everything, and says nothing.
    pub command: Command,
    /// What it changes, if it is none of the user.
    pub change: Option<MemberChange>,
}

impl OwnRequest {
    pub fn change(change: MemberChange) -> OwnRequest {
        let objects = Arc::new(ObjectSet::everything());
        let command = Command { objects, payload: SmallBytes::EMPTY };
        OwnRequest { command, change: Some(change) }
    }

    /// As the broadcast orders it.
    pub fn ordered(&self, sequence: u64) -> Command {
        let content = match self.change {
            Some(change) => RequestContent::Change(change),
            None => RequestContent::Command(self.command.payload.clone()),
        };
        let mut payload = Vec::new();
        OrderedRequest { sequence, content }.encode(&mut payload);
        Command { objects: Arc::clone(&self.command.objects), payload: payload.into() }
    }

    /// From what the broadcast orders.
    pub fn of(command: &Command) -> Option<(u64, OwnRequest)> {
        let ordered = OrderedRequest::decode_all(command.payload.as_slice()).ok()?;
        let request = match ordered.content {
            RequestContent::Change(change) => OwnRequest::change(change),
            RequestContent::Command(payload) => {
                let objects = Arc::clone(&command.objects);
                OwnRequest { command: Command { objects, payload }, change: None }
            }
        };
        Some((ordered.sequence, request))
    }
}

/// The requests of this member that are open.
///
/// Invariants: each waits, or is proposed in this epoch as one command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnRequests {
    /// The number of the last one.
    pub last: u64,
    pub open: BTreeMap<u64, OwnRequest>,
    /// Those that are proposed in this epoch, by their commands there.
    proposed: BTreeMap<CommandId, u64>,
    /// Those that are to be proposed.
    waiting: BTreeSet<u64>,
}

impl OwnRequests {
    /// A new one; its number.
    pub fn add(&mut self, request: OwnRequest) -> u64 {
        self.last += 1;
        self.open.insert(self.last, request);
        self.waiting.insert(self.last);
        self.last
    }

    /// The next one to be proposed, as the broadcast orders it.
    pub fn next(&self) -> Option<(u64, Command)> {
        let sequence = *self.waiting.first()?;
        Some((sequence, self.open[&sequence].ordered(sequence)))
    }

    /// It is proposed as a command.
    pub fn propose(&mut self, id: CommandId, sequence: u64) {
        self.waiting.remove(&sequence);
        self.proposed.insert(id, sequence);
    }

    /// In a replay: it was proposed as a command, perhaps again.
    pub fn take(&mut self, id: CommandId, sequence: u64, request: Option<OwnRequest>) {
        self.last = self.last.max(sequence);
        if let Some(request) = request {
            self.open.insert(sequence, request);
            self.propose(id, sequence);
        }
    }

    /// A command of this member was given up: what it asked for is proposed anew.
    pub fn give_up(&mut self, id: CommandId) {
        self.waiting.extend(self.proposed.remove(&id));
    }

    /// A command of this member was delivered, by which one was asked for.
    pub fn end(&mut self, id: CommandId, sequence: u64) {
        self.proposed.remove(&id);
        self.waiting.remove(&sequence);
        self.open.remove(&sequence);
    }

    /// Those that are open and were delivered elsewhere, in an epoch that this member leaves; those
    /// of the user are named.
    pub fn end_all(&mut self, is_delivered: impl Fn(u64) -> bool) -> Vec<u64> {
        let over = self.open.extract_if(.., |sequence, _| is_delivered(*sequence));
        let of_user = over.filter(|(_, request)| request.change.is_none());
        of_user.map(|(sequence, _)| sequence).collect()
    }

    /// An epoch begins, in which nothing is proposed yet.
    pub fn begin_epoch(&mut self) {
        self.proposed.clear();
        self.waiting = self.open.keys().copied().collect();
    }

    /// After a replay: these are proposed, and all others wait.
    pub fn resume(&mut self, proposed: impl Iterator<Item = (CommandId, u64)>) {
        self.begin_epoch();
        for (id, sequence) in proposed.filter(|(_, sequence)| self.open.contains_key(sequence)) {
            self.waiting.remove(&sequence);
            self.proposed.insert(id, sequence);
        }
    }

    pub fn assert_invariants(&self) {
        let mut all = self.waiting.clone();
        all.extend(self.proposed.values());
        assert_eq!(all.len(), self.waiting.len() + self.proposed.len(), "twice: {self:?}");
        assert!(all.iter().eq(self.open.keys()), "requests that nobody proposes: {self:?}");
        assert!(self.open.keys().all(|it| (1..=self.last).contains(it)), "numbers: {self:?}");
    }
}

wire_struct!(RequestId { member: MemberName, sequence: u64 });
wire_struct!(OrderedRequest { sequence: u64, content: RequestContent });
wire_enum!(RequestContent, "request" {
    0 => Command(payload: SmallBytes),
    1 => Change(change: MemberChange),
});
wire_struct!(OwnRequest { command: Command, change: Option<MemberChange> });
