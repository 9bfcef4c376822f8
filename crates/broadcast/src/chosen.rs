//! A broadcast that is chosen while the program runs: one of all that there are.
//!
//! Who uses it is compiled once, whichever is chosen. Members of one group choose alike; what a
//! member of another choice says is refused.

use muesli_core::wire_enum;
use muesli_core::{Nanos, Rejection};

use crate::broadcast::{Broadcast, BroadcastSettings};
use crate::command::{Command, CommandId, MemberId};
use crate::effects::{BroadcastEffect, BroadcastEffects};
use crate::epaxos::{self, Epaxos};
use crate::generalized::{self, Generalized};
use crate::m2paxos::{self, M2Paxos};
use crate::m2paxos_bounded::{BoundedSwitches, M2PaxosBounded};
use crate::member::checkpoint::CheckpointError;
use crate::multipaxos::{MultiPaxos, PlacedLeader};
use crate::pob::{self, Pob};

/// What its effects are made of.
type Effects = BroadcastEffects<ChosenMessage, ChosenRecord>;

/// M²Paxos whose ownership is ordered by Multi-Paxos.
type BoundedByMultiPaxos = M2PaxosBounded<MultiPaxos>;

/// M²Paxos whose ownership is ordered by Partial Order Broadcast.
type BoundedByPob = M2PaxosBounded<Pob>;

/// M²Paxos whose ownership is ordered by EPaxos.
type BoundedByEpaxos = M2PaxosBounded<Epaxos>;

/// M²Paxos whose ownership is ordered by Generalized Paxos.
type BoundedByGeneralized = M2PaxosBounded<Generalized>;

/// Defines all that stands once for each broadcast there is.
macro_rules! chosen {
    ($($number:literal => $broadcast:ident, $switches:ty;)+) => {
        /// Which broadcast, with what its users choose.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the variants are the broadcasts of their names")]
        pub enum BroadcastChoice {
            $($broadcast($switches),)+
        }

        impl BroadcastChoice {
            /// Each broadcast as it is meant to be used, by its name.
            fn plain() -> Vec<(&'static str, BroadcastChoice)> {
                vec![$((
                    <$broadcast as Broadcast>::NAME,
                    BroadcastChoice::$broadcast(<$switches>::default()),
                ),)+]
            }
        }

        /// A member of the broadcast that was chosen.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the variants are the broadcasts of their names")]
        pub enum ChosenBroadcast {
            $($broadcast($broadcast),)+
        }

        /// What members say, by the broadcast that was chosen.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the variants are the broadcasts of their names")]
        pub enum ChosenMessage {
            $($broadcast { message: <$broadcast as Broadcast>::Message },)+
        }

        wire_enum!(ChosenMessage, "broadcast of a message" {
            $($number => $broadcast { message: <$broadcast as Broadcast>::Message },)+
        });

        /// What must survive, by the broadcast that was chosen.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the variants are the broadcasts of their names")]
        pub enum ChosenRecord {
            $($broadcast { record: <$broadcast as Broadcast>::Record },)+
        }

        wire_enum!(ChosenRecord, "broadcast of a record" {
            $($number => $broadcast { record: <$broadcast as Broadcast>::Record },)+
        });

        impl Broadcast for ChosenBroadcast {
            const NAME: &'static str = "chosen";
            type Message = ChosenMessage;
            type Record = ChosenRecord;
            type Switches = BroadcastChoice;

            fn new(
                me: MemberId,
                members: usize,
                settings: &BroadcastSettings,
                choice: &BroadcastChoice,
            ) -> ChosenBroadcast {
                match choice {
                    $(BroadcastChoice::$broadcast(switches) => ChosenBroadcast::$broadcast(
                        <$broadcast as Broadcast>::new(me, members, settings, switches),
                    ),)+
                }
            }

            fn propose(&mut self, command: Command, out: &mut Effects) -> CommandId {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => {
                        let mut inside = BroadcastEffects::at(out.now);
                        let id = it.propose(command, &mut inside);
                        out.effects.extend(inside.effects.into_iter().map(wrapped::$broadcast));
                        id
                    })+
                }
            }

            fn judge(&self, from: MemberId, message: &ChosenMessage) -> Result<(), Rejection> {
                match (self, message) {
                    $((
                        ChosenBroadcast::$broadcast(it),
                        ChosenMessage::$broadcast { message },
                    ) => it.judge(from, message),)+
                    _ => Err(Rejection::Role),
                }
            }

            fn receive(&mut self, from: MemberId, message: ChosenMessage, out: &mut Effects) {
                match (self, message) {
                    $((
                        ChosenBroadcast::$broadcast(it),
                        ChosenMessage::$broadcast { message },
                    ) => {
                        let mut inside = BroadcastEffects::at(out.now);
                        it.receive(from, message, &mut inside);
                        out.effects.extend(inside.effects.into_iter().map(wrapped::$broadcast));
                    })+
                    (_, message) => unreachable!("{message:?} was judged"),
                }
            }

            fn tick(&mut self, out: &mut Effects) {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => {
                        let mut inside = BroadcastEffects::at(out.now);
                        it.tick(&mut inside);
                        out.effects.extend(inside.effects.into_iter().map(wrapped::$broadcast));
                    })+
                }
            }

            fn recover(&mut self, id: CommandId, out: &mut Effects) {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => {
                        let mut inside = BroadcastEffects::at(out.now);
                        it.recover(id, &mut inside);
                        out.effects.extend(inside.effects.into_iter().map(wrapped::$broadcast));
                    })+
                }
            }

            fn replay(&mut self, record: ChosenRecord, out: &mut Effects) {
                match (self, record) {
                    $((
                        ChosenBroadcast::$broadcast(it),
                        ChosenRecord::$broadcast { record },
                    ) => {
                        let mut inside = BroadcastEffects::at(out.now);
                        it.replay(record, &mut inside);
                        out.effects.extend(inside.effects.into_iter().map(wrapped::$broadcast));
                    })+
                    (_, record) => panic!("{record:?} is of another broadcast than was chosen"),
                }
            }

            fn proposed(&self) -> impl Iterator<Item = (CommandId, &Command)> {
                let all: Vec<_> = match self {
                    $(ChosenBroadcast::$broadcast(it) => it.proposed().collect(),)+
                };
                all.into_iter()
            }

            fn orders_everything(&self) -> bool {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.orders_everything(),)+
                }
            }

            fn decided_at(&self, command: &Command) -> Option<MemberId> {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.decided_at(command),)+
                }
            }

            fn proposed_command(&self, id: CommandId) -> Option<&Command> {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.proposed_command(id),)+
                }
            }

            fn is_behind(&self) -> bool {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.is_behind(),)+
                }
            }

            fn has_forgotten(&self, id: CommandId) -> bool {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.has_forgotten(id),)+
                }
            }

            fn checkpoint(&self) -> impl Iterator<Item = Vec<u8>> {
                let all: Vec<_> = match self {
                    $(ChosenBroadcast::$broadcast(it) => it.checkpoint().collect(),)+
                };
                all.into_iter()
            }

            fn restore(&mut self, piece: &[u8], now: Nanos) -> Result<bool, CheckpointError> {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.restore(piece, now),)+
                }
            }

            fn assert_invariants(&self) {
                match self {
                    $(ChosenBroadcast::$broadcast(it) => it.assert_invariants(),)+
                }
            }
        }

        /// Effects of each broadcast as those of the chosen one.
        #[expect(non_snake_case, reason = "the functions are called as the broadcasts are")]
        mod wrapped {
            use super::*;

            $(pub fn $broadcast(
                effect: BroadcastEffect<
                    <$broadcast as Broadcast>::Message,
                    <$broadcast as Broadcast>::Record,
                >,
            ) -> BroadcastEffect<ChosenMessage, ChosenRecord> {
                match effect {
                    BroadcastEffect::Send { to, message } => {
                        let message = ChosenMessage::$broadcast { message };
                        BroadcastEffect::Send { to, message }
                    }
                    BroadcastEffect::Log(record) => {
                        BroadcastEffect::Log(ChosenRecord::$broadcast { record })
                    }
                    BroadcastEffect::Deliver(delivered) => BroadcastEffect::Deliver(delivered),
                    BroadcastEffect::GivenUp(id) => BroadcastEffect::GivenUp(id),
                }
            })+
        }
    };
}

