//! Sites far from each other, tried out in one process.

use std::time::Duration;

use muesli_core::catalog::Sites;
use muesli_core::{Nanos, Settings};

use crate::error::Error;
use crate::time::nanos;

/// A message is under way for a minute at most.
const LONGEST: Duration = Duration::from_secs(60);

/// Sites that are far from each other, for an embedded database whose loops are to behave as
/// servers at several places do: what goes from a loop of one site to a loop of another is held for
/// as long as it would be under way there.
///
/// Loops are at the sites in turn: those with keys from the first site on, and after them those of
/// masters and validators. Within a site messages take what they take. What a loop is sent is
/// counted from when it takes it, so a busy one holds it a little longer.
///
/// ```
/// # fn main() -> Result<(), muesli::Error> {
/// use muesli::{Db, Options, SiteDelays, SpaceOptions};
/// use std::time::{Duration, Instant};
///
/// let near = Duration::from_millis(3);
/// let sites = SiteDelays::new(vec![vec![Duration::ZERO, near], vec![near, Duration::ZERO]])?;
/// let db = Db::open(Options {
///     repositories: 2,
///     replicas: 2,
///     loops: 2,
///     sites: Some(sites),
///     ..Options::default().space("notes", SpaceOptions::default())
/// })?;
/// let notes = db.space("notes")?.typed::<String, String>();
/// let since = Instant::now();
/// db.blocking().transact(async move |tx| notes.put(tx, "a", &"b".to_owned()).await)?;
/// assert!(since.elapsed() >= 2 * near, "the other copy has voted");
/// # Ok(())
/// # }
/// ```
///
/// Invariants (`assert_invariants`): there is a site, and a time from each to each; no time is
/// above a minute, and none from a site to itself above zero; the leader is at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDelays {
    /// How long a message is under way, by where it comes from and where it goes.
    one_way: Vec<Vec<Duration>>,
    names: Vec<String>,
    leader: usize,
}

impl SiteDelays {
    /// Sites by how long a message is under way from each (the row) to each (the column). The
    /// leader, under protocols that have one for all sites, is at the first.
    ///
    /// # Errors
    /// [`Error::Options`]: there is none, a row is shorter or longer than there are sites, a time
    /// is above a minute, or a site is away from itself.
    pub fn new(one_way: Vec<Vec<Duration>>) -> Result<SiteDelays, Error> {
        let count = one_way.len();
        if !(1..=1024).contains(&count) {
            return Err(Error::Options(format!("{count} sites: there must be 1 to 1024")));
        }
        for (site, row) in one_way.iter().enumerate() {
            if row.len() != count {
                let times = row.len();
                return Err(Error::Options(format!(
                    "site {site} has times to {times} sites, of {count}: give one to each, itself \
                     included"
                )));
            }
            if let Some(long) = row.iter().find(|it| **it > LONGEST) {
                return Err(Error::Options(format!(
                    "a message from site {site} is under way for {long:?}: a minute at most"
                )));
            }
            if !row[site].is_zero() {
                let time = row[site];
                return Err(Error::Options(format!(
                    "site {site} is {time:?} away from itself: give zero"
                )));
            }
        }
        let names = (0..count).map(|site| format!("site-{site}")).collect();
        let sites = SiteDelays { one_way, names, leader: 0 };
        sites.assert_invariants();
        Ok(sites)
    }

    /// The same, with the leader at another site.
    ///
    /// # Errors
    /// [`Error::Options`]: there is no such site.
    pub fn led_from(self, leader: usize) -> Result<SiteDelays, Error> {
        let count = self.count();
        match leader < count {
            true => Ok(SiteDelays { leader, ..self }),
            false => {
                Err(Error::Options(format!("there is no site {leader} of {count}, from 0 on")))
            }
        }
    }

