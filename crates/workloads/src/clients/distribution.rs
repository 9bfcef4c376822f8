//! Which key comes next: the request distributions of YCSB.
//!
//! All of them choose among the numbers below a count that may grow while a run inserts keys.
//! `zipfian` is the direct form of Gray et al.: number 0 is the hottest. `scrambled` is what YCSB
//! means by zipfian: a draw over 10^10 items with θ = 0.99, hashed onto the keys, so that the hot
//! ones lie anywhere and the skew over few keys is milder. `latest` is zipfian from the newest
//! key backwards. `hotspot` gives 80 % of the requests to the first 20 % of the keys. With
//! `exponential`, 95 % of the requests go to the newest 6/7 of the keys.

use crate::chance::Chance;

/// The names of the distributions, as parameters take them.
pub const NAMES: &[&str] = &["uniform", "zipfian", "scrambled", "latest", "hotspot", "exponential"];

/// Share of the keys that are hot, and share of the requests they get.
const HOTSPOT: (f64, f64) = (0.2, 0.8);
/// Share of the requests that go to the newest part of the keys, and how large that part is.
const EXPONENTIAL: (f64, f64) = (0.95, 6.0 / 7.0);
/// What a scrambled draw is over, with its θ and its ζ.
const SCRAMBLED: (u64, f64, f64) = (10_000_000_000, 0.99, 26.469_028_201_783_02);

/// Draws key numbers.
#[derive(Clone, Debug)]
pub struct Distribution(DistributionShape);

#[derive(Clone, Debug)]
enum DistributionShape {
    Uniform,
    /// With so many items beyond the count that are drawn and redrawn, for keys still to come.
    Zipfian(Zipfian),
    Scrambled(Zipfian, u64),
    Latest(Zipfian),
    Hotspot,
    Exponential,
}

impl Distribution {
    /// The distribution called `name`, over `count` keys now, of which about `capacity` more are to
    /// be inserted, with skew `theta` where it has one.
    ///
    /// # Panics
    /// If there is no such name, or `theta` is not within 0 (included) and 1.
    pub fn new(name: &str, count: u64, theta: f64, capacity: u64) -> Distribution {
        Distribution(match name {
            "uniform" => DistributionShape::Uniform,
            "zipfian" => DistributionShape::Zipfian(Zipfian::new(count + 2 * capacity, theta)),
            "scrambled" => {
                let (items, theta, zeta) = SCRAMBLED;
                DistributionShape::Scrambled(Zipfian::with_zeta(items, theta, zeta), capacity)
            }
            "latest" => DistributionShape::Latest(Zipfian::new(count, theta)),
            "hotspot" => DistributionShape::Hotspot,
            "exponential" => DistributionShape::Exponential,
            other => panic!("there is no distribution `{other}`"),
        })
    }

    /// Draws one of the numbers below `count`, which is at least 1 and never shrinks.
    pub fn draw(&mut self, count: u64, chance: &mut Chance) -> u64 {
        match &mut self.0 {
            DistributionShape::Uniform => chance.below(count),
            DistributionShape::Zipfian(zipfian) => below(count, || zipfian.draw(chance)),
            DistributionShape::Scrambled(zipfian, capacity) => {
                let places = count.max(1) + 2 * *capacity;
                below(count, || fnv_hash(zipfian.draw(chance)) % places)
            }
            DistributionShape::Latest(zipfian) => {
                zipfian.grow(count);
                count - 1 - zipfian.draw(chance).min(count - 1)
            }
            DistributionShape::Hotspot => {
                let hot = ((count as f64 * HOTSPOT.0) as u64).clamp(1, count);
                if hot == count || chance.fraction() < HOTSPOT.1 {
                    chance.below(hot)
                } else {
                    hot + chance.below(count - hot)
                }
            }
            DistributionShape::Exponential => {
                let (share, part) = EXPONENTIAL;
                let gamma = -libm::log(1.0 - share) / (count as f64 * part);
                let offset = || (-libm::log(1.0 - chance.fraction()) / gamma) as u64;
                count - 1 - below(count, offset)
            }
        }
    }

