//! What all rounds together gave: transactions, faults, and how long recovering took.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::Table;

use super::inflict::NOT_TRIED;
use super::operator::Changed;
use super::round::Ran;
use crate::table::{self, grouped};

/// Whoever was drawn so often must have come about.
const OFTEN: u64 = 3;

/// The sums of all rounds.
#[derive(Debug, Default)]
pub struct Tallied {
    committed: u64,
    unknown: u64,
    failed: u64,
    /// By the name of a fault: how often, and the times to recover that nothing disturbed.
    faults: BTreeMap<String, (u64, Vec<Duration>)>,
    /// How long nothing was served after leaders died.
    fail_overs: Vec<Duration>,
}

impl Tallied {
    /// Adds a round; a line about it.
    pub fn count(&mut self, ran: &Ran) -> String {
        let tally = &ran.tally;
        self.committed += tally.committed;
        self.unknown += tally.unknown;
        self.failed += tally.failed;
        for recovered in &ran.recovered {
            let (count, times) = self.faults.entry(recovered.name.clone()).or_default();
            *count += 1;
            times.extend(recovered.after);
        }
        self.fail_overs.extend(&ran.fail_overs);
        let changes = |it: Changed| {
            let Changed { tried, done, joined, left } = it;
            format!(", {done} of {tried} changes, {joined} joined, {left} left")
        };
        let changes = ran.changed.map_or_else(String::new, changes);
        format!(
            "{} committed, {} of unknown outcome, {} gave up, {} faults{changes}",
            grouped(tally.committed),
            grouped(tally.unknown),
            grouped(tally.failed),
            ran.recovered.len()
        )
    }

    /// A kind of fault that was drawn often, and never came about: nothing is known of it then.
    pub fn never_tried(&self) -> Option<String> {
        let never = |(name, (count, _)): (&String, &(u64, Vec<Duration>))| {
            let kind = name.strip_suffix(NOT_TRIED).filter(|_| *count >= OFTEN)?;
            let text = format!("{count} times drawn and never tried: {kind}");
            (!self.faults.contains_key(kind)).then_some(text)
        };
        self.faults.iter().find_map(never)
    }

    /// The faults, and the time from the end of each until everything was served again.
    pub fn table(&self) -> Table {
        let header = ["fault", "times", "undisturbed", "served after p50", "at most"];
        let mut table = table::new(header.map(str::to_owned).into());
        for (name, (count, times)) in &self.faults {
            let mut times = times.clone();
            times.sort_unstable();
            let millis_of = |time: Option<&Duration>| {
                time.map_or("-".to_owned(), |time| format!("{:.2} s", time.as_secs_f64()))
            };
            table.add_row([
                name.clone(),
                count.to_string(),
                times.len().to_string(),
                millis_of(times.get(times.len() / 2)),
                millis_of(times.last()),
            ]);
        }
        let all: u64 = self.faults.values().map(|(count, _)| count).sum();
        let sum = [grouped(self.committed), grouped(self.unknown), grouped(self.failed)];
        table.add_row([format!("all: {} committed", sum[0]), all.to_string()]);
        table.add_row([format!("{} unknown, {} gave up", sum[1], sum[2])]);
        table
    }

    /// How long it took groups to serve again after their leaders had died, of so much that is
    /// allowed; none where no leader died undisturbed.
    pub fn fail_overs(&self, most: Duration) -> Option<String> {
        let mut times = self.fail_overs.clone();
        times.sort_unstable();
        let (middle, last) = (times.get(times.len() / 2)?, times.last()?);
        Some(format!(
            "{} leaders died with nothing else wrong; served again after {:.2} s (p50), {:.2} s at \
             most; {} s are allowed.",
            times.len(),
            middle.as_secs_f64(),
            last.as_secs_f64(),
            most.as_secs_f64()
        ))
    }
}
