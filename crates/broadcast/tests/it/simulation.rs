//! Groups among faults: messages that are lost, doubled and late, members that crash and come back
//! with what they had written down; then all live, and everything must be delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{RefUnwindSafe, catch_unwind};

use muesli_broadcast::{
    BroadcastSettings, Command, CommandId, EffectsOf, IdSet, MemberId, ObjectSet,
};
use muesli_core::Nanos;
use muesli_core::wire::Wire;

use crate::checkpoint::Saved;
use crate::group::{Made, Subject, command, made, violation};
use crate::named::NamedPredecessors;

/// Numbers that look random, the same for a seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}

/// What happens in a run.
#[derive(Clone, Debug)]
pub struct Faults {
    pub members: usize,
    pub commands: u64,
    pub objects: u64,
    /// In percent of messages.
    pub lost: u64,
    pub doubled: u64,
    /// How many members crash at once at most.
    pub crashes: usize,
    /// Of those that crash, so many do not come back.
    pub dead: usize,
    /// Members suspect each other without reason, in percent of steps.
    pub suspicions: u64,
    /// So many commands touch everything, in percent.
    pub everything: u64,
}

impl Faults {
    /// A little of everything, on few objects.
    pub fn of(members: usize) -> Faults {
        Faults {
            members,
            commands: 40,
            objects: 3,
            lost: 4,
            doubled: 4,
            crashes: (members - 1) / 2,
            dead: 0,
            suspicions: 1,
            everything: 0,
        }
    }

