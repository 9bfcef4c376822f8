//! A client's own chance: every draw is a function of the seed, the client and its life, so that
//! a simulated run can be repeated and an embedded one offers every protocol the same work.

/// A stream of random draws.
#[derive(Clone, Debug)]
pub struct Chance(fastrand::Rng);

impl Chance {
    /// The stream of client number `client` in its `incarnation`, under the seed of the run.
    pub fn new(seed: u64, client: u32, incarnation: u32) -> Chance {
        let mixed = scramble(scramble(seed) ^ (u64::from(client) << 32 | u64::from(incarnation)));
        Chance(fastrand::Rng::with_seed(mixed))
    }

    /// A number below `bound`, all alike; 0 where `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.0.u64(..bound) }
    }

    /// A number from `low` to `high`, both included, all alike.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.u64(low..=high.max(low))
    }

    /// True in `percent` of a hundred draws.
    pub fn percent(&mut self, percent: f64) -> bool {
        self.fraction() * 100.0 < percent
    }

    /// A number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.0.f64()
    }
}

/// SplitMix64's finisher: nearby seeds become unrelated ones.
fn scramble(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_draws(mut chance: Chance) -> Vec<u64> {
        (0..8).map(|_| chance.below(1_000_000)).collect()
    }

    #[test]
    fn streams_repeat_and_differ_by_seed_client_and_life() {
        let one = first_draws(Chance::new(1, 2, 3));
        assert_eq!(one, first_draws(Chance::new(1, 2, 3)));
        for other in [Chance::new(2, 2, 3), Chance::new(1, 3, 3), Chance::new(1, 2, 4)] {
            assert_ne!(one, first_draws(other));
        }
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut chance = Chance::new(7, 0, 1);
        assert_eq!(chance.below(0), 0);
        assert!((0..1000).all(|_| chance.below(3) < 3));
        assert!((0..1000).all(|_| (5..=6).contains(&chance.between(5, 6))));
        assert!((0..1000).all(|_| !chance.percent(0.0) && chance.percent(100.0)));
    }
}
