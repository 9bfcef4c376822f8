//! What is asked of every protocol, asked of GMU.

use muesli_protocols::gmu::Gmu;

use crate::harness::every::{fair, memory, outstanding, too_old};

#[test]
fn others_are_served_between_the_pages_of_a_long_read_on_the_same_node() {
    fair::long_reads_let_others_in::<Gmu>();
}

#[test]
fn old_versions_take_no_more_than_they_may() {
    memory::old_versions_have_a_budget::<Gmu>();
}

#[test]
fn a_transaction_open_for_too_long_holds_nothing_back() {
    memory::snapshots_have_an_age::<Gmu>();
}

#[test]
fn transactions_that_timed_out_give_their_snapshots_back() {
    memory::a_timeout_gives_the_snapshot_back::<Gmu>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<Gmu>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<Gmu>();
}

#[test]
fn requests_and_commits_are_sent_again_only_when_nothing_is_outstanding() {
    outstanding::both::<Gmu>();
}

#[test]
fn a_reader_that_is_too_old_is_so_once() {
    too_old::is_too_old_once::<Gmu>();
}
