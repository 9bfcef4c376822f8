//! A real group: threads of this machine, each a member, that speak TCP over its loopback.
//!
//! Between two members there is one connection. A member takes all that has come, steps by it, and
//! writes once to each other member, in the frames and with the encoding of the cluster's driver:
//! one poller, no locks. What is proposed and delivered is kept, and looked at when all is over.
//! Nothing is written to a disk. All members share the processors of one machine, and so does their
//! network: what is measured is what all of them together do, and not what a cluster would.

mod chunks;
mod link;
mod member;

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use muesli_broadcast::MemberId;
use muesli_core::Nanos;

use crate::failure::RunError;
use crate::load::CommandPlan;
use crate::order::OrderCheck;
use crate::outcome::{CommandLatency, CommandOutcome};
use link::MemberLink;
use member::{MemberResult, MemberThread};

/// There are so many members at most: each is a thread.
pub const NODES_MAX: usize = 9;
/// A preparation, and what is open at the end, take so long at most.
const PATIENCE: Duration = Duration::from_secs(30);
/// What all members did is looked at so often.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// How far a run is; numbers, as threads share it.
mod phase {
    /// Members touch all of their objects.
    pub const PREPARING: u8 = 1;
    /// Clients run, and are not measured.
    pub const WARMING_UP: u8 = 2;
    /// They are measured.
    pub const MEASURING: u8 = 3;
    /// They are through.
    pub const ENDING: u8 = 4;
    /// Threads end.
    pub const OVER: u8 = 5;
}

/// What threads share.
#[derive(Debug)]
struct SharedRun {
    start: Instant,
    phase: AtomicU8,
    /// By member, the phase that it has seen.
    seen: Vec<AtomicU8>,
    /// Commands that were proposed and not given up.
    proposed: AtomicU64,
    /// By member, what it has delivered.
    delivered: Vec<AtomicU64>,
    /// Commands that were measured.
    measured: AtomicU64,
}

