//! Groups among faults whose members are exchanged: such as died, and such as live and are taken
//! for dead; then all that are not dead live, and everything must be delivered in one order.

use std::collections::{BTreeMap, BTreeSet};

use muesli_broadcast::epochs::{
    EpochEffectsOf, EpochMember, EpochMessage, EpochSettings, MemberChange, MemberList, MemberName,
    MemberState, RequestId,
};
use muesli_broadcast::{Broadcast, Command, CommandId};
use muesli_core::Nanos;
use muesli_core::wire::Wire as _;

use super::exchanged::Exchanged;
use super::site::{Sent, Site};
use crate::group::command;
use crate::order::disorder;
use crate::simulation::Chance;

const MS: u64 = 1_000_000;

/// What is not over after two minutes without faults never is.
const FAIR_TICKS_MOST: u64 = 120_000;

/// In so many milliseconds after the last delivery all have left the last epoch.
const CALM_TICKS: u64 = 2_500;

/// What happens in a run.
#[derive(Clone, Debug)]
pub struct ExchangeFaults {
    pub members: usize,
    pub commands: usize,
    /// A member asks for so many at a time.
    pub at_a_time: usize,
    pub objects: u64,
    /// In percent of messages.
    pub lost: u64,
    /// How many members are down at once at most, beside those that are dead.
    pub crashes: usize,
    /// How many members are exchanged.
    pub exchanges: usize,
}

impl ExchangeFaults {
    pub fn of(members: usize) -> ExchangeFaults {
        let crashes = (members - 1) / 2;
        let (commands, at_a_time) = (30, 1);
        ExchangeFaults { members, commands, at_a_time, objects: 3, lost: 4, crashes, exchanges: 3 }
    }

    /// Members ask for several commands at a time.
    pub fn crowded(members: usize) -> ExchangeFaults {
        ExchangeFaults { commands: 90, at_a_time: 6, ..ExchangeFaults::of(members) }
    }
}

/// A member that is exchanged.
#[derive(Clone, Debug)]
struct Exchange {
    leaves: MemberName,
    /// Those of which one is to come.
    joins: Vec<MemberName>,
}

struct Run<B: Broadcast> {
    now: Nanos,
    chance: Chance,
    faults: ExchangeFaults,
    settings: EpochSettings<B::Switches>,
    sites: Vec<Site<B>>,
    /// `None`: it lives; or when it comes back.
    down: Vec<Option<Nanos>>,
    on_their_way: BTreeMap<(Nanos, u64), (MemberName, Sent<B>)>,
    sent: u64,
    commands: BTreeMap<RequestId, Command>,
    /// Asked for by members that crashed in the middle of it.
    unsure: BTreeSet<RequestId>,
    /// Those that are under way.
    open: Vec<Exchange>,
    exchanges: usize,
    is_fair: bool,
}

impl<B: Broadcast> Run<B> {
    fn perform(&mut self, at: usize, out: EpochEffectsOf<B>) {
        let down = self.down.iter().filter(|it| it.is_some()).count();
        let mut most = usize::MAX;
        if !self.is_fair && down < self.faults.crashes && self.chance.below(1_500) == 0 {
            most = self.chance.below(out.effects.len() as u64 + 1) as usize;
            self.down[at] = Some(Nanos(self.now.0 + self.chance.below(3_000) * MS));
        }
        let from = self.sites[at].name();
        for sent in self.sites[at].perform(out, most) {
            self.send(from, sent);
        }
    }

    fn send(&mut self, from: MemberName, sent: Sent<B>) {
        assert_ne!(from, sent.0, "{:?} is sent to oneself", sent.1);
        let lost = !self.is_fair && self.chance.percent(self.faults.lost);
        let copies = if lost { 0 } else { 1 + u64::from(self.chance.percent(4)) };
        for _ in 0..copies {
            let late = if self.chance.percent(5) { 300 * MS } else { 5 * MS };
            let due = Nanos(self.now.0 + MS + self.chance.below(late));
            self.sent += 1;
            self.on_their_way.insert((due, self.sent), (from, sent.clone()));
        }
    }

