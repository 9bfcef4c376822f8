//! Every interleaving of three members of which one is exchanged: messages arrive in any order, or
//! never, while commands are asked for.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;
use muesli_broadcast::epochs::{
    EpochEffectsOf, EpochMember, EpochMessage, EpochSettings, MemberChange, MemberName,
    MemberState, RequestId,
};
use muesli_broadcast::{Broadcast, Command};
use muesli_core::Nanos;

use super::site::Site;
use crate::group::command;
use crate::order::disorder;

/// A broadcast whose states are told apart.
pub trait Explored: Broadcast<Message: Hash, Record: Hash, Switches: Hash> + Hash {}

impl<B: Broadcast<Message: Hash, Record: Hash, Switches: Hash> + Hash> Explored for B {}

/// What is tried.
#[derive(Clone, Debug)]
pub struct ExchangeScope {
    /// Who asks for commands that write one object.
    pub commands: Vec<usize>,
    /// Who asks that member 2 is exchanged for member 3.
    pub change: usize,
    /// So often the new member asks for the state.
    pub asks: usize,
    /// No more states are looked at.
    pub states_most: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct FoundStates {
    pub states: usize,
    pub is_complete: bool,
    pub violation: Option<(String, Vec<String>)>,
    /// States in which the new member takes part, and has applied something.
    pub joined: usize,
    /// States in which a command was applied in the second epoch that had been asked for in the
    /// first.
    pub carried: usize,
    /// States in which member 2 knows that it was replaced.
    pub replaced: usize,
}

type OnItsWay<B> = ((MemberName, MemberName, u64), Arc<EpochMessage<<B as Broadcast>::Message>>);

#[derive(Clone)]
struct World<B: Explored> {
    sites: Vec<Arc<Site<B>>>,
    hashes: Vec<u64>,
    on_their_way: Vec<OnItsWay<B>>,
    commands: BTreeMap<RequestId, Command>,
    /// What is not asked for yet.
    to_ask: Vec<usize>,
    change: Option<usize>,
    asks: usize,
    steps: Option<Arc<TakenStep>>,
}

/// The last step, and those before it.
struct TakenStep {
    step: String,
    before: Option<Arc<TakenStep>>,
}

fn hash_of(value: &impl Hash, seed: u64) -> u64 {
    FixedState::with_seed(seed).hash_one(value)
}

impl<B: Explored> World<B> {
    fn new(scope: &ExchangeScope, settings: &EpochSettings<B::Switches>) -> World<B> {
        let founder = |name| Site::founded(MemberName(name), 3, settings);
        let peers = [0, 1].map(MemberName);
        let joins = Site::empty(MemberName(3), 3, peers, settings);
        let sites: Vec<Arc<Site<B>>> =
            (0..3).map(founder).chain(std::iter::once(joins)).map(Arc::new).collect();
        World {
            hashes: sites.iter().map(|site| hash_of(&site.hashed(), 0)).collect(),
            sites,
            on_their_way: Vec::new(),
            commands: BTreeMap::new(),
            to_ask: scope.commands.clone(),
            change: Some(scope.change),
            asks: scope.asks,
            steps: None,
        }
    }

    fn key(&self) -> u128 {
        let halves = [1, 2].map(|seed| {
            let mut hasher = FixedState::with_seed(seed).build_hasher();
            self.hashes.hash(&mut hasher);
            self.on_their_way.iter().for_each(|(key, _)| key.hash(&mut hasher));
            (self.on_their_way.len(), &self.to_ask, self.change, self.asks).hash(&mut hasher);
            hasher.finish()
        });
        u128::from(halves[0]) << 64 | u128::from(halves[1])
    }

    fn step<T>(
        &self,
        at: usize,
        now: Nanos,
        name: String,
        act: impl FnOnce(&mut EpochMember<B>, &mut EpochEffectsOf<B>) -> T,
    ) -> (World<B>, T) {
        let mut next = self.clone();
        let mut out = EpochEffectsOf::<B>::at(now);
        let site = Arc::make_mut(&mut next.sites[at]);
        let result = act(&mut site.member, &mut out);
        let from = site.name();
        let sent = site.perform(out, usize::MAX);
        site.disk.clear();
        next.hashes[at] = hash_of(&site.hashed(), 0);
        next.on_their_way.extend(sent.into_iter().map(|(to, message)| {
            let key = (from, to, hash_of(&message, 0));
            (key, Arc::new(message))
        }));
        next.on_their_way.sort_by_key(|(key, _)| *key);
        next.steps = Some(Arc::new(TakenStep { step: name, before: self.steps.clone() }));
        (next, result)
    }

