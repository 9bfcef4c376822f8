//! A simulated group: nodes whose work costs virtual time.
//!
//! # The model
//! It was written down before any figure was run, and is the same for all broadcasts.
//!
//! A node has some cores, and does three kinds of work, each on whichever core is free, in the
//! order in which it became known:
//!
//! * It *steps* its member: takes what waits for it, up to 64 proposals and messages, one after the
//!   other. A member is one state machine, so that of all cores one at a time does this. A step
//!   costs [`tick`](muesli_sim::hardware::costs::Costs::tick), an operation for each proposal, and
//!   what [`StepCosts`] says of each message and of each command that is delivered.
//! * It *sends* a packet: all messages that wait for one member, or one of them where nothing is
//!   batched. That costs a flush, and a message and its bytes as they are sent.
//! * It *takes* what has come from one member: a fetch, messages and bytes as they are received.
//!
//! What a step says leaves when it ends. A packet then passes the node's wire, after those before
//! it, and is under way for a latency drawn anew; it never overtakes one sent before it to the same
//! member. Wires are of a bandwidth each node has for all that it sends. Nothing is lost, nothing
//! written to a disk, and nobody crashes. A node that proposes a command is its client's: the way
//! from there is no way.
//!
//! So cores beyond the first share what is sent and taken, which is most of the work, and not the
//! steps. Nothing else scales with cores, as members of all broadcasts are built alike.

mod costs;
mod group;
mod node;

use muesli_sim::hardware::costs::Costs;
use muesli_sim::network::topology::Topology;

use crate::failure::RunError;
use crate::load::CommandPlan;
use crate::outcome::CommandOutcome;
pub use costs::StepCosts;
use group::SimulatedGroup;

/// What nodes run on.
#[derive(Clone, Debug)]
pub struct CommandMachine {
    /// What packets and messages cost, and a step besides what is in it.
    pub costs: Costs,
    /// What is in a step.
    pub steps: StepCosts,
    /// How far nodes are from each other.
    pub topology: Topology,
    /// Bytes a second that a node sends, to all; 0: without limit.
    pub bandwidth: u64,
}

/// Runs a plan; the same again with the same seed.
///
/// # Errors
/// The plan cannot be run, or members ordered wrongly, or did not come to an end.
///
/// # Panics
/// If the topology has other nodes than the plan.
pub fn run(plan: &CommandPlan, machine: &CommandMachine) -> Result<CommandOutcome, RunError> {
    plan.check()?;
    assert_eq!(machine.topology.nodes(), plan.load.nodes, "a topology of all nodes");
    SimulatedGroup::new(plan, machine).run()
}

#[cfg(test)]
mod tests {
    use muesli_broadcast::BroadcastChoice;
    use muesli_core::Nanos;
    use muesli_sim::latency::Latency;
    use muesli_sim::network::topology::ChannelClass;
    use muesli_sim::time::Span;

    use super::*;
    use crate::load::CommandLoad;

    fn machine(nodes: usize) -> CommandMachine {
        let latency =
            Latency::Exponential { least: Span::from_micros(50), mean_tail: Span::from_micros(20) };
        CommandMachine {
            costs: Costs::measured(),
            steps: StepCosts::MEASURED,
            topology: Topology::uniform(nodes, ChannelClass { latency, bandwidth: 0 }),
            bandwidth: 1_000_000_000,
        }
    }

    fn plan(nodes: usize, change: impl Fn(&mut CommandPlan)) -> CommandPlan {
        let mut plan = CommandPlan::default();
        plan.load = CommandLoad { nodes, objects: 20, limit: 8, ..plan.load };
        plan.most = 500;
        change(&mut plan);
        plan
    }

    fn ran(plan: &CommandPlan) -> CommandOutcome {
        run(plan, &machine(plan.load.nodes)).unwrap_or_else(|error| panic!("{plan:?}: {error}"))
    }

    #[test]
    fn every_broadcast_orders_every_kind_of_load() {
        for (name, broadcast) in BroadcastChoice::all() {
            for (nodes, locality, complex) in
                [(1, 100.0, 0.0), (3, 100.0, 0.0), (4, 0.0, 0.0), (5, 50.0, 50.0)]
            {
                let plan = plan(nodes, |plan| {
                    plan.broadcast = broadcast.clone();
                    (plan.load.locality, plan.load.complex) = (locality, complex);
                });
                let outcome = ran(&plan);
                assert!(outcome.commands >= 100, "{name} at {nodes}: {outcome:?}");
                assert!(outcome.checked > outcome.commands, "{name} at {nodes}: {outcome:?}");
                let messages = outcome.each(outcome.messages);
                let least = 2.0 * (nodes as f64 - 1.0);
                assert!(messages >= least, "{name} at {nodes}: {messages} messages a command");
            }
        }
    }

    #[test]
    fn a_run_comes_out_the_same_again_and_another_seed_gives_another_one() {
        let plan = plan(3, |plan| (plan.load.locality, plan.load.complex) = (50.0, 20.0));
        let first = ran(&plan);
        assert_eq!(ran(&plan), first);
        assert_ne!(ran(&CommandPlan { seed: 2, ..plan }), first);
    }

    #[test]
    fn what_is_ordered_as_one_is_ordered_with_fewer_messages() {
        // By grants each command is ordered by itself.
        let all = BroadcastChoice::all().into_iter();
        for (name, broadcast) in all.filter(|(name, _)| !name.starts_with("m2paxos-bounded")) {
            let single = plan(3, |plan| {
                plan.broadcast = broadcast.clone();
                (plan.load.locality, plan.load.complex) = (80.0, 5.0);
                (plan.load.limit, plan.load.objects) = (64, 50);
            });
            let batched = CommandPlan { batch: 100, ..single.clone() };
            let [single, batched] = [single, batched].map(|plan| ran(&plan));
            let messages = |it: &CommandOutcome| it.each(it.messages);
            assert!(messages(&batched) < messages(&single), "{name}: {batched:?} {single:?}");
        }
    }

    #[test]
    fn clients_that_think_issue_as_often_as_they_wake() {
        let slow = plan(3, |plan| {
            (plan.load.clients, plan.load.think) = (4, Nanos::from_millis(1));
            plan.measured = Nanos::from_millis(50);
        });
        let outcome = ran(&slow);
        let expected = 3.0 * 4.0 * 1_000.0;
        assert!((outcome.a_second() / expected - 1.0).abs() < 0.05, "{}", outcome.a_second());
        let mut limited = slow.clone();
        (limited.load.limit, limited.load.clients) = (1, 64);
        let outcome = ran(&limited);
        assert!(outcome.skipped > 0 && outcome.a_second() < 64_000.0 * 3.0, "{outcome:?}");
    }

    #[test]
    fn cores_and_packets_count() {
        let alone = plan(3, |plan| {
            (plan.batching, plan.cores, plan.load.limit) = (false, 1, 64);
        });
        let four = CommandPlan { cores: 4, ..alone.clone() };
        let batched = CommandPlan { batching: true, ..alone.clone() };
        let [alone, four, batched] = [alone, four, batched].map(|plan| ran(&plan));
        assert!(four.a_second() > 1.5 * alone.a_second(), "{alone:?} {four:?}");
        assert!(batched.a_second() > 1.2 * alone.a_second(), "{alone:?} {batched:?}");
        assert!(
            (alone.messages, alone.packets).0 == alone.packets
                && batched.packets < batched.messages
        );
        let busy = alone.busy.expect("it is simulated");
        assert!(
            busy.busiest > 0.9 && busy.busiest < 1.1 && busy.stepping < busy.busiest,
            "{busy:?}"
        );
    }
}
