//! Broadcasts: all sites get the same commands in the same order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use muesli_core::{Wire, wire_enum};

use super::OrderedCommit;

/// What a broadcast asks to have done.
#[derive(Debug)]
pub struct Out<B: Broadcast> {
    /// Messages, each to the orderer of a site, once all records are stable.
    pub messages: Vec<(u16, B::Message)>,
    /// What must survive.
    pub records: Vec<B::Record>,
}

impl<B: Broadcast> Default for Out<B> {
    fn default() -> Out<B> {
        Out { messages: Vec::new(), records: Vec::new() }
    }
}

/// The state machine of a broadcast at one site. Positions count from 1.
pub trait Broadcast: Clone + Debug + Send + Sync + 'static {
    /// What orderers say to each other.
    type Message: Wire + Clone + Debug + Send + 'static;
    /// What must survive.
    type Record: Wire + Clone + Debug + Send + 'static;
    /// At a site, of so many.
    fn new(site: u16, sites: u16) -> Self;
    /// A command is to be ordered; perhaps it is already.
    fn submit(&mut self, command: OrderedCommit, out: &mut Out<Self>);
    /// A message of another site's orderer.
    fn receive(&mut self, from: u16, message: Self::Message, out: &mut Out<Self>);
    /// This site has applied all commands up to there, stably.
    fn applied(&mut self, upto: u64, out: &mut Out<Self>);
    /// Says again what may be lost; asked for once in a while.
    fn repeat(&mut self, out: &mut Out<Self>);
    /// A record of an earlier life.
    fn replay(&mut self, record: Self::Record);
    /// The commands from a position on whose order is known here, without gaps.
    fn ordered_from(&self, position: u64) -> impl Iterator<Item = (u64, &OrderedCommit)>;
    /// How much of what is known here is not done everywhere, as far as is known here.
    fn unfinished(&self) -> usize;
    /// Panics where an invariant does not hold.
    fn assert_invariants(&self);
}

/// So many commands are said again at a time.
const REPEATED_MAX: usize = 64;

/// The simplest broadcast: site 0 gives the positions, and remembers them. While its node is down,
/// nobody commits.
#[derive(Clone, Debug)]
pub struct Sequencer {
    site: u16,
    /// The order, as far as it is known here and not forgotten.
    ordered: BTreeMap<u64, OrderedCommit>,
    /// Up to here all of the order is known, or was.
    known: u64,
    /// What was submitted here.
    submitted: VecDeque<OrderedCommit>,
    /// Of each site, at site 0: up to where its orderer knows the order, and its site has applied
    /// it.
    sites: Vec<(u64, u64)>,
    /// All sites have applied what is up to here.
    settled: u64,
}

/// What orderers say to each other.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum SequencerMessage {
    /// To site 0: order this.
    Order { command: OrderedCommit },
    /// From site 0.
    At { position: u64, command: OrderedCommit },
    /// To site 0: so far the order is known, and applied.
    Reached { known: u64, applied: u64 },
    /// From site 0: all have applied it up to here.
    Settled { upto: u64 },
}

wire_enum!(SequencerMessage, "message of the sequencer" {
    0 => Order { command: OrderedCommit },
    1 => At { position: u64, command: OrderedCommit },
    2 => Reached { known: u64, applied: u64 },
    3 => Settled { upto: u64 },
});

/// What site 0 remembers.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Remembered {
    /// A command has a position.
    At { position: u64, command: OrderedCommit },
    /// All have applied it up to here.
    Settled { upto: u64 },
}

wire_enum!(Remembered, "record of the sequencer" {
    0 => At { position: u64, command: OrderedCommit },
    1 => Settled { upto: u64 },
});

impl Sequencer {
    fn order(&mut self, command: OrderedCommit, out: &mut Out<Sequencer>) {
        assert_eq!(self.site, 0, "site 0 gives the positions");
        let position = self.known + 1;
        out.records.push(Remembered::At { position, command: command.clone() });
        self.learn(position, command.clone());
        for site in 1..self.sites.len() as u16 {
            out.messages.push((site, SequencerMessage::At { position, command: command.clone() }));
        }
    }

    fn learn(&mut self, position: u64, command: OrderedCommit) {
        if position == self.known + 1 {
            self.known = position;
            self.submitted.retain(|it| it.txn != command.txn);
            self.ordered.insert(position, command);
        }
    }

    fn settle(&mut self, upto: u64) {
        self.settled = self.settled.max(upto);
        self.known = self.known.max(self.settled);
        let settled = self.settled;
        self.ordered.retain(|position, _| *position > settled);
    }

