//! What is asked of every protocol, asked of TFA.

use muesli_protocols::tfa::Tfa;

use crate::harness::every::{fair, memory, outstanding};

#[test]
fn others_are_served_between_the_pages_of_a_long_read_on_the_same_node() {
    fair::long_reads_let_others_in::<Tfa>();
}

#[test]
fn transactions_without_a_snapshot_hold_no_more_versions_than_they_may() {
    memory::open_transactions_hold_no_more::<Tfa>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<Tfa>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<Tfa>();
}

#[test]
fn requests_and_commits_are_sent_again_only_when_nothing_is_outstanding() {
    outstanding::both::<Tfa>();
}
