//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use crate::two_phase::checkpoint::REPOSITORY;
use crate::two_phase::checkpoint::SPACE;
use crate::two_phase::checkpoint::key;
use crate::two_phase::false_records::voted;
use muesli_core::Decision;
use muesli_core::Rejection;
use muesli_core::Timestamp;
use muesli_core::TxnId;
use muesli_protocols::bumper::BumperPlace;
use muesli_protocols::bumper::TimeWarp;
use muesli_protocols::two_phase::Record;
use muesli_protocols::two_phase::message::Prepare;
use proptest::prelude::*;
use std::sync::Arc;

use crate::two_phase::checkpoint::{changed_pieces, happenings, restored_is_the_same};
use crate::two_phase::false_records::{self, changes, members_live, without_pieces};
use crate::two_phase::voter;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    #[test]
    fn restore_and_replay_give_the_state_with_earlier_versions(script in happenings()) {
        restored_is_the_same::<TimeWarp>(script)?;
    }

    /// Pieces of a real checkpoint with bytes changed, in any order.
    #[test]
    fn changed_pieces_are_refused_or_taken(
        script in happenings(),
        changes in prop::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 0..6),
    ) {
        changed_pieces::<TimeWarp>(&script, &changes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn members_outlive_false_records(
        script in happenings(),
        changes in changes(),
        then in happenings(),
    ) {
        members_live::<TimeWarp>(&script, &changes, &without_pieces(then))?;
    }
}

#[test]
fn prepares_that_nobody_decides_keep_further_writes_out_at_the_limit() {
    voter::undecided_ones_meet_the_limit::<TimeWarp>();
}

#[test]
fn contradictions_are_left_out_in_each_protocol() {
    false_records::contradictions_are_left_out::<TimeWarp>();
}

#[test]
fn a_decision_contradicts_the_vote_below_it_and_where_another_one_stands() {
    let (mut member, first, at) = voted::<TimeWarp>(1);
    let second = TxnId { sequence: first.txn.sequence + 1, ..first.txn };
    let prepare = Prepare {
        txn: second,
        writes: [(SPACE, key(2), None)].into_iter().collect(),
        ..(*first).clone()
    };
    let above = at.apply_order.after(9, REPOSITORY);
    let prepared = Record::Prepared { prepare: Arc::new(prepare), at: above.into() };
    member.replay(&[prepared]);
    let judged = |of: &TxnId, apply_order: Timestamp, version: Timestamp| {
        let decision = Decision::Commit(BumperPlace { apply_order, version });
        member.judge(&Record::Decided { txn: *of, decision })
    };
    let below = Timestamp(at.apply_order.0 - 1);
    assert_eq!(judged(&first.txn, below, below), Err(Rejection::State));
    assert_eq!(judged(&first.txn, above, above), Err(Rejection::State), "the second stands there");
    assert_eq!(
        judged(&first.txn, at.apply_order, above),
        Err(Rejection::Range),
        "its version is later"
    );
    assert_eq!(judged(&first.txn, at.apply_order, at.apply_order), Ok(()));
}
