//! Strangers: whoever says to nodes what no honest process says.
//!
//! A stranger hears what nodes say to each other, and says it again: altered, to somebody else, as
//! the word of a client that owns the transaction ([`AnyProtocol::as_client`]), or as it was. So
//! its messages have the structure of honest ones, and many get past the first questions. What
//! they may not do: end a node, or change what honest clients see. A stranger that passes for a
//! member may lie in votes, and then histories may break; nodes live all the same.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use muesli_core::{
    Address, AnyMachine, AnyProtocol, Envelope, NodeId, RepositoryId, Role, Sender, Timestamp,
};

use super::host::input::HostInput;
use super::host::message::Message;
use super::host::strangers::{FIRST_STRANGER, StrangerCount};
use super::{Event, World};
use crate::random::Random;
use crate::time::Span;

/// How many strangers there are.
const COUNT: u64 = 3;
/// A stranger looks so often for a message that a client might say.
const LOOKS: usize = 6;
/// One of so many messages in the name of members is of a kind that is drawn, however rare.
const RARE_ONCE_IN: u64 = 4;
/// So many messages of nodes are remembered, to say them again.
const KEPT_MAX: usize = 512;
/// Numbers at which something may go wrong.
const EDGES: [u64; 9] =
    [0, 1, 0xfff, 0x1000, (1 << 62) - 1, (1 << 62) + 1, u64::MAX >> 12, u64::MAX - 1, u64::MAX];

/// That there are strangers, and how they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strangers {
    /// Between two messages it is so long, on average.
    pub every: Span,
    /// They pass for members.
    pub as_members: bool,
}

/// What strangers do next, and all that is in what they say: drawn from the seed, or read from a
/// script, at whose end they fall silent.
enum Choices {
    Drawn(Random),
    Script(Arc<[u8]>, usize),
}

impl Choices {
    /// A number below `bound`; in a script, of as many bytes as that has.
    fn below(&mut self, bound: u64) -> u64 {
        match self {
            Choices::Drawn(random) => random.below(bound),
            Choices::Script(bytes, at) => {
                let width = match bound {
                    0..=0x100 => 1,
                    0x101..=0x1_0000 => 2,
                    _ => 8,
                };
                let mut number = [0; 8];
                for byte in &mut number[..width] {
                    *byte = bytes.get(*at).copied().unwrap_or_default();
                    *at += 1;
                }
                u64::from_le_bytes(number) % bound.max(1)
            }
        }
    }

    fn is_over(&self) -> bool {
        matches!(self, Choices::Script(bytes, at) if *at >= bytes.len())
    }

    /// How long it is to the next message.
    fn pause(&mut self, every: Span) -> Span {
        match self {
            Choices::Drawn(random) => Span::from_nanos(random.below(2 * every.as_nanos().max(1))),
            Choices::Script(..) => every,
        }
    }
}

/// The strangers of a world.
pub(super) struct Crowd {
    how: Strangers,
    random: Choices,
    overheard: VecDeque<Envelope<Message>>,
    /// The newest of each kind: what is rarely said would be forgotten before it is said again.
    newest: BTreeMap<&'static str, Envelope<Message>>,
    /// Which of these is forgotten next.
    oldest: usize,
    /// They say nothing more.
    pub(super) silent: bool,
}

impl Crowd {
    pub(super) fn new(how: Strangers, random: Random, script: Option<Arc<[u8]>>) -> Crowd {
        let random = script.map_or(Choices::Drawn(random), |bytes| Choices::Script(bytes, 0));
        let (overheard, newest) = (VecDeque::new(), BTreeMap::new());
        Crowd { how, random, overheard, newest, oldest: 0, silent: how.as_members }
    }

    /// A node has said something of this kind to another one.
    pub(super) fn overhear(&mut self, kind: &'static str, envelope: &Envelope<Message>) {
        if self.how.as_members {
            self.newest.insert(kind, envelope.clone());
        }
        if self.overheard.len() < KEPT_MAX {
            self.overheard.push_back(envelope.clone());
        } else {
            self.overheard[self.oldest] = envelope.clone();
            self.oldest = (self.oldest + 1) % KEPT_MAX;
        }
    }

    fn stranger(&mut self) -> NodeId {
        NodeId(FIRST_STRANGER + self.random.below(COUNT) as u32)
    }

