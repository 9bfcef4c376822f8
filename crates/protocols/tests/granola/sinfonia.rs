//! Sinfonia: many seeds, with all faults; and what goes wrong where its master does not wait for
//! all votes.

use muesli_protocols::granola::{GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::clients::Mix;
use super::seeds::{ALL, try_seeds};
use super::worlds::Shape;

fn shape(faults: &'static str) -> Shape {
    Shape { switches: Switches::sinfonia(), faults, ..Shape::new(ALL) }
}

#[test]
fn all_classes() {
    try_seeds(&shape("none"), 0..10);
    try_seeds(&Shape { replicas: 2, ..shape("none") }, 0..5);
}

#[test]
fn all_classes_under_every_kind_of_fault() {
    try_seeds(&shape("all"), 0..20);
    try_seeds(&Shape { replicas: 2, ..shape("all") }, 0..15);
}

/// Nodes besides that hold no keys decide for all others.
fn apart(masters: u32, faults: &'static str) -> Shape {
    Shape { masters, ..shape(faults) }
}

#[test]
fn masters_on_nodes_of_their_own() {
    try_seeds(&apart(1, "none"), 0..10);
    try_seeds(&Shape { replicas: 2, ..apart(2, "none") }, 0..5);
    try_seeds(&apart(1, "all"), 0..20);
    try_seeds(&Shape { replicas: 2, ..apart(2, "all") }, 0..15);
    try_seeds(&apart(1, "crash,link"), 100..115);
}

/// One of these once asked for ever: a checkpoint had left out that a reader was voted on.
#[test]
fn readers_are_in_checkpoints() {
    try_seeds(&shape("all"), 2304..2314);
}

#[test]
fn masters_and_participants_that_crash() {
    let mix = Mix {
        single: 1,
        independent: 2,
        coordinated: 4,
        look: 2,
        interactive: 0,
        moving: 0,
        sharing: 0,
        keys: 5,
    };
    try_seeds(&Shape { faults: "crash,client,link", mix, ..shape("all") }, 0..15);
}

#[test]
fn a_master_that_does_not_wait_for_all_votes_is_noticed() {
    let switches = Switches::sinfonia().without(GranolaSwitch::MasterWaits);
    let mix = Mix {
        single: 2,
        independent: 2,
        coordinated: 6,
        look: 2,
        interactive: 0,
        moving: 0,
        sharing: 0,
        keys: 4,
    };
    for masters in [0, 1] {
        let broken = Shape { switches, mix, ..apart(masters, "none") };
        let noticed = (0..10).filter_map(|seed| broken.run(seed).problem).count();
        assert!(noticed > 0, "{masters} masters");
    }
}

/// The messages of one transaction of n0's at two other nodes, as the trace has them.
fn messages_of_one() -> Vec<String> {
    let mix = Mix {
        single: 0,
        independent: 0,
        coordinated: 1,
        look: 0,
        interactive: 0,
        moving: 0,
        sharing: 0,
        keys: 40,
    };
    let outcome = Shape { mix, clients: 1, ..shape("none") }.traced(1);
    let trace = outcome.trace.expect("it was asked for");
    let elsewhere = "participants: [RepositoryId(1), RepositoryId(2)]";
    let request = trace.lines().find(|line| line.contains(elsewhere)).expect("a transaction");
    let txn = request.split("txn: ").nth(1).and_then(|rest| rest.split(',').next());
    let txn = format!("txn: {},", txn.expect("a request names its transaction"));
    let of_txn = trace.lines().filter(|line| line.contains(&txn));
    of_txn.filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned)).collect()
}

#[test]
fn a_transaction_takes_four_message_delays() {
    let messages = messages_of_one();
    let expected = ["Request", "Vote", "Decide", "Reply"];
    let mut sorted = messages.clone();
    sorted.sort_by_key(|name| expected.iter().position(|known| known == name));
    let twice: Vec<_> = expected.iter().flat_map(|name| [*name; 2]).collect();
    assert_eq!(sorted, twice);
    let first = |name: &str| messages.iter().position(|it| it == name);
    let last = |name: &str| messages.iter().rposition(|it| it == name);
    assert!(last("Vote") < first("Decide"), "{messages:?}");
}
