//! What a summary says by workloads: one line's throughput over another one's.

use std::collections::BTreeMap;

use super::figure::{Figure, Setting, SummaryMeasure};
use super::point::Point;

/// The geometric mean of some ratios.
fn mean(ratios: &[f64]) -> f64 {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (sum / ratios.len() as f64).exp()
}

/// What the points say, of a figure with cases.
pub fn measured(
    figure: &Figure,
    measure: SummaryMeasure,
    (line, against): (&'static str, &'static str),
    points: &[Point],
) -> f64 {
    let at = |line, x| points.iter().find(|it| it.line == line && it.x == x);
    let over = |point: &Point| Some(point.throughput / at(against, point.x)?.throughput);
    let own = points.iter().filter(|point| point.line == line);
    let ratios: Vec<(f64, f64)> =
        own.filter_map(|point| over(point).map(|ratio| (point.x, ratio))).collect();
    let mut by_workload: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (x, ratio) in &ratios {
        by_workload.entry(figure.at(*x).0.workload).or_default().push(*ratio);
    }
    let mean_of = |wanted: &str| by_workload.get(wanted).map_or(f64::NAN, |all| mean(all));
    let others = |wanted: &'static str| {
        let others = by_workload.iter().filter(move |(name, _)| **name != wanted);
        others.map(|(_, all)| mean(all))
    };
    match measure {
        SummaryMeasure::Loss(workload) => 100.0 * (1.0 - mean_of(workload)),
        SummaryMeasure::OverBest(workload) => {
            mean_of(workload) / others(workload).fold(f64::NAN, f64::max)
        }
        SummaryMeasure::OverLeast(workload) => {
            mean_of(workload) / others(workload).fold(f64::NAN, f64::min)
        }
        SummaryMeasure::BestAt(workload, parameter) => {
            best_at(figure, (workload, parameter), &ratios)
        }
    }
}

/// At which value of a figure's axis, where it is this parameter, the mean is the best.
fn best_at(figure: &Figure, (workload, parameter): (&str, &str), ratios: &[(f64, f64)]) -> f64 {
    let mut by_value: Vec<(f64, Vec<f64>)> = Vec::new();
    for (x, ratio) in ratios {
        let (of, at) = figure.at(*x);
        if of.workload != workload || of.axis.name != parameter {
            continue;
        }
        let value = Setting::of(of, "", at).number(parameter).unwrap_or(f64::NAN);
        match by_value.iter_mut().find(|(known, _)| *known == value) {
            Some((_, all)) => all.push(*ratio),
            None => by_value.push((value, vec![*ratio])),
        }
    }
    let means = by_value.iter().map(|(value, all)| (*value, mean(all)));
    means.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(f64::NAN, |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::super::figure::{Axis, NOTHING, SummedSetting, case};
    use super::*;

    const BY_CALLS: Axis = Axis {
        name: "calls",
        set: |x, setting| setting.put("calls", x),
        range: (1.0, 9.0),
        logarithmic: false,
    };
    const TABLE: Figure = Figure { workload: "hashtable", axis: BY_CALLS, ..NOTHING };
    const BANK: Figure = Figure { workload: "bank", ..NOTHING };
    const LIST: Figure = Figure { workload: "list", ..NOTHING };
    const CASES: &[SummedSetting] = &[
        case(&TABLE, 1.0),
        case(&TABLE, 3.0),
        case(&TABLE, 3.0),
        case(&BANK, 2.0),
        case(&LIST, 2.0),
    ];
    const SUMMARY: Figure = Figure { cases: CASES, ..NOTHING };

    fn points() -> Vec<Point> {
        let ratios = [1.1, 0.5, 2.0, 4.0, 0.25];
        let at = |(number, ratio): (usize, &f64)| {
            let x = (number + 1) as f64;
            let point = |line, throughput| Point { line, x, throughput, ..Point::default() };
            [point("flat", 10.0), point("closed", 10.0 * ratio)]
        };
        ratios.iter().enumerate().flat_map(at).collect()
    }

    #[test]
    fn means_are_by_workloads() {
        let near = |measure, expected: f64| {
            let found = measured(&SUMMARY, measure, ("closed", "flat"), &points());
            assert!((found - expected).abs() < 1e-9, "{measure:?}: {found}, not {expected}");
        };
        near(SummaryMeasure::Loss("bank"), -300.0);
        near(SummaryMeasure::Loss("list"), 75.0);
        let table = 1.1_f64.cbrt();
        near(SummaryMeasure::OverBest("bank"), 4.0 / table);
        near(SummaryMeasure::OverLeast("list"), 0.25 / table);
        // Three calls have 1 on average, and one has 1.1.
        near(SummaryMeasure::BestAt("hashtable", "calls"), 1.0);
    }

    #[test]
    fn what_was_not_run_is_no_number() {
        let none = measured(&SUMMARY, SummaryMeasure::Loss("tree"), ("closed", "flat"), &points());
        assert!(none.is_nan());
        assert_eq!(SUMMARY.workloads(), ["bank", "hashtable", "list"]);
    }
}
