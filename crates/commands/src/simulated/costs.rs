//! What a member's steps cost.

use muesli_sim::time::Span;

/// What is done in a step, the same for all broadcasts.
///
/// Measured by `cargo bench -p muesli-broadcast` on 2026-11-28, on a virtual machine (AMD EPYC, 2
/// cores) that others used, too: groups of three and eleven, ten and a hundred commands in flight,
/// under all broadcasts; the numbers are those that fit these 30 rows best, each by its share.
/// docs/inside/commands.md has the rows. Those of batches are from its rows of a thousand commands
/// pending, as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCosts {
    /// A message that is handled, with what its handling sends.
    pub message: Span,
    /// A byte of such a message, in picoseconds: sets of commands, by which broadcasts say what
    /// depends on what, take as long to handle as they are.
    pub byte_picos: u64,
    /// A command that is delivered, at each member.
    pub delivery: Span,
    /// A further command of a batch that is delivered.
    pub batched: Span,
    /// The same, where others of the batch touch all of its objects before it.
    pub repeated: Span,
}

impl StepCosts {
    /// As measured.
    pub const MEASURED: StepCosts = StepCosts {
        message: Span::from_nanos(400),
        byte_picos: 1_100,
        delivery: Span::from_nanos(2_100),
        batched: Span::from_nanos(1_900),
        repeated: Span::from_nanos(400),
    };
    /// Steps that take no time.
    pub const FREE: StepCosts = StepCosts {
        message: Span::ZERO,
        byte_picos: 0,
        delivery: Span::ZERO,
        batched: Span::ZERO,
        repeated: Span::ZERO,
    };
}
