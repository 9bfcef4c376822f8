//! Who is far from an object that others use all the time gets it, too.

use std::sync::Arc;
use std::time::Duration;

use muesli_protocols::tfa::{Switches, Tfa};
use muesli_protocols::two_phase::{FamilySwitch, Sabotage};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::simulated::{Simulated, run_protocol};
use muesli_workloads::tally::Tallies;

use crate::workloads::assert_checks;

const CLIENTS: u32 = 2;
/// All clients change the one bucket there is.
const ONE_BUCKET: [&str; 5] = ["buckets=1", "objects=40", "initial=20", "reads=0", "walks=0"];

/// What the client committed that committed least, each on a node of its own, over a few seeds.
fn least(switches: Switches) -> u64 {
    let runs = (1..5).map(|seed| {
        let given = ONE_BUCKET.map(str::to_owned);
        let workload = available::find("hashtable").unwrap().build(&given, CLIENTS).unwrap();
        let tallies = Arc::new(Tallies::new(CLIENTS));
        let length = Length::Time(Duration::from_millis(10));
        let plan = Simulated::calm("tfa", CLIENTS as usize, seed, length);
        let run = run_protocol::<Tfa>(&workload, &plan, switches, &tallies);
        assert_checks(&run.unwrap().checks, &format!("seed {seed}"));
        (0..CLIENTS).map(|client| tallies.of(client).committed).min().unwrap()
    });
    runs.sum()
}

#[test]
fn nobody_loses_for_ever_who_has_an_age() {
    let with = least(Switches::default());
    let without = least(Switches::default().without(FamilySwitch::YieldsToOlder));
    println!("{with} with ages, {without} without");
    assert!(with > 20 * without.max(1), "{with} {without}");
}