    fn reached(&mut self, site: u16, reached: (u64, u64), out: &mut Out<Sequencer>) {
        let Some(of) = self.sites.get_mut(usize::from(site)) else { return };
        // What it knew before its life began is forgotten; what its site has applied is not.
        *of = (reached.0, of.1.max(reached.1));
        let upto = self.sites.iter().map(|(_, applied)| *applied).min().expect("there is a site");
        if upto > self.settled {
            out.records.push(Remembered::Settled { upto });
            self.settle(upto);
            let others = 1..self.sites.len() as u16;
            out.messages.extend(others.map(|site| (site, SequencerMessage::Settled { upto })));
        }
    }
}

impl Broadcast for Sequencer {
    type Message = SequencerMessage;
    type Record = Remembered;

    fn new(site: u16, sites: u16) -> Sequencer {
        let (ordered, submitted) = Default::default();
        let sites = vec![(0, 0); usize::from(sites)];
        Sequencer { site, ordered, known: 0, submitted, sites, settled: 0 }
    }

    fn submit(&mut self, command: OrderedCommit, out: &mut Out<Sequencer>) {
        if self.site == 0 {
            // It may be ordered twice: sites apply it once.
            return self.order(command, out);
        }
        if !self.submitted.contains(&command) {
            self.submitted.push_back(command.clone());
        }
        out.messages.push((0, SequencerMessage::Order { command }));
    }

    fn receive(&mut self, from: u16, message: SequencerMessage, out: &mut Out<Sequencer>) {
        match message {
            SequencerMessage::Order { command } if self.site == 0 => self.order(command, out),
            SequencerMessage::Reached { known, applied } if self.site == 0 => {
                self.reached(from, (known, applied), out);
            }
            SequencerMessage::At { position, command } if from == 0 => {
                self.learn(position, command)
            }
            SequencerMessage::Settled { upto } if from == 0 => {
                // What is settled is applied here, too.
                self.settle(upto);
            }
            _ => {} // For another site: whoever sent it here is mistaken.
        }
    }

    fn applied(&mut self, upto: u64, out: &mut Out<Sequencer>) {
        // A life begins with what its site has applied.
        self.known = self.known.max(upto);
        let site = self.site;
        self.sites[usize::from(site)].1 = upto;
        match site {
            0 => self.reached(0, (self.known, upto), out),
            _ => out
                .messages
                .push((0, SequencerMessage::Reached { known: self.known, applied: upto })),
        }
    }

    fn repeat(&mut self, out: &mut Out<Sequencer>) {
        if self.site != 0 {
            let applied = self.sites[usize::from(self.site)].1;
            out.messages.push((0, SequencerMessage::Reached { known: self.known, applied }));
            let all = self.submitted.iter().take(REPEATED_MAX);
            out.messages.extend(all.map(|it| (0, SequencerMessage::Order { command: it.clone() })));
            return;
        }
        for site in 1..self.sites.len() {
            let known = self.sites[site].0.max(self.settled);
            for (position, command) in self.ordered.range(known + 1..).take(REPEATED_MAX) {
                let (position, command) = (*position, command.clone());
                out.messages.push((site as u16, SequencerMessage::At { position, command }));
            }
        }
    }

    fn replay(&mut self, record: Remembered) {
        match record {
            Remembered::At { position, command } => self.learn(position, command),
            Remembered::Settled { upto } => self.settle(upto),
        }
    }

    fn ordered_from(&self, position: u64) -> impl Iterator<Item = (u64, &OrderedCommit)> {
        let numbered = self.ordered.range(position..).zip(position..);
        let in_a_row = numbered.take_while(|((at, _), wanted)| *at == wanted);
        in_a_row.map(|((at, command), _)| (*at, command))
    }

    fn unfinished(&self) -> usize {
        let is_behind = |(_, applied): &&(u64, u64)| self.site == 0 && *applied < self.known;
        self.submitted.len() + self.sites.iter().filter(is_behind).count()
    }

    fn assert_invariants(&self) {
        let last = self.ordered.keys().next_back();
        assert!(last.is_none_or(|last| *last <= self.known), "what is listed is known");
        let first = self.ordered.keys().next();
        assert!(first.is_none_or(|first| *first > self.settled), "what is settled is forgotten");
        assert!(self.settled <= self.known, "what is settled is known");
        assert!(self.site != 0 || self.submitted.is_empty(), "site 0 orders at once");
    }
}
