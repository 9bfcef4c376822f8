//! Chapter 5: open nesting (TFA-ON, SCORe-ON) beside closed nesting and flat transactions.
//!
//! How long transactions take besides their accesses is not printed, and decides what open nesting
//! is worth: where a transaction takes no time between its accesses, one whose objects are all at
//! its node commits before anybody can be in its way, flat or not. So it is *fitted*: so long that
//! transactions which succeed take longer with open children than flat ones by about what figure
//! 5.6 has.

use super::base::{
    CALLS, TURCU, all_three, be_patient, best_of_open, closed as set_closed, closed_loses, flat,
    open as set_open,
};
use crate::reproduce::figure::{
    ClaimTarget, Figure, Measure, PaperClaim, PlottedLine, Setting, claim, line,
};
use crate::reproduce::point::{AttemptPart, Quantity};

/// Open children, of transactions that only look as well: these take read locks.
fn open_all(setting: &mut Setting) {
    set_open(setting);
    setting.parameters.push("looks=children".to_owned());
}

const TFA: &[PlottedLine] =
    &[line("flat", "tfa", flat), line("closed", "tfa", set_closed), line("open", "tfa", open_all)];
const SCORE: &[PlottedLine] = &all_three("score");
const CHOSEN: &str = "One client a node (not printed); three structures, half of whose keys are \
                      there; transactions take 28 ms besides, fitted to figure 5.6.";

/// What most of them have in common.
const OPEN: Figure = Figure { chosen: CHOSEN, lines: TFA, quick_xs: &[4.0, 16.0, 48.0], ..TURCU };

/// The parameters of three structures that transactions add to and remove from at random.
macro_rules! sets {
    ($($own:literal),*) => {
        &["structures=3", "rule=random", "walks=0", "length=28", $($own),*]
    };
}

/// That of successful transactions, open children or closed ones over flat transactions, on few
/// nodes.
const fn overhead(
    what: &'static str,
    line: &'static str,
    paper: f64,
    target: ClaimTarget,
) -> PaperClaim {
    let measure = Measure::At(Quantity::FirstOverFirst, line, 4.0);
    claim(what, measure, Some(paper), Some(target))
}

/// Open over flat on many nodes, over the same on fewer.
const fn goes_on(what: &'static str, fewer: f64, target: ClaimTarget) -> PaperClaim {
    let measure = Measure::OverWithin(Quantity::Throughput, "open", "flat", 48.0, fewer);
    claim(what, measure, None, Some(target))
}

/// What is printed of SCORe-ON on few nodes and on many: open nesting is worse than flat at first,
/// and what it gains does not drop.
const FEW_AND_MANY: &[PaperClaim] = &[
    best_of_open(None, 1.0),
    claim(
        "open over flat, 4 nodes",
        Measure::Over(Quantity::Throughput, "open", "flat", 4.0),
        None,
        Some(ClaimTarget::Most(1.0)),
    ),
    goes_on("open over flat, 48 nodes over 16", 16.0, ClaimTarget::Least(1.0)),
];

const SUCCESSFUL: Figure = Figure {
    workload: "hashtable",
    parameters: sets!("objects=100", "initial=50", "buckets=11", "calls=4", "reads=20"),
    ..OPEN
};

const HASH_TABLE: Figure = Figure {
    name: "turcu-5.6",
    about: "TFA-ON, figure 5.6: what successful transactions take longer, hash tables, four calls",
    shows: Quantity::FirstOverFirst,
    claims: &[
        overhead(
            "successful open over flat, 4 nodes",
            "open",
            1.65,
            ClaimTarget::Between(1.5, 1.8),
        ),
        overhead("successful closed over flat, 4 nodes", "closed", 1.05, ClaimTarget::Most(1.07)),
    ],
    ..SUCCESSFUL
};

/// A line that shows a part of attempts with open children.
const fn part(name: &'static str, shows: Quantity) -> PlottedLine {
    PlottedLine { shows: Some(shows), ..line(name, "tfa", open_all) }
}

const PARTS_OF_COMMITTED: &[PlottedLine] = &[
    part("bodies of children", Quantity::CommittedPart(AttemptPart::Bodies)),
    part("their commits", Quantity::CommittedPart(AttemptPart::Commits)),
    part("children run again", Quantity::CommittedPart(AttemptPart::Lost)),
    part("until locks are free", Quantity::CommittedPart(AttemptPart::Ending)),
    part("the transaction itself", Quantity::CommittedPart(AttemptPart::Own)),
];