    fn act<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut EpochMember<B>, &mut EpochEffectsOf<B>) -> T,
    ) -> T {
        let mut out = EpochEffectsOf::<B>::at(self.now);
        let unwritten: Vec<RequestId> = self.sites[at].member.unwritten().collect();
        let result = act(&mut self.sites[at].member, &mut out);
        self.perform(at, out);
        if self.down[at].is_some() {
            self.unsure.extend(unwritten);
        }
        result
    }

    fn deliver_due(&mut self) {
        while let Some(entry) = self.on_their_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (from, (to, message)) = entry.remove();
            let at = to.0 as usize;
            if self.down[at].is_some() {
                continue;
            }
            self.take_garbled(at, from, &message);
            let judged = self.sites[at].member.judge(from, &message);
            assert_eq!(judged, Ok(()), "{from} to {to}: {message:?}");
            self.act(at, |it, out| it.receive(from, message, out));
        }
    }

    /// A copy of a member is given a message with one byte changed: whatever comes of that, it does
    /// not panic.
    fn take_garbled(&mut self, at: usize, from: MemberName, message: &EpochMessage<B::Message>) {
        if !self.chance.percent(10) {
            return;
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let place = self.chance.below(bytes.len() as u64) as usize;
        bytes[place] = self.chance.below(256) as u8;
        let Ok(garbled) = EpochMessage::<B::Message>::decode_all(&bytes) else { return };
        let mut copy = self.sites[at].member.clone();
        if copy.judge(from, &garbled).is_ok() {
            copy.receive(from, garbled, &mut EpochEffectsOf::<B>::at(self.now));
            copy.tick(&mut EpochEffectsOf::<B>::at(Nanos(self.now.0 + 10_000 * MS)));
        }
    }

    fn tick_all(&mut self) {
        self.now = Nanos(self.now.0 + MS);
        self.deliver_due();
        for at in 0..self.sites.len() {
            let is_back = |until: Nanos| until <= self.now || (self.is_fair && until != DEAD);
            if self.down[at].is_some_and(is_back) {
                self.down[at] = None;
                self.unsure.extend(self.sites[at].member.unwritten());
                self.sites[at].come_back(self.now);
                self.assert_kept(at);
            }
            if self.down[at].is_none() && self.now.0 / MS % 10 == at as u64 % 10 {
                self.act(at, |it, out| it.tick(out));
                self.sites[at].member.assert_invariants();
                if self.down[at].is_none() && self.chance.percent(1) {
                    self.sites[at].save(self.now);
                }
            }
        }
    }

    /// A member takes over a command of another one that lives.
    fn suspect(&mut self) {
        let (Some(at), Some(other)) = (self.somebody(), self.somebody()) else { return };
        let [one, other] = [at, other].map(|at| &self.sites[at].member);
        if one.list().epoch != other.list().epoch {
            return;
        }
        let ids = other.ordered().into_iter().flat_map(|it| it.proposed().map(|(id, _)| id));
        let ids: Vec<CommandId> = ids.collect();
        if !ids.is_empty() {
            let id = ids[self.chance.below(ids.len() as u64) as usize];
            self.act(at, |it, out| it.recover(id, out));
        }
    }

    /// What a member has asked for is delivered, or open.
    fn assert_kept(&self, at: usize) {
        let site = &self.sites[at];
        let open: BTreeSet<RequestId> = site.member.proposed().map(|(id, _)| id).collect();
        let own = self.commands.keys().filter(|it| it.member == site.name());
        for request in own.filter(|it| !self.unsure.contains(it)) {
            let is_known = open.contains(request) || site.applied.order.contains(request);
            assert!(is_known, "{request} is forgotten by {:?}", site.member);
        }
    }

    /// Of those that live the members of the latest epoch of which one knows.
    fn latest(&self) -> MemberList {
        let lists = self.sites.iter().map(|site| site.member.list());
        lists.max_by_key(|list| list.epoch).expect("somebody lives").clone()
    }

    /// One that lives and takes part.
    fn somebody(&mut self) -> Option<usize> {
        let at = self.chance.below(self.sites.len() as u64) as usize;
        let takes_part = self.sites[at].member.state() == MemberState::Member;
        (takes_part && self.down[at].is_none()).then_some(at)
    }

    fn propose(&mut self) {
        let Some(at) = self.somebody() else { return };
        for _ in 0..self.faults.at_a_time {
            if self.down[at].is_none() && self.sites[at].member.state() == MemberState::Member {
                self.propose_at(at);
            }
        }
    }

    fn propose_at(&mut self, at: usize) {
        let many = 1 + self.chance.below(2);
        let objects: Vec<u64> = (0..many).map(|_| self.chance.below(self.faults.objects)).collect();
        let command = command(&self.commands.len().to_string(), &objects);
        let asked = self.act(at, |it, out| it.propose(command.clone(), out));
        let request = asked.expect("a member takes commands");
        let before = self.commands.insert(request, command);
        assert!(before.is_none() || self.unsure.contains(&request), "{request} is two requests");
        match self.down[at] {
            Some(_) => self.unsure.insert(request),
            None => self.unsure.remove(&request),
        };
    }

    fn crash(&mut self) {
        let at = self.chance.below(self.sites.len() as u64) as usize;
        let down = self.down.iter().filter(|it| it.is_some()).count();
        if self.down[at].is_none() && down < self.faults.crashes {
            let long = if self.chance.percent(30) { 12_000 } else { 2_000 };
            self.down[at] = Some(Nanos(self.now.0 + self.chance.below(long) * MS));
        }
    }

    /// Whether all that was begun with exchanges has come to its end; all members take part then,
    /// or all but those that are down for a while.
    fn is_settled(&self, with_those_down: bool) -> bool {
        let list = self.latest();
        list.names().all(|name| {
            let at = name.0 as usize;
            let is_in = self.sites[at].member.list().epoch == list.epoch
                && self.sites[at].member.state() == MemberState::Member;
            is_in || (!with_those_down && self.down[at].is_some_and(|until| until != DEAD))
        })
    }

    /// So many members may be on their way out at once: so many may be dead.
    fn at_once(&self) -> usize {
        (self.faults.members - 1) / 2
    }

    /// A member is to go: it dies now, or it lives and is taken for dead.
    fn begin_exchange(&mut self) {
        let dies = self.chance.percent(60);
        if self.open.is_empty() && !self.is_settled(dies) {
            return;
        }
        let names: Vec<MemberName> = self.latest().names().collect();
        let leaves = names[self.chance.below(names.len() as u64) as usize];
        let at = leaves.0 as usize;
        if self.down[at].is_some() || self.open.iter().any(|it| it.leaves == leaves) {
            return;
        }
        if dies {
            self.down[at] = Some(DEAD);
        }
        let rivals = 1 + usize::from(self.chance.percent(30));
        let mut joins = Vec::new();
        for _ in 0..rivals {
            let name = MemberName(self.sites.len() as u64);
            let others = names.iter().copied().filter(|it| *it != leaves);
            self.sites.push(Site::empty(name, names.len(), others, &self.settings));
            self.down.push(None);
            joins.push(name);
        }
        self.exchanges += 1;
        self.open.push(Exchange { leaves, joins });
    }

    /// An operator asks for the exchange, at any member, until it is made.
    fn go_on_with_exchange(&mut self) {
        let list = self.latest();
        if self.is_settled(false) {
            self.open.retain(|it| list.place_of(it.leaves).is_some());
        }
        let open = self.open.iter().filter(|it| list.place_of(it.leaves).is_some());
        let open: Vec<Exchange> = open.cloned().collect();
        if open.is_empty() {
            return;
        }
        let which = self.chance.below(open.len() as u64) as usize;
        let Exchange { leaves, joins } = open[which].clone();
        let Some(at) = self.somebody() else { return };
        let joins = joins[self.chance.below(joins.len() as u64) as usize];
        let change = MemberChange { leaves, joins };
        _ = self.act(at, |it, out| it.change(change, out));
    }

    /// Some of those that were replaced, and live, are ended: nobody needs them.
    fn end_replaced(&mut self) {
        let list = self.latest();
        for at in 0..self.sites.len() {
            let name = self.sites[at].name();
            let joins = |it: &Exchange| it.joins.contains(&name);
            let is_needed = list.place_of(name).is_some() || self.open.iter().any(joins);
            if !is_needed && self.chance.percent(50) {
                self.down[at] = Some(DEAD);
            }
        }
    }

    fn violation(&self) -> Option<String> {
        let orders: Vec<Vec<RequestId>> =
            self.sites.iter().map(|site| site.applied.order.clone()).collect();
        for (at, order) in orders.iter().enumerate() {
            let once: BTreeSet<&RequestId> = order.iter().collect();
            if once.len() < order.len() {
                return Some(format!("{at} has applied something twice: {order:?}"));
            }
        }
        disorder(&orders, &self.commands).map(|found| found.to_string())
    }

    /// What is not as it should be when all is over.
    fn stuck(&self) -> Vec<String> {
        let list = self.latest();
        let mut stuck: Vec<String> = self.open.iter().map(|it| format!("{it:?}")).collect();
        let alive: Vec<&Site<B>> = list
            .names()
            .filter(|name| self.down[name.0 as usize].is_none())
            .map(|name| &self.sites[name.0 as usize])
            .collect();
        let anywhere: BTreeSet<&RequestId> =
            self.sites.iter().flat_map(|site| &site.applied.order).collect();
        for site in &alive {
            if site.member.list() != &list || site.member.state() != MemberState::Member {
                stuck.push(format!("{} is not in {list:?}", site.name()));
            }
            let here: BTreeSet<&RequestId> = site.applied.order.iter().collect();
            let own = |it: &RequestId| alive.iter().any(|site| site.name() == it.member);
            let due = self
                .commands
                .keys()
                .filter(|it| anywhere.contains(*it) || (own(it) && !self.unsure.contains(it)));
            let missing = due.filter(|it| !here.contains(*it));
            stuck.extend(missing.map(|it| format!("{it} at {}", site.name())));
        }
        stuck
    }

    fn found(&self, violation: Option<String>) -> Exchanged {
        let mut found = Exchanged { violation, stuck: self.stuck(), ..Exchanged::default() };
        found.delivered = self.sites.iter().map(|site| site.applied.order.len()).max().unwrap_or(0);
        found.exchanged = self.exchanges - self.open.len();
        for (at, site) in self.sites.iter().enumerate() {
            found.snapshots += site.happened.snapshots;
            let is_founder = at < self.faults.members;
            found.jumps += site.happened.snapshots.saturating_sub(usize::from(!is_founder));
            found.voids += site.happened.voids;
            found.replaced += site.happened.replaced;
            found.taken_as_delivered += site.happened.taken_as_delivered;
            found.several += site.happened.several;
            let begun = site.begun();
            found.interrupted += begun.saturating_sub(site.happened.snapshots);
        }
        let list = self.latest();
        if found.violation.is_none() && found.stuck.is_empty() {
            for name in list.names().filter(|name| self.down[name.0 as usize].is_none()) {
                let site = &self.sites[name.0 as usize];
                if site.member.remembers_previous() && list.epoch.0 > 1 {
                    found.stuck.push(format!("{name} remembers an epoch that all have left"));
                }
            }
        }
        found
    }
}