    /// All that can come next.
    fn next(&self) -> Vec<World<B>> {
        // What is asked for late is looked at first.
        let mut all: Vec<World<B>> = self.ask_for_state().into_iter().collect();
        for (place, (key, message)) in self.on_their_way.iter().enumerate() {
            if place > 0 && self.on_their_way[place - 1].0 == *key {
                continue;
            }
            let (from, to, _) = *key;
            let mut before = self.clone();
            before.on_their_way.remove(place);
            let name = format!("{from} to {to}: {message:?}");
            let (next, ()) = before.step(to.0 as usize, Nanos(0), name, |it, out| {
                it.judge(from, message).expect("members say what can be");
                it.receive(from, EpochMessage::clone(message), out);
            });
            all.push(next);
        }
        if let Some(at) = self.to_ask.last().copied() {
            let mut before = self.clone();
            before.to_ask.pop();
            let command = command("", &[1]);
            let asked = command.clone();
            let ask = move |it: &mut EpochMember<B>, out: &mut _| it.propose(asked, out);
            let (mut next, request) = before.step(at, Nanos(0), format!("{at} proposes"), ask);
            if let Some(request) = request {
                next.commands.insert(request, command);
                Arc::make_mut(&mut next.sites[at]).note_asked(request);
                all.push(next);
            }
        }
        if let Some(at) = self.change {
            let mut before = self.clone();
            before.change = None;
            let change = MemberChange { leaves: MemberName(2), joins: MemberName(3) };
            let ask = |it: &mut EpochMember<B>, out: &mut _| it.change(change, out);
            let (next, asked) = before.step(at, Nanos(0), format!("{at} asks for a change"), ask);
            asked.expect("a change that can be made");
            all.push(next);
        }
        all
    }

    /// Much time passes at the new member, and it asks for the state.
    fn ask_for_state(&self) -> Option<World<B>> {
        if self.asks == 0 || self.change.is_some() {
            return None;
        }
        let mut next = self.clone();
        next.asks -= 1;
        let now = Nanos(1_000_000_000_000 * (10 - next.asks as u64));
        Some(next.step(3, now, "the new one asks".into(), |it, out| it.tick(out)).0)
    }

    fn violation(&self) -> Option<String> {
        let orders: Vec<Vec<RequestId>> =
            self.sites.iter().map(|site| site.applied.order.clone()).collect();
        let twice = orders
            .iter()
            .position(|order| order.iter().collect::<HashSet<_>>().len() < order.len());
        if let Some(at) = twice {
            return Some(format!("{at} has applied something twice"));
        }
        self.sites.iter().for_each(|site| site.member.assert_invariants());
        disorder(&orders, &self.commands).map(|found| found.to_string())
    }

    fn steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        let mut last = self.steps.as_ref();
        while let Some(taken) = last {
            steps.push(taken.step.clone());
            last = taken.before.as_ref();
        }
        steps.reverse();
        steps
    }

    fn count(&self, found: &mut FoundStates) {
        found.states += 1;
        let new = &self.sites[3];
        let takes_part = new.member.state() == MemberState::Member;
        found.joined += usize::from(takes_part && !new.applied.order.is_empty());
        found.carried += usize::from(self.sites.iter().any(|site| site.happened.carried > 0));
        let old = &self.sites[2].member;
        found.replaced += usize::from(old.state() == MemberState::Replaced);
    }
}

/// Tries all, and ends with the first thing that is wrong.
pub fn explore<B: Explored>(
    scope: &ExchangeScope,
    settings: &EpochSettings<B::Switches>,
) -> FoundStates {
    let mut found = FoundStates { is_complete: true, ..FoundStates::default() };
    let mut seen = HashSet::new();
    let first = World::<B>::new(scope, settings);
    seen.insert(first.key());
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        if found.states == scope.states_most {
            found.is_complete = false;
            break;
        }
        world.count(&mut found);
        for next in world.next() {
            if !seen.insert(next.key()) {
                continue;
            }
            if let Some(violation) = next.violation() {
                found.violation = Some((violation, next.steps()));
                return found;
            }
            open.push(next);
        }
    }
    found
}
