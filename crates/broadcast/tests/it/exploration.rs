//! Every interleaving of a small group: messages arrive in any order, or never; commands are
//! proposed, and taken over, at any moment.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;
use muesli_broadcast::{BroadcastSettings, Command, CommandId, EffectsOf, MemberId};
use muesli_core::Nanos;

use crate::group::{Subject, command, made, members, violation};

/// What is tried.
#[derive(Clone, Debug)]
pub struct Scope {
    pub members: usize,
    /// Who proposes what; those of one member in this order.
    pub proposals: Vec<(u16, Command)>,
    /// So often a command is taken over.
    pub recoveries: usize,
    /// So often so much time passes that a member does what it does by itself.
    pub ticks: usize,
    /// No more states are looked at.
    pub states_most: usize,
}

/// With this in the environment scopes are explored to their last state; without it, their first.
const WHOLE: &str = "MUESLI_EXPLORE_WHOLE";

impl Scope {
    /// Three members, whose commands write objects; so many states are looked at, or all.
    pub fn of(proposals: &[(u16, &[u64])], states_most: usize) -> Scope {
        let proposals = proposals.iter().map(|(at, objects)| (*at, command("", objects)));
        let is_whole = std::env::var_os(WHOLE).is_some();
        Scope {
            members: 3,
            proposals: proposals.collect(),
            recoveries: 0,
            ticks: 0,
            states_most: if is_whole { usize::MAX } else { states_most },
        }
    }
}

impl Explored {
    /// Nothing is wrong.
    pub fn assert_sound(&self, what: &str) {
        let Explored { states, quiet, violation, is_complete } = self;
        println!("{what}: {states} states, {quiet} quiet, complete: {is_complete}");
        assert!(violation.is_none(), "{violation:#?}");
        assert!(*quiet > 0 || !is_complete, "no run comes to its end");
    }
}

/// What was found.
#[derive(Debug)]
pub struct Explored {
    pub states: usize,
    /// Ends at which nothing is on its way.
    pub quiet: usize,
    /// The first thing that is wrong, with the steps to it.
    pub violation: Option<(String, Vec<String>)>,
    /// Whether all states were seen.
    pub is_complete: bool,
}

/// A message on its way: from whom, to whom, and which; they stand in the order of hashes.
type OnItsWay<M> = ((MemberId, MemberId, u64), Arc<M>);

#[derive(Clone)]
struct World<B: Subject> {
    members: Vec<Arc<B>>,
    hashes: Vec<u64>,
    on_their_way: Vec<OnItsWay<B::Message>>,
    orders: Vec<Vec<CommandId>>,
    commands: BTreeMap<CommandId, Command>,
    /// What is not proposed yet.
    proposals: Vec<(u16, Command)>,
    recoveries: usize,
    /// How much time has passed.
    ticks: usize,
    steps: Option<Arc<Taken>>,
}

/// The last step, and those before it.
struct Taken {
    step: String,
    before: Option<Arc<Taken>>,
}

/// In so many nanoseconds everything is due that waits for its time.
const A_LONG_TIME: u64 = 10_000_000_000;

fn hash_of(value: &impl Hash, seed: u64) -> u64 {
    FixedState::with_seed(seed).hash_one(value)
}

impl<B: Subject> World<B> {
    fn new(scope: &Scope, switches: &B::Switches) -> World<B> {
        let all: Vec<B> = members(scope.members, &BroadcastSettings::default(), switches);
        World {
            hashes: all.iter().map(|member| hash_of(member, 0)).collect(),
            members: all.into_iter().map(Arc::new).collect(),
            on_their_way: Vec::new(),
            orders: vec![Vec::new(); scope.members],
            commands: BTreeMap::new(),
            proposals: scope.proposals.clone(),
            recoveries: scope.recoveries,
            ticks: 0,
            steps: None,
        }
    }

    fn key(&self) -> u128 {
        let halves = [1, 2].map(|seed| {
            let mut hasher = FixedState::with_seed(seed).build_hasher();
            self.hashes.hash(&mut hasher);
            self.on_their_way.iter().for_each(|(key, _)| key.hash(&mut hasher));
            self.on_their_way.len().hash(&mut hasher);
            self.orders.hash(&mut hasher);
            (self.proposals.len(), self.recoveries, self.ticks).hash(&mut hasher);
            hasher.finish()
        });
        u128::from(halves[0]) << 64 | u128::from(halves[1])
    }

