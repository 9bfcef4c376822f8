//! A group of members as tests see it.

use std::collections::BTreeMap;
use std::hash::Hash;

use muesli_broadcast::{
    Broadcast, BroadcastEffect, BroadcastSettings, Command, CommandId, EffectsOf, IdSet, MemberId,
    ObjectSet,
};

use crate::order::disorder;

/// A broadcast, and what of it all members must agree on beside the order.
pub trait Subject: Broadcast<Message: Hash, Record: Hash> + Hash {
    /// Whether commands may wait before they are written down.
    const WAITS: bool = false;

    /// What two members know of a command that cannot both be.
    fn contradiction(members: &[&Self], ids: &BTreeMap<CommandId, Command>) -> Option<String>;

    /// How many steps of a kind that is to be bounded a member knows of; none, for most.
    fn steps(&self) -> u64 {
        0
    }

    /// Whether a member knows the end of a command.
    fn has_ended(&self, id: CommandId) -> bool;
}

/// A command that writes objects.
pub fn command(name: &str, objects: &[u64]) -> Command {
    let objects = ObjectSet::writes(objects.iter().copied()).into();
    Command { objects, payload: name.as_bytes().into() }
}

/// Members without any memory.
pub fn members<B: Broadcast>(
    count: usize,
    settings: &BroadcastSettings,
    switches: &B::Switches,
) -> Vec<B> {
    (0..count as u16).map(|me| B::new(MemberId(me), count, settings, switches)).collect()
}

/// What a step made of it: messages, records, and the commands delivered.
pub struct Made<B: Broadcast> {
    pub sent: Vec<(MemberId, B::Message)>,
    pub logged: Vec<B::Record>,
    pub delivered: Vec<CommandId>,
    /// After which commands these are to be applied.
    pub predecessors: Vec<IdSet>,
    pub given_up: Vec<CommandId>,
}

pub fn made<B: Broadcast>(out: EffectsOf<B>) -> Made<B> {
    let mut made = Made {
        sent: Vec::new(),
        logged: Vec::new(),
        delivered: Vec::new(),
        predecessors: Vec::new(),
        given_up: Vec::new(),
    };
    for effect in out.effects {
        match effect {
            BroadcastEffect::Send { to, message } => made.sent.push((to, message)),
            BroadcastEffect::Log(record) => made.logged.push(record),
            BroadcastEffect::Deliver(delivery) => {
                made.delivered.push(delivery.id);
                made.predecessors.push(delivery.predecessors);
            }
            BroadcastEffect::GivenUp(id) => made.given_up.push(id),
        }
    }
    made
}

/// What is wrong with a group.
pub fn violation<B: Subject>(
    members: &[&B],
    orders: &[Vec<CommandId>],
    commands: &BTreeMap<CommandId, Command>,
) -> Option<String> {
    let contradiction = B::contradiction(members, commands);
    contradiction.or_else(|| disorder(orders, commands).map(|found| found.to_string()))
}
