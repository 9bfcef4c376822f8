//! What the runs of several seeds came to together: the median, and from where to where they lie.

use super::point::{Point, Quantity};

/// The runs of a point, one for each seed.
#[derive(Clone, Debug)]
pub struct SeedPoints {
    /// The median of each number.
    pub median: Point,
    /// The least of each number, and the most.
    pub least: Point,
    pub most: Point,
}

impl SeedPoints {
    /// The spread of runs of the same point, of which there is one at least.
    fn of(runs: &[&Point]) -> SeedPoints {
        let mut broken: Vec<_> = runs.iter().flat_map(|run| run.broken.iter().cloned()).collect();
        broken.dedup();
        let of = |pick: fn(&[f64]) -> f64| {
            let mut point = Point { broken: broken.clone(), ..runs[0].clone() };
            for (place, number) in point.numbers_mut().into_iter().enumerate() {
                let all = runs.iter().map(|run| *Point::clone(run).numbers_mut()[place]);
                let mut all: Vec<f64> = all.collect();
                all.sort_by(f64::total_cmp);
                *number = pick(&all);
            }
            point
        };
        SeedPoints {
            median: of(median),
            least: of(|all| all[0]),
            most: of(|all| all[all.len() - 1]),
        }
    }

    /// From where to where a quantity lies.
    pub fn range(&self, quantity: Quantity) -> (f64, f64) {
        (self.least.shows(quantity), self.most.shows(quantity))
    }
}

/// The median of numbers in order, of which there is one at least.
pub fn median(all: &[f64]) -> f64 {
    let middle = all.len() / 2;
    if all.len() % 2 == 1 { all[middle] } else { f64::midpoint(all[middle - 1], all[middle]) }
}

/// The spread of each point: `by_seed` has the same points for each seed, in the same order.
pub fn all_points(by_seed: &[Vec<Point>]) -> Vec<SeedPoints> {
    let points = by_seed.first().map_or(0, Vec::len);
    let of = |place: usize| by_seed.iter().map(|points| &points[place]).collect::<Vec<_>>();
    (0..points).map(|place| SeedPoints::of(&of(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends_of_each_number_are_kept() {
        let run = |throughput: f64, aborts: f64| Point {
            throughput,
            aborts,
            broken: vec!["money".to_owned()],
            ..Point::default()
        };
        let by_seed = [(30.0, 0.1), (10.0, 0.3), (20.0, 0.2)].map(|(a, b)| vec![run(a, b)]);
        let all_points = all_points(&by_seed);
        let [seed_points] = &all_points[..] else { panic!("one point: {all_points:?}") };
        assert_eq!((seed_points.median.throughput, seed_points.median.aborts), (20.0, 0.2));
        assert_eq!(seed_points.range(Quantity::Throughput), (10.0, 30.0));
        assert_eq!((seed_points.least.aborts, seed_points.most.aborts), (0.1, 0.3));
        assert_eq!(seed_points.median.broken, ["money"]);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
    }
}
