//! What a commit costs in messages (section 3.5).

use super::base::{OBJECTS, batches, set_clients, tree};
use crate::reproduce::figure::{Axis, Figure, Measure, PlottedLine, claim, line, protocol};
use crate::reproduce::point::Quantity::{CommitMessages, CommitPackets};

/// Batches, with so many clients that they fill.
const BATCHES: Axis = Axis {
    name: "batch",
    set: |x, setting| {
        set_clients(400, setting);
        batches(x as usize, setting);
    },
    range: (1.0, 100.0),
    logarithmic: false,
};

const LINES: &[PlottedLine] =
    &[protocol("two-phase-commit"), line("hierarchy-locking", "hierarchy-locking", tree)];

/// All of them.
pub const FIGURES: &[Figure] = &[Figure {
    name: "amaro-3.5",
    about: "Amaro, section 3.5: packets of a commit on 4 of 8 nodes, over the size of batches",
    parameters: &["objects=16000", "updates=4"],
    axis: BATCHES,
    xs: &[1.0, 10.0, 25.0, 50.0],
    quick_xs: &[1.0, 50.0],
    lines: LINES,
    shows: CommitPackets,
    seconds: (1.0, 0.5),
    chosen: "400 clients, so that batches fill; reads, and what nodes tell each other by \
             themselves, are left out by the kinds of their messages; packets are messages less \
             those that left behind others in one packet",
    claims: &[
        claim(
            "messages, 2PC",
            Measure::At(CommitMessages, "two-phase-commit", 1.0),
            Some(16.0),
            None,
        ),
        claim(
            "messages, tree",
            Measure::At(CommitMessages, "hierarchy-locking", 1.0),
            Some(13.0),
            None,
        ),
        claim(
            "packets, tree, batches of 50",
            Measure::At(CommitPackets, "hierarchy-locking", 50.0),
            Some(5.16),
            None,
        ),
    ],
    ..OBJECTS
}];
