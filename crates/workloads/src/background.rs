//! In how many runs of a search nodes did what they do beside transactions: a search in which
//! nothing is collected, cut or ended looks at less than what runs in production.

use muesli_sim::world::Background;

/// How many kinds of it are told apart.
const KINDS: usize = 12;

/// In how many runs something happened, and how often in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// In so many runs.
    pub runs: u64,
    /// So often.
    pub times: u64,
}

/// What happened in a number of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backgrounds {
    /// How many runs there were.
    pub runs: u64,
    happened: [Happened; KINDS],
}

/// A kind: how it is written, and what it counts.
type CountedKind = (&'static str, &'static str, fn(&Background) -> u64);

/// Transactions that were open for too long, of protocols that keep old versions.
const AGED: &str = "open for too long";

/// In the order in which they are written.
const ALL: [CountedKind; KINDS] = [
    ("collected", "versions", |it| it.maintenance.collected),
    ("took checkpoints", "checkpoints", |it| it.checkpoints),
    ("cut", "records", |it| it.cut),
    ("trimmed", "entries of groups", |it| it.maintenance.trimmed),
    (AGED, "snapshots", |it| it.maintenance.snapshots_aged),
    ("leases ended", "nodes and copies", |it| it.maintenance.leases_ended),
    ("forgot", "clients", |it| it.maintenance.clients_forgotten),
    ("ended in doubt", "transactions", |it| it.maintenance.finished),
    ("gave up", "operations", |it| it.maintenance.given_up),
    ("moved", "snapshots", |it| it.maintenance.snapshots_moved),
    ("undid", "parts of transactions", |it| it.maintenance.partial_aborts),
    ("claimed", "claims", |it| it.maintenance.claimed),
];

impl Backgrounds {
    /// Counts one run more.
    pub fn add(&mut self, run: &Background) {
        self.runs += 1;
        for (happened, (_, _, count)) in self.happened.iter_mut().zip(ALL) {
            let times = count(run);
            happened.runs += u64::from(times > 0);
            happened.times += times;
        }
    }

    /// In how many runs something of this name happened, and how often; `None`: there is none.
    pub fn of(&self, name: &str) -> Option<Happened> {
        let mut all = ALL.iter().zip(self.happened);
        all.find(|((known, ..), _)| *known == name).map(|(_, happened)| happened)
    }

    /// All of it in one line. Under a protocol that keeps no old versions no snapshot is too old.
    pub fn line(&self, keeps_old_versions: bool, number: impl Fn(u64) -> String) -> String {
        let each =
            ALL.iter().zip(self.happened).map(|((name, what, _), Happened { runs, times })| {
                match *name {
                    AGED if !keeps_old_versions && runs == 0 => "no old snapshots".to_owned(),
                    "collected" => format!(
                        "collected in {} of {} runs ({} versions)",
                        number(runs),
                        number(self.runs),
                        number(times)
                    ),
                    _ => format!("{name} in {} ({} {what})", number(runs), number(times)),
                }
            });
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::Maintenance;

    use super::*;

    #[test]
    fn runs_and_times_are_counted_by_kind() {
        let mut all = Backgrounds::default();
        let maintenance = Maintenance { collected: 5, given_up: 1, ..Maintenance::default() };
        all.add(&Background { maintenance, checkpoints: 0, cut: 0 });
        all.add(&Background { maintenance, checkpoints: 2, cut: 30 });
        assert_eq!(all.of("collected"), Some(Happened { runs: 2, times: 10 }));
        assert_eq!(all.of("took checkpoints"), Some(Happened { runs: 1, times: 2 }));
        assert_eq!(all.of("cut"), Some(Happened { runs: 1, times: 30 }));
        assert_eq!(all.of("weather"), None);
        let line = |keeps_old_versions| all.line(keeps_old_versions, |number| number.to_string());
        let begin = "collected in 2 of 2 runs (10 versions), \
                     took checkpoints in 1 (2 checkpoints), cut in 1 (30 records), ";
        assert!(line(true).starts_with(begin), "{}", line(true));
        assert!(line(true).contains("open for too long in 0 (0 snapshots)"));
        assert!(line(false).contains("no old snapshots"));
        assert!(line(false).contains("gave up in 2 (2 operations), moved in 0 (0 snapshots)"));
    }
}