    /// The same, where so many do not come back.
    pub fn with_dead(members: usize, dead: usize) -> Faults {
        Faults { dead, commands: 20, ..Faults::of(members) }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Simulated {
    pub violation: Option<String>,
    /// Commands that not all have delivered in the end, and nobody has given up.
    pub stuck: Vec<CommandId>,
    pub delivered: usize,
    pub given_up: usize,
    /// Commands that members still keep in the end.
    pub kept: usize,
    /// The most [steps](Subject::steps) that a member knows of.
    pub steps: u64,
    /// The largest checkpoint that a member that lives would write in the end.
    pub checkpoint_bytes: usize,
}

struct Run<B: Subject> {
    now: Nanos,
    chance: Chance,
    faults: Faults,
    settings: BroadcastSettings,
    switches: B::Switches,
    members: Vec<B>,
    /// `None`: it lives; or when it comes back.
    down: Vec<Option<Nanos>>,
    disks: Vec<Vec<B::Record>>,
    orders: Vec<Vec<CommandId>>,
    named: Vec<NamedPredecessors>,
    /// What was delivered where, and after which commands that is to be applied.
    unjudged: Vec<((usize, CommandId), IdSet)>,
    /// A command that is said to come after the wrong ones.
    misnamed: Option<String>,
    on_their_way: BTreeMap<(Nanos, u64), (MemberId, MemberId, B::Message)>,
    sent: u64,
    commands: BTreeMap<CommandId, Command>,
    given_up: BTreeSet<CommandId>,
    /// Proposed by members that crashed in the middle of it.
    unsure: BTreeSet<CommandId>,
    /// By member: what it has proposed so that this is on its disk.
    own: Vec<BTreeMap<CommandId, Command>>,
    /// By member: its last checkpoint.
    checkpoints: Vec<Option<Saved>>,
    /// When checkpoints are taken; what else happens does not hang on that.
    checkpoint_chance: Chance,
    /// Whether something came to its end since the last look.
    is_changed: bool,
    is_fair: bool,
}

const MS: u64 = 1_000_000;

/// What is not delivered after a minute without faults never is.
const FAIR_TICKS_MOST: u64 = 60_000;

/// In so many milliseconds after the last delivery all is forgotten.
const CALM_TICKS: u64 = 2_000;

impl<B: Subject> Run<B> {
    /// Does what a member wants, unless it crashes in the middle of it.
    fn perform(&mut self, at: usize, mut out: EffectsOf<B>) {
        let down = self.down.iter().filter(|it| it.is_some()).count();
        let may_crash = !self.is_fair && down < self.faults.crashes;
        if may_crash && self.chance.below(2_000) == 0 {
            let done = self.chance.below(out.effects.len() as u64 + 1) as usize;
            out.effects.truncate(done);
            self.down[at] = Some(Nanos(self.now.0 + self.chance.below(3_000) * MS));
        }
        let Made { sent, logged, delivered, predecessors, given_up } = made::<B>(out);
        self.is_changed |= !logged.is_empty();
        self.disks[at].extend(logged);
        self.unjudged.extend(delivered.iter().map(|id| (at, *id)).zip(predecessors));
        self.orders[at].extend(delivered);
        self.given_up.extend(given_up);
        for (to, message) in sent {
            self.send(MemberId(at as u16), to, message);
        }
    }

    /// What members say that commands are to be applied after.
    fn judge_named(&mut self) {
        for ((at, id), predecessors) in std::mem::take(&mut self.unjudged) {
            let is_forgotten = |it| self.members[at].has_forgotten(it);
            let named = &mut self.named[at];
            let found = named.deliver(id, &predecessors, &self.commands, is_forgotten);
            self.misnamed = self.misnamed.take().or(found.map(|found| format!("{at}: {found}")));
        }
    }

    fn send(&mut self, from: MemberId, to: MemberId, message: B::Message) {
        let lost = !self.is_fair && self.chance.percent(self.faults.lost);
        let copies = if lost { 0 } else { 1 + u64::from(self.chance.percent(self.faults.doubled)) };
        for _ in 0..copies {
            let late = if self.chance.percent(5) { 300 * MS } else { 5 * MS };
            let due = Nanos(self.now.0 + MS + self.chance.below(late));
            self.sent += 1;
            self.on_their_way.insert((due, self.sent), (from, to, message.clone()));
        }
    }

    fn act(&mut self, at: usize, act: impl FnOnce(&mut B, &mut EffectsOf<B>)) {
        let mut out = EffectsOf::<B>::at(self.now);
        act(&mut self.members[at], &mut out);
        self.members[at].flush(&mut out);
        self.perform(at, out);
        let is_known = |it: &((usize, CommandId), IdSet)| self.commands.contains_key(&it.0.1);
        if self.unjudged.iter().all(is_known) {
            self.judge_named();
        } // Else it was proposed in this step.
    }

    fn deliver_due(&mut self) {
        while let Some(entry) = self.on_their_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (from, to, message) = entry.remove();
            if self.down[to.place()].is_none() {
                self.take_garbled(to, from, &message);
                let judged = self.members[to.place()].judge(from, &message);
                assert_eq!(judged, Ok(()), "{message:?}");
                self.act(to.place(), |it, out| it.receive(from, message, out));
            }
        }
    }

    /// A copy of a member is given a message with one byte changed: whatever comes of that,
    /// it does not panic, and comes to an end.
    fn take_garbled(&mut self, to: MemberId, from: MemberId, message: &B::Message) {
        if !self.chance.percent(20) {
            return;
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let place = self.chance.below(bytes.len() as u64) as usize;
        bytes[place] = self.chance.below(256) as u8;
        let Ok(garbled) = B::Message::decode_all(&bytes) else { return };
        let mut copy = self.members[to.place()].clone();
        if copy.judge(from, &garbled).is_ok() {
            let mut out = EffectsOf::<B>::at(self.now);
            copy.receive(from, garbled, &mut out);
            copy.tick(&mut EffectsOf::<B>::at(Nanos(self.now.0 + 10_000 * MS)));
        }
    }

    fn crash(&mut self) {
        let at = self.chance.below(self.members.len() as u64) as usize;
        let down = self.down.iter().filter(|it| it.is_some()).count();
        if self.down[at].is_none() && down < self.faults.crashes {
            self.down[at] = Some(Nanos(self.now.0 + self.chance.below(3_000) * MS));
        }
    }

    /// A member comes back from its disk, and delivers again what it had.
    fn come_back(&mut self, at: usize) {
        self.down[at] = None;
        let me = MemberId(at as u16);
        let mut member = B::new(me, self.members.len(), &self.settings, &self.switches);
        let mut out = EffectsOf::<B>::at(self.now);
        for record in &self.disks[at] {
            member.replay(record.clone(), &mut out);
        }
        member.assert_invariants();
        let again = made::<B>(out);
        if let Some(saved) = &self.checkpoints[at] {
            let mut empty = B::new(me, self.members.len(), &self.settings, &self.switches);
            let rest = &self.disks[at][saved.records..];
            let order = saved.replay(&mut empty, rest, self.now);
            assert_eq!(empty, member, "{at} from {} records on", saved.records);
            assert_eq!(order, again.delivered, "{at} from {} records on", saved.records);
        }
        // More, where it crashed before it did what it had written down.
        let order = &self.orders[at];
        assert!(again.delivered.starts_with(order), "{:?}, not {order:?}", again.delivered);
        self.orders[at] = again.delivered;
        self.given_up.extend(again.given_up);
        assert!(again.sent.is_empty() && again.logged.is_empty(), "nothing else comes of it");
        self.members[at] = member;
        self.named[at] = NamedPredecessors::default();
        let ids = self.orders[at].iter().map(|id| (at, *id));
        self.unjudged.extend(ids.zip(again.predecessors));
        self.judge_named();
        if B::WAITS {
            self.lose_waiting(at);
        }
        self.assert_proposed(at);
    }

    /// What waited when a member crashed, it has not proposed.
    fn lose_waiting(&mut self, at: usize) {
        let (member, order) = (&self.members[at], &self.orders[at]);
        let is_known = |id: CommandId| {
            let is_over = self.given_up.contains(&id) || order.contains(&id);
            is_over || member.proposed_command(id).is_some()
        };
        let all = self.own[at].keys().copied();
        let lost: Vec<CommandId> = all.filter(|id| !is_known(*id)).collect();
        self.own[at].retain(|id, _| !lost.contains(id));
        self.unsure.extend(lost);
    }

    /// A member writes a checkpoint, now and then. What it says when it has that back is the same.
    fn take_checkpoint(&mut self, at: usize) {
        if !self.checkpoint_chance.percent(2) {
            return;
        }
        let saved = Saved {
            pieces: self.members[at].checkpoint().collect(),
            records: self.disks[at].len(),
            order: self.orders[at].clone(),
        };
        let empties: Vec<B> =
            crate::group::members(self.members.len(), &self.settings, &self.switches);
        let mut back = empties[at].clone();
        saved.replay(&mut back, &[], self.now);
        back.assert_invariants();
        assert!(back.checkpoint().eq(saved.pieces.iter().cloned()), "{back:?}");
        saved.take_garbled(&empties, at, &mut self.checkpoint_chance);
        self.checkpoints[at] = Some(saved);
    }

    /// A member knows what of its own is open.
    fn assert_proposed(&self, at: usize) {
        let is_over = |id: &CommandId| self.given_up.contains(id) || self.orders[at].contains(id);
        let open = self.own[at].iter().filter(|(id, _)| !is_over(id));
        let open: Vec<_> = open.map(|(id, command)| (*id, command)).collect();
        assert_eq!(self.members[at].proposed().collect::<Vec<_>>(), open, "{at}");
    }

    fn tick_all(&mut self) {
        self.now = Nanos(self.now.0 + MS);
        self.deliver_due();
        for at in 0..self.members.len() {
            let stays = at >= self.faults.members - self.faults.dead && self.is_fair;
            if !stays && self.down[at].is_some_and(|until| until <= self.now || self.is_fair) {
                self.come_back(at);
            }
            if self.down[at].is_none() && self.now.0 / MS % 10 == at as u64 % 10 {
                self.act(at, |it, out| it.tick(out));
                self.members[at].assert_invariants();
                if self.down[at].is_none() {
                    self.assert_proposed(at);
                    self.take_checkpoint(at);
                }
            }
        }
        if !self.is_fair && self.chance.percent(self.faults.suspicions) {
            let at = self.chance.below(self.members.len() as u64) as usize;
            // Of what is on no disk nobody has heard.
            let is_known = |id: &&CommandId| self.own[id.leader.place()].contains_key(id);
            let ids: Vec<CommandId> = self.commands.keys().filter(is_known).copied().collect();
            if let (None, false) = (self.down[at], ids.is_empty()) {
                let id = ids[self.chance.below(ids.len() as u64) as usize];
                self.act(at, |it, out| it.recover(id, out));
            }
        }
    }

    fn propose(&mut self) {
        let at = self.chance.below(self.members.len() as u64) as usize;
        if self.down[at].is_some() {
            return;
        }
        let many = 1 + self.chance.below(2);
        let objects: Vec<u64> = (0..many).map(|_| self.chance.below(self.faults.objects)).collect();
        let mut command = command(&self.commands.len().to_string(), &objects);
        if self.faults.everything > 0 && self.chance.percent(self.faults.everything) {
            command.objects = ObjectSet::everything().into();
        }
        let (mut id, records) = (None, self.disks[at].len());
        self.act(at, |it, out| id = Some(it.propose(command.clone(), out)));
        let id = id.expect("proposed");
        if self.disks[at].len() > records || B::WAITS {
            self.own[at].insert(id, command.clone());
        }
        self.commands.insert(id, command);
        self.judge_named();
        match self.down[at] {
            Some(_) => self.unsure.insert(id),
            None => self.unsure.remove(&id),
        };
    }

    fn violation(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let members: Vec<&B> = self.members.iter().collect();
        let misnamed = self.misnamed.take();
        misnamed.or_else(|| violation(&members, &self.orders, &self.commands))
    }

    fn stuck(&self) -> Vec<CommandId> {
        let alive = self.faults.members - self.faults.dead;
        let known = |id: &CommandId| self.orders[..alive].iter().all(|order| order.contains(id));
        // What a dead member alone has heard of need not be delivered.
        let anywhere = |id: &CommandId| self.orders.iter().any(|order| order.contains(id));
        let sure = |id: &CommandId| id.leader.place() < alive && !self.unsure.contains(id);
        let counts = |id: &CommandId| sure(id) || anywhere(id);
        let open = self.commands.keys().filter(|id| !known(id) && counts(id));
        open.filter(|id| !self.given_up.contains(id)).copied().collect()
    }
}

/// With this in the environment so many seeds are tried of each configuration.
const SEEDS: &str = "MUESLI_BROADCAST_SEEDS";

/// The seeds to try: the first ones, so few, or as many as the environment says.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var(SEEDS).ok().and_then(|it| it.parse().ok());
    0..wanted.unwrap_or(few)
}

/// A run with a seed.
pub fn simulate<B: Subject>(
    seed: u64,
    faults: &Faults,
    switches: &B::Switches,
    kept: impl Fn(&B) -> usize,
) -> Simulated {
    let settings = BroadcastSettings::default();
    let members = crate::group::members(faults.members, &settings, switches);
    let mut run: Run<B> = Run {
        now: Nanos(0),
        chance: Chance::new(seed),
        faults: faults.clone(),
        settings,
        switches: switches.clone(),
        members,
        down: vec![None; faults.members],
        disks: vec![Vec::new(); faults.members],
        orders: vec![Vec::new(); faults.members],
        named: vec![NamedPredecessors::default(); faults.members],
        unjudged: Vec::new(),
        misnamed: None,
        on_their_way: BTreeMap::new(),
        sent: 0,
        commands: BTreeMap::new(),
        given_up: BTreeSet::new(),
        unsure: BTreeSet::new(),
        own: vec![BTreeMap::new(); faults.members],
        checkpoints: vec![None; faults.members],
        checkpoint_chance: Chance::new(!seed),
        is_changed: false,
        is_fair: false,
    };
    let mut violation = None;
    while violation.is_none() && (run.commands.len() as u64) < faults.commands {
        if run.chance.percent(10) {
            run.propose();
        }
        if faults.crashes > 0 && run.chance.below(400) == 0 {
            run.crash();
        }
        run.tick_all();
        violation = run.violation();
    }
    run.is_fair = true;
    let alive = faults.members - faults.dead;
    (alive..faults.members).for_each(|at| run.down[at] = Some(Nanos(u64::MAX)));
    let (mut ticks, mut calm) = (0, 0);
    while violation.is_none() && ticks < FAIR_TICKS_MOST && calm < CALM_TICKS {
        ticks += 1;
        run.tick_all();
        calm = if run.stuck().is_empty() { calm + 1 } else { 0 };
        violation = run.violation();
    }
    let bytes = |it: &B| it.checkpoint().map(|piece| piece.len()).sum();
    Simulated {
        violation,
        stuck: run.stuck(),
        delivered: run.orders[0].len(),
        given_up: run.given_up.len(),
        kept: run.members.iter().map(kept).max().unwrap_or(0),
        steps: run.members.iter().map(Subject::steps).max().unwrap_or(0),
        checkpoint_bytes: run.members[..alive].iter().map(bytes).max().unwrap_or(0),
    }
}

/// The first of so many seeds at which a group goes wrong, stands still, or breaks an invariant.
pub fn noticed(seeds: u64, run: impl Fn(u64) -> Simulated + RefUnwindSafe) -> Option<u64> {
    (0..seeds).find(|seed| {
        let ran = catch_unwind(|| run(*seed));
        ran.map_or(true, |found| found.violation.is_some() || !found.stuck.is_empty())
    })
}

impl Simulated {
    /// Nothing is wrong, everything was delivered, and, where nobody is dead, forgotten.
    pub fn assert_sound(&self, members: usize, seed: u64, dead: usize) {
        assert!(self.violation.is_none(), "{members} {seed}: {self:?}");
        assert!(self.stuck.is_empty(), "{members} {seed}: {self:?}");
        assert!(dead > 0 || self.kept == 0, "{members} {seed}: something is kept: {self:?}");
        let is_small = dead > 0 || self.checkpoint_bytes < 400 + 100 * members;
        assert!(is_small, "{members} {seed}: a checkpoint of what is over: {self:?}");
        assert!(self.delivered + self.given_up > 0, "{members} {seed}: nothing was done");
    }
}
