//! A node: its member, its cores, and what waits for them.

use std::collections::VecDeque;

use muesli_broadcast::{ChosenMessage, Command, MemberId};
use muesli_sim::random::Random;
use muesli_sim::time::{Span, VirtualTime};

use crate::member::OrderingMember;

/// A message with its length in bytes.
#[derive(Clone, Debug)]
pub(super) struct SizedMessage {
    pub message: ChosenMessage,
    pub bytes: u64,
}

/// What a member takes in a step.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are messages")]
pub(super) enum StepInput {
    Message { from: MemberId, sized: SizedMessage },
    Propose { command: Command, issued: VirtualTime },
    Tick,
}

/// Work that waits for a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreWork {
    Step,
    Send(MemberId),
    Take(MemberId),
}

/// How long the cores of a node were busy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeBusy {
    pub all: Span,
    pub stepping: Span,
}

impl NodeBusy {
    /// A core has work of this length.
    pub fn note(&mut self, length: Span) {
        self.all = self.all + length;
    }

    /// That is a step.
    pub fn note_step(&mut self, length: Span) {
        self.stepping = self.stepping + length;
    }
}

/// A node.
#[derive(Debug)]
pub(super) struct CommandNode {
    pub member: OrderingMember,
    /// Cores that do nothing.
    pub idle: usize,
    /// What waits for one.
    pub waiting: VecDeque<CoreWork>,
    /// Whether a step waits or is under way.
    pub steps: bool,
    pub inbox: VecDeque<StepInput>,
    /// By member, what is to be sent there.
    pub outgoing: Vec<VecDeque<SizedMessage>>,
    /// By member, what has come from there.
    pub incoming: Vec<VecDeque<SizedMessage>>,
    /// When the wire has taken all that was sent.
    pub wire_free: VirtualTime,
    /// Commands of its clients that are not delivered here.
    pub in_flight: usize,
    pub busy: NodeBusy,
    pub random: Random,
}

impl CommandNode {
    pub fn new(member: OrderingMember, nodes: usize, cores: usize, random: Random) -> CommandNode {
        CommandNode {
            member,
            idle: cores,
            waiting: VecDeque::new(),
            steps: false,
            inbox: VecDeque::new(),
            outgoing: vec![VecDeque::new(); nodes],
            incoming: vec![VecDeque::new(); nodes],
            wire_free: VirtualTime::ZERO,
            in_flight: 0,
            busy: NodeBusy::default(),
            random,
        }
    }

    /// Something is to be done in a step.
    pub fn offer(&mut self, input: StepInput) {
        self.inbox.push_back(input);
        if !self.steps {
            self.steps = true;
            self.waiting.push_back(CoreWork::Step);
        }
    }

    /// A message is to be sent. Where messages are batched those to one member are one work.
    pub fn send(&mut self, to: MemberId, message: SizedMessage, batching: bool) {
        let queue = &mut self.outgoing[to.place()];
        queue.push_back(message);
        if !batching || queue.len() == 1 {
            self.waiting.push_back(CoreWork::Send(to));
        }
    }

    /// A packet has come.
    pub fn receive(&mut self, from: MemberId, packet: VecDeque<SizedMessage>, batching: bool) {
        let queue = &mut self.incoming[from.place()];
        let is_new = queue.is_empty();
        if is_new {
            *queue = packet
        } else {
            queue.extend(packet)
        }
        if !batching || is_new {
            self.waiting.push_back(CoreWork::Take(from));
        }
    }

    /// The next work, if there is some and a core is free for it.
    pub fn next_work(&mut self) -> Option<CoreWork> {
        if self.idle == 0 {
            return None;
        }
        let work = self.waiting.pop_front()?;
        self.idle -= 1;
        Some(work)
    }

    /// Messages of one packet, from those that wait.
    pub fn packet(queue: &mut VecDeque<SizedMessage>, batching: bool) -> VecDeque<SizedMessage> {
        match batching {
            true => std::mem::take(queue),
            false => queue.pop_front().into_iter().collect(),
        }
    }
}
