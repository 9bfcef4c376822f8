//! What is there at first: a function of the parameters alone.

use std::collections::BTreeSet;

use super::Epinions;
use super::plans::LoadedReviews;
use crate::chance::Chance;
use crate::distribution::fnv_hash;

/// Zipf's exponents of how many reviews an item has, and whom a user trusts.
const REVIEWS: f64 = 1.8;
const TRUST: f64 = 1.95;
/// The most reviews of an item beyond the first, and the most that a user trusts.
const REVIEWS_MOST: u64 = 500;
const TRUST_MOST: u64 = 200;

/// Streams of chance, apart from those of clients.
const OF_ITEMS: u64 = 1 << 40;
const OF_USERS: u64 = 2 << 40;

/// A number from 0 to `most`, of which `k` is drawn as often as `1 / (k + 1)` to the power of the
/// exponent.
fn zipf(most: u64, exponent: f64, chance: &mut Chance) -> u64 {
    let weight = |number: u64| libm::pow((number + 1) as f64, -exponent);
    let all: f64 = (0..=most).map(weight).sum();
    let mut at = chance.fraction() * all;
    for number in 0..most {
        at -= weight(number);
        if at < 0.0 {
            return number;
        }
    }
    most
}

impl Epinions {
    /// A user's name, 24 letters, the first time or later.
    pub(super) fn name(user: u64, time: u64) -> String {
        format!("{:024x}", fnv_hash(user ^ time << 32))
    }

    /// An item's title, 128 letters.
    pub(super) fn title(item: u64, time: u64) -> String {
        format!("{:0128x}", fnv_hash(!item ^ time << 32))
    }

    /// A rating that is written.
    pub(super) fn rating(drawn: u64) -> u16 {
        (drawn % 1_000) as u16
    }

    /// Trust that is written.
    pub(super) fn trust(drawn: u64) -> u16 {
        (drawn % 2) as u16
    }

    /// The users and the items as they are loaded.
    pub(super) fn first(&self) -> (Vec<LoadedReviews>, Vec<LoadedReviews>) {
        let loaded = |of, text| LoadedReviews { of, text, ..LoadedReviews::default() };
        let mut users: Vec<_> =
            (1..=self.users).map(|user| loaded(user, Epinions::name(user, 0))).collect();
        let mut items: Vec<_> =
            (1..=self.items).map(|item| loaded(item, Epinions::title(item, 0))).collect();
        for item in 1..=self.items {
            let mut chance = Chance::new(OF_ITEMS | item, 0, 0);
            let most = REVIEWS_MOST.min(self.users - 1);
            let count = 1 + zipf(most, REVIEWS, &mut chance);
            let near = self.community(!item);
            for user in self.draw_users(count, near, &mut chance) {
                let rating = (fnv_hash(item << 20 ^ user) % 5) as u16;
                items[item as usize - 1].reviews.push((user, rating));
                users[user as usize - 1].reviews.push((item, rating));
            }
        }
        for user in 1..=self.users {
            let mut chance = Chance::new(OF_USERS | user, 0, 0);
            let count = zipf(TRUST_MOST.min(self.users - 1), TRUST, &mut chance);
            let near = self.community(user);
            // The first one trusts somebody.
            let count = count.max(u64::from(user == 1));
            for other in self.draw_users(count, near, &mut chance) {
                let trust = (fnv_hash(user << 20 ^ other) % 2) as u16;
                users[user as usize - 1].trust.push((other, trust));
            }
        }
        (users, items)
    }

    /// Different users, most of them of a community, as far as it has so many.
    fn draw_users(&self, count: u64, near: u64, chance: &mut Chance) -> BTreeSet<u64> {
        let mut all = BTreeSet::new();
        for _ in 0..4 * count {
            if all.len() as u64 == count {
                break;
            }
            all.insert(self.draw(self.users, |user| user, near, chance));
        }
        if all.is_empty() && count > 0 {
            all.insert(1);
        }
        all
    }

    /// Of so many numbered things one of a community, or any where it mixes.
    pub(super) fn draw(
        &self,
        count: u64,
        hashed: impl Fn(u64) -> u64,
        near: u64,
        chance: &mut Chance,
    ) -> u64 {
        let mixes = chance.percent(self.mixing);
        for _ in 0..64 * self.communities {
            let number = chance.between(1, count);
            if mixes || self.community(hashed(number)) == near {
                return number;
            }
        }
        chance.between(1, count)
    }
}
