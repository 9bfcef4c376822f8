//! What the points say about what the paper says.

use super::figure::{Figure, Measure, PaperClaim};
use super::point::{Point, Quantity};
use super::seed_points::median;
use super::summary;

/// A line is saturated where it has such a share of its most.
const SATURATED: f64 = 0.95;

/// A claim beside what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedClaim {
    pub what: &'static str,
    pub paper: Option<f64>,
    /// The median of what the seeds say, and from where to where they lie.
    pub ours: f64,
    pub range: (f64, f64),
    /// `None`: there is no target.
    pub met: Option<bool>,
}

impl JudgedClaim {
    /// Ours over the paper's.
    pub fn ratio(&self) -> Option<f64> {
        self.paper.map(|paper| self.ours / paper)
    }
}

/// Judges all claims of a figure by the points of each seed, of which there is one at least.
pub fn judge(figure: &Figure, by_seed: &[Vec<Point>]) -> Vec<JudgedClaim> {
    figure.claims.iter().map(|claim| judge_one(figure, claim, by_seed)).collect()
}

fn judge_one(figure: &Figure, claim: &PaperClaim, by_seed: &[Vec<Point>]) -> JudgedClaim {
    let of = |points: &Vec<Point>| measured(figure, claim.measure, points);
    let mut all: Vec<f64> = by_seed.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    let (ours, range) = (median(&all), (all[0], all[all.len() - 1]));
    let met = claim.target.map(|target| target.is_met(ours));
    JudgedClaim { what: claim.what, paper: claim.paper, ours, range, met }
}

