//! Points of figures about commands alone, which are ordered and not executed.

use anyhow::Context;
use muesli_commands::{CommandOutcome, CommandPlan, simulated};
use muesli_core::Nanos;

use crate::bench::commands::machine;
use crate::reproduce::figure::Setting;
use crate::reproduce::point::Point;

/// How long clients run, how many there are, and where chance comes from.
#[derive(Clone, Copy, Debug)]
pub struct CommandClients {
    /// Of each node.
    pub clients: u32,
    /// Before they are measured, in virtual seconds, and then.
    pub warm_up: f64,
    pub seconds: f64,
    pub seed: u64,
}

/// What is run: the protocol of a setting is a broadcast, and its parameters are those of a plan.
///
/// # Errors
/// There is no such broadcast, or no such parameter.
pub fn plan(setting: &Setting, clients: CommandClients) -> anyhow::Result<CommandPlan> {
    let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
    let mut plan = CommandPlan {
        broadcast: CommandPlan::broadcast(setting.protocol)?,
        warm_up: nanos(clients.warm_up),
        measured: nanos(clients.seconds),
        seed: clients.seed,
        ..CommandPlan::default()
    };
    plan.load.nodes = setting.nodes;
    plan.load.clients = clients.clients;
    setting.parameters.iter().try_for_each(|given| plan.change(given))?;
    Ok(plan)
}

/// Runs one, for a line at a value of the axis.
///
/// # Errors
/// It cannot be run, or members did not deliver in one order.
pub fn run(
    setting: &Setting,
    clients: CommandClients,
    (line, x): (&'static str, f64),
) -> anyhow::Result<Point> {
    let plan = plan(setting, clients)?;
    let outcome = simulated::run(&plan, &machine(&setting.machine, plan.load.nodes))
        .with_context(|| format!("{line} at {x} under {}", setting.protocol))?;
    Ok(point(&plan, (line, x), &outcome))
}

fn point(plan: &CommandPlan, (line, x): (&'static str, f64), outcome: &CommandOutcome) -> Point {
    let ms = |nanos: Nanos| nanos.0 as f64 / 1e6;
    Point {
        line,
        x,
        nodes: plan.load.nodes,
        machines: plan.load.nodes,
        clients: plan.load.clients * plan.load.nodes as u32,
        throughput: outcome.a_second(),
        mean_ms: ms(outcome.latency.mean),
        p50_ms: ms(outcome.latency.p50),
        p99_ms: ms(outcome.latency.p99),
        messages_a_commit: outcome.each(outcome.messages),
        busy: outcome.busy.map_or(0.0, |busy| busy.stepping),
        over_first: 1.0,
        first_ms: ms(outcome.latency.mean), // Nothing is tried again.
        ..Point::default()
    }
}
