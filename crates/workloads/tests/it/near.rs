//! What a client writes that is no member comes to the node that it is nearest to; what was read
//! before is not sent again; nodes without data use that of another node at their site.

use std::sync::Arc;
use std::time::Duration;

use muesli_sim::time::Span;
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::geography::Geography;
use muesli_workloads::machines::MachineModel;
use muesli_workloads::simulated::{self, Simulated};
use muesli_workloads::tally::Tallies;

use super::workloads::assert_checks;

/// How many messages a commit of one visiting client takes in a bank on three nodes.
fn messages(protocol: &str) -> f64 {
    let given = ["objects=12", "reads=0"].map(str::to_owned);
    let workload = available::find("bank").unwrap().build(&given, 1).unwrap();
    let length = Length::Transactions(1_000);
    let calm = Simulated::calm(protocol, 3, 7, length);
    let plan = Simulated { client_nodes: 1, visiting: true, ..calm };
    let tallies = Arc::new(Tallies::new(1));
    let outcome = simulated::run(&workload, &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, protocol);
    outcome.messages as f64 / outcome.tally.committed as f64
}

#[test]
fn what_a_client_writes_moves_near_to_it() {
    let (moving, staying) = (messages("tfa"), messages("tfa-staying"));
    println!("{moving} messages a commit, and {staying} where nothing moves");
    assert!(moving < 0.8 * staying, "{moving} {staying}");
}

/// How many bytes a commit takes of one client that reads ten objects of ten kilobytes on the other
/// two of three nodes, and changes one.
fn bytes(protocol: &str) -> f64 {
    let given = ["objects=60", "bytes=10000", "updates=1", "reads=10"].map(str::to_owned);
    let workload = available::find("objects").unwrap().build(&given, 1).unwrap();
    let plan = Simulated::calm(protocol, 3, 7, Length::Transactions(1_000));
    let tallies = Arc::new(Tallies::new(1));
    let outcome = simulated::run(&workload, &plan, &tallies).unwrap();
    assert_checks(&outcome.checks, protocol);
    outcome.traffic.bytes as f64 / outcome.tally.committed as f64
}

#[test]
fn what_was_read_before_is_not_sent_again() {
    let (copies, none) = (bytes("tfa-staying"), bytes("score"));
    println!("{copies} bytes a commit, and {none} without copies");
    assert!(2.0 * copies < none, "{copies} {none}");
}

/// Four copies at three sites, and three nodes without data: of these the one at the second site
/// has the number of a copy at the first one.
#[test]
fn nodes_without_data_read_where_they_are() {
    let given = ["objects=20", "reads=100", "totals=0"].map(str::to_owned);
    let workload = available::find("bank").unwrap().build(&given, 7).unwrap();
    let geography = Geography::parse("north\nmiddle 1000\nsouth 1000 1000\n").unwrap();
    let machine = MachineModel { geography: Some(geography), ..MachineModel::measured() };
    let length = Length::Time(Duration::from_secs(10));
    for protocol in ["alvin-eus", "certified-multipaxos"] {
        let calm = Simulated::calm(protocol, 7, 7, length);
        let plan = Simulated { repositories: 4, pause_most: Span::from_millis(100), ..calm };
        let tallies = Arc::new(Tallies::new(7));
        let outcome = simulated::run_on(&machine, &workload, &plan, &tallies).unwrap();
        assert_checks(&outcome.checks, protocol);
        let committed: Vec<_> = (0..7).map(|client| tallies.of(client).committed).collect();
        println!("{protocol}: {committed:?}");
        assert!(committed.iter().all(|it| *it >= 50), "{protocol}: {committed:?}");
    }
}