impl SharedRun {
    fn new(members: usize) -> SharedRun {
        SharedRun {
            start: Instant::now(),
            phase: AtomicU8::new(phase::PREPARING),
            seen: (0..members).map(|_| AtomicU8::new(0)).collect(),
            proposed: AtomicU64::new(0),
            delivered: (0..members).map(|_| AtomicU64::new(0)).collect(),
            measured: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn set(&self, phase: u8) {
        self.phase.store(phase, Ordering::Release);
    }

    /// How many commands are missing somewhere.
    fn open(&self) -> u64 {
        let proposed = self.proposed.load(Ordering::Acquire);
        let least = self.delivered.iter().map(|it| it.load(Ordering::Acquire)).min();
        proposed.saturating_sub(least.unwrap_or(0))
    }

    /// Whether all members know of a phase, and have delivered all.
    fn is_through(&self, phase: u8) -> bool {
        self.seen.iter().all(|seen| seen.load(Ordering::Acquire) >= phase) && self.open() == 0
    }

    fn wait_through(&self, phase: u8, after: &'static str) -> Result<(), RunError> {
        let begun = Instant::now();
        while !self.is_through(phase) {
            if begun.elapsed() > PATIENCE {
                let open = self.open() as usize;
                return Err(RunError::Stuck {
                    open,
                    phase: after,
                    after: PATIENCE.as_nanos() as u64,
                });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Takes the group through all phases; how long clients were measured.
    fn drive(&self, plan: &CommandPlan) -> Result<Nanos, RunError> {
        self.wait_through(phase::PREPARING, "the preparation began")?;
        self.set(phase::WARMING_UP);
        std::thread::sleep(Duration::from_nanos(plan.warm_up.0));
        self.set(phase::MEASURING);
        let begun = self.now();
        let is_over = || {
            let enough = self.measured.load(Ordering::Relaxed) >= plan.most;
            self.now() - begun >= plan.measured || enough
        };
        while !is_over() {
            std::thread::sleep(LOOK_EVERY);
        }
        let measured = self.now() - begun;
        self.set(phase::ENDING);
        self.wait_through(phase::ENDING, "clients had ended")?;
        Ok(measured)
    }
}

/// Runs a plan on threads of this machine.
///
/// # Errors
/// The plan cannot be run, or members ordered wrongly, or did not come to an end, or the system
/// does not let them talk.
pub fn run(plan: &CommandPlan) -> Result<CommandOutcome, RunError> {
    plan.check()?;
    let count = plan.load.nodes;
    assert!(count <= NODES_MAX, "{count} members are too many for threads");
    let system = |error: std::io::Error| RunError::System(format!("members cannot talk: {error}"));
    let shared = SharedRun::new(count);
    let mut threads = Vec::new();
    for (me, links) in connected(count).map_err(system)?.into_iter().enumerate() {
        threads.push(MemberThread::new(plan, me, links, &shared).map_err(system)?);
    }
    let (driven, results) = std::thread::scope(|scope| {
        let running: Vec<_> =
            threads.into_iter().map(|thread| scope.spawn(move || thread.run())).collect();
        let driven = shared.drive(plan);
        shared.set(phase::OVER);
        let results = running.into_iter().map(|it| it.join().expect("a member does not panic"));
        (driven, results.collect::<Vec<_>>())
    });
    let results = results.into_iter().collect::<Result<Vec<_>, RunError>>()?;
    let measured = driven?;
    outcome(plan, measured, results)
}

/// Puts together what members did, and checks it.
fn outcome(
    plan: &CommandPlan,
    measured: Nanos,
    results: Vec<MemberResult>,
) -> Result<CommandOutcome, RunError> {
    let mut check = OrderCheck::new(plan.load.nodes, plan.load.all_objects() as usize);
    let (mut outcome, mut latencies) = (CommandOutcome::default(), Vec::new());
    for (id, command) in results.iter().flat_map(|it| it.proposed.iter()) {
        check.propose(*id, command.clone());
        outcome.checked += 1;
    }
    for id in results.iter().flat_map(|it| &it.given_up) {
        check.give_up(*id)?;
        outcome.checked -= 1;
    }
    for (me, it) in (0..).map(MemberId).zip(results) {
        for (id, digest) in it.delivered {
            check.deliver(me, id, digest)?;
        }
        outcome.skipped += it.skipped;
        outcome.messages += it.messages;
        outcome.packets += it.packets;
        outcome.bytes += it.bytes;
        latencies.extend(it.latencies);
    }
    check.finish()?;
    outcome.measured = measured;
    outcome.commands = latencies.len() as u64;
    outcome.latency = CommandLatency::of(latencies);
    outcome.order = check.digest();
    Ok(outcome)
}

/// By member, its connections to all others.
fn connected(count: usize) -> std::io::Result<Vec<Vec<Option<MemberLink>>>> {
    let mut all: Vec<Vec<Option<MemberLink>>> =
        (0..count).map(|_| (0..count).map(|_| None).collect()).collect();
    let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    for (first, second) in pairs {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let there = TcpStream::connect(listener.local_addr()?)?;
        let (here, _) = listener.accept()?;
        all[first][second] = Some(MemberLink::new(here)?);
        all[second][first] = Some(MemberLink::new(there)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use muesli_broadcast::BroadcastChoice;

    use super::*;
    use crate::load::CommandLoad;

    #[test]
    fn members_over_tcp_deliver_everything_in_one_order() {
        for (name, broadcast) in BroadcastChoice::all() {
            let usual = CommandPlan::default();
            let load = CommandLoad {
                objects: 20,
                locality: 50.0,
                complex: 20.0,
                limit: 8,
                ..usual.load.clone()
            };
            let measured = Nanos::from_millis(100);
            let single = CommandPlan { broadcast, load, measured, ..usual };
            let batched = CommandPlan { batch: 10, batches: 2, ..single.clone() };
            for plan in [single, batched] {
                let outcome = run(&plan).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(outcome.commands > 20 && outcome.checked > outcome.commands, "{outcome:?}");
                assert!(outcome.latency.p50 > Nanos(0) && outcome.bytes > 0, "{outcome:?}");
            }
        }
    }

    #[test]
    fn clients_that_think_are_slow() {
        let usual = CommandPlan::default();
        let load = CommandLoad { clients: 2, think: Nanos::from_millis(10), ..usual.load.clone() };
        let plan = CommandPlan { load, measured: Nanos::from_millis(200), ..usual };
        let outcome = run(&plan).expect("it runs");
        assert!((40..=140).contains(&outcome.commands), "3 nodes, 2 clients, 20 each: {outcome:?}");
    }
}
