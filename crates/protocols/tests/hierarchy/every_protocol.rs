//! What is asked of every protocol, asked of validation by a tree.

use muesli_protocols::hierarchy::HierarchicalValidation;

use crate::harness::every::{fair, memory, outstanding};

#[test]
fn others_are_served_between_the_pages_of_a_long_read_on_the_same_node() {
    fair::long_reads_let_others_in::<HierarchicalValidation>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<HierarchicalValidation>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<HierarchicalValidation>();
}

#[test]
fn requests_and_commits_are_sent_again_only_when_nothing_is_outstanding() {
    outstanding::both::<HierarchicalValidation>();
}
