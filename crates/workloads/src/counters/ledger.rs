//! What each client knows it has added, and what counters must show by that.

use std::collections::BTreeMap;

use crate::check::{Check, Complaints};
use crate::per_client::PerClient;
use crate::tally::Ended;

/// What was added to a counter of a group.
pub(super) type Added = (usize, usize, i64);

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(super) struct CounterLedger {
    sure: BTreeMap<(usize, usize), i64>,
    perhaps: BTreeMap<(usize, usize), i64>,
    /// What the transaction under way adds.
    under_way: Vec<Added>,
    /// Transactions that committed, and those that may have, whose commits are counted.
    commits: CountedCommits,
    /// Whether the commit of the transaction under way is.
    counts: bool,
    /// How often hot counters were read.
    pub reads: u64,
    /// Reads in which one of them had shrunk.
    pub wrong_reads: Complaints,
    /// How often all of them were read at once.
    pub totals_read: u64,
    /// Where they showed what cannot have been committed, or not all that was.
    pub wrong_totals: Complaints,
}

/// How many commits there must be, and how many more there may be.
#[derive(Clone, Copy, Debug, Default)]
struct CountedCommits {
    sure: i64,
    perhaps: i64,
}

impl CounterLedger {
    /// A transaction begins that adds so much, and whose commit is counted or not.
    pub fn set_out(&mut self, adds: Vec<Added>, counts: bool) {
        (self.under_way, self.counts) = (adds, counts);
    }

    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        for (group, counter, amount) in std::mem::take(&mut self.under_way) {
            *self.perhaps.entry((group, counter)).or_default() += amount;
        }
        self.commits.perhaps += i64::from(std::mem::take(&mut self.counts));
    }

    /// The transaction under way has ended.
    pub fn settle(&mut self, ended: &Ended) {
        if *ended == Ended::Unknown {
            return self.begin_incarnation();
        }
        for (group, counter, amount) in std::mem::take(&mut self.under_way) {
            if *ended == Ended::Committed {
                *self.sure.entry((group, counter)).or_default() += amount;
            }
        }
        let counts = std::mem::take(&mut self.counts) && *ended == Ended::Committed;
        self.commits.sure += i64::from(counts);
    }
}

/// What each counter of a group shows at least and at most while clients run: what is known to have
/// been added, and that with all that may have been.
pub(super) fn bounds(
    ledgers: &PerClient<CounterLedger>,
    (group, size): (usize, usize),
) -> Vec<(i64, i64)> {
    let mut bounds = vec![(0, 0); size];
    for ledger in ledgers.all() {
        let of_group = |(of, _): &(usize, usize)| *of == group;
        for (place, amount) in ledger.sure.iter().filter(|(place, _)| of_group(place)) {
            let (least, most) = &mut bounds[place.1];
            (*least, *most) = (*least + amount, *most + amount);
        }
        let perhaps = ledger.perhaps.iter().map(|(place, amount)| (*place, *amount));
        let under_way = ledger.under_way.iter().map(|(of, at, amount)| ((*of, *at), *amount));
        for (place, amount) in perhaps.chain(under_way).filter(|(place, _)| of_group(place)) {
            bounds[place.1].1 += amount;
        }
    }
    bounds
}

/// Each committed transaction's commit handler has run once, and no other's has, by what handlers
/// have counted for each client.
pub(super) fn check_commits(ledgers: &PerClient<CounterLedger>, counted: &[i64]) -> Check {
    let mut wrong = Complaints::default();
    for (client, (mut ledger, counted)) in ledgers.all().zip(counted).enumerate() {
        ledger.begin_incarnation();
        let CountedCommits { sure, perhaps } = ledger.commits;
        if !(sure..=sure + perhaps).contains(counted) {
            let most = sure + perhaps;
            wrong.add(|| format!("of client {client} {counted} ran, not {sure}..={most}"));
        }
    }
    let all = counted.iter().sum::<i64>().to_string();
    Check::none_wrong("commit handlers ran once for each commit", &wrong, all)
}

/// What holds of the counters, by what those of each group show.
pub(super) fn check(ledgers: &PerClient<CounterLedger>, shown: &[Vec<i64>]) -> [Check; 4] {
    let (mut wrong, mut wrong_reads) = (Complaints::default(), Complaints::default());
    let (mut totals_read, mut wrong_totals) = (0, Complaints::default());
    let (mut reads, mut sums) = (0, Vec::new());
    for (group, counters) in shown.iter().enumerate() {
        sums.push(counters.iter().sum::<i64>());
        for (counter, shows) in counters.iter().enumerate() {
            let place = (group, counter);
            let (mut least, mut most) = (0, 0);
            for mut ledger in ledgers.all() {
                ledger.begin_incarnation();
                let sure = ledger.sure.get(&place).copied().unwrap_or_default();
                let perhaps = ledger.perhaps.get(&place).copied().unwrap_or_default();
                (least, most) = (least + sure, most + sure + perhaps);
            }
            if !(least..=most).contains(shows) {
                wrong.add(|| format!("counter {place:?} shows {shows}, not {least}..={most}"));
            }
        }
    }
    for ledger in ledgers.all() {
        reads += ledger.reads;
        wrong_reads.extend(&ledger.wrong_reads);
        totals_read += ledger.totals_read;
        wrong_totals.extend(&ledger.wrong_totals);
    }
    let conserved = sums.iter().all(|sum| *sum >= 0);
    [
        Check::none_wrong("counters show what was added", &wrong, format!("{sums:?}")),
        Check::none_wrong("sessions see no counter shrink", &wrong_reads, format!("{reads}")),
        Check::none_wrong("totals are what was committed", &wrong_totals, format!("{totals_read}")),
        Check { name: "no sum is negative", ok: conserved, details: format!("{sums:?}") },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_may_show_and_what_has_committed_must() {
        let ledgers = PerClient::new(2, |_| CounterLedger::default());
        for (client, ended) in [(0, Ended::Committed), (0, Ended::RolledBack), (1, Ended::Unknown)]
        {
            ledgers.of(client).set_out(vec![(1, 0, 5), (1, 1, 2), (0, 0, 9)], false);
            ledgers.of(client).settle(&ended);
        }
        ledgers.of(1).set_out(vec![(1, 1, 3)], false);
        assert_eq!(bounds(&ledgers, (1, 3)), [(5, 10), (2, 7), (0, 0)]);
    }
}
