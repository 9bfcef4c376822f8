//! What is observed of transactions besides the time that they take: why attempts are undone, where
//! in them, and what their children cost.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// So many levels of children are told apart; those further in count with the last one.
const LEVELS: usize = 4;
/// No count of a comparison is as large, in years.
pub(super) const COUNTS_MOST: u64 = 1 << 60;

/// What was observed of the transactions of one place while they were run as one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestingObservation {
    /// Attempts that were undone in full.
    pub aborted: u64,
    /// Those of them that ended within a part, where an early validation failed or a lock was
    /// refused, by the level of the innermost one: the outermost first, the last one with all that
    /// are further in. (Others ended between parts, or as the transaction was to commit.)
    pub in_part: [u64; LEVELS],
    /// Those of them in which a part had ended well before: what follows a part is in the way of
    /// others, or they of it.
    pub after_part: u64,
    /// Children that were undone and run again alone, by level.
    pub partial: [u64; LEVELS],
    /// Attempts, of the transaction or of an open child, that ended as an abstract lock was
    /// refused.
    pub refused: u64,
    /// How long attempts took that were undone in full, with the pauses after them.
    pub lost: Duration,
    /// How long closed children took to begin and to be merged; or open ones to commit, and their
    /// locks to be released or themselves to be compensated.
    pub sub_commits: Duration,
    /// Parts that ended well, as children or not.
    pub parts: u64,
    /// Within how many parts and children the innermost one was.
    pub depth: u32,
}

/// Where a level is counted, the first one being 1.
fn place(level: u32) -> usize {
    (level.max(1) as usize).min(LEVELS) - 1
}

impl NestingObservation {
    /// What was observed besides.
    pub(super) fn add(&mut self, other: &NestingObservation) {
        self.aborted += other.aborted;
        self.after_part += other.after_part;
        self.refused += other.refused;
        self.lost += other.lost;
        self.sub_commits += other.sub_commits;
        self.parts += other.parts;
        self.depth = self.depth.max(other.depth);
        for level in 0..LEVELS {
            self.in_part[level] += other.in_part[level];
            self.partial[level] += other.partial[level];
        }
    }

    /// Whether it can be added to others: what is read from a row may be anything.
    pub(super) fn is_plausible(&self) -> bool {
        let counts = [self.aborted, self.after_part, self.refused, self.parts];
        let by_level = self.in_part.iter().chain(&self.partial);
        let times = [self.lost, self.sub_commits].map(|it| it.as_nanos());
        by_level.chain(&counts).all(|it| *it < COUNTS_MOST)
            && times.into_iter().all(|it| it < u128::from(COUNTS_MOST))
    }

    /// Conflicts that were found within a part, whatever was undone then: these may be kept to it.
    pub(super) fn within_parts(&self) -> u64 {
        self.in_part.iter().chain(&self.partial).sum()
    }

    /// What is observed, a commit, where so many committed: only what there is of it.
    pub(super) fn of_commits(&self, committed: u64) -> PerCommit<'_> {
        PerCommit { observed: self, committed: committed.max(1) as f64 }
    }
}

/// An observation to be shown, a commit.
pub(super) struct PerCommit<'a> {
    observed: &'a NestingObservation,
    committed: f64,
}

impl fmt::Display for PerCommit<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (observed, a_commit) = (self.observed, |many: u64| many as f64 / self.committed);
        let by_level = |what: &str, levels: &[u64; LEVELS]| -> String {
            let some = levels.iter().enumerate().filter(|(_, many)| **many > 0);
            let level = |(at, many): (usize, &u64)| {
                format!(", {:.2} {what} at level {}", a_commit(*many), at + 1)
            };
            some.map(level).collect()
        };
        out.write_str(&by_level("conflicts in parts", &observed.in_part))?;
        if observed.after_part > 0 {
            write!(out, ", {:.2} after parts", a_commit(observed.after_part))?;
        }
        out.write_str(&by_level("children undone alone", &observed.partial))?;
        if observed.refused > 0 {
            write!(out, ", {:.2} locks refused", a_commit(observed.refused))?;
        }
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / self.committed;
        if observed.lost > Duration::ZERO {
            write!(out, ", {:.0} µs lost", micros(observed.lost))?;
        }
        if observed.sub_commits > Duration::ZERO {
            write!(out, ", {:.0} µs for children's ends", micros(observed.sub_commits))?;
        }
        match observed.depth {
            0 => out.write_str(", no parts"),
            1 => Ok(()),
            depth => write!(out, ", parts {depth} deep"),
        }
    }
}