    /// The same, with a name for each site; without, they are `site-0`, `site-1` and so on.
    ///
    /// # Errors
    /// [`Error::Options`]: there are fewer or more names than sites, or one of them twice.
    pub fn named(self, names: &[impl AsRef<str>]) -> Result<SiteDelays, Error> {
        let names: Vec<String> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        if names.len() != self.count() {
            let (given, count) = (names.len(), self.count());
            return Err(Error::Options(format!("{given} names of {count} sites")));
        }
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
        {
            return Err(Error::Options(format!("two sites are called `{}`", twice.1)));
        }
        Ok(SiteDelays { names, ..self })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.one_way.len()
    }

    /// Checks the invariants.
    ///
    /// # Panics
    /// One of them does not hold.
    pub fn assert_invariants(&self) {
        let count = self.count();
        assert!(self.leader < count, "the leader is at site {} of {count}", self.leader);
        for (site, row) in self.one_way.iter().enumerate() {
            assert_eq!(row.len(), count, "times from site {site}");
            assert!(row[site].is_zero(), "site {site} is away from itself");
            assert!(row.iter().all(|it| *it <= LONGEST), "site {site} is too far from another");
        }
    }

    /// How long what each loop sends is under way to the loop `at`, of which `serving` have keys.
    pub(crate) fn delays_to(&self, at: usize, loops: usize, serving: usize) -> Vec<Nanos> {
        assert!((1..=loops).contains(&serving) && at < loops, "loop {at} of {loops}");
        let site = |at: usize| if at < serving { at } else { at - serving } % self.count();
        (0..loops).map(|from| nanos(self.one_way[site(from)][site(at)])).collect()
    }

    /// Where loops are, of which `serving` have keys.
    pub(crate) fn sites(&self, serving: usize) -> Sites {
        Sites::round_robin(&self.names, serving)
    }

    /// Makes the times of nodes at these sites long enough.
    pub(crate) fn prepare(&self, settings: &mut Settings) {
        let there_and_back =
            |from: usize, to: usize| self.one_way[from][to] + self.one_way[to][from];
        let all = (0..self.count()).flat_map(|from| (0..from).map(move |to| (from, to)));
        let longest = all.map(|(from, to)| there_and_back(from, to)).max();
        settings.suit_sites(self.leader as u16, nanos(longest.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(rows: &[&[u64]]) -> Vec<Vec<Duration>> {
        rows.iter().map(|row| row.iter().map(|it| Duration::from_millis(*it)).collect()).collect()
    }

    #[test]
    fn loops_are_at_the_sites_in_turn() {
        let sites = SiteDelays::new(millis(&[&[0, 5], &[7, 0]])).unwrap();
        let of = |at| sites.delays_to(at, 5, 3).iter().map(|it| it.as_millis()).collect::<Vec<_>>();
        // Three with keys at the sites 0, 1, 0, and two others at 0 and 1.
        assert_eq!(of(0), [0, 7, 0, 0, 7]);
        assert_eq!(of(1), [5, 0, 5, 5, 0]);
        assert_eq!(of(4), of(1));
    }

    #[test]
    fn nobody_is_asked_again_before_an_answer_can_be_there() {
        let sites = SiteDelays::new(millis(&[&[0, 80], &[120, 0]])).unwrap().led_from(1).unwrap();
        let mut settings = Settings::default();
        sites.prepare(&mut settings);
        assert!(settings.retry_after >= Nanos::from_millis(200));
        assert!(settings.in_doubt_after > settings.retry_after);
        assert_eq!(settings.leader_site, 1);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let wrong = [
            (millis(&[]), "0 sites"),
            (millis(&[&[0, 1], &[1]]), "site 1 has times to 1 sites, of 2"),
            (millis(&[&[0, 60_001], &[1, 0]]), "site 0 is under way"),
            (millis(&[&[0, 1], &[1, 2]]), "site 1 is 2ms away from itself"),
        ];
        for (rows, expected) in wrong {
            let error = SiteDelays::new(rows).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = SiteDelays::new(millis(&[&[0]])).unwrap().led_from(1).unwrap_err().to_string();
        assert!(error.contains("no site 1 of 1"), "{error}");
    }
}
