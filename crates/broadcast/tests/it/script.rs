//! A group whose messages arrive as a test says.

use std::collections::BTreeMap;
use std::fmt::Debug;

use muesli_broadcast::{BroadcastSettings, Command, CommandId, EffectsOf, MemberId};
use muesli_core::Nanos;

use crate::group::{Subject, command, made, members, violation};

/// Members, and what is on its way between them.
pub struct Script<B: Subject> {
    pub members: Vec<B>,
    on_their_way: Vec<(u16, u16, B::Message)>,
    orders: Vec<Vec<CommandId>>,
    /// What each member has written down.
    disks: Vec<Vec<B::Record>>,
    switches: B::Switches,
    commands: BTreeMap<CommandId, Command>,
    now: Nanos,
}

/// The kind of a message: how its text begins.
fn kind_of(message: &impl Debug) -> String {
    let text = format!("{message:?}");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

impl<B: Subject> Script<B> {
    pub fn new(count: usize, switches: &B::Switches) -> Script<B> {
        Script {
            members: members(count, &BroadcastSettings::default(), switches),
            on_their_way: Vec::new(),
            orders: vec![Vec::new(); count],
            disks: vec![Vec::new(); count],
            switches: switches.clone(),
            commands: BTreeMap::new(),
            now: Nanos(0),
        }
    }

    fn act(&mut self, at: u16, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut out = EffectsOf::<B>::at(self.now);
        act(&mut self.members[usize::from(at)], &mut out);
        self.members[usize::from(at)].flush(&mut out);
        let made = made::<B>(out);
        self.orders[usize::from(at)].extend(made.delivered);
        self.disks[usize::from(at)].extend(made.logged);
        self.on_their_way.extend(made.sent.into_iter().map(|(to, it)| (at, to.0, it)));
    }

    /// A member proposes a command that writes these objects.
    pub fn propose(&mut self, at: u16, objects: &[u64]) -> CommandId {
        self.propose_all(at, &[objects])[0]
    }

    /// A member proposes commands in one step, each of which writes these objects.
    pub fn propose_all(&mut self, at: u16, all: &[&[u64]]) -> Vec<CommandId> {
        let commands: Vec<Command> = all.iter().map(|objects| command("", objects)).collect();
        let mut ids = Vec::new();
        self.act(at, |it, out| {
            ids.extend(commands.iter().map(|command| it.propose(command.clone(), out)));
        });
        self.commands.extend(ids.iter().copied().zip(commands));
        ids
    }

    /// A member crashes, and comes back with what it has written down.
    pub fn restart(&mut self, at: u16) {
        let (place, settings) = (usize::from(at), BroadcastSettings::default());
        let mut member = B::new(MemberId(at), self.members.len(), &settings, &self.switches);
        let mut out = EffectsOf::<B>::at(self.now);
        for record in &self.disks[place] {
            member.replay(record.clone(), &mut out);
        }
        self.members[place] = member;
    }

    pub fn recover(&mut self, at: u16, id: CommandId) {
        self.act(at, |it, out| it.recover(id, out));
    }

    /// Time has passed at a member: so many milliseconds since the beginning.
    pub fn tick(&mut self, at: u16, ms: u64) {
        self.now = Nanos(ms * 1_000_000);
        self.act(at, |it, out| it.tick(out));
    }

    /// The first message on a link about a command arrives.
    pub fn deliver(&mut self, from: u16, to: u16, id: CommandId) {
        let message = self.take(from, to, id);
        self.receive(from, to, message);
    }

    /// The first message of a kind on a link arrives, whatever it is about.
    pub fn deliver_kind(&mut self, from: u16, to: u16, kind: &str) {
        let place = self.place_of(from, to, kind);
        let message = self.on_their_way.remove(place.expect("such a message")).2;
        self.receive(from, to, message);
    }

    /// The first message of a kind on each of these links arrives, as far as there is one.
    pub fn deliver_kinds(&mut self, links: &[(u16, u16, &str)]) {
        for (from, to, kind) in links {
            if let Some(place) = self.place_of(*from, *to, kind) {
                let message = self.on_their_way.remove(place).2;
                self.receive(*from, *to, message);
            }
        }
    }

    /// The first message of a kind on a link is lost.
    pub fn lose_next(&mut self, from: u16, to: u16, kind: &str) {
        let place = self.place_of(from, to, kind);
        self.on_their_way.remove(place.expect("such a message"));
    }

    /// The first message of a kind on a link.
    fn place_of(&self, from: u16, to: u16, kind: &str) -> Option<usize> {
        self.on_their_way.iter().position(|it| {
            let (sender, receiver, message) = it;
            (*sender, *receiver) == (from, to) && kind_of(message) == kind
        })
    }

    /// The first message on a link about a command is lost.
    pub fn lose(&mut self, from: u16, to: u16, id: CommandId) {
        self.take(from, to, id);
    }

    /// Messages about a command arrive between two members, until none is on its way.
    pub fn exchange(&mut self, one: u16, other: u16, id: CommandId) {
        let directions = [(one, other), (other, one)];
        while let Some((from, to)) =
            directions.into_iter().find(|(from, to)| self.is_on_its_way(*from, *to, id))
        {
            self.deliver(from, to, id);
        }
    }

    /// All messages about a command on a link are lost.
    pub fn lose_all(&mut self, from: u16, to: u16, id: CommandId) {
        while self.is_on_its_way(from, to, id) {
            self.lose(from, to, id);
        }
    }

    /// Whether a message about a command is on its way.
    pub fn is_on_its_way(&self, from: u16, to: u16, id: CommandId) -> bool {
        self.place(from, to, id).is_some()
    }

    fn take(&mut self, from: u16, to: u16, id: CommandId) -> B::Message {
        let place = self.place(from, to, id).expect("such a message");
        self.on_their_way.remove(place).2
    }

    fn place(&self, from: u16, to: u16, id: CommandId) -> Option<usize> {
        let about = format!("id: {id},");
        let is_about = |it: &B::Message| format!("{it:?}").contains(&about);
        self.on_their_way.iter().position(|it| (it.0, it.1) == (from, to) && is_about(&it.2))
    }

    /// A message arrives that a test has made.
    pub fn receive(&mut self, from: u16, to: u16, message: B::Message) {
        self.act(to, |it, out| it.receive(MemberId(from), message, out));
    }

    /// What was sent first arrives.
    pub fn deliver_next(&mut self) {
        let (from, to, message) = self.on_their_way.remove(0);
        self.receive(from, to, message);
    }

    /// Everything arrives, in the order in which it was sent.
    pub fn deliver_all(&mut self) {
        while !self.on_their_way.is_empty() {
            self.deliver_next();
        }
    }

    /// The same with those of a kind alone.
    pub fn deliver_all_of(&mut self, kind: &str) {
        let is_one = |it: &B::Message| kind_of(it).starts_with(kind);
        while let Some(place) = self.on_their_way.iter().position(|(_, _, it)| is_one(it)) {
            let (from, to, message) = self.on_their_way.remove(place);
            self.receive(from, to, message);
        }
    }

    /// The same, but for what is sent to a member that is dead, which stays on its way.
    pub fn deliver_all_but(&mut self, dead: u16) {
        while let Some(place) = self.on_their_way.iter().position(|(_, to, _)| *to != dead) {
            let (from, to, message) = self.on_their_way.remove(place);
            self.receive(from, to, message);
        }
    }

    /// The kinds of all messages that are on their way, in the order in which they were sent.
    pub fn kinds(&self) -> Vec<String> {
        let all = self.on_their_way.iter();
        all.map(|(from, to, it)| format!("{from} to {to}: {}", kind_of(it))).collect()
    }

    /// What was sent last.
    pub fn last_message(&self) -> String {
        self.on_their_way.last().map(|it| format!("{:?}", it.2)).unwrap_or_default()
    }

    /// All messages to a member are lost.
    pub fn lose_all_to(&mut self, member: u16) {
        self.on_their_way.retain(|(_, to, _)| *to != member);
    }

    /// All messages of a member are lost: it is dead.
    pub fn lose_all_from(&mut self, member: u16) {
        self.on_their_way.retain(|(from, _, _)| *from != member);
    }

    /// All messages of a kind on a link are lost; how many.
    pub fn lose_kind(&mut self, from: u16, to: u16, kind: &str) -> usize {
        let before = self.on_their_way.len();
        self.on_their_way.retain(|it| {
            let (sender, receiver, message) = it;
            (*sender, *receiver) != (from, to) || kind_of(message) != kind
        });
        before - self.on_their_way.len()
    }

    /// Checks the invariants of all members, which hold where no rule is broken.
    pub fn assert_invariants(&self) {
        self.members.iter().for_each(|member| member.assert_invariants());
    }

    pub fn violation(&self) -> Option<String> {
        let members: Vec<&B> = self.members.iter().collect();
        violation(&members, &self.orders, &self.commands)
    }

    /// What a member has delivered, in its order.
    pub fn order(&self, at: u16) -> &[CommandId] {
        &self.orders[usize::from(at)]
    }
}