/// What is seen of an attempt while it runs.
#[derive(Debug, Default)]
pub(super) struct AttemptSeen {
    observed: NestingObservation,
    /// Within so many parts it is.
    depth: u32,
    /// A conflict was found within a part, which those around it pass on.
    has_conflict: bool,
}

impl AttemptSeen {
    /// A part begins, within those that have begun: its level.
    pub fn part_begins(&mut self) -> u32 {
        self.depth += 1;
        self.observed.depth = self.observed.depth.max(self.depth);
        self.depth
    }

    /// An open child begins, beside which others may: its level.
    pub fn open_child_begins(&mut self) -> u32 {
        self.observed.depth = self.observed.depth.max(self.depth + 1);
        self.depth + 1
    }

    /// The innermost part is over, however it ended.
    pub fn part_is_over(&mut self) {
        assert!(self.depth > 0, "it began");
        self.depth -= 1;
    }

    /// A part has ended well.
    pub fn part_ended_well(&mut self) {
        self.observed.parts += 1;
    }

    /// Within a part of this level it is found that the whole attempt is in vain.
    pub fn conflict_in_part(&mut self, level: u32) {
        if !std::mem::replace(&mut self.has_conflict, true) {
            self.observed.in_part[place(level)] += 1;
        }
    }

    /// A part of this level is undone alone, and run again.
    pub fn undone_alone(&mut self, level: u32) {
        self.observed.partial[place(level)] += 1;
    }

    /// An abstract lock was refused.
    pub fn refused(&mut self) {
        self.observed.refused += 1;
    }

    /// Children took so long to begin, to end and to be undone, besides what they did.
    pub fn sub_commits(&mut self, took: Duration) {
        self.observed.sub_commits += took;
    }

    /// It is over; `lost`: it was undone, and that took so long.
    pub fn end(&mut self, lost: Option<Duration>) -> NestingObservation {
        let mut observed = std::mem::take(self).observed;
        if let Some(lost) = lost {
            observed.aborted += 1;
            observed.after_part += u64::from(observed.parts > 0);
            observed.lost += lost;
        } else {
            observed.in_part = [0; LEVELS]; // What a body caught has ended no attempt.
        }
        observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Option<Duration> = Some(Duration::from_micros(7));

    #[test]
    fn a_conflict_counts_where_it_is_found_and_not_where_it_is_passed_on() {
        let mut seen = AttemptSeen::default();
        let (outer, inner) = (seen.part_begins(), seen.part_begins());
        seen.conflict_in_part(inner);
        seen.part_is_over();
        seen.conflict_in_part(outer);
        seen.part_is_over();
        let observed = seen.end(LOST);
        assert_eq!((observed.in_part, observed.after_part), ([0, 1, 0, 0], 0));
        assert_eq!((observed.aborted, observed.depth, observed.lost), (1, 2, LOST.unwrap()));
        assert_eq!(seen.end(None), NestingObservation::default(), "the next one begins anew");
    }

    #[test]
    fn levels_that_are_far_in_count_with_the_last() {
        let mut seen = AttemptSeen::default();
        let innermost = (0..6).map(|_| seen.part_begins()).last().unwrap();
        seen.undone_alone(innermost);
        (0..6).for_each(|_| seen.part_is_over());
        assert_eq!(seen.end(None).partial, [0, 0, 0, 1]);
    }

    #[test]
    fn what_follows_a_part_is_told_from_what_precedes_all() {
        let mut seen = AttemptSeen::default();
        seen.part_begins();
        seen.part_ended_well();
        seen.part_is_over();
        let mut all = seen.end(LOST);
        all.add(&seen.end(LOST));
        assert_eq!((all.aborted, all.after_part, all.parts), (2, 1, 1));
        let text = all.of_commits(2).to_string();
        assert_eq!(text, ", 0.50 after parts, 7 µs lost");
    }

    #[test]
    fn open_children_beside_each_other_are_of_one_level() {
        let mut seen = AttemptSeen::default();
        assert_eq!((seen.open_child_begins(), seen.open_child_begins()), (1, 1));
        seen.part_begins();
        assert_eq!(seen.open_child_begins(), 2);
    }

    #[test]
    #[should_panic(expected = "it began")]
    fn no_part_is_over_that_did_not_begin() {
        AttemptSeen::default().part_is_over();
    }
}
