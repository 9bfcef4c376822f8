//! The group: what happens next, and when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muesli_broadcast::{BroadcastEffect, Command, CommandId, DeliveredCommand, MemberId};
use muesli_core::wire::Wire;
use muesli_core::{Nanos, NodeId};
use muesli_sim::queue::EventQueue;
use muesli_sim::random::{Random, Seed};
use muesli_sim::time::{Span, VirtualTime};

use super::CommandMachine;
use super::node::{CommandNode, CoreWork, NodeBusy, SizedMessage, StepInput};
use crate::failure::RunError;
use crate::load::CommandPlan;
use crate::member::{Effects, OrderingMember};
use crate::order::{CommandDigest, OrderCheck};
use crate::outcome::{BusyShares, CommandLatency, CommandOutcome};

/// A step takes so many proposals and messages at most: what it sends leaves when it ends.
const STEP_MOST: usize = 64;
/// Members look at the time so often.
const TICK_EVERY: Span = Span::from_millis(5);
/// Bytes of a packet besides those of its messages: the header of a frame.
const PACKET_BYTES: u64 = 16;
/// A preparation, and what is open at the end, take so long at most.
const PATIENCE: Span = Span::from_secs(120);

type Packet = VecDeque<SizedMessage>;

/// What a step came to.
#[derive(Debug, Default)]
struct StepResult {
    sends: Vec<(MemberId, SizedMessage)>,
    delivered: Vec<DeliveredCommand>,
    given_up: Vec<CommandId>,
}

enum GroupEvent {
    /// A client issues a command.
    Issue { node: usize },
    /// All members look at the time.
    Tick,
    /// A packet has come.
    Arrival { from: MemberId, to: MemberId, packet: Packet },
    /// A step is over.
    Stepped { node: usize, result: StepResult },
    /// A packet leaves.
    Sent { from: MemberId, to: MemberId, packet: Packet, bytes: u64 },
    /// What came is handed to the member.
    Taken { from: MemberId, to: MemberId, packet: Packet },
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunPhase {
    /// Nodes touch all of their objects.
    Preparing,
    /// Clients run since this time, and are not measured yet.
    WarmingUp(VirtualTime),
    /// They are measured since then.
    Measuring(VirtualTime),
    /// They are through; what is open is brought to its end since then.
    Ending(VirtualTime),
}

/// A command of a client that is not delivered at its own member.
#[derive(Clone, Debug)]
struct OpenCommand {
    command: Command,
    issued: VirtualTime,
    /// Whether a client waits for it, who does not for what is prepared.
    by_client: bool,
}

/// A group, on its way through a plan.
pub(super) struct SimulatedGroup<'a> {
    plan: &'a CommandPlan,
    machine: &'a CommandMachine,
    now: VirtualTime,
    events: EventQueue<GroupEvent>,
    nodes: Vec<CommandNode>,
    /// By sender and receiver, when what was sent last is there.
    last_arrival: Vec<VirtualTime>,
    latencies: Random,
    check: OrderCheck,
    open: BTreeMap<CommandId, OpenCommand>,
    phase: RunPhase,
    taken: Vec<u64>,
    proposed: u64,
    outcome: CommandOutcome,
    scratch: Vec<u8>,
}