    /// Draws `many` different numbers below `count`, in the order drawn; all of them where there
    /// are no more.
    pub fn draw_distinct(&mut self, many: usize, count: u64, chance: &mut Chance) -> Vec<u64> {
        let mut drawn = Vec::with_capacity(many);
        while drawn.len() < many.min(count as usize) {
            let mut number = self.draw(count, chance);
            // Under strong skew the last ones would be redrawn for long: then the next free one.
            let mut tries = 0;
            while drawn.contains(&number) {
                tries += 1;
                let redrawn = self.draw(count, chance);
                number = if tries < REDRAWS_MAX { redrawn } else { (number + 1) % count };
            }
            drawn.push(number);
        }
        drawn
    }
}

/// So often a draw is repeated before something near it is taken.
const REDRAWS_MAX: usize = 64;

fn below(count: u64, mut draw: impl FnMut() -> u64) -> u64 {
    for _ in 0..REDRAWS_MAX {
        let drawn = draw();
        if drawn < count {
            return drawn;
        }
    }
    draw() % count
}

/// The hash by which YCSB scatters key numbers: FNV-1a over the eight bytes from the least
/// significant one, read as a signed number without its sign.
pub fn fnv_hash(number: u64) -> u64 {
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).unsigned_abs()
}

/// The zipfian distribution in the form of Gray et al. ("Quickly generating billion-record
/// synthetic databases", 1994), for 0 ≤ θ < 1.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    /// Over `items` items; takes time linear in them.
    pub fn new(items: u64, theta: f64) -> Zipfian {
        let mut zipfian = Zipfian::with_zeta(0, theta, 0.0);
        zipfian.grow(items.max(1));
        zipfian
    }

    fn with_zeta(items: u64, theta: f64, zeta: f64) -> Zipfian {
        assert!((0.0..1.0).contains(&theta), "the skew must be at least 0 and below 1");
        let mut zipfian = Zipfian { items, theta, zeta, alpha: 1.0 / (1.0 - theta), eta: 0.0 };
        zipfian.derive();
        zipfian
    }

    /// Over this many items from now on, if they are more.
    pub fn grow(&mut self, items: u64) {
        if items <= self.items {
            return;
        }
        for item in self.items + 1..=items {
            self.zeta += 1.0 / libm::pow(item as f64, self.theta);
        }
        self.items = items;
        self.derive();
    }

    fn derive(&mut self) {
        let zeta_of_two = 1.0 + 1.0 / libm::pow(2.0, self.theta);
        let tail = libm::pow(2.0 / self.items as f64, 1.0 - self.theta);
        self.eta = (1.0 - tail) / (1.0 - zeta_of_two / self.zeta);
    }

    /// Draws an item; 0 is the most frequent.
    pub fn draw(&self, chance: &mut Chance) -> u64 {
        let fraction = chance.fraction();
        let scaled = fraction * self.zeta;
        if scaled < 1.0 || self.items < 2 {
            return 0;
        }
        if scaled < 1.0 + libm::pow(0.5, self.theta) || self.items == 2 {
            return 1;
        }
        let place = libm::pow(self.eta * fraction - self.eta + 1.0, self.alpha);
        ((self.items as f64 * place) as u64).min(self.items - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRAWS: usize = 200_000;

    fn shares(name: &str, count: u64, theta: f64) -> Vec<f64> {
        let mut distribution = Distribution::new(name, count, theta, 0);
        let mut chance = Chance::new(1, 0, 1);
        let mut counts = vec![0.0; count as usize];
        for _ in 0..DRAWS {
            counts[distribution.draw(count, &mut chance) as usize] += 1.0;
        }
        counts.iter().map(|count| count / DRAWS as f64).collect()
    }

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.01
    }

    #[test]
    fn zipfian_gives_each_item_its_share() {
        let shares = shares("zipfian", 100, 0.9);
        let zeta: f64 = (1..=100).map(|item| f64::from(item).powf(-0.9)).sum();
        assert!(near(shares[0], 1.0 / zeta), "{} for {}", shares[0], 1.0 / zeta);
        assert!(near(shares[1], 0.5_f64.powf(0.9) / zeta));
        assert!(near(shares[9], 10.0_f64.powf(-0.9) / zeta));
    }

    #[test]
    fn zipfian_without_skew_is_nearly_uniform() {
        assert!(shares("zipfian", 10, 0.0).iter().all(|share| near(*share, 0.1)));
    }

    #[test]
    fn growing_is_the_same_as_beginning_large() {
        let (mut grown, large) = (Zipfian::new(10, 0.7), Zipfian::new(1_000, 0.7));
        grown.grow(1_000);
        assert!((grown.zeta - large.zeta).abs() < 1e-9 && (grown.eta - large.eta).abs() < 1e-9);
    }

    #[test]
    fn latest_is_zipfian_from_the_end() {
        let (latest, zipfian) = (shares("latest", 50, 0.99), shares("zipfian", 50, 0.99));
        assert_eq!(latest.into_iter().rev().collect::<Vec<_>>(), zipfian);
    }

    #[test]
    fn scrambled_scatters_the_hot_items() {
        let shares = shares("scrambled", 1_000, 0.0);
        let hottest = (0..1_000).max_by(|a, b| shares[*a].total_cmp(&shares[*b])).unwrap();
        assert_eq!(hottest as u64, fnv_hash(0) % 1_000);
        assert!(near(shares[hottest], 1.0 / SCRAMBLED.2));
    }

    #[test]
    fn the_precomputed_zeta_is_that_of_its_items() {
        // Euler-Maclaurin for the tail: exact enough beyond ten thousand items.
        let (items, theta, zeta) = SCRAMBLED;
        let head: f64 = (1..=10_000).map(|item| f64::from(item).powf(-theta)).sum();
        let (from, to) = (10_000_f64, items as f64);
        let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
        let tail = integral + (to.powf(-theta) - from.powf(-theta)) / 2.0;
        assert!((head + tail - zeta).abs() < 1e-6, "{} for {zeta}", head + tail);
    }

    #[test]
    fn hotspot_and_exponential_keep_their_promises() {
        let hot: f64 = shares("hotspot", 100, 0.0)[..20].iter().sum();
        assert!(near(hot, 0.8));
        let newest: f64 = shares("exponential", 700, 0.0)[100..].iter().sum();
        // Draws beyond the oldest key are repeated, which raises the share a little.
        let beyond = 0.05_f64.powf(7.0 / 6.0);
        assert!(near(newest, 0.95 / (1.0 - beyond)), "{newest}");
    }

    #[test]
    fn fnv_is_that_of_the_literature() {
        // FNV-1a of eight zero bytes, from the published algorithm.
        assert_eq!(fnv_hash(0), 0xa8c7_f832_281a_39c5_u64.cast_signed().unsigned_abs());
    }

    proptest! {
        #[test]
        fn draws_stay_below_the_count(
            place in 0..NAMES.len(), count in 1u64..40, more in 0u64..20, theta in 0.0f64..0.999,
            many in 0usize..50, seed: u64,
        ) {
            let mut distribution = Distribution::new(NAMES[place], count, theta, more);
            let mut chance = Chance::new(seed, 0, 1);
            for count in count..=count + more {
                prop_assert!(distribution.draw(count, &mut chance) < count);
            }
            let mut drawn = distribution.draw_distinct(many, count, &mut chance);
            prop_assert_eq!(drawn.len(), many.min(count as usize));
            drawn.sort_unstable();
            drawn.dedup();
            prop_assert_eq!(drawn.len(), many.min(count as usize));
        }
    }
}
