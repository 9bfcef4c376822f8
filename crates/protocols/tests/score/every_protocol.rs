//! What is asked of every protocol, asked of SCORe.

use muesli_core::{Effect, SmallBytes, SpaceId, Step, TxnOptions};
use muesli_protocols::score::Score;
use muesli_protocols::two_phase::message::Message;

use crate::harness::every::{fair, leaving, memory, outstanding, too_old};

#[test]
fn others_are_served_between_the_pages_of_a_long_read_on_the_same_node() {
    fair::long_reads_let_others_in::<Score>();
}

#[test]
fn old_versions_take_no_more_than_they_may() {
    memory::old_versions_have_a_budget::<Score>();
}

#[test]
fn a_transaction_open_for_too_long_holds_nothing_back() {
    memory::snapshots_have_an_age::<Score>();
}

#[test]
fn transactions_that_timed_out_give_their_snapshots_back() {
    memory::a_timeout_gives_the_snapshot_back::<Score>();
}

#[test]
fn at_the_limit_writes_are_refused_and_nothing_else() {
    memory::memory_has_a_limit::<Score>();
}

#[test]
fn large_values_pass_the_limit_by_little() {
    memory::large_values_meet_the_limit::<Score>();
}

#[test]
fn requests_and_commits_are_sent_again_only_when_nothing_is_outstanding() {
    outstanding::both::<Score>();
}

#[test]
fn a_large_commit_is_waited_for_longer_once_it_was_taken() {
    outstanding::large::<Score>();
}

#[test]
fn a_reader_that_is_too_old_is_so_once() {
    too_old::is_too_old_once::<Score>();
}

#[test]
fn a_client_that_ends_says_that_its_transactions_are_settled() {
    let remembered = |pair: &leaving::Pair<Score>| pair.nodes[0].participants()[0].1.remembered();
    assert_eq!(leaving::kept(remembered), [2, 0, 0]);
}

/// The others follow as soon as the snapshot is known, each repository's in one request.
#[test]
fn few_keys_go_in_the_request_that_fixes_a_snapshot() {
    for (keys, first) in [(2, 2), (20, 8)] {
        let mut client = outstanding::Client::<Score>::new();
        let outstanding::Client { node, effects } = &mut client;
        let txn = node.begin(TxnOptions::default(), effects).unwrap();
        let keys = (0..keys).map(|key| SmallBytes::from(vec![key])).collect();
        assert!(matches!(node.get_many(txn, SpaceId(0), keys, effects), Step::Wait(_)));
        let asked = effects.list.iter().filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => match &envelope.message {
                Message::Read(read) => Some((read.first, read.keys.len())),
                other => panic!("{other:?}"),
            },
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [(true, first)]);
    }
}
