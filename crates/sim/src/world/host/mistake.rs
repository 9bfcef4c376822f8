//! Mistakes that a host can be told to make, so that tests see them noticed.

/// A mistake in keeping a log, which somebody must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A node that starts leaves out the record in the middle of its log.
    SkipsARecord,
    /// A node that starts leaves out the newest record of its log, which was stable.
    LosesTheNewest,
    /// A checkpoint cuts one record more off the log than it has.
    CutsTooMuch,
}