fn measured(figure: &Figure, measure: Measure, points: &[Point]) -> f64 {
    let of = |line: &'static str| points.iter().filter(move |it| it.line == line);
    let last = |line| of(line).next_back().map_or(0.0, |it| it.throughput);
    let first = |line| of(line).next().map_or(f64::NAN, |it| it.throughput);
    let most = |line| of(line).map(|it| it.throughput).fold(0.0, f64::max);
    let at =
        |quantity, line, x| of(line).find(|it| it.x == x).map_or(f64::NAN, |it| it.shows(quantity));
    let over_best = |quantity, line, others: &[&'static str]| -> Vec<f64> {
        let over = |point: &Point| {
            let (_, best) = best_of(others, points, point.x, quantity)?;
            Some(point.shows(quantity) / best)
        };
        of(line).filter_map(over).collect()
    };
    match measure {
        Measure::Speedup(over, under) => last(over) / last(under),
        Measure::Throughput(line) => last(line),
        Measure::Most(line) => most(line),
        Measure::Loss(loses, against) => {
            let pairs = of(loses).zip(of(against)).map(|(a, b)| a.throughput / b.throughput);
            let logs: Vec<f64> = pairs.map(f64::ln).collect();
            100.0 * (1.0 - (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp())
        }
        Measure::Aborts(line) => 100.0 * mean(of(line).map(|point| point.aborts)),
        Measure::Scaling(line) => {
            let a_node = |point: &Point| point.throughput / point.nodes as f64;
            let fewest = of(line).min_by_key(|it| it.nodes).map(a_node);
            let most = of(line).max_by_key(|it| it.nodes).map(a_node);
            most.unwrap_or(0.0) / fewest.unwrap_or(f64::NAN)
        }
        Measure::Kept(line) => last(line) / first(line),
        Measure::KeptOfMost(line) => last(line) / most(line),
        Measure::Saturates(line) => {
            let enough = |it: &&Point| it.throughput >= SATURATED * most(line);
            of(line).find(enough).map_or(f64::NAN, |it| it.x)
        }
        Measure::At(quantity, line, x) => at(quantity, line, x),
        Measure::Within(quantity, line, x, other) => {
            at(quantity, line, x) / at(quantity, line, other)
        }
        Measure::Over(quantity, over, under, x) => at(quantity, over, x) / at(quantity, under, x),
        Measure::OverWithin(quantity, over, under, x, other) => {
            let ratio = |x| at(quantity, over, x) / at(quantity, under, x);
            ratio(x) / ratio(other)
        }
        Measure::MostOverBest(quantity, line, others) => {
            over_best(quantity, line, others).into_iter().fold(f64::NAN, f64::max)
        }
        Measure::LeastOverBest(quantity, line, others) => {
            over_best(quantity, line, others).into_iter().fold(f64::NAN, f64::min)
        }
        Measure::LeastOf(quantity, line) => {
            of(line).map(|it| it.shows(quantity)).fold(f64::NAN, f64::min)
        }
        Measure::MostOf(quantity, line) => {
            of(line).map(|it| it.shows(quantity)).fold(f64::NAN, f64::max)
        }
        Measure::OverModel(name) => {
            let Some(model) = figure.models.iter().find(|it| it.name == name) else {
                return f64::NAN;
            };
            mean(of(model.of).map(|point| point.shows(figure.shows) / (model.predicts)(point)))
        }
        Measure::Summary(measure, line, against) => {
            summary::measured(figure, measure, (line, against), points)
        }
    }
}

/// The best of some lines at a value of the axis, and what it shows.
pub fn best_of(
    lines: &[&'static str],
    points: &[Point],
    x: f64,
    quantity: Quantity,
) -> Option<(&'static str, f64)> {
    let there = points.iter().filter(|point| point.x == x && lines.contains(&point.line));
    there.map(|it| (it.line, it.shows(quantity))).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let numbers: Vec<f64> = numbers.collect();
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::figure::Model;
    use crate::reproduce::figures;

    fn point(line: &'static str, nodes: usize, throughput: f64, aborts: f64) -> Point {
        Point {
            line,
            x: nodes as f64,
            nodes,
            machines: 2 * nodes,
            clients: 1,
            throughput,
            several_a_second: throughput / 2.0,
            several_ms: 4.0,
            aborts,
            mean_ms: 2.0,
            locked: 0.25,
            transition_ms: 1.0,
            ..Point::default()
        }
    }

    #[test]
    fn measures_are_made_from_points() {
        let points = [
            point("a", 10, 100.0, 0.1),
            point("b", 10, 200.0, 0.0),
            point("a", 40, 300.0, 0.3),
            point("b", 40, 600.0, 0.0),
            point("a", 50, 150.0, 0.2),
            point("b", 50, 300.0, 0.0),
        ];
        let model = Model { name: "half", of: "a", predicts: |point| point.throughput / 2.0 };
        let models: &'static [Model] = Box::leak(Box::new([model]));
        let figure = Figure { models, ..*figures::all().next().expect("there are some") };
        let near = |measure, expected: f64| {
            let found = measured(&figure, measure, &points);
            assert!((found - expected).abs() < 1e-9, "{measure:?}: {found}, not {expected}");
        };
        near(Measure::Speedup("b", "a"), 2.0);
        near(Measure::Throughput("b"), 300.0);
        near(Measure::Most("b"), 600.0);
        near(Measure::Loss("a", "b"), 50.0);
        near(Measure::Aborts("a"), 20.0);
        near(Measure::Scaling("a"), 0.3);
        near(Measure::Kept("a"), 1.5);
        near(Measure::KeptOfMost("a"), 0.5);
        near(Measure::Saturates("b"), 40.0);
        near(Measure::At(Quantity::Locked, "a", 40.0), 25.0);
        near(Measure::At(Quantity::Operations, "a", 40.0), 450.0);
        near(Measure::Over(Quantity::ANode, "b", "a", 10.0), 2.0);
        near(Measure::OverWithin(Quantity::Throughput, "a", "b", 50.0, 10.0), 1.0);
        near(Measure::OverModel("half"), 2.0);
        near(Measure::MostOverBest(Quantity::AMachine, "a", &["b"]), 0.5);
        near(Measure::MostOverBest(Quantity::ANode, "b", &["a", "c"]), 2.0);
        near(Measure::LeastOverBest(Quantity::ANode, "a", &["b", "c"]), 0.5);
        near(Measure::LeastOf(Quantity::Throughput, "a"), 100.0);
        near(Measure::MostOf(Quantity::Throughput, "b"), 600.0);
    }
}
