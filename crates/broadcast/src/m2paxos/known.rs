//! What a member knows of a command.

use std::collections::{BTreeMap, BTreeSet};

use muesli_core::Nanos;

use super::message::{Message, NamedCommand, ObjectSlot, Record};
use super::object::ObjectLogs;
use super::{Effects, M2Paxos};
use crate::command::{Command, CommandId, MemberId};

/// At so many objects is a command that a cut is still to be made for.
pub(super) const UNCUT: usize = usize::MAX;

/// A command that not all members have delivered.
///
/// Invariants: its place at an object is the first of those at which it is decided, and all before
/// it are; a command that is not complete waits for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OrderedCommand {
    /// What it says, if this is known.
    pub command: Option<Command>,
    /// At how many objects it is to be, if what it says is known.
    pub objects: usize,
    /// By object, where it is.
    pub places: BTreeMap<u64, u64>,
    /// All places at which it is decided.
    pub decided: BTreeSet<ObjectSlot>,
    /// A command before it that is not complete, for which it waits.
    pub awaits: Option<CommandId>,
    /// When others are to be helped with it.
    pub suspected: Nanos,
    /// How often they were.
    pub attempts: u32,
}

impl OrderedCommand {
    /// Whether it is known where it is, and what is before it.
    pub fn is_complete(&self) -> bool {
        self.command.is_some() && self.objects == self.places.len()
    }

    /// Whether it is decided somewhere at an object.
    pub fn is_decided_at(&self, object: u64) -> bool {
        let first = ObjectSlot { object, slot: 0 };
        self.decided.range(first..).next().is_some_and(|it| it.object == object)
    }

    pub fn assert_invariants(&self, id: CommandId, objects: &ObjectLogs, is_delivered: bool) {
        for (object, slot) in &self.places {
            let place = ObjectSlot { object: *object, slot: *slot };
            assert!(self.decided.contains(&place), "{id} is at {place:?}, which is not decided");
            let log = objects.get(*object).expect("a place is of an object");
            let waits = log.waiting.get(*slot) == Some(&id);
            assert_eq!(waits, !is_delivered, "{id} at {place:?} of {log:?}");
        }
        let waits = self.awaits.is_some();
        assert!(!waits || (self.is_complete() && !is_delivered), "{id} waits: {self:?}");
        assert!(self.command.is_some() || !is_delivered, "{id} was delivered unseen");
    }
}

impl M2Paxos {
    /// The entry of a command that not all have delivered.
    pub(super) fn entry(&mut self, id: CommandId, now: Nanos) -> &mut OrderedCommand {
        assert!(!self.progress.is_collected(id), "{id} was delivered everywhere");
        let suspected = self.deferred(id, self.settings.suspect_after, 0, now);
        self.commands.entry(id).or_insert_with(|| {
            self.suspected.add(id, suspected);
            OrderedCommand { suspected, ..OrderedCommand::default() }
        })
    }

    /// Somebody says what a command says.
    pub(super) fn learn(&mut self, named: &NamedCommand, out: &mut Effects) {
        let is_new = !self.progress.is_collected(named.id) && self.named(named.id).is_none();
        if is_new {
            self.store(Record::Known(named.clone()), out);
        }
    }

    pub(super) fn know(&mut self, named: &NamedCommand, out: &mut Effects) {
        let NamedCommand { id, command } = named;
        if self.progress.is_collected(*id) {
            return;
        }
        let objects = match self.is_cut_for(command) {
            true => UNCUT,
            false => self.numbers(command).count(),
        };
        let entry = self.entry(*id, out.now);
        if entry.command.is_none() {
            self.own.take(*id, command);
            let entry = self.entry(*id, out.now);
            entry.objects = objects;
            entry.command = Some(command.clone());
            self.note_end(*id);
            self.on_progress(*id, out);
        }
    }

    /// The end of a command is known once it is known what it says and where it is decided; what is
    /// before it may not be.
    pub(super) fn note_end(&mut self, id: CommandId) {
        if self.commands.get(&id).is_some_and(|entry| self.is_decided(entry)) {
            self.progress.end(id);
        }
    }

    /// Whether a command is known, and decided somewhere at each of its objects.
    pub(super) fn is_decided(&self, entry: &OrderedCommand) -> bool {
        let command = entry.command.as_ref();
        let is_at = |object: u64| entry.is_decided_at(object);
        command.is_some_and(|it| entry.objects != UNCUT && self.numbers(it).all(is_at))
    }

    pub(super) fn on_ask_command(&mut self, from: MemberId, id: CommandId, out: &mut Effects) {
        if let Some(named) = self.named(id) {
            out.send(from, Message::ShowCommand(named));
        }
    }
}
