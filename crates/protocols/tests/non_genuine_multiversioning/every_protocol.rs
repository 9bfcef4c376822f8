//! What is asked of every protocol, asked of Non-genuine multi-versioning.

use muesli_protocols::non_genuine_multiversioning::NonGenuineMultiversioning;

use crate::harness::every::memory;

#[test]
fn old_versions_take_no_more_than_they_may() {
    memory::old_versions_have_a_budget::<NonGenuineMultiversioning>();
}

#[test]
fn a_transaction_open_for_too_long_holds_nothing_back() {
    memory::snapshots_have_an_age::<NonGenuineMultiversioning>();
}

#[test]
fn transactions_that_timed_out_give_their_snapshots_back() {
    memory::a_timeout_gives_the_snapshot_back::<NonGenuineMultiversioning>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<NonGenuineMultiversioning>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<NonGenuineMultiversioning>();
}