impl<'a> SimulatedGroup<'a> {
    pub fn new(plan: &'a CommandPlan, machine: &'a CommandMachine) -> SimulatedGroup<'a> {
        let (count, seed) = (plan.load.nodes, Seed::new(plan.seed).split("commands"));
        let node = |me: usize| {
            let member = OrderingMember::new(MemberId(me as u16), plan);
            CommandNode::new(member, count, plan.cores, seed.split("node").nth(me as u64).stream())
        };
        SimulatedGroup {
            plan,
            machine,
            now: VirtualTime::ZERO,
            events: EventQueue::new(),
            nodes: (0..count).map(node).collect(),
            last_arrival: vec![VirtualTime::ZERO; count * count],
            latencies: seed.split("network").stream(),
            check: OrderCheck::new(count, plan.load.all_objects() as usize),
            open: BTreeMap::new(),
            phase: RunPhase::Preparing,
            taken: Vec::new(),
            proposed: 0,
            outcome: CommandOutcome::default(),
            scratch: Vec::new(),
        }
    }

    pub fn run(mut self) -> Result<CommandOutcome, RunError> {
        for node in 0..self.nodes.len() {
            for command in self.plan.load.preparation(node) {
                self.issue(node, command);
            }
            self.go_on(node)?;
        }
        self.events.push(self.now + TICK_EVERY, GroupEvent::Tick);
        while let Some((now, event)) = self.events.pop_until(VirtualTime::NEVER) {
            self.now = now;
            self.handle(event)?;
            if self.advance()? {
                self.check.finish()?;
                self.outcome.order = self.check.digest();
                self.outcome.checked = self.proposed;
                return Ok(self.outcome);
            }
        }
        unreachable!("members look at the time again and again")
    }

    fn handle(&mut self, event: GroupEvent) -> Result<(), RunError> {
        match event {
            GroupEvent::Issue { node } => {
                self.on_issue(node);
                self.go_on(node)
            }
            GroupEvent::Tick => {
                self.events.push(self.now + TICK_EVERY, GroupEvent::Tick);
                (0..self.nodes.len()).try_for_each(|node| {
                    self.nodes[node].offer(StepInput::Tick);
                    self.go_on(node)
                })
            }
            GroupEvent::Arrival { from, to, packet } => {
                self.nodes[to.place()].receive(from, packet, self.plan.batching);
                self.go_on(to.place())
            }
            GroupEvent::Stepped { node, result } => {
                self.on_stepped(node, result)?;
                self.free(node)
            }
            GroupEvent::Sent { from, to, packet, bytes } => {
                self.on_sent(from, to, packet, bytes);
                self.free(from.place())
            }
            GroupEvent::Taken { from, to, packet } => {
                let node = &mut self.nodes[to.place()];
                for it in packet {
                    node.offer(StepInput::Message { from, sized: it });
                }
                self.free(to.place())
            }
        }
    }

    /// A core of a node is free again.
    fn free(&mut self, node: usize) -> Result<(), RunError> {
        self.nodes[node].idle += 1;
        self.go_on(node)
    }

    /// Begins what waits, as long as cores are free.
    fn go_on(&mut self, place: usize) -> Result<(), RunError> {
        while let Some(work) = self.nodes[place].next_work() {
            let (costs, batching) = (&self.machine.costs, self.plan.batching);
            let (node, me) = (&mut self.nodes[place], MemberId(place as u16));
            let of = |packet: &Packet, once: Span, each: Span| {
                let bytes = PACKET_BYTES + packet.iter().map(|it| it.bytes).sum::<u64>();
                let of_bytes = Span::from_nanos(costs.byte_picos * bytes / 1_000);
                (once + each.times(packet.len() as u64) + of_bytes, bytes)
            };
            let (cost, event) = match work {
                CoreWork::Step => {
                    let (cost, result) = self.step(place)?;
                    self.nodes[place].busy.note_step(cost);
                    (cost, GroupEvent::Stepped { node: place, result })
                }
                CoreWork::Send(to) => {
                    let packet = CommandNode::packet(&mut node.outgoing[to.place()], batching);
                    let (cost, bytes) = of(&packet, costs.flush, costs.send);
                    (cost, GroupEvent::Sent { from: me, to, packet, bytes })
                }
                CoreWork::Take(from) => {
                    let packet = CommandNode::packet(&mut node.incoming[from.place()], batching);
                    let (cost, _) = of(&packet, costs.fetch, costs.receive);
                    (cost, GroupEvent::Taken { from, to: me, packet })
                }
            };
            self.nodes[place].busy.note(cost);
            self.events.push(self.now + cost, event);
        }
        Ok(())
    }

    /// Steps a member by all that waits for it.
    fn step(&mut self, place: usize) -> Result<(Span, StepResult), RunError> {
        let me = MemberId(place as u16);
        let mut out = Effects::at(Nanos(self.now.as_nanos()));
        let (mut messages, mut bytes, mut proposals) = (0, 0, 0);
        let waiting = &mut self.nodes[place].inbox;
        let inbox: Vec<StepInput> = waiting.drain(..waiting.len().min(STEP_MOST)).collect();
        for input in inbox {
            let member = &mut self.nodes[place].member;
            match input {
                StepInput::Message { from, sized: SizedMessage { message, bytes: length } } => {
                    messages += 1;
                    bytes += length;
                    let refused =
                        |why| RunError::Refused { from: from.0, to: me.0, why: format!("{why:?}") };
                    member.judge(from, &message).map_err(refused)?;
                    member.receive(from, message, &mut out);
                }
                StepInput::Propose { command, issued } => {
                    proposals += 1;
                    let id = member.propose(command.clone(), &mut out);
                    self.proposed += 1;
                    self.check.propose(id, command.clone());
                    let by_client = self.phase != RunPhase::Preparing;
                    self.open.insert(id, OpenCommand { command, issued, by_client });
                }
                StepInput::Tick => member.tick(&mut out),
            }
        }
        self.nodes[place].member.flush(&mut out);
        let result = self.sorted(out);
        let (costs, steps) = (&self.machine.costs, &self.machine.steps);
        let deliveries = self.delivery_cost(place, &result.delivered);
        let cost = costs.tick
            + costs.operation.times(proposals)
            + steps.message.times(messages)
            + Span::from_nanos(steps.byte_picos.saturating_mul(bytes) / 1_000)
            + deliveries;
        Ok((cost, result))
    }

    /// What it costs a member to deliver these.
    fn delivery_cost(&self, place: usize, delivered: &[DeliveredCommand]) -> Span {
        let (member, steps) = (&self.nodes[place].member, &self.machine.steps);
        let (mut batch, mut touched) = (None, BTreeSet::new());
        let mut cost = Span::ZERO;
        for it in delivered {
            let last = std::mem::replace(&mut batch, member.batch_of(it.id));
            let is_first = batch.is_none() || batch != last;
            if is_first {
                touched.clear();
            }
            let count = touched.len();
            touched.extend(it.command.objects.iter().map(|object| object.number));
            cost = cost
                + match (is_first, touched.len() > count) {
                    (true, _) => steps.delivery,
                    (false, true) => steps.batched,
                    (false, false) => steps.repeated,
                };
        }
        cost
    }

    /// Effects by their kinds. Nothing is written down here, so records are left out.
    fn sorted(&mut self, out: Effects) -> StepResult {
        let mut result = StepResult::default();
        for effect in out.effects {
            match effect {
                BroadcastEffect::Send { to, message } => {
                    let last = result.sends.last().filter(|(_, it)| it.message == message);
                    let bytes = match last {
                        Some((_, same)) => same.bytes,
                        None => {
                            self.scratch.clear();
                            message.encode(&mut self.scratch);
                            self.scratch.len() as u64
                        }
                    };
                    result.sends.push((to, SizedMessage { message, bytes }));
                }
                BroadcastEffect::Log(_) => {}
                BroadcastEffect::Deliver(it) => result.delivered.push(it),
                BroadcastEffect::GivenUp(id) => result.given_up.push(id),
            }
        }
        result
    }

    fn on_stepped(&mut self, place: usize, result: StepResult) -> Result<(), RunError> {
        for (to, message) in result.sends {
            self.nodes[place].send(to, message, self.plan.batching);
        }
        for it in result.delivered {
            self.on_delivered(place, it)?;
        }
        for id in result.given_up {
            self.check.give_up(id)?;
            // Its client tries again.
            if let Some(OpenCommand { command, issued, .. }) = self.open.remove(&id) {
                self.nodes[place].offer(StepInput::Propose { command, issued });
            }
        }
        if self.plan.load.think == Nanos(0) && self.is_running() {
            self.fill(place);
        }
        let node = &mut self.nodes[place];
        node.steps = !node.inbox.is_empty();
        if node.steps {
            node.waiting.push_back(CoreWork::Step);
        }
        Ok(())
    }

    fn on_delivered(&mut self, place: usize, it: DeliveredCommand) -> Result<(), RunError> {
        let me = MemberId(place as u16);
        self.check.deliver(me, it.id, CommandDigest::of(&it.command))?;
        if it.id.leader != me {
            return Ok(());
        }
        let Some(open) = self.open.remove(&it.id).filter(|open| open.by_client) else {
            return Ok(());
        };
        self.nodes[place].in_flight -= 1;
        if matches!(self.phase, RunPhase::Measuring(_)) {
            self.outcome.commands += 1;
            self.taken.push(self.now.since(open.issued).as_nanos());
        }
        Ok(())
    }

    /// A packet passes the node's wire.
    fn on_sent(&mut self, from: MemberId, to: MemberId, packet: Packet, bytes: u64) {
        if matches!(self.phase, RunPhase::Measuring(_)) {
            self.outcome.packets += 1;
            self.outcome.messages += packet.len() as u64;
            self.outcome.bytes += bytes;
        }
        let wire_time =
            bytes.saturating_mul(1_000_000_000).checked_div(self.machine.bandwidth).unwrap_or(0);
        let free = &mut self.nodes[from.place()].wire_free;
        *free = self.now.max(*free) + Span::from_nanos(wire_time);
        let (sender, receiver) = (NodeId(u32::from(from.0)), NodeId(u32::from(to.0)));
        let class = self.machine.topology.class(sender, receiver);
        let arrival = *free + class.latency.draw(&mut self.latencies);
        let last = &mut self.last_arrival[from.place() * self.nodes.len() + to.place()];
        *last = arrival.max(*last);
        self.events.push(*last, GroupEvent::Arrival { from, to, packet });
    }

    fn issue(&mut self, place: usize, command: Command) {
        self.nodes[place].offer(StepInput::Propose { command, issued: self.now });
    }

    /// A client has slept; it issues a command, unless too many are in flight, and sleeps again.
    fn on_issue(&mut self, place: usize) {
        if !self.is_running() {
            return;
        }
        let (load, node) = (&self.plan.load, &mut self.nodes[place]);
        if node.in_flight < load.limit {
            node.in_flight += 1;
            let command = load.draw(place, &mut node.random);
            self.issue(place, command);
        } else if matches!(self.phase, RunPhase::Measuring(_)) {
            self.outcome.skipped += 1;
        }
        let think = Span::from_nanos(self.plan.load.think.0);
        self.events.push(self.now + think, GroupEvent::Issue { node: place });
    }

    /// Issues as many commands as may be in flight.
    fn fill(&mut self, place: usize) {
        let load = &self.plan.load;
        while self.nodes[place].in_flight < load.limit {
            let node = &mut self.nodes[place];
            node.in_flight += 1;
            let command = load.draw(place, &mut node.random);
            self.issue(place, command);
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, RunPhase::WarmingUp(_) | RunPhase::Measuring(_))
    }

    /// Goes on to the next phase, if it is time; whether the run is over.
    fn advance(&mut self) -> Result<bool, RunError> {
        let stuck = |open, phase| RunError::Stuck { open, phase, after: PATIENCE.as_nanos() };
        let open = self.check.unfinished();
        let since = |start: VirtualTime| Nanos(self.now.since(start).as_nanos());
        match self.phase {
            RunPhase::Preparing if open == 0 && self.is_prepared() => self.begin()?,
            RunPhase::Preparing if self.now > VirtualTime::ZERO + PATIENCE => {
                return Err(stuck(open, "the preparation began"));
            }
            RunPhase::WarmingUp(start) if since(start) >= self.plan.warm_up => {
                self.phase = RunPhase::Measuring(self.now);
                self.nodes.iter_mut().for_each(|node| node.busy = NodeBusy::default());
            }
            RunPhase::Measuring(start)
                if since(start) >= self.plan.measured
                    || self.outcome.commands >= self.plan.most =>
            {
                self.end_measurement(since(start));
            }
            RunPhase::Ending(start) => {
                let is_idle = self.nodes.iter().all(|node| node.in_flight == 0);
                if open > 0 && self.now.since(start) > PATIENCE {
                    return Err(stuck(open, "clients had ended"));
                }
                return Ok(open == 0 && is_idle);
            }
            _ => {}
        }
        Ok(false)
    }

    /// Whether nothing waits to be proposed.
    fn is_prepared(&self) -> bool {
        let waits = |it: &StepInput| matches!(it, StepInput::Propose { .. });
        !self.nodes.iter().any(|node| node.inbox.iter().any(waits))
    }

    /// Clients begin.
    fn begin(&mut self) -> Result<(), RunError> {
        self.phase = RunPhase::WarmingUp(self.now);
        let (clients, think) = (self.plan.load.clients, self.plan.load.think.0);
        for place in 0..self.nodes.len() {
            if think == 0 {
                self.fill(place);
                self.go_on(place)?;
                continue;
            }
            for _ in 0..clients {
                let slept = Span::from_nanos(self.nodes[place].random.below(think));
                self.events.push(self.now + slept, GroupEvent::Issue { node: place });
            }
        }
        Ok(())
    }

    fn end_measurement(&mut self, measured: Nanos) {
        self.phase = RunPhase::Ending(self.now);
        self.outcome.measured = measured;
        self.outcome.latency = CommandLatency::of(std::mem::take(&mut self.taken));
        let (length, cores) = (measured.0.max(1) as f64, self.plan.cores as f64);
        let share = |span: Span| span.as_nanos() as f64 / length;
        let all = self.nodes.iter().map(|node| share(node.busy.all) / cores);
        let stepping = self.nodes.iter().map(|node| share(node.busy.stepping));
        self.outcome.busy = Some(BusyShares {
            mean: all.clone().sum::<f64>() / self.nodes.len() as f64,
            busiest: all.fold(0.0, f64::max),
            stepping: stepping.fold(0.0, f64::max),
        });
    }
}
