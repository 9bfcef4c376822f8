//! Readers that are judged one at a time.
//!
//! The core is known to be acyclic, so a cycle with one more transaction R must leave R by one of
//! its edges, and come back by another: some node that R precedes reaches some node that precedes
//! R. In the topological order of the core, most readers cannot have such a path at all: all they
//! precede lies after all that precedes them. The rest are answered 128 at a time by one sweep
//! over the window of the order they span, each reader a bit that nodes pass on to their
//! successors. So 100 000 suspicious readers cost 800 sweeps of windows, not 100 000 searches.

use super::sink::AuxiliaryRole;
use super::{Components, Graph};

const COLUMNS: usize = 128;

/// A reader with the window of the order in which its cycle would lie.
struct Suspect {
    reader: u32,
    low: u32,
    high: u32,
}

/// The first reader, in order of recording, that closes a cycle with the core.
pub(crate) fn first_broken_reader(graph: &Graph, components: &Components) -> Option<u32> {
    let mut position = vec![0_u32; graph.rows.nodes()];
    for (place, node) in components.order.iter().rev().enumerate() {
        position[*node as usize] = place as u32;
    }
    let mut suspects: Vec<Suspect> = (0..graph.transactions)
        .filter(|node| graph.roles[*node as usize] == AuxiliaryRole::Reader)
        .filter_map(|reader| suspect(graph, &position, reader))
        .collect();
    suspects.sort_unstable_by_key(|suspect| (suspect.low, suspect.reader));
    let mut masks = vec![0_u128; components.order.len()];
    let batches = suspects.chunks(COLUMNS);
    batches.filter_map(|batch| sweep(graph, components, &position, batch, &mut masks)).min()
}

fn suspect(graph: &Graph, position: &[u32], reader: u32) -> Option<Suspect> {
    let place = |node: &u32| position[*node as usize];
    let low = graph.rows.of(reader).iter().map(place).min()?;
    let high = graph.into_readers.of(reader).iter().map(place).max()?;
    (low <= high).then_some(Suspect { reader, low, high })
}

/// The earliest recorded reader of the batch that has a cycle; `masks` is clean before and after.
fn sweep(
    graph: &Graph,
    components: &Components,
    position: &[u32],
    batch: &[Suspect],
    masks: &mut [u128],
) -> Option<u32> {
    let low = batch.iter().map(|suspect| suspect.low).min()? as usize;
    let high = batch.iter().map(|suspect| suspect.high).max()? as usize;
    for (column, suspect) in batch.iter().enumerate() {
        for node in graph.rows.of(suspect.reader) {
            let place = position[*node as usize];
            if place <= suspect.high {
                masks[place as usize] |= 1 << column;
            }
        }
    }
    let last = components.order.len() - 1;
    for place in low..=high {
        let mask = masks[place];
        if mask == 0 {
            continue;
        }
        for next in graph.rows.of(components.order[last - place]) {
            let next = position[*next as usize] as usize;
            if next <= high {
                masks[next] |= mask;
            }
        }
    }
    let closes = |(column, suspect): (usize, &Suspect)| {
        let before = graph.into_readers.of(suspect.reader).iter();
        let reached = |node: &u32| masks[position[*node as usize] as usize] >> column & 1 == 1;
        before.clone().any(reached).then_some(suspect.reader)
    };
    let found = batch.iter().enumerate().filter_map(closes).min();
    masks[low..=high].fill(0);
    found
}