chosen! {
    0 => Pob, pob::Switches;
    1 => Epaxos, epaxos::Switches;
    2 => M2Paxos, m2paxos::Switches;
    3 => MultiPaxos, PlacedLeader;
    4 => Generalized, generalized::Switches;
    5 => BoundedByMultiPaxos, BoundedSwitches<PlacedLeader>;
    6 => BoundedByPob, BoundedSwitches<pob::Switches>;
    7 => BoundedByEpaxos, BoundedSwitches<epaxos::Switches>;
    8 => BoundedByGeneralized, BoundedSwitches<generalized::Switches>;
}

impl BroadcastChoice {
    /// All that a user can choose, by name: each broadcast with its usual switches, and those with
    /// others that have names of their own.
    pub fn all() -> Vec<(&'static str, BroadcastChoice)> {
        let mut all = BroadcastChoice::plain();
        all.push(("pob-fast", BroadcastChoice::Pob(pob::Switches::fast())));
        let large = m2paxos::Switches::large_quorums();
        let acquiring = BroadcastChoice::BoundedByMultiPaxos(BoundedSwitches::acquiring());
        all.push(("m2paxos-exchangeable", acquiring));
        all.push(("m2paxos-large-quorums", BroadcastChoice::M2Paxos(large)));
        all
    }

    /// The choice of this name, if there is one.
    pub fn named(name: &str) -> Option<BroadcastChoice> {
        let found = BroadcastChoice::all().into_iter().find(|(known, _)| *known == name);
        found.map(|(_, choice)| choice)
    }

    /// The same, with its leader placed at this member, where it has one on which its members need
    /// not agree.
    pub fn led_by(self, leader: MemberId) -> BroadcastChoice {
        match self {
            BroadcastChoice::MultiPaxos(_) => BroadcastChoice::MultiPaxos(PlacedLeader(leader)),
            BroadcastChoice::BoundedByMultiPaxos(switches) => {
                let order = PlacedLeader(leader);
                BroadcastChoice::BoundedByMultiPaxos(BoundedSwitches { order, ..switches })
            }
            other @ (BroadcastChoice::Pob(_)
            | BroadcastChoice::Epaxos(_)
            | BroadcastChoice::M2Paxos(_)
            | BroadcastChoice::Generalized(_)
            | BroadcastChoice::BoundedByPob(_)
            | BroadcastChoice::BoundedByEpaxos(_)
            | BroadcastChoice::BoundedByGeneralized(_)) => other,
        }
    }
}

impl Default for BroadcastChoice {
    fn default() -> BroadcastChoice {
        BroadcastChoice::Pob(pob::Switches::default())
    }
}
