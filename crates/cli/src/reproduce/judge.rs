//! What the points say about what the paper says.

use super::figures::{Claim, Figure, Measure};
use super::points::Point;

/// A claim beside what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub what: &'static str,
    pub paper: Option<f64>,
    pub ours: f64,
    /// `None`: there is no target.
    pub met: Option<bool>,
}

impl Judged {
    /// Ours over the paper's.
    pub fn ratio(&self) -> Option<f64> {
        self.paper.map(|paper| self.ours / paper)
    }
}

/// Judges all claims of a figure.
pub fn judge(figure: &Figure, points: &[Point]) -> Vec<Judged> {
    figure.claims.iter().map(|claim| judge_one(claim, points)).collect()
}

fn judge_one(claim: &Claim, points: &[Point]) -> Judged {
    let ours = measured(claim.measure, points);
    let met = claim.target.map(|target| target.is_met(ours));
    Judged { what: claim.what, paper: claim.paper, ours, met }
}

fn measured(measure: Measure, points: &[Point]) -> f64 {
    let of = |protocol: &'static str| points.iter().filter(move |it| it.protocol == protocol);
    let most = |protocol| of(protocol).max_by_key(|it| it.nodes).map_or(0.0, |it| it.throughput);
    match measure {
        Measure::Speedup(over, under) => most(over) / most(under),
        Measure::Throughput(protocol) => most(protocol),
        Measure::Loss(loses, against) => {
            let pairs = of(loses).zip(of(against)).map(|(a, b)| a.throughput / b.throughput);
            let logs: Vec<f64> = pairs.map(f64::ln).collect();
            100.0 * (1.0 - (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp())
        }
        Measure::Aborts(protocol) => {
            let shares: Vec<f64> = of(protocol).map(|point| point.aborts).collect();
            100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64
        }
        Measure::Scaling(protocol) => {
            let a_node = |point: &Point| point.throughput / point.nodes as f64;
            let fewest = of(protocol).min_by_key(|it| it.nodes).map(a_node);
            let most = of(protocol).max_by_key(|it| it.nodes).map(a_node);
            most.unwrap_or(0.0) / fewest.unwrap_or(f64::NAN)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(protocol: &'static str, nodes: usize, throughput: f64, aborts: f64) -> Point {
        let (p50_ms, p99_ms, messages_a_commit) = (0.0, 0.0, 0.0);
        let (clients, broken) = (1, Vec::new());

        Point {
            protocol,
            nodes,
            clients,
            throughput,
            aborts,
            p50_ms,
            p99_ms,
            messages_a_commit,
            broken,
        }
    }

    #[test]
    fn measures_are_made_from_points() {
        let points = [
            point("a", 10, 100.0, 0.1),
            point("b", 10, 200.0, 0.0),
            point("a", 40, 300.0, 0.3),
            point("b", 40, 600.0, 0.0),
        ];
        let near = |measure, expected: f64| {
            let found = measured(measure, &points);
            assert!((found - expected).abs() < 1e-9, "{measure:?}: {found}, not {expected}");
        };
        near(Measure::Speedup("b", "a"), 2.0);
        near(Measure::Throughput("b"), 600.0);
        near(Measure::Loss("a", "b"), 50.0);
        near(Measure::Aborts("a"), 20.0);
        near(Measure::Scaling("a"), 0.75);
    }
}
