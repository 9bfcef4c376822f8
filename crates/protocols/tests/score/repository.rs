//! Checkpoints, records that a lying member made up, and limits of what is prepared.

use std::sync::Arc;

use muesli_core::Abort;
use muesli_core::Decision;
use muesli_core::Limits;
use muesli_core::SmallBytes;
use muesli_core::Timestamp;
use muesli_core::TxnId;
use muesli_protocols::score::Snapshots;
use muesli_protocols::two_phase::Record;
use muesli_protocols::two_phase::message::Prepare;
use muesli_protocols::two_phase::message::Vote;
use muesli_protocols::two_phase::{FamilySwitch, Sabotage, Switches};

use crate::two_phase::checkpoint::REPOSITORY;
use crate::two_phase::checkpoint::SPACE;
use crate::two_phase::checkpoint::key;
use crate::two_phase::checkpoint::prepared_transactions_are_missed;
use crate::two_phase::false_records::voted;
use crate::two_phase::voter;

crate::two_phase::repository_tests!(Snapshots);

#[test]
fn a_checkpoint_without_the_prepared_transactions_is_noticed() {
    let switches = Switches::broken(FamilySwitch::CheckpointPrepared);
    prepared_transactions_are_missed::<Snapshots>(switches);
}

/// What adds nothing is prepared at the limit, but not without end.
#[test]
fn at_the_limit_undecided_deletes_have_an_end_too() {
    const MIB: usize = voter::MIB;
    let limits = Limits { transaction_bytes: MIB, value_bytes: MIB / 2, ..Limits::default() };
    let mut voter = voter::Voter::<Snapshots>::new(limits);
    let value = SmallBytes::from(vec![7; MIB / 2]);
    let refused = (0..64).find(|number| {
        matches!(voter.vote(*number, 0, Some(value.clone())), Vote::No(Abort::OutOfMemory))
    });
    let first = refused.expect("there is a limit") + 1;
    let refused = (first..first + 64).find(|number| {
        let vote = voter.vote(*number, 60_000, None);
        assert!(matches!(vote, Vote::Yes(_) | Vote::No(Abort::Overloaded)), "{vote:?}");
        matches!(vote, Vote::No(_))
    });
    let refused = refused.expect("they have an end");
    assert!((10..20).contains(&(refused - first)), "{} of 60,000 bytes", refused - first);
    voter.abort(first);
    assert!(matches!(voter.vote(refused + 1, 60_000, None), Vote::Yes(_)));
}

#[test]
#[should_panic(expected = "is decided twice")]
fn unjudged_a_second_decision_would_end_a_member() {
    let (mut member, prepare, at) = voted::<Snapshots>(1);
    let second = TxnId { sequence: prepare.txn.sequence + 1, ..prepare.txn };
    let newer = Prepare {
        txn: second,
        writes: [(SPACE, key(2), None)].into_iter().collect(),
        ..(*prepare).clone()
    };
    member.replay(&[Record::Prepared { prepare: Arc::new(newer), at: Timestamp(at.0 + 9) }]);
    let place = Timestamp(at.0 + 20);
    let record = Record::Decided { txn: second, decision: Decision::Commit(place) };
    for _ in 0..2 {
        member.node.replay(REPOSITORY, record.clone(), &mut member.effects);
    }
}
