//! External consistency (section 4.4.3): the order between *sessions* keeps real time only as far
//! as clocks agree, since nobody tells one session what another one has seen. Measured: how often a
//! transaction lies before one of another session that had ended before it began; and in how many
//! histories that can be told from what was read and written.

use muesli_check::{Level, Options, check};
use muesli_core::Timestamp;
use muesli_sim::time::Span;
use serde_json::Map;

use super::seeds::TIMESTAMPS;
use super::worlds::Shape;

/// What some worlds showed.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    transactions: u64,
    /// Transactions that lie before one that had ended before they began.
    inverted: u64,
    histories: u64,
    /// Histories that no order explains which keeps real time.
    broken: u64,
}

/// Worlds in which the clock of one node of three is ahead of the others'.
fn measure(ahead: Span, seeds: u64) -> Measured {
    let shape = Shape { ahead, ..Shape::new(TIMESTAMPS) };
    let mut measured = Measured::default();
    for seed in 0..seeds {
        let run = shape.run_calm(seed);
        let mut all: Vec<(u64, u64, Timestamp)> = Vec::new();
        for recorded in run.hosts.iter().flat_map(|host| host.transactions()) {
            if let (Some(end), Some(at)) = (recorded.end, recorded.record.at) {
                all.push((recorded.begin.as_nanos(), end.as_nanos(), at));
            }
        }
        measured.transactions += all.len() as u64;
        measured.inverted += inverted(all);
        let history = run.history(Map::new()).expect("a history");
        let verdict = check(&history, Level::StrictSerializable, &Options::default());
        measured.histories += 1;
        measured.broken += u64::from(!verdict.holds());
    }
    measured
}

/// How many lie before one that had ended before they began, as (begin, end, place).
fn inverted(mut all: Vec<(u64, u64, Timestamp)>) -> u64 {
    let mut ends: Vec<_> = all.iter().map(|&(_, end, at)| (end, at)).collect();
    ends.sort_unstable();
    all.sort_unstable();
    let (mut ended, mut highest, mut count) = (0, Timestamp::ZERO, 0);
    for (begin, _, at) in all {
        while ends.get(ended).is_some_and(|(end, _)| *end < begin) {
            highest = highest.max(ends[ended].1);
            ended += 1;
        }
        count += u64::from(at < highest);
    }
    count
}

#[test]
fn who_came_after_is_ordered_after() {
    let at = |counter| Timestamp(counter);
    assert_eq!(inverted(vec![(0, 5, at(9)), (6, 8, at(3)), (7, 9, at(10)), (4, 7, at(1))]), 1);
}

/// Prints the table of the book's page on Granola.
#[test]
fn the_order_between_sessions_is_as_good_as_clocks() {
    let mut shown = Vec::new();
    for (name, ahead) in
        [("0", Span::ZERO), ("1 ms", Span::from_millis(1)), ("10 ms", Span::from_millis(10))]
    {
        let it = measure(ahead, 40);
        let share = it.inverted as f64 / it.transactions as f64;
        println!(
            "| {name} | {} | {} ({:.2} %) | {} of {} |",
            it.transactions,
            it.inverted,
            share * 100.0,
            it.broken,
            it.histories
        );
        shown.push(it);
    }
    assert_eq!(shown[0].broken, 0, "with clocks that agree");
    assert!(shown[2].inverted > shown[0].inverted, "with clocks that do not");
    assert!(shown[2].broken > 0, "and it shows");
}
