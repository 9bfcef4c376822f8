//! Chapter 8: where data are placed that a trace of transactions shows, beside the manual scheme.

use crate::reproduce::figure::{
    Axis, ClaimTarget, Figure, Measure, NOTHING, PaperClaim, PlacedBy, PlottedLine, Printed,
    PrintedAs, Setting, claim, line,
};
use crate::reproduce::point::Quantity;

/// What a placement is learnt from.
const LEARNT: Axis = Axis {
    name: "transactions learnt from",
    set: |x, setting| setting.placement.learnt = x as usize,
    range: (20.0, 100_000.0),
    logarithmic: true,
};

/// How many warehouses there are, each for a partition; 400 transactions are learnt from.
const WAREHOUSES: Axis = Axis {
    name: "warehouses",
    set: |x, setting| {
        setting.put("warehouses", x);
        setting.placement.learnt = 400;
    },
    range: (2.0, 1_000.0),
    logarithmic: false,
};

fn in_sample(setting: &mut Setting) {
    setting.placement.by = PlacedBy::SuggestionInSample;
}

fn manual(setting: &mut Setting) {
    setting.placement.by = PlacedBy::Manual;
}

fn by_hash(setting: &mut Setting) {
    setting.placement.by = PlacedBy::Hash;
}

const SUGGESTED: PlottedLine = line("suggested", "granola", |_| ());
const IN_SAMPLE: PlottedLine = line("suggested, in-sample", "granola", in_sample);
const MANUAL: PlottedLine = line("manual", "granola", manual);
const HASH: PlottedLine = line("units by hash", "granola", by_hash);

/// The least share of what is suggested, over the lengths of the trace.
const fn distributed(paper: Option<f64>, most: f64) -> PaperClaim {
    let measure = Measure::LeastOf(Quantity::Distributed, "suggested");
    claim("distributed, suggested, least, %", measure, paper, Some(ClaimTarget::Most(most)))
}

/// What follows from arguments is never misrouted.
const ROUTED: PaperClaim = claim(
    "misrouted, suggested, most, %",
    Measure::MostOf(Quantity::Misrouted, "suggested"),
    None,
    Some(ClaimTarget::Most(0.0)),
);

/// No step needs what another partition knows: that would be a second round.
const UNCROSSED: PaperClaim = claim(
    "crossing, suggested, most, %",
    Measure::MostOf(Quantity::Crossing, "suggested"),
    None,
    Some(ClaimTarget::Most(0.0)),
);

/// Partitions are loaded evenly, on fresh transactions.
const BALANCED: PaperClaim = claim(
    "load of the busiest partition, suggested, most",
    Measure::MostOf(Quantity::PlacedLoad, "suggested"),
    None,
    Some(ClaimTarget::Most(1.2)),
);

/// Exactly the scheme that people have found.
const AS_MANUAL: PaperClaim = claim(
    "suggested over manual, most",
    Measure::MostOverBest(Quantity::Distributed, "suggested", &["manual"]),
    None,
    Some(ClaimTarget::Most(1.009)),
);

/// Each method, of a workload in eight partitions.
const METHODS: Figure = Figure {
    axis: LEARNT,
    xs: &[4_000.0, 16_000.0, 32_000.0],
    quick_xs: &[4_000.0],
    lines: &[SUGGESTED, IN_SAMPLE, HASH, MANUAL],
    chosen: "8 partitions; communities are invented, with 5 % of ties and questions among all; \
             shares of 6,000 fresh transactions (2,000 with --quick), of which nothing was learnt.",
    ..PLACEMENT
};

const PLACEMENT: Figure = Figure {
    workload: "tpcc-procedures",
    parameters: &["procedures=plans", "warehouses=3", "keys=1000"],
    chosen: "As many partitions as warehouses; 1,000 items; shares of 6,000 fresh transactions \
             (2,000 with --quick), of which nothing was learnt. The dissertation learns from rows \
             and by classifiers, here from columns.",
    lines: &[SUGGESTED, IN_SAMPLE, MANUAL],
    shows: Quantity::Distributed,
    axis: WAREHOUSES,
    ..NOTHING
};

