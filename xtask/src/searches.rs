//! Searches by protocol: those that each commit is tried with, and those that take hours.

/// One run of `muesli sim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSearch {
    /// The protocol.
    pub protocol: &'static str,
    /// The workload with its options, without protocol and seeds.
    pub workload: &'static str,
    /// How many seeds are tried.
    pub seeds: u64,
    /// How far the first of them is above the first of all searches.
    pub above: u64,
}

impl SeedSearch {
    /// The arguments of `muesli`, for seeds from this one on, so many times as many.
    pub fn arguments(&self, first: u64, times: u64) -> Vec<String> {
        let from = first + self.above;
        let seeds = format!("{from}..{}", from + self.seeds * times);
        let own = self.workload.split(' ').map(str::to_owned);
        let given = ["--protocol", self.protocol, "--seeds", &seeds].map(str::to_owned);
        std::iter::once("sim".to_owned()).chain(own).chain(given).collect()
    }
}

/// Those of each commit.
pub fn of_commits() -> Vec<SeedSearch> {
    listed(include_str!("searches/commit.txt"))
}

/// Those of the nesting models, which take hours.
pub fn of_nesting() -> Vec<SeedSearch> {
    listed(include_str!("searches/nesting.txt"))
}

/// Those of the protocols that order commits by a broadcast, which take hours.
pub fn of_ordering() -> Vec<SeedSearch> {
    listed(include_str!("searches/ordering.txt"))
}

/// What a list says.
///
/// # Panics
/// The list is not as it says.
fn listed(list: &'static str) -> Vec<SeedSearch> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let cells: Vec<_> = line.splitn(4, ' ').collect();
            let [protocol, seeds, above, workload] = cells[..] else {
                panic!("four cells: {line}")
            };
            let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("a number: {line}"));
            let above = number(above.strip_prefix('+').expect("a number above"));
            SeedSearch { protocol, workload, seeds: number(seeds), above }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_list_is_read() {
        let all = of_commits();
        assert!(all.len() > 50);
        let last = all.last().expect("not empty").arguments(7, 2);
        let line = "sim bank --faults none --transactions 60 --strangers 20 --group 3 --protocol \
                    sinfonia --seeds 7..9";
        assert_eq!(last.join(" "), line);
    }

    /// How many seeds each part of a list has, no seed in two of them.
    fn seeds_by<K: Ord>(all: Vec<SeedSearch>, part: impl Fn(&SeedSearch) -> K) -> BTreeMap<K, u64> {
        let (mut seeds, mut next) = (BTreeMap::new(), 0);
        for search in all {
            assert_eq!(search.above, next, "{search:?}");
            next += search.seeds;
            *seeds.entry(part(&search)).or_insert(0) += search.seeds;
        }
        seeds
    }

    #[test]
    fn each_protocol_and_nesting_model_has_2_000_seeds_of_its_own() {
        let seeds = seeds_by(of_nesting(), |search| {
            let model = search.workload.split("nesting=").nth(1).expect("it names a model");
            let model = model.split(' ').next().expect("a word");
            (search.protocol, model.strip_suffix("-open").unwrap_or(model))
        });
        assert!(seeds.len() > 20, "{seeds:?}");
        assert!(seeds.values().all(|&seeds| seeds >= 2_000), "{seeds:?}");
    }

    #[test]
    fn each_protocol_that_orders_by_a_broadcast_has_2_000_seeds_of_its_own() {
        let seeds = seeds_by(of_ordering(), |search| search.protocol);
        assert!(seeds.len() == 12 && seeds.values().all(|&seeds| seeds == 2_000), "{seeds:?}");
    }
}