/// It does not come back.
const DEAD: Nanos = Nanos(u64::MAX);

/// A run with a seed.
pub fn exchange<B: Broadcast>(
    seed: u64,
    faults: &ExchangeFaults,
    settings: &EpochSettings<B::Switches>,
) -> Exchanged {
    let count = faults.members as u64;
    let founder = |name| Site::founded(MemberName(name), count, settings);
    let mut run: Run<B> = Run {
        now: Nanos(0),
        chance: Chance::new(seed),
        faults: faults.clone(),
        settings: settings.clone(),
        sites: (0..count).map(founder).collect(),
        down: vec![None; faults.members],
        on_their_way: BTreeMap::new(),
        sent: 0,
        commands: BTreeMap::new(),
        unsure: BTreeSet::new(),
        open: Vec::new(),
        exchanges: 0,
        is_fair: false,
    };
    let mut violation = None;
    let mut ticks = 0;
    while violation.is_none() && ticks < 60_000 {
        ticks += 1;
        let is_over = run.commands.len() >= faults.commands;
        let is_exchanged = run.exchanges >= faults.exchanges && run.open.is_empty();
        if is_over && is_exchanged {
            break;
        }
        if !is_over && run.chance.percent(1) {
            run.propose();
        }
        if run.chance.below(800) == 0 {
            run.crash();
        }
        let may_begin = run.open.len() < run.at_once() && run.exchanges < faults.exchanges;
        if may_begin && run.chance.below(200) == 0 {
            run.begin_exchange();
        }
        if run.chance.below(200) == 0 {
            run.go_on_with_exchange();
        }
        if run.chance.percent(1) {
            run.suspect();
        }
        run.tick_all();
        violation = if ticks % 50 == 0 { run.violation() } else { None };
    }
    run.is_fair = true;
    run.end_replaced();
    let (mut ticks, mut calm) = (0, 0);
    while violation.is_none() && ticks < FAIR_TICKS_MOST && calm < CALM_TICKS {
        ticks += 1;
        run.tick_all();
        if ticks % 50 == 0 {
            run.go_on_with_exchange();
            calm = if run.stuck().is_empty() { calm + 50 } else { 0 };
            violation = run.violation();
        }
    }
    run.found(violation)
}
