//! How repositories enter locking mode (figures 6.11 to 6.14), beside the thesis's models.

use super::machines::{CONFLICTS, COORDINATED_OF_ALL, COUNTERS, PERCENT, far};
use crate::reproduce::figure::{Axis, Figure, Measure, Model, Printed, PrintedAs, claim, line};
use crate::reproduce::point::{Point, Quantity};

/// Independent transactions are under way for about ten milliseconds, few conflict, and one in a
/// hundred is coordinated.
const ENTER: Figure = Figure {
    axis: CONFLICTS,
    // "Both axes on this figure are logarithmic" (6.11); figure 6.12 is its like.
    logarithmic: true,
    parameters: &["distributed=100", "coordinated=1"],
    xs: &[0.01, 0.1, 1.0, 10.0, 50.0],
    quick_xs: &[0.1, 10.0],
    shows: Quantity::Transition,
    seconds: (8.0, 2.0),
    chosen: "Closed loops of clients in place of arrival rates; the model is given the rate and \
             the time under way that were measured.",
    ..COUNTERS
};

/// How many transactions are under way at a repository for `way` each side of it, by Little's law:
/// the rate there, and the time from the vote to the end, in milliseconds.
fn under_way(point: &Point, way: f64) -> (f64, f64) {
    let rate = point.several_a_second * 2.0 / point.nodes as f64;
    let active = (point.several_ms - 2.0 * way).max(0.0);
    (rate * active / 1e3, active)
}

/// The thesis's bound for the delay of a transition (section 6.6.1), in milliseconds.
fn delay(point: &Point, way: f64) -> f64 {
    let (concurrent, active) = under_way(point, way);
    (1.0 - (1.0 - point.x / 100.0).powf(concurrent)) * active
}

/// The thesis's share of time in locking mode (section 6.6.2), in percent.
fn locked(point: &Point, way: f64) -> f64 {
    let (concurrent, _) = under_way(point, way);
    100.0 * (1.0 - (1.0 - point.x / 100.0).powf(concurrent))
}

/// Where the thesis's curves are drawn: our own values of the axis.
const CONFLICT_RATES: &[f64] = &[0.01, 0.1, 1.0, 10.0, 50.0];

const fn printed_delay(
    name: &'static str,
    source: &'static str,
    predicts: fn(f64) -> f64,
) -> Printed {
    Printed { name, source, xs: CONFLICT_RATES, predicts: PrintedAs::Number(predicts) }
}

/// The thesis's bound for the delay of a transition, in milliseconds: of transactions that conflict
/// so often, in percent, come so many a second, and each is active for so many milliseconds.
fn printed_bound(conflicts: f64, rate: f64, active_ms: f64) -> f64 {
    (1.0 - (1.0 - conflicts / 100.0).powf(rate * active_ms / 1e3)) * active_ms
}

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "granola-6.11",
        about: "Granola, figure 6.11: delay of entering locking mode, by load, model beside it",
        printed: &[printed_delay(
            "paper: 10,000 tps",
            "Granola, section 6.6.1: the bound at 10,000 tps, with votes out for 10 ms",
            |x| printed_bound(x, 10_000.0, 10.0),
        )],
        lines: &[
            line("10 clients", "granola", |setting| {
                far(setting);
                setting.clients = Some(10);
            }),
            line("100 clients", "granola", |setting| {
                far(setting);
                setting.clients = Some(100);
            }),
        ],
        models: &[
            Model { name: "model, 10", of: "10 clients", predicts: |point| delay(point, 10.0) },
            Model { name: "model, 100", of: "100 clients", predicts: |point| delay(point, 10.0) },
        ],
        claims: &[
            claim("over the bound, 10", Measure::OverModel("model, 10"), None, None),
            claim("over the bound, 100", Measure::OverModel("model, 100"), None, None),
        ],
        ..ENTER
    },
    Figure {
        name: "granola-6.12",
        about: "Granola, figure 6.12: delay of entering locking mode, by network, model beside it",
        printed: &[
            printed_delay(
                "paper: 0.1 ms",
                "Granola, section 6.6.1: the bound at 1,000 tps, nodes 0.1 ms apart",
                |x| printed_bound(x, 1_000.0, 0.1),
            ),
            printed_delay(
                "paper: 10 ms",
                "Granola, section 6.6.1: the bound at 1,000 tps, nodes 10 ms apart",
                |x| printed_bound(x, 1_000.0, 10.0),
            ),
        ],
        lines: &[
            line("0.1 ms", "granola", |setting| setting.clients = Some(32)),
            line("10 ms", "granola", |setting| {
                far(setting);
                setting.clients = Some(32);
            }),
        ],
        models: &[
            Model { name: "model, 0.1 ms", of: "0.1 ms", predicts: |point| delay(point, 0.09) },
            Model { name: "model, 10 ms", of: "10 ms", predicts: |point| delay(point, 10.0) },
        ],
        claims: &[
            claim("over the bound, 0.1 ms", Measure::OverModel("model, 0.1 ms"), None, None),
            claim("over the bound, 10 ms", Measure::OverModel("model, 10 ms"), None, None),
        ],
        ..ENTER
    },
    Figure {
        name: "granola-6.13",
        about: "Granola, figure 6.13: time in locking mode, model beside it",
        printed: &[Printed {
            name: "paper: 100 at once",
            source: "Granola, section 6.6.2: the model with 100 concurrent transactions",
            xs: CONFLICT_RATES,
            predicts: PrintedAs::Number(|x| 100.0 * (1.0 - (1.0 - x / 100.0).powi(100))),
        }],
        axis: COORDINATED_OF_ALL,
        xs: &[0.01, 0.1, 1.0, 10.0, 50.0],
        quick_xs: &[0.1, 10.0],
        lines: &[
            line("4 clients", "granola", |setting| setting.clients = Some(4)),
            line("64 clients", "granola", |setting| setting.clients = Some(64)),
        ],
        models: &[
            Model { name: "model, 4", of: "4 clients", predicts: |point| locked(point, 0.09) },
            Model { name: "model, 64", of: "64 clients", predicts: |point| locked(point, 0.09) },
        ],
        shows: Quantity::Locked,
        seconds: (4.0, 1.0),
        chosen: "All transactions are distributed over two repositories.",
        claims: &[
            claim("over the model, 4", Measure::OverModel("model, 4"), Some(1.0), None),
            claim("over the model, 64", Measure::OverModel("model, 64"), Some(1.0), None),
        ],
        ..COUNTERS
    },
    Figure {
        name: "granola-6.14",
        about: "Granola, figure 6.14: transactions in locking mode over the share of coordinated",
        axis: Axis {
            name: "% coordinated",
            set: |x, setting| {
                setting.put("distributed", x);
                setting.put("coordinated", 100.0);
            },
            range: PERCENT,
            logarithmic: true,
        },
        xs: &[0.01, 0.1, 1.0, 10.0, 50.0],
        quick_xs: &[0.1, 1.0, 10.0],
        lines: &[
            line("10 clients", "granola", |setting| setting.clients = Some(10)),
            line("100 clients", "granola", |setting| setting.clients = Some(100)),
            line("1 000 clients", "granola", |setting| setting.clients = Some(1_000)),
        ],
        shows: Quantity::Locked,
        chosen: "Two repositories.",
        claims: &[claim(
            "% in locking mode at 1 %",
            Measure::At(Quantity::Locked, "100 clients", 1.0),
            Some(50.0),
            None,
        )],
        ..COUNTERS
    },
];
