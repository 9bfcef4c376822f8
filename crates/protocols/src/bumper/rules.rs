//! The switches of Bumper.

use crate::two_phase;

/// Switches. The default is both mechanisms, corrected; what the paper prints is
/// [`Rules::printed`]. Those after the first three are true in the protocol as it should be, but
/// for `by_flags`, and each breaks it alone when it is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The family's switches.
    pub family: two_phase::Rules,
    /// An update whose read is stale may commit in the past.
    pub time_warp: bool,
    /// Actions that need not be done before the commit are delayed until then.
    pub delay: bool,
    /// A transaction with delayed actions may lie in the past, where nobody else has any on their
    /// keys. Off, as in the paper: it aborts if it missed something.
    pub delayed_in_the_past: bool,
    /// The first condition of that.
    pub alone_in_the_past: bool,
    /// The second one: it lies below what it proposed where it has them.
    pub below_proposals: bool,
    /// Reads leave stamps.
    pub read_stamps: bool,
    /// An update that must lie in the past aborts where somebody has read there what it writes.
    pub triad_rule: bool,
    /// It lies before the *earliest* of the versions that it missed.
    pub before_the_earliest: bool,
    /// A read waits for a lock whose holder may yet lie in the past. Off, it waits for holders
    /// proposed inside its snapshot only, as SCORe's do.
    pub reads_wait_for_the_past: bool,
    /// Correction 1: stamps tell readers apart. Off, a key has one pair of stamp and reader, and a
    /// transaction that read the key itself hides who read it before.
    pub distinct_readers: bool,
    /// Correction 2: a stamp is at least the reader's snapshot. Off, it is the repository's clock.
    pub stamps_reach_the_snapshot: bool,
    /// Correction 3: updates that commit stamp what they read with where they lie.
    pub updates_stamp: bool,
    /// Nobody writes at or below the watermark, where deletions and stamps may be forgotten. Alone
    /// it matters only for keys that an update writes at a repository where it read nothing: where
    /// it read, a snapshot below the watermark is refused, and what it missed lies above its
    /// snapshot (the family's `judged_by_snapshot`).
    pub floors_at_watermark: bool,
    /// As printed: a stamp at or above an update's snapshot keeps it from the past, wherever it
    /// would lie, and who missed a version of the past aborts. Off, places are compared, which is
    /// exact.
    pub by_flags: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            family: two_phase::Rules::default(),
            time_warp: true,
            delay: true,
            delayed_in_the_past: false,
            alone_in_the_past: true,
            below_proposals: true,
            read_stamps: true,
            triad_rule: true,
            before_the_earliest: true,
            reads_wait_for_the_past: true,
            distinct_readers: true,
            stamps_reach_the_snapshot: true,
            updates_stamp: true,
            floors_at_watermark: true,
            by_flags: false,
        }
    }
}

impl Rules {
    /// Time-warping alone.
    pub fn time_warping() -> Rules {
        Rules { delay: false, ..Rules::default() }
    }

    /// Delayed actions alone.
    pub fn delaying() -> Rules {
        Rules { time_warp: false, ..Rules::default() }
    }

    /// Both, for one transaction too.
    pub fn reconciled() -> Rules {
        Rules { delayed_in_the_past: true, ..Rules::default() }
    }

    /// Both, and prepares wait for whatever lock they meet.
    pub fn waiting() -> Rules {
        Rules { family: two_phase::Rules::waiting(), ..Rules::default() }
    }

    /// As the paper prints it. It is not serializable.
    pub fn printed() -> Rules {
        Rules {
            distinct_readers: false,
            stamps_reach_the_snapshot: false,
            updates_stamp: false,
            by_flags: true,
            ..Rules::default()
        }
    }
}
