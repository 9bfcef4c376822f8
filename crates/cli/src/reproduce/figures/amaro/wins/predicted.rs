//! What the cost model says of a setting of these figures.

use muesli_sim::time::Span;

use super::cost_model::{DecidedBy, ModelledCommit, ModelledMachines, throughput};
use crate::reproduce::figure::Setting;

/// Whether decisions of trees go down the tree.
const DOWN: bool = true;

/// Committed transactions a second, by arithmetic; what clients' own nodes have to do is no limit.
pub fn predicted(setting: &Setting) -> f64 {
    let number = |name, usual| setting.number(name).unwrap_or(usual);
    let (nodes, updates) = (setting.nodes as f64, number("updates", 8.0));
    let rack = setting.machine.racks.nodes;
    let racks = if rack == 0 { 1.0 } else { nodes / rack as f64 };
    let read = 1.0 - number("blind", 0.0) / 100.0;
    let subtrees = number("subtrees", 0.0);
    let participants = updates.min(nodes);
    let touched = |span: f64| match subtrees {
        0.0 => touched(nodes, span, participants),
        _ => subtrees.min(nodes / span),
    };
    let cores = setting.machine.cores.max(1) as f64;
    let wide = ModelledCommit {
        participants,
        far: participants * (1.0 - 1.0 / if subtrees > 0.0 { subtrees } else { racks }),
        racks: if rack == 0 { 1.0 } else { touched(rack as f64) },
        machines: (touched(cores), nodes / cores),
        // Where all are below one inner node, that decides.
        edges: setting
            .tree_spans
            .iter()
            .map(|span| touched(*span as f64))
            .filter(|it| *it > 1.0)
            .sum(),
        read,
    };
    let wide = if rack == 0 { ModelledCommit { far: 0.0, ..wide } } else { wide };
    let own = setting.tree_spans.first().map_or(nodes, |span| *span as f64);
    let near = ModelledCommit {
        participants: updates.min(own),
        far: 0.0,
        racks: 1.0,
        edges: 0.0,
        machines: ((updates.min(own) / cores).max(1.0), nodes / cores),
        read,
    };
    let share = number("subtree", 0.0) / 100.0;
    throughput(&[(1.0 - share, wide), (share, near)], &machines(setting, racks, read), by(setting))
}

fn by(setting: &Setting) -> DecidedBy {
    match setting.protocol {
        name if name.ends_with("-flat-participant") || name.ends_with("-flat-relay") => {
            DecidedBy::Participant
        }
        name if name.ends_with("-flat") || name == "two-phase-commit" => DecidedBy::Client,
        _ => DecidedBy::Tree { down: DOWN },
    }
}

fn machines(setting: &Setting, racks: f64, read: f64) -> ModelledMachines {
    let seconds = |span: Span| span.as_nanos() as f64 / 1e9;
    let (costs, link) = (&setting.machine.costs, setting.machine.racks.link);
    let each = |rate: u64| if rate == 0 { 0.0 } else { 1.0 / rate as f64 };
    ModelledMachines {
        nodes: (setting.nodes + setting.validator_nodes) as f64,
        racks,
        cores: setting.machine.cores.max(1) as f64,
        message: seconds(costs.receive + costs.send) / 2.0,
        fetch: seconds(costs.fetch),
        flush: seconds(costs.flush),
        handover: seconds(costs.core),
        work: seconds(costs.install)
            + seconds(costs.validate) * (1.0 + read)
            + seconds(costs.read) * read,
        batch: setting.batching.others.size() as f64,
        link_packet: each(link.packets),
        link_byte: each(link.bandwidth),
        object: setting.number("bytes").unwrap_or(1_000.0),
    }
}

/// Of so many nodes in groups of `span`, how many groups some nodes drawn from all are in.
fn touched(nodes: f64, span: f64, drawn: f64) -> f64 {
    let missed: f64 = (0..drawn as usize)
        .map(|at| ((nodes - span - at as f64) / (nodes - at as f64)).max(0.0))
        .product();
    nodes / span * (1.0 - missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_touched_as_often_as_draws_say() {
        assert_eq!(touched(32.0, 32.0, 3.0), 1.0);
        assert_eq!(touched(8.0, 2.0, 1.0), 1.0);
        assert!((touched(4.0, 2.0, 2.0) - 5.0 / 3.0).abs() < 1e-12);
        assert_eq!(touched(4.0, 2.0, 4.0), 2.0);
    }
}
