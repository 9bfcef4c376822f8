//! What is asked of every protocol, asked of Repeatable read.

use muesli_protocols::repeatable_read::RepeatableRead;

use crate::harness::every::{fair, memory};

#[test]
fn others_are_served_between_the_pages_of_a_long_read_on_the_same_node() {
    fair::long_reads_let_others_in::<RepeatableRead>();
}

#[test]
fn transactions_without_a_snapshot_hold_no_more_versions_than_they_may() {
    memory::open_transactions_hold_no_more::<RepeatableRead>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<RepeatableRead>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<RepeatableRead>();
}
