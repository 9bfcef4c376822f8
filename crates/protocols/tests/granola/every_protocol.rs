//! What is asked of every protocol, asked of Granola.

use muesli_protocols::granola::Granola;

use crate::harness::every::{leaving, memory, outstanding};

#[test]
fn transactions_without_a_snapshot_hold_no_more_versions_than_they_may() {
    memory::open_transactions_hold_no_more::<Granola>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<Granola>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<Granola>();
}

#[test]
fn requests_and_commits_are_sent_again_only_when_nothing_is_outstanding() {
    outstanding::both::<Granola>();
}

#[test]
fn a_large_commit_is_waited_for_longer_once_it_was_taken() {
    outstanding::large::<Granola>();
}

#[test]
fn a_client_of_one_round_transactions_says_so_too() {
    let remembered = |pair: &leaving::Pair<Granola>| pair.nodes[0].participants()[0].1.remembered();
    assert_eq!(leaving::kept(remembered), [1, 0, 0]);
}