    /// A member does something.
    fn step(
        &self,
        at: usize,
        name: String,
        act: impl FnOnce(&mut B, &mut EffectsOf<B>),
    ) -> World<B> {
        let mut next = self.clone();
        let mut out = EffectsOf::<B>::at(Nanos(self.ticks as u64 * A_LONG_TIME));
        let member = Arc::make_mut(&mut next.members[at]);
        act(member, &mut out);
        next.hashes[at] = hash_of(member, 0);
        let made = made::<B>(out);
        next.orders[at].extend(made.delivered);
        let from = MemberId(at as u16);
        next.on_their_way.extend(made.sent.into_iter().map(|(to, message)| {
            let key = (from, to, hash_of(&message, 0));
            (key, Arc::new(message))
        }));
        next.on_their_way.sort_by_key(|(key, _)| *key);
        next.steps = Some(Arc::new(Taken { step: name, before: self.steps.clone() }));
        next
    }

    /// All that can come next.
    fn next(&self, scope: &Scope) -> Vec<World<B>> {
        let mut all = Vec::new();
        for (place, (key, message)) in self.on_their_way.iter().enumerate() {
            if place > 0 && self.on_their_way[place - 1].0 == *key {
                continue;
            }
            let (from, to, _) = key;
            let name = format!("{} to {}: {message:?}", from.0, to.0);
            let mut before = self.clone();
            before.on_their_way.remove(place);
            let receive = |it: &mut B, out: &mut EffectsOf<B>| {
                it.judge(*from, message).expect("members say what can be");
                it.receive(*from, B::Message::clone(message), out);
            };
            all.push(before.step(to.place(), name, receive));
        }
        let mut proposed = HashSet::new();
        for (place, (at, command)) in self.proposals.iter().enumerate() {
            if !proposed.insert(*at) {
                continue;
            }
            let mut before = self.clone();
            before.proposals.remove(place);
            let mut id = None;
            let mut next = before.step(usize::from(*at), format!("{at} proposes"), |it, out| {
                id = Some(it.propose(command.clone(), out));
            });
            next.commands.insert(id.expect("proposed"), command.clone());
            all.push(next);
        }
        if self.ticks < scope.ticks {
            let mut before = self.clone();
            before.ticks += 1;
            for at in 0..self.members.len() {
                let name = format!("time passes at {at}");
                all.push(before.step(at, name, |it, out| it.tick(out)));
            }
        }
        if self.recoveries > 0 {
            for (at, member) in self.members.iter().enumerate() {
                for id in self.commands.keys().filter(|id| !member.has_ended(**id)) {
                    let name = format!("{at} takes {id} over");
                    let mut next = self.step(at, name, |it, out| it.recover(*id, out));
                    next.recoveries -= 1;
                    all.push(next);
                }
            }
        }
        all
    }

    fn violation(&self) -> Option<String> {
        let members: Vec<&B> = self.members.iter().map(Arc::as_ref).collect();
        violation(&members, &self.orders, &self.commands)
    }

    /// Without anybody that takes commands over, all are delivered everywhere when nothing is on
    /// its way any more.
    fn stuck(&self, scope: &Scope) -> Option<String> {
        if scope.recoveries > 0 || scope.ticks > 0 {
            return None;
        }
        let missing = |order: &Vec<CommandId>| order.len() < self.commands.len();
        let at = self.orders.iter().position(missing)?;
        Some(format!("{at} has delivered {:?} of {:?}", self.orders[at], self.commands.keys()))
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
}

/// Tries all, and ends with the first thing that is wrong.
pub fn explore<B: Subject>(scope: &Scope, switches: &B::Switches) -> Explored {
    let mut found = Explored { states: 0, quiet: 0, violation: None, is_complete: true };
    let mut seen = HashSet::new();
    let first = World::<B>::new(scope, switches);
    seen.insert(first.key());
    let mut open = vec![first];
    while let Some(world) = open.pop() {
        found.states += 1;
        if found.states > scope.states_most {
            found.is_complete = false;
            break;
        }
        let next = world.next(scope);
        if world.on_their_way.is_empty() && world.proposals.is_empty() {
            found.quiet += 1;
            if let Some(stuck) = world.stuck(scope) {
                found.violation = Some((stuck, world.steps()));
                break;
            }
        }
        for next in next {
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
