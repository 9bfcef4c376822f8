//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use std::sync::Arc;

use muesli_core::Decision;
use muesli_core::Rejection;
use muesli_core::Timestamp;
use muesli_core::TxnId;
use muesli_protocols::bumper::BumperPlace;
use muesli_protocols::bumper::TimeWarp;
use muesli_protocols::two_phase::Record;
use muesli_protocols::two_phase::message::Prepare;

use crate::two_phase::checkpoint::REPOSITORY;
use crate::two_phase::checkpoint::SPACE;
use crate::two_phase::checkpoint::key;
use crate::two_phase::false_records::voted;

crate::two_phase::repository_tests!(TimeWarp);

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
