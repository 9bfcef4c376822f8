//! Groups of counters that are used in pairs, for placements that follow what clients do.
//!
//! A transaction adds to a counter of a group and, mostly, to one of the group that it is paired
//! with. Groups are units, dealt to partitions in turn, so that a pair may be in two repositories;
//! where somebody moves its partitions to one of them, its transactions have one participant. With
//! `drift`, groups are paired otherwise after a client has done so many transactions: a placement
//! that was right is not any more.
//!
//! What makes runs checkable: each transaction adds one to each of its counters, so that all of
//! them together show what was added.

use std::sync::Arc;

use muesli::procedures::fragment;
use muesli::{
    Call, Class, Db, Error, Fragment, Index, Key, Partitioning, SmallBytes, Space, SpaceOptions,
    UnitMap, UnitPart, Units,
};

use crate::chance::Chance;
use crate::check::Check;
use crate::counter_service::procedures::{Add, Addition, CounterAsked, Look};
use crate::parameters::{Parameter, ParameterKind, Values};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};

const SPACE: &str = "pairs";
/// What the units are.
const GROUP: &str = "pairs-group";

/// What pairs of groups take.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "groups",
        "64",
        ParameterKind::Count(2, 10_000),
        "Groups of counters; an odd number is taken for the next one.",
    ),
    Parameter::new("keys", "100", ParameterKind::Count(1, 1_000_000), "Counters of each group."),
    Parameter::new(
        "apart",
        "90",
        ParameterKind::Percent,
        "Share of transactions that use the other group of their pair, too.",
    ),
    Parameter::new(
        "drift",
        "0",
        ParameterKind::Count(0, 1_000_000_000),
        "After so many transactions of a client groups are paired otherwise; 0: never.",
    ),
    Parameter::new(
        "partitions",
        "1",
        ParameterKind::Count(1, 1_024),
        "Partitions for each repository that groups are dealt to: as many as there are, or fewer.",
    ),
];

/// What a client knows of what it added.
#[derive(Debug, Default)]
struct PairBook {
    sure: u64,
    perhaps: u64,
    under_way: u64,
    /// How many transactions it has done, by which groups are paired.
    done: u64,
}

impl PairBook {
    /// What was under way may have been added.
    fn begin_incarnation(&mut self) {
        self.perhaps += std::mem::take(&mut self.under_way);
    }

    fn settle(&mut self, ended: &Ended) {
        let added = std::mem::take(&mut self.under_way);
        self.done += 1;
        match ended {
            Ended::Committed => self.sure += added,
            Ended::Unknown => self.perhaps += added,
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }
}

/// Pairs of groups.
#[derive(Debug)]
pub struct Pairs {
    groups: u64,
    keys: u64,
    apart: f64,
    drift: u64,
    partitions: usize,
    books: PerClient<PairBook>,
}

impl Pairs {
    /// Pairs with these parameters, for so many clients.
    pub fn new(values: &Values, clients: u32) -> Pairs {
        Pairs {
            groups: values.count("groups").next_multiple_of(2),
            keys: values.count("keys"),
            apart: values.number("apart"),
            drift: values.count("drift"),
            partitions: values.count("partitions") as usize,
            books: PerClient::new(clients, |_| PairBook::default()),
        }
    }

    /// The other group of a pair, after groups were paired otherwise so often. Groups are as far on
    /// one side of a point as their partners on the other; the sum of two partners is odd, so none
    /// is its own.
    fn partner(&self, group: u64, times: u64) -> u64 {
        let sum = (2 * times + 1) % self.groups;
        (sum + self.groups - group) % self.groups
    }

    fn draw(&self, done: u64, chance: &mut Chance) -> Vec<u64> {
        let group = chance.below(self.groups);
        let mut all = vec![counter(group, chance.below(self.keys))];
        if chance.percent(self.apart) {
            let partner = self.partner(group, done.checked_div(self.drift).unwrap_or(0));
            all.push(counter(partner, chance.below(self.keys)));
        }
        all
    }
}

/// The number of a counter: its group is the unit.
fn counter(group: u64, number: u64) -> u64 {
    group << 32 | number
}

fn fragments(space: Space, counters: &[u64]) -> Result<Vec<Fragment>, Error> {
    let one = |counter: &u64| {
        let add = Addition { space, counter: *counter, amount: 1, most: u64::MAX, work: 0 };
        fragment::<Add>(space.place(counter.encoded()), &add)
    };
    counters.iter().map(one).collect()
}

impl Workload for Pairs {
    type Memory = Space;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let partitions = (repositories * self.partitions).max(1) as u64;
        let unit = |group: u64| {
            (SmallBytes::new(&(group as u32).to_be_bytes()), (group % partitions) as u16)
        };
        let map = Arc::new(UnitMap::of_units(1, (0..self.groups).map(unit)));
        let units = Units::new(GROUP, &[UnitPart::Fixed(4)]).placed(map);
        let partitioning = Partitioning::Unit(units);
        vec![(SPACE, SpaceOptions { index: Index::Hash, partitioning })]
    }

    fn is_one_round(&self) -> bool {
        true
    }

    /// Absent counters show zero.
    async fn load(&self, _: &Db) -> Result<(), Error> {
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<Space, Error> {
        self.books.of(seat.client).begin_incarnation();
        seat.db.space(SPACE)
    }

    async fn transact(&self, seat: &mut Seat, space: &mut Space) -> (Ended, u32) {
        let done = self.books.of(seat.client).done;
        let counters = self.draw(done, &mut seat.chance);
        let fragments = match fragments(*space, &counters) {
            Ok(fragments) => fragments,
            Err(error) => return (Ended::Failed(error), 1),
        };
        self.books.of(seat.client).under_way = counters.len() as u64;
        seat.several = counters.len() > 1;
        let (done, attempts) = seat.db.invoke_here(Call { class: Class::Auto, fragments }).await;
        let ended = ended(done);
        self.books.of(seat.client).settle(&ended);
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let space = db.space(SPACE)?;
        let mut sum = 0;
        for group in 0..self.groups {
            let counters = (0..self.keys).map(|number| counter(group, number)).collect();
            let asked = CounterAsked { space, counters, work: 0 };
            let place = space.place(counter(group, 0).encoded());
            sum += db.execute::<Look>(place, &asked).await?.into_iter().sum::<u64>();
        }
        let (mut sure, mut perhaps) = (0, 0);
        for book in self.books.all() {
            sure += book.sure;
            perhaps += book.perhaps + book.under_way;
        }
        let ok = (sure..=sure + perhaps).contains(&sum);
        let details = format!("{sum}, of {sure} to {}", sure + perhaps);
        Ok(vec![Check { name: "all counters show what was added", ok, details }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_one_partner_and_others_as_time_goes_on() {
        let values = Values::read("pairs", PARAMETERS, &["groups=9".to_owned()]).unwrap();
        let pairs = Pairs::new(&values, 1);
        assert_eq!(pairs.groups, 10);
        for times in 0..12 {
            for group in 0..10 {
                let partner = pairs.partner(group, times);
                assert!(partner != group && partner < 10, "{group}, {times}");
                assert_eq!(pairs.partner(partner, times), group);
                assert_ne!(pairs.partner(group, times + 1), partner);
            }
        }
    }
}