    /// The next message, and whose word it is.
    fn next(
        &mut self,
        protocol: &dyn AnyProtocol,
        issued: Timestamp,
    ) -> Option<(Sender, Envelope<Message>)> {
        self.silent |= self.random.is_over();
        if self.overheard.is_empty() || self.silent {
            return None;
        }
        let stranger = self.stranger();
        let members = self.how.as_members;
        let mut envelope = match members && self.random.below(RARE_ONCE_IN) == 0 {
            true => self.some_kind(),
            false => {
                let at = self.some_overheard(protocol, stranger);
                self.overheard[at].clone()
            }
        };
        let owns = !members || self.random.below(4) == 0;
        let own = match owns && self.random.below(8) != 0 {
            true => envelope.message.as_client(protocol, stranger),
            false => None,
        };
        let is_own = own.is_some();
        if let Some(own) = own {
            envelope.message = own;
        }
        if !members || self.random.below(4) == 0 {
            envelope.from = Address::coordinator(stranger);
        }
        self.misdirect(&mut envelope);
        if self.random.below(3) == 0 {
            // A client may write, in its own transactions; honest ones would see that.
            let stays_harmless = |message: &Message| {
                members || !is_own || is_as_client_sends(protocol, message, stranger)
            };
            self.alter(protocol, &mut envelope.message, stays_harmless);
        }
        let sender = match members {
            true => Sender::Member,
            false if self.random.below(2) == 0 => Sender::CLIENT,
            false => Sender::Client { issued },
        };
        Some((sender, envelope))
    }

    /// The newest message of one of the kinds that were heard.
    fn some_kind(&mut self) -> Envelope<Message> {
        let at = self.random.below(self.newest.len() as u64) as usize;
        self.newest.values().nth(at).expect("one of so many").clone()
    }

    /// One of the messages heard. Most that nodes say to each other, no client says: where
    /// strangers are clients, one that a client might say is looked for, a few times.
    fn some_overheard(&mut self, protocol: &dyn AnyProtocol, stranger: NodeId) -> usize {
        let count = self.overheard.len() as u64;
        let mut at = self.random.below(count) as usize;
        for _ in 0..LOOKS {
            if self.how.as_members
                || protocol.as_client(&self.overheard[at].message.body, stranger).is_some()
            {
                break;
            }
            at = self.random.below(count) as usize;
        }
        at
    }

    /// Now and then it is for another role of the node, or comes from another one.
    fn misdirect(&mut self, envelope: &mut Envelope<Message>) {
        let repository = RepositoryId(self.random.below(8) as u16);
        match self.random.below(24) {
            0 => envelope.to.role = Role::Coordinator,
            1 => envelope.to.role = Role::Repository(repository),
            2 => envelope.from.role = Role::Repository(repository),
            _ => {}
        }
    }

    /// Another number somewhere, as far as what comes out is a message that `may` be said.
    fn alter(
        &mut self,
        protocol: &dyn AnyProtocol,
        message: &mut Message,
        may: impl Fn(&Message) -> bool,
    ) {
        let bytes = message.body.clone();
        for _ in 0..8 {
            let mut other = bytes.clone();
            let at = self.random.below(other.len() as u64) as usize;
            let edge = EDGES[self.random.below(EDGES.len() as u64) as usize];
            match self.random.below(3) {
                0 => other[at] ^= 1 << self.random.below(8),
                1 => other[at] = edge as u8,
                _ => {
                    let end = other.len().min(at + 8);
                    other[at..end].copy_from_slice(&edge.to_le_bytes()[..end - at]);
                }
            }
            if let Some(altered) = Message::decoded(protocol, other).filter(&may) {
                *message = altered;
                return;
            }
        }
    }
}

/// Whether a message is what a client says of a transaction of its own that writes nothing.
fn is_as_client_sends(protocol: &dyn AnyProtocol, message: &Message, stranger: NodeId) -> bool {
    protocol.as_client(&message.body, stranger).is_some_and(|outgoing| outgoing == message.body)
}

impl World {
    /// From here on, strangers that pass for members speak, who are silent while a world is filled.
    pub fn start_strangers(&mut self) {
        if self.crowd.as_mut().is_some_and(|crowd| std::mem::take(&mut crowd.silent)) {
            self.schedule_stranger();
        }
    }

    pub(super) fn schedule_stranger(&mut self) {
        let Some(crowd) = self.crowd.as_mut().filter(|crowd| !crowd.silent) else { return };
        let pause = crowd.random.pause(crowd.how.every);
        self.queue.push(self.now + pause, Event::Stranger);
    }

    /// A stranger says something.
    pub(super) fn receive_from_stranger(&mut self) {
        self.schedule_stranger();
        let issued = |place: usize| {
            let host = self.engines[place].host.borrow();
            host.machine().map_or(Timestamp::ZERO, AnyMachine::issued)
        };
        // What a client can have been told at most.
        let issued = (0..self.engines.len()).map(issued).max().unwrap_or_default();
        let Some(crowd) = self.crowd.as_mut().filter(|crowd| !crowd.silent) else { return };
        let Some((sender, envelope)) = crowd.next(&*self.protocol, issued) else { return };
        let place = envelope.to.node.0 as usize;
        if envelope.from.node != envelope.to.node && place < self.engines.len() {
            self.trace_message("stranger", &envelope);
            self.offer(place, HostInput::Strange(sender, envelope));
        }
    }

    /// What became of what strangers have said, by kind.
    pub(super) fn count_strangers(&self) -> BTreeMap<&'static str, StrangerCount> {
        let mut all: BTreeMap<&'static str, StrangerCount> = BTreeMap::new();
        for host_engine in &self.engines {
            for (name, overheard) in &host_engine.host.borrow().strange {
                *all.entry(name).or_default() += *overheard;
            }
        }
        all
    }
}