const PARTS_OF_ABORTED: &[PlottedLine] = &[
    part("bodies of children", Quantity::AbortedPart(AttemptPart::Bodies)),
    part("their commits", Quantity::AbortedPart(AttemptPart::Commits)),
    part("children run again", Quantity::AbortedPart(AttemptPart::Lost)),
    part("compensations", Quantity::AbortedPart(AttemptPart::Ending)),
    part("the transaction itself", Quantity::AbortedPart(AttemptPart::Own)),
];

/// A line of figure 5.8.
const fn aborts(name: &'static str, set: fn(&mut Setting)) -> PlottedLine {
    line(name, "tfa", set)
}

fn open_by(setting: &mut Setting, reads: f64, keys: f64) {
    open_all(setting);
    setting.put("reads", reads);
    setting.put("objects", keys);
    setting.put("initial", keys / 2.0);
}

const ABORTS: &[PlottedLine] = &[
    aborts("100 keys, r = 20", |setting| open_by(setting, 20.0, 100.0)),
    aborts("100 keys, r = 50", |setting| open_by(setting, 50.0, 100.0)),
    aborts("100 keys, r = 80", |setting| open_by(setting, 80.0, 100.0)),
    aborts("1000 keys, r = 20", |setting| open_by(setting, 20.0, 1_000.0)),
];

/// Counters that go together: with abstract locks, and without.
const COMMUTATIVE: &[PlottedLine] = &[
    line("flat", "tfa", flat),
    line("open", "tfa", set_open),
    line("open, no locks", "tfa", |setting| {
        setting.parameters.push("nesting=open".to_owned());
        setting.parameters.push("locks=false".to_owned());
        be_patient(setting);
    }),
];