/// The figures of chapter 8.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-8.1-tpcc",
        about: "placement, figure 8.1: distributed transactions of TPC-C, each method",
        parameters: &["procedures=plans", "warehouses=8", "keys=1000"],
        chosen: "8 warehouses in 8 partitions; 1,000 items; shares of 6,000 fresh transactions \
                 (2,000 with --quick), of which nothing was learnt.",
        claims: &[PaperClaim { paper: Some(1.0), ..AS_MANUAL }, ROUTED, UNCROSSED, BALANCED],
        ..METHODS
    },
    Figure {
        name: "turcu-8.1-tpcw",
        about: "placement, figure 8.1: distributed transactions of TPC-W, each method",
        workload: "tpcw",
        parameters: &["items=1700", "customers=3000", "communities=100", "mixing=5"],
        claims: &[distributed(Some(2.0), 4.5), ROUTED, BALANCED],
        ..METHODS
    },
    Figure {
        name: "turcu-8.1-auctionmark",
        about: "placement, figure 8.1: distributed transactions of AuctionMark, each method",
        workload: "auctionmark",
        parameters: &["users=3000", "communities=100", "mixing=5"],
        claims: &[distributed(Some(2.0), 4.5), ROUTED, BALANCED],
        ..METHODS
    },
    Figure {
        name: "turcu-8.1-epinions",
        about: "placement, figure 8.1: distributed transactions of EPinions, each method",
        workload: "epinions",
        parameters: &["users=3000", "items=1700", "communities=100", "mixing=5"],
        claims: &[distributed(None, 6.0), ROUTED, BALANCED],
        ..METHODS
    },
    Figure {
        name: "turcu-8.1-retwis",
        about: "placement, figure 8.1: distributed transactions of ReTwis, each method",
        workload: "retwis",
        parameters: &["users=4000", "follows=8", "community=40", "mixing=5"],
        claims: &[distributed(None, 19.0), ROUTED, BALANCED],
        ..METHODS
    },
    Figure {
        name: "turcu-8.2",
        about: "placement, figure 8.2: distributed transactions of TPC-C, 3 warehouses, by trace",
        axis: LEARNT,
        xs: &[150.0, 300.0, 600.0, 1_200.0],
        quick_xs: &[150.0, 1_200.0],
        claims: &[
            claim(
                "distributed at 1200, %",
                Measure::At(Quantity::Distributed, "suggested", 1_200.0),
                Some(10.3),
                None,
            ),
            AS_MANUAL,
            ROUTED,
            UNCROSSED,
            BALANCED,
        ],
        ..PLACEMENT
    },
    Figure {
        name: "turcu-8.3",
        about: "placement, figure 8.3: distributed transactions of TPC-C, over its warehouses",
        xs: &[3.0, 5.0, 7.0, 10.0, 15.0],
        quick_xs: &[3.0, 15.0],
        claims: &[PaperClaim { paper: Some(1.037), ..AS_MANUAL }, ROUTED, UNCROSSED, BALANCED],
        ..PLACEMENT
    },
    Figure {
        name: "turcu-8.4",
        about: "placement, figure 8.4: transactions that show TPC-C's manual scheme, by warehouses",
        chosen: "1,000 items; lengths of 25 to 1,200 transactions are tried, with 15 to choose by \
                 for each 70, and a length is enough where of it and all longer ones exactly the \
                 manual scheme is suggested. The \
                 dissertation learns from rows and by classifiers, here from columns.",
        xs: &[3.0, 7.0, 15.0],
        quick_xs: &[3.0, 15.0],
        lines: &[SUGGESTED],
        shows: Quantity::TraceLength,
        logarithmic: true,
        printed: &[Printed {
            name: "dissertation",
            source: "Turcu, section 8.3, in words",
            xs: &[3.0, 7.0, 15.0],
            predicts: PrintedAs::Number(|x| match x {
                3.0 => 1_200.0,
                7.0 => 3_500.0,
                _ => 11_000.0,
            }),
        }],
        claims: &[claim(
            "transactions that are enough at 15 warehouses",
            Measure::At(Quantity::TraceLength, "suggested", 15.0),
            Some(11_000.0),
            Some(ClaimTarget::Most(400.0)),
        )],
        ..PLACEMENT
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_for_tpcc_is_to_be_even_and_of_one_round() {
        for name in ["turcu-8.1-tpcc", "turcu-8.2", "turcu-8.3"] {
            let figure = FIGURES.iter().find(|figure| figure.name == name).expect("it is listed");
            for quantity in [Quantity::Misrouted, Quantity::Crossing, Quantity::PlacedLoad] {
                let measure = Measure::MostOf(quantity, "suggested");
                let is_of_it = |claim: &&PaperClaim| claim.measure == measure;
                let claim = figure.claims.iter().find(is_of_it);
                assert!(claim.is_some_and(|it| it.target.is_some()), "{name}: {quantity:?}");
            }
        }
    }
}
