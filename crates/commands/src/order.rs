//! Whether commands came in one order, and all of them everywhere.
//!
//! All commands here write what they touch, so two conflict where they share an object. Members
//! deliver one command after the other; what they did is right if, for each object, all of them
//! delivered the same commands in the same order, each command once, and, at the end, every command
//! that was proposed and not given up. This is consistency, non-triviality and liveness of
//! generalized consensus (Turcu 2015, section 10.1).

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use muesli_broadcast::{Command, CommandId, MemberId};

/// A number made of what a command says and touches: who keeps all that was delivered keeps these,
/// as commands themselves would fill the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandDigest(u64);

impl CommandDigest {
    /// That of a command.
    pub fn of(command: &Command) -> CommandDigest {
        let mut hasher = DefaultHasher::new();
        command.hash(&mut hasher);
        CommandDigest(hasher.finish())
    }
}

/// A command that was proposed.
#[derive(Clone, Debug)]
struct CheckedCommand {
    command: Command,
    digest: CommandDigest,
    /// At how many of its objects its position is known: at all, once one member has delivered it.
    placed: usize,
    /// How many members have delivered it.
    deliveries: usize,
}

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongOrder {
    /// Nobody proposed it, or it was given up, or all members had delivered it.
    #[error(
        "member {} delivered {id}, which nobody proposed, or was given up or delivered by all",
        member.0
    )]
    Unproposed {
        /// Where.
        member: MemberId,
        /// What.
        id: CommandId,
    },
    /// It says something else than was proposed.
    #[error("member {} delivered {id} with another content than it was proposed with", member.0)]
    Changed {
        /// Where.
        member: MemberId,
        /// What.
        id: CommandId,
    },
    /// Two members have different commands at one position of an object, or one member has one
    /// twice.
    #[error(
        "member {} delivered {found} as number {position} of object {object}, where {}",
        member.0,
        Expected(*expected)
    )]
    Position {
        /// Where.
        member: MemberId,
        /// Of what.
        object: u64,
        /// How many came before it there.
        position: usize,
        /// What it delivered.
        found: CommandId,
        /// What others have there; nothing: it was delivered before.
        expected: Option<CommandId>,
    },
    /// A command was not delivered everywhere.
    #[error("{count} commands were not delivered at all members, {id} at {deliveries} alone")]
    Missing {
        /// How many.
        count: usize,
        /// One of them.
        id: CommandId,
        /// How many members have delivered that one.
        deliveries: usize,
    },
}

/// What is at a position of an object.
struct Expected(Option<CommandId>);

impl fmt::Display for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => write!(out, "others delivered {id}"),
            None => write!(out, "it had been delivered before"),
        }
    }
}

/// What members have delivered, object by object.
#[derive(Clone, Debug)]
pub struct OrderCheck {
    members: usize,
    /// Those that not all members have delivered.
    commands: BTreeMap<CommandId, CheckedCommand>,
    /// By object, all commands in the order in which some member has delivered them first.
    orders: Vec<Vec<CommandId>>,
    /// By object and member, how many of them it has delivered.
    delivered: Vec<u32>,
}

impl OrderCheck {
    /// For so many members and objects, whose numbers are from 0.
    pub fn new(members: usize, objects: usize) -> OrderCheck {
        OrderCheck {
            members,
            commands: BTreeMap::new(),
            orders: vec![Vec::new(); objects],
            delivered: vec![0; objects * members],
        }
    }

    /// A command was proposed.
    pub fn propose(&mut self, id: CommandId, command: Command) {
        let digest = CommandDigest::of(&command);
        let checked = CheckedCommand { command, digest, placed: 0, deliveries: 0 };
        let before = self.commands.insert(id, checked);
        assert!(before.is_none(), "{id} was proposed twice");
    }

    /// A command was given up: nobody delivers it.
    ///
    /// # Errors
    /// Somebody has.
    pub fn give_up(&mut self, id: CommandId) -> Result<(), WrongOrder> {
        match self.commands.remove(&id) {
            Some(it) if it.deliveries > 0 => {
                Err(WrongOrder::Missing { count: 1, id, deliveries: it.deliveries })
            }
            _ => Ok(()),
        }
    }