/// All of them.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "turcu-5.3",
        about: "TFA-ON, figure 5.3: a skip list, three calls, 20 % read-only",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=3", "reads=20"),
        claims: &[best_of_open(None, 1.0), closed_loses(Some(-5.0))],
        ..OPEN
    },
    Figure {
        name: "turcu-5.3-half",
        about: "TFA-ON, figure 5.3: the same, 50 % read-only",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=3", "reads=50"),
        claims: &[best_of_open(None, 1.0), closed_loses(Some(-5.0))],
        ..OPEN
    },
    Figure {
        name: "turcu-5.3-reading",
        about: "TFA-ON, figure 5.3: the same, 80 % read-only",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=3", "reads=80"),
        // Printed: open children are not worth it any more.
        claims: &[
            PaperClaim { target: Some(ClaimTarget::Most(1.0)), ..best_of_open(None, 1.0) },
            closed_loses(Some(-5.0)),
        ],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4",
        about: "TFA-ON, figure 5.4: a skip list of 100 keys, four calls",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=4", "reads=20"),
        claims: &[best_of_open(Some(1.3), 1.3)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-half",
        about: "TFA-ON, figure 5.4: the same, 50 % read-only",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=4", "reads=50"),
        claims: &[best_of_open(None, 1.0)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-calls",
        about: "TFA-ON, figure 5.4: the same on 12 nodes, by calls",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "reads=20"),
        axis: CALLS,
        xs: &[2.0, 3.0, 4.0, 8.0],
        quick_xs: &[2.0, 8.0],
        claims: &[best_of_open(None, 1.0)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-hashtable",
        about: "TFA-ON, figure 5.4: hash tables, eight calls",
        workload: "hashtable",
        parameters: sets!("objects=100", "initial=50", "buckets=11", "calls=8", "reads=20"),
        claims: &[best_of_open(Some(1.31), 1.31)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.4-tree",
        about: "TFA-ON, figure 5.4: search trees, eight calls",
        workload: "tree",
        parameters: sets!("objects=100", "initial=50", "calls=8", "reads=20"),
        claims: &[best_of_open(Some(1.29), 1.29)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.5",
        about: "TFA-ON, figure 5.5: time of a transaction with its aborts, hash tables, four calls",
        shows: Quantity::Latency,
        ..SUCCESSFUL
    },
    Figure {
        name: "turcu-5.5-committed",
        about: "TFA-ON, figure 5.5: the same of transactions that commit at once",
        shows: Quantity::FirstLatency,
        ..SUCCESSFUL
    },
    HASH_TABLE,
    Figure {
        name: "turcu-5.6-skiplist",
        about: "TFA-ON, figure 5.6: the same of skip lists",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=4", "reads=20"),
        claims: &[
            overhead(
                "successful open over flat, 4 nodes",
                "open",
                1.45,
                ClaimTarget::Between(1.4, 1.5),
            ),
            overhead(
                "successful closed over flat, 4 nodes",
                "closed",
                1.1,
                ClaimTarget::Most(1.16),
            ),
        ],
        ..HASH_TABLE
    },
    Figure {
        name: "turcu-5.7",
        about: "TFA-ON, figure 5.7: where committed attempts spend their time, hash tables",
        shows: Quantity::CommittedPart(AttemptPart::Bodies),
        lines: PARTS_OF_COMMITTED,
        ..SUCCESSFUL
    },
    Figure {
        name: "turcu-5.7-aborted",
        about: "TFA-ON, figure 5.7: where attempts that a lock was refused to spend it",
        shows: Quantity::AbortedPart(AttemptPart::Bodies),
        lines: PARTS_OF_ABORTED,
        ..SUCCESSFUL
    },
    Figure {
        name: "turcu-5.8",
        about: "TFA-ON, figure 5.8: aborts a commit of hash tables on 12 nodes, by calls",
        workload: "hashtable",
        parameters: sets!("buckets=11"),
        lines: ABORTS,
        shows: Quantity::AbortsACommit,
        axis: CALLS,
        xs: &[2.0, 3.0, 4.0, 8.0],
        quick_xs: &[2.0, 8.0],
        claims: &[
            claim(
                "aborts, eight calls over two",
                Measure::Within(Quantity::AbortsACommit, "100 keys, r = 20", 8.0, 2.0),
                None,
                Some(ClaimTarget::Least(4.0)),
            ),
            claim(
                "aborts, 1000 keys over 100, eight calls",
                Measure::Over(
                    Quantity::AbortsACommit,
                    "1000 keys, r = 20",
                    "100 keys, r = 20",
                    8.0,
                ),
                None,
                Some(ClaimTarget::Most(0.2)),
            ),
        ],
        ..OPEN
    },
    Figure {
        name: "turcu-5.9",
        about: "TFA-ON, figure 5.9: skip lists of 1000 keys, four calls",
        workload: "skiplist",
        parameters: sets!("objects=1000", "initial=500", "calls=4", "reads=20"),
        claims: &[best_of_open(Some(1.51), 1.51)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.9-hashtable",
        about: "TFA-ON, figure 5.9: hash tables of 1000 keys, eight calls",
        workload: "hashtable",
        parameters: sets!("objects=1000", "initial=500", "buckets=11", "calls=8", "reads=20"),
        claims: &[best_of_open(Some(2.67), 2.67)],
        ..OPEN
    },
    Figure {
        name: "turcu-5.10",
        about: "TFA-ON, figure 5.10 (Infinispan): skip lists, three calls, nobody only reads",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=3", "reads=0"),
        claims: &[
            best_of_open(None, 1.0),
            goes_on("open over flat, 48 nodes over 16", 16.0, ClaimTarget::Most(1.0)),
        ],
        ..OPEN
    },
    Figure {
        name: "turcu-5-commutative",
        about: "TFA-ON, section 5.3.2: counters that go together, without abstract locks",
        chosen: "One client a node; 1000 counters before and after, of which five each are added \
                 to, and four in the middle; transactions take 28 ms besides.",
        workload: "counters",
        parameters: &["objects=1000", "hot=4", "cold-reads=50", "hot-reads=0", "length=28"],
        lines: COMMUTATIVE,
        claims: &[
            best_of_open(None, 1.0),
            claim(
                "without locks, over open with them",
                Measure::MostOverBest(Quantity::Throughput, "open, no locks", &["open"]),
                Some(1.3),
                Some(ClaimTarget::Least(1.2)),
            ),
        ],
        ..OPEN
    },
    Figure {
        name: "turcu-5.11",
        about: "SCORe-ON, figure 5.11 (Infinispan): skip lists with two copies, seven calls",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=7", "reads=0"),
        lines: SCORE,
        replicas: 2,
        claims: FEW_AND_MANY,
        ..OPEN
    },
    Figure {
        name: "turcu-5.12",
        about: "SCORe-ON, figure 5.12: skip lists, seven calls, nobody only reads",
        workload: "skiplist",
        parameters: sets!("objects=100", "initial=50", "calls=7", "reads=0"),
        lines: SCORE,
        claims: FEW_AND_MANY,
        ..OPEN
    },
];
