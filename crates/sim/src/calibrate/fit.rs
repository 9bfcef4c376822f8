//! Fitting costs to measurements: least squares without negative costs.
//!
//! The unknowns are few and the equations are well apart, so the plainest method is enough: one
//! cost after the other is set to what fits best while the others stay, not below zero, until
//! nothing changes any more. The sum of squares falls with every step and is convex, so this ends
//! at its least. Errors count relative to what was measured, so that short transactions count as
//! much as long ones.

use super::CalibrationRun;
use crate::hardware::costs::Costs;
use crate::hardware::processor::ProcessorLoad;
use crate::time::Span;

/// Messages are sent and received equally often here, so that their costs cannot be told apart:
/// one unknown stands for both, and is shared evenly.
const UNKNOWNS: usize = 7;
const SWEEPS: usize = 20_000;

fn counts(load: &ProcessorLoad) -> [u64; UNKNOWNS] {
    let messages = load.received + load.sent;
    let ProcessorLoad { operations, reads, validated, installed, logged, bytes, .. } = *load;
    [messages, operations, reads, validated, installed, logged, bytes]
}

/// The costs that fit best; turns and connections are not among them.
pub(super) fn fit(equations: &[CalibrationRun]) -> Costs {
    let rows: Vec<[f64; UNKNOWNS]> = equations
        .iter()
        .map(|it| counts(&it.load).map(|count| count as f64 / it.nanos.max(1.0)))
        .collect();
    costs(least_squares(&rows))
}

/// The costs of which these are the unknowns, in nanoseconds.
fn costs(unknowns: [f64; UNKNOWNS]) -> Costs {
    let [message, operation, read, validate, install, log, byte] = unknowns;
    let span = |nanos: f64| Span::from_nanos(nanos.round() as u64);
    Costs {
        receive: span(message),
        send: span(message),
        operation: span(operation),
        read: span(read),
        validate: span(validate),
        install: span(install),
        log: span(log),
        byte_picos: (byte * 1_000.0).round() as u64,
        ..Costs::FREE
    }
}

/// The vector without negative parts whose product with each row is as near to 1 as can be.
fn least_squares(rows: &[[f64; UNKNOWNS]]) -> [f64; UNKNOWNS] {
    let mut costs = [0.0; UNKNOWNS];
    let mut missing = vec![1.0; rows.len()];
    for unknown in (0..UNKNOWNS).cycle().take(SWEEPS * UNKNOWNS) {
        let square: f64 = rows.iter().map(|row| row[unknown] * row[unknown]).sum();
        if square == 0.0 {
            continue;
        }
        let pull: f64 =
            rows.iter().zip(&missing).map(|(row, missing)| row[unknown] * missing).sum();
        let better = (costs[unknown] + pull / square).max(0.0);
        let step = better - costs[unknown];
        costs[unknown] = better;
        for (row, missing) in rows.iter().zip(&mut missing) {
            *missing -= row[unknown] * step;
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(counts: [u64; UNKNOWNS]) -> ProcessorLoad {
        let [received, operations, reads, validated, installed, logged, bytes] = counts;
        let sent = received;
        let load = ProcessorLoad::default();
        ProcessorLoad {
            received,
            sent,
            bytes,
            operations,
            reads,
            validated,
            installed,
            logged,
            ..load
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// Costs that made the measurements are found again.
        #[test]
        fn exact_measurements_give_the_costs_back(
            nanos in prop::array::uniform7(0..500_u64),
            more in prop::collection::vec(prop::array::uniform7(0..20_u64), 5),
        ) {
            let costs = costs(nanos.map(|nanos| nanos as f64));
            let single = (0..UNKNOWNS).map(|unknown| {
                let mut counts = [1; UNKNOWNS];
                counts[unknown] = 10;
                counts
            });
            let equations: Vec<CalibrationRun> = single
                .chain(more)
                .map(load)
                .filter(|load| load.cost(&costs) > Span::ZERO)
                .map(|load| {
                    CalibrationRun { load, nanos: load.cost(&costs).as_nanos() as f64 }
                })
                .collect();
            let found = fit(&equations);
            for equation in &equations {
                let (made, fits) = (equation.nanos, equation.load.cost(&found));
                let error = (fits.as_nanos() as f64 - made).abs();
                prop_assert!(error <= made * 0.02 + 30.0, "{fits} for {made} ns");
            }
        }

        #[test]
        fn no_measurement_gives_a_negative_cost(
            rows in prop::collection::vec(prop::array::uniform7(0.0..10.0), 1..12),
        ) {
            for cost in least_squares(&rows) {
                prop_assert!(cost >= 0.0 && cost.is_finite());
            }
        }
    }
}