    /// A member has delivered a command.
    ///
    /// # Errors
    /// That is not in order.
    pub fn deliver(
        &mut self,
        member: MemberId,
        id: CommandId,
        digest: CommandDigest,
    ) -> Result<(), WrongOrder> {
        let Some(checked) = self.commands.get_mut(&id) else {
            return Err(WrongOrder::Unproposed { member, id });
        };
        if checked.digest != digest {
            return Err(WrongOrder::Changed { member, id });
        }
        let command = &checked.command;
        for object in command.objects.iter().map(|it| it.number) {
            let place = object as usize;
            let count = &mut self.delivered[place * self.members + member.place()];
            let (order, position) = (&mut self.orders[place], *count as usize);
            let wrong =
                |expected| WrongOrder::Position { member, object, position, found: id, expected };
            match order.get(position) {
                Some(known) if *known == id => {}
                Some(known) => return Err(wrong(Some(*known))),
                None if checked.placed == command.objects.len() => return Err(wrong(None)),
                None => {
                    order.push(id);
                    checked.placed += 1;
                }
            }
            *count += 1;
        }
        checked.deliveries += 1;
        if checked.deliveries == self.members {
            self.commands.remove(&id);
        }
        Ok(())
    }

    /// How many commands are not delivered everywhere.
    pub fn unfinished(&self) -> usize {
        self.commands.len()
    }

    /// Whether all is delivered everywhere.
    ///
    /// # Errors
    /// It is not.
    pub fn finish(&self) -> Result<(), WrongOrder> {
        let count = self.unfinished();
        self.commands.first_key_value().map_or(Ok(()), |(id, it)| {
            Err(WrongOrder::Missing { count, id: *id, deliveries: it.deliveries })
        })
    }

    /// A number made of all orders: two runs that delivered alike have the same.
    pub fn digest(&self) -> u64 {
        // FNV-1a, over the numbers of all commands in their orders.
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |number: u64| sum = (sum ^ number).wrapping_mul(0x0100_0000_01b3);
        for (object, order) in self.orders.iter().enumerate() {
            add(object as u64);
            for id in order {
                add(u64::from(id.leader.0));
                add(id.sequence);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use muesli_broadcast::ObjectSet;

    use super::*;

    fn command(objects: &[u64]) -> Command {
        let objects = ObjectSet::writes(objects.iter().copied()).into();
        Command { objects, payload: vec![1].into() }
    }

    fn id(sequence: u64) -> CommandId {
        CommandId { leader: MemberId(0), sequence }
    }

    /// Two members, with two commands on both of two objects, and one on one of them.
    fn check() -> (OrderCheck, [Command; 3]) {
        let commands = [command(&[0, 1]), command(&[0, 1]), command(&[1])];
        let mut check = OrderCheck::new(2, 2);
        for (number, command) in (1..).zip(&commands) {
            check.propose(id(number), command.clone());
        }
        (check, commands)
    }

    #[test]
    fn one_order_everywhere_is_right_and_what_does_not_conflict_may_be_swapped() {
        let (mut check, [a, b, c]) = check();
        check.propose(id(4), command(&[0]));
        for (number, it) in [(1, &a), (2, &b), (4, &command(&[0])), (3, &c)] {
            check.deliver(MemberId(0), id(number), CommandDigest::of(it)).unwrap();
        }
        for (number, it) in [(1, &a), (2, &b), (3, &c), (4, &command(&[0]))] {
            assert!(check.finish().is_err());
            check.deliver(MemberId(1), id(number), CommandDigest::of(it)).unwrap();
        }
        assert_eq!((check.finish(), check.unfinished()), (Ok(()), 0));
    }

    #[test]
    fn each_kind_of_wrong_order_is_found() {
        let deliver = |all: &[(u16, u64, usize)]| -> Option<WrongOrder> {
            let (mut check, commands) = check();
            let mut all = all.iter().map(|(member, sequence, command)| {
                let digest = CommandDigest::of(&commands[*command]);
                check.deliver(MemberId(*member), id(*sequence), digest).err()
            });
            all.find_map(|it| it)
        };
        let text =
            |all: &[(u16, u64, usize)]| deliver(all).map_or(String::new(), |it| it.to_string());
        assert!(text(&[(0, 1, 0), (0, 2, 1), (1, 2, 1)]).contains("others delivered m0-1"));
        assert!(text(&[(0, 1, 0), (0, 1, 0)]).contains("had been delivered before"));
        assert!(text(&[(0, 9, 0)]).contains("nobody proposed"));
        assert!(text(&[(0, 1, 2)]).contains("another content"));
        let (mut check, [a, ..]) = check();
        check.deliver(MemberId(0), id(1), CommandDigest::of(&a)).unwrap();
        let missing = check.finish().unwrap_err().to_string();
        assert!(missing.contains("3 commands were not delivered"), "{missing}");
        assert!(check.give_up(id(1)).is_err() && check.give_up(id(2)).is_ok());
    }
}
