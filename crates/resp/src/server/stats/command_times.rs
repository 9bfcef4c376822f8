//! How often each command was given, and how long it took.
//!
//! A command's time is that of its transaction, to the commit and, where data are on a disk, to the
//! disk; where several commands were one transaction, each has an equal share of it. What a command
//! has waited for others (`BLPOP`) is not in it.

use std::cell::RefCell;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::commands::spec::Spec;
use crate::protocol::request::RespCommand;

/// The longest time that is told from longer ones, in nanoseconds.
const LONGEST: u64 = 1 << 40;
/// Times that differ by less than a hundredth are one.
const DIGITS: u8 = 2;
/// The first step of a histogram that is told, in nanoseconds; each is twice the one before.
const FIRST_STEP: u64 = 1_024;

/// A command that was run.
pub(in crate::server) struct RanCommand<'a> {
    pub command: &'a RespCommand,
    pub spec: &'static Spec,
    /// It was answered with an error.
    pub has_failed: bool,
}

/// What is known of one command.
pub(in crate::server) struct CommandCounts {
    pub spec: &'static Spec,
    /// How often it was run, and how often that failed.
    pub calls: u64,
    pub failed: u64,
    /// How often it was not run: it cannot be given so, now, or by this user.
    pub rejected: u64,
    /// How long it took in all.
    pub total: Duration,
    /// In nanoseconds.
    times: Histogram<u64>,
}

impl CommandCounts {
    fn new(spec: &'static Spec) -> CommandCounts {
        let times = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("bounds that can be");
        CommandCounts { spec, calls: 0, failed: 0, rejected: 0, total: Duration::ZERO, times }
    }

    /// So many percent of its calls took no longer than this, in microseconds.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.times.value_at_percentile(percent) as f64 / 1_000.0
    }

    /// How many calls took no longer than so many microseconds, for each step with more than the
    /// one before.
    pub fn steps_us(&self) -> Vec<(u64, u64)> {
        let (mut steps, mut count) = (Vec::new(), 0);
        for step in self.times.iter_log(FIRST_STEP, 2.0) {
            count += step.count_since_last_iteration();
            if step.count_since_last_iteration() > 0 {
                steps.push((step.value_iterated_to() / 1_000, count));
            }
        }
        steps
    }
}

/// What is known of each command that was given.
#[derive(Default)]
pub(in crate::server) struct CommandTimes {
    /// Few, and those that are given most are soon there.
    all: RefCell<Vec<CommandCounts>>,
}

impl CommandTimes {
    /// A command was run.
    pub fn note(&self, spec: &'static Spec, took: Duration, has_failed: bool) {
        self.change(spec, |counts| {
            counts.calls += 1;
            counts.failed += u64::from(has_failed);
            counts.total += took;
            counts.times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(LONGEST));
        });
    }

    /// A command was not run.
    pub fn note_rejected(&self, spec: &'static Spec) {
        self.change(spec, |counts| counts.rejected += 1);
    }

    fn change(&self, spec: &'static Spec, change: impl FnOnce(&mut CommandCounts)) {
        let mut all = self.all.borrow_mut();
        let known = all.iter().position(|it| std::ptr::eq(it.spec, spec));
        let at = known.unwrap_or_else(|| {
            all.push(CommandCounts::new(spec));
            all.len() - 1
        });
        change(&mut all[at]);
    }

    /// Forgets these commands; how many it knew of.
    pub fn reset(&self, is_meant: impl Fn(&Spec) -> bool) -> usize {
        let mut all = self.all.borrow_mut();
        let before = all.len();
        all.retain(|it| !is_meant(it.spec));
        before - all.len()
    }

    /// Looks at all, in the order of their names.
    pub fn each(&self, look: impl FnMut(&CommandCounts)) {
        let all = self.all.borrow();
        let mut named: Vec<_> = all.iter().collect();
        named.sort_by_key(|it| it.spec.name);
        named.into_iter().for_each(look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::table::find;

    #[test]
    fn times_are_told_by_steps_and_percentiles() {
        let (times, get) = (CommandTimes::default(), find(b"get").unwrap());
        for us in [1, 1, 3, 700] {
            times.note(get, Duration::from_micros(us), us == 700);
        }
        times.note(find(b"auth").unwrap(), Duration::from_secs(100_000), false);
        times.note_rejected(get);
        let mut seen = Vec::new();
        times.each(|it| seen.push((it.spec.name, it.calls, it.failed, it.rejected, it.steps_us())));
        let steps = vec![(1, 2), (4, 3), (1_048, 4)];
        assert_eq!(seen[1], ("get", 4, 1, 1, steps));
        assert_eq!((seen[0].0, seen.len()), ("auth", 2));
        times.each(|it| {
            let half = it.percentile_us(50.0);
            assert!(it.spec.name != "get" || (0.99..1.02).contains(&half), "{half}");
        });
        assert_eq!(times.reset(|it| it.name == "get"), 1);
        assert_eq!(times.reset(|_| true), 1);
    }
}
