//! What clients of the counter service know they have added, and may have; and what does not fit.

use std::collections::BTreeMap;

use super::CounterId;
use crate::check::{Check, Complaints};
use crate::per_client::PerClient;
use crate::tally::Ended;

/// So many counters are looked at in one call.
const PAGE: usize = 1_000;

/// What a counter showed to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CounterPart {
    pub counter: CounterId,
    pub shows: u64,
}

/// The book of a client.
#[derive(Debug, Default)]
pub(super) struct Book {
    sure: BTreeMap<CounterId, u64>,
    perhaps: BTreeMap<CounterId, u64>,
    under_way: Vec<(CounterId, u64)>,
    /// The most that this client's session has seen each shared counter show.
    seen: BTreeMap<CounterId, u64>,
    looks: u64,
    shrunk: Complaints,
    refused: Complaints,
}

impl Book {
    /// A life begins, in a session of its own; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.seen.clear();
        for (counter, amount) in std::mem::take(&mut self.under_way) {
            *self.perhaps.entry(counter).or_default() += amount;
        }
    }

    /// A transaction is about to add this.
    pub fn set_out(&mut self, adds: impl Iterator<Item = (CounterId, u64)>) {
        self.under_way = adds.collect();
    }

    /// A transaction was shown this. A counter never shows less than it did before.
    pub fn see(&mut self, parts: &[CounterPart]) {
        for CounterPart { counter, shows } in parts {
            self.looks += 1;
            let seen = self.seen.entry(*counter).or_default();
            if shows < seen {
                self.shrunk.add(|| format!("{counter:?} shows {shows} after {seen}"));
            }
            *seen = *shows.max(seen);
        }
    }

    pub fn refused_though_it_may_not(&mut self) {
        self.refused.add(|| "one whose procedures never refuse".to_owned());
    }

    pub fn settle(&mut self, ended: &Ended) {
        let under_way = std::mem::take(&mut self.under_way);
        let books = match ended {
            Ended::Committed => &mut self.sure,
            Ended::Unknown => &mut self.perhaps,
            Ended::RolledBack | Ended::Failed(_) => return,
        };
        for (counter, amount) in under_way {
            *books.entry(counter).or_default() += amount;
        }
    }
}

/// All books together, once no client runs any more.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// For sure, and with what may have been added.
    expected: BTreeMap<CounterId, (u64, u64)>,
    sum: u64,
    looks: u64,
    wrong: Complaints,
    shrunk: Complaints,
    refused: Complaints,
}

impl Totals {
    pub fn of(books: &PerClient<Book>) -> Totals {
        let mut all = Totals::default();
        for mut book in books.all() {
            book.begin_incarnation();
            for (counter, amount) in &book.sure {
                let (least, most) = all.expected.entry(*counter).or_default();
                (*least, *most) = (*least + amount, *most + amount);
            }
            for (counter, amount) in &book.perhaps {
                all.expected.entry(*counter).or_default().1 += amount;
            }
            all.looks += book.looks;
            all.shrunk.extend(&book.shrunk);
            all.refused.extend(&book.refused);
        }
        all
    }

    /// The counters of a repository that were added to, and its shared one, page by page.
    pub fn counters_of(&self, repository: u16) -> Vec<Vec<CounterId>> {
        let shared = CounterId { repository, owner: 0, number: 0 };
        let used = self.expected.keys().filter(|id| id.repository == repository && **id != shared);
        let all: Vec<_> = std::iter::once(shared).chain(used.copied()).collect();
        all.chunks(PAGE).map(<[_]>::to_vec).collect()
    }

    /// Counters show this.
    pub fn judge(&mut self, counters: &[CounterId], shows: &[u64]) {
        if counters.len() != shows.len() {
            self.wrong.add(|| format!("{} counters, {} shown", counters.len(), shows.len()));
        }
        for (counter, shows) in counters.iter().zip(shows) {
            let (least, most) = self.expected.get(counter).copied().unwrap_or_default();
            self.sum += shows;
            if !(least..=most).contains(shows) {
                self.wrong.add(|| format!("{counter:?} shows {shows}, not {least}..={most}"));
            }
        }
    }

    pub fn checks(self) -> Vec<Check> {
        let (sum, looks) = (format!("{} in all", self.sum), self.looks.to_string());
        vec![
            Check::none_wrong("counters show what was added", &self.wrong, sum),
            Check::none_wrong("sessions see no counter shrink", &self.shrunk, looks),
            Check::none_wrong("who never refuses does not", &self.refused, String::new()),
        ]
    }
}
