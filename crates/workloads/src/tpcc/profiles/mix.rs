//! Which transactions run, how often, and how long their terminals wait.

use crate::chance::Chance;
use crate::parameters::Values;

/// A transaction profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tpcc) enum Profile {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// All profiles.
pub(in crate::tpcc) const PROFILES: [Profile; 5] = [
    Profile::NewOrder,
    Profile::Payment,
    Profile::OrderStatus,
    Profile::Delivery,
    Profile::StockLevel,
];

/// The parameters with the profiles' weights, as [`PROFILES`].
const WEIGHTS: [&str; 5] = ["new-order", "payment", "order-status", "delivery", "stock-level"];

/// The named mixes.
pub(in crate::tpcc) const MIXES: &[&str] = &["standard", "gmu", "bumper"];

impl Profile {
    /// Its name, as the standard writes it.
    pub fn name(self) -> &'static str {
        match self {
            Profile::NewOrder => "New-Order",
            Profile::Payment => "Payment",
            Profile::OrderStatus => "Order-Status",
            Profile::Delivery => "Delivery",
            Profile::StockLevel => "Stock-Level",
        }
    }

    /// Seconds of keying before it, and the mean seconds of thinking after it (clause 5.2.5).
    fn seconds(self) -> (f64, f64) {
        match self {
            Profile::NewOrder => (18.0, 12.0),
            Profile::Payment => (3.0, 12.0),
            Profile::OrderStatus => (2.0, 10.0),
            Profile::Delivery | Profile::StockLevel => (2.0, 5.0),
        }
    }
}

/// The shares of the profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tpcc) struct Mix([u64; 5]);

impl Mix {
    /// The mix that the parameters ask for: by weights where there are any, else by name.
    ///
    /// - `standard`: the least shares of clause 5.2.3, the rest New-Orders.
    /// - `gmu`: 90 % Order-Status, New-Order and Payment in equal parts (GMU, section VI).
    /// - `bumper`: half updates, and those Payments (Bumper, section VI, names the share of
    ///   updates and the profile whose hot spots it delays).
    pub fn new(values: &Values) -> Mix {
        let weights = WEIGHTS.map(|name| values.count(name));
        if weights != [0; 5] {
            return Mix(weights);
        }
        match values.word("mix") {
            "gmu" => Mix([5, 5, 90, 0, 0]),
            "bumper" => Mix([0, 50, 50, 0, 0]),
            _ => Mix([45, 43, 4, 4, 4]),
        }
    }

    /// The next profile.
    pub fn draw(&self, chance: &mut Chance) -> Profile {
        let mut at = chance.below(self.0.iter().sum());
        for (profile, weight) in PROFILES.into_iter().zip(self.0) {
            if at < weight {
                return profile;
            }
            at -= weight;
        }
        Profile::NewOrder
    }
}

/// How long a terminal waits between two transactions, in seconds: it thinks about the last one
/// and keys the next one in. Think times are exponential, cut at ten times their mean.
pub(in crate::tpcc) fn wait(last: Option<Profile>, next: Profile, chance: &mut Chance) -> f64 {
    let think = last.map_or(0.0, |last| {
        let times = -libm::log(1.0 - chance.fraction());
        times.min(10.0) * last.seconds().1
    });
    think + next.seconds().0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(given: &[&str]) -> [u64; 5] {
        let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
        let values = Values::read("tpcc", crate::tpcc::PARAMETERS, &given).unwrap();
        let (mix, mut chance) = (Mix::new(&values), Chance::new(3, 0, 0));
        let mut counts = [0; 5];
        for _ in 0..10_000 {
            counts[mix.draw(&mut chance) as usize] += 1;
        }
        counts
    }

    #[test]
    fn mixes_have_their_shares_and_weights_go_before_names() {
        let near = |counts: [u64; 5], percents: [i64; 5]| {
            counts.iter().zip(percents).all(|(&count, percent)| {
                (count as i64 - percent * 100).abs() <= if percent == 0 { 0 } else { 150 }
            })
        };
        assert!(near(shares(&[]), [45, 43, 4, 4, 4]));
        assert!(near(shares(&["mix=gmu"]), [5, 5, 90, 0, 0]));
        assert!(near(shares(&["mix=bumper"]), [0, 50, 50, 0, 0]));
        assert!(near(shares(&["mix=gmu", "delivery=1", "payment=3"]), [0, 75, 0, 25, 0]));
    }

    #[test]
    fn terminals_wait_as_the_standard_wants() {
        let mut chance = Chance::new(4, 0, 0);
        assert_eq!(wait(None, Profile::Payment, &mut chance), 3.0);
        let waits: Vec<_> = (0..10_000)
            .map(|_| wait(Some(Profile::NewOrder), Profile::NewOrder, &mut chance))
            .collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((29.0..31.0).contains(&mean), "{mean}");
        assert!(waits.iter().all(|wait| (18.0..=138.0).contains(wait)));
    }
}
