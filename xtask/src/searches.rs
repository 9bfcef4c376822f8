//! The searches that each commit is tried with, by protocol.

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

/// All of them.
///
/// # Panics
/// The list is not as it says.
pub fn all() -> Vec<SeedSearch> {
    let list: &'static str = include_str!("searches.txt");
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
    use super::*;

    #[test]
    fn the_list_is_read() {
        let all = all();
        assert!(all.len() > 50);
        let last = all.last().expect("not empty").arguments(7, 2);
        let line = "sim bank --faults none --transactions 60 --strangers 20 --group 3 --protocol \
                    sinfonia --seeds 7..9";
        assert_eq!(last.join(" "), line);
    }
}
