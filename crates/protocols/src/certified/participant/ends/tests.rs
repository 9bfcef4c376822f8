use muesli_core::{Abort, SmallBytes, Timestamp};

use super::*;

const QUOTA: ClientQuota = ClientQuota { entries: 3, bytes: 1_000, all: 10 };
const LEASE: Nanos = Nanos(100);

fn txn(node: u32, sequence: u64) -> TxnId {
    TxnId { node: NodeId(node), incarnation: 1, sequence }
}

fn given(bytes: usize) -> Option<CallsEnd> {
    Some(CallsEnd::Given { results: vec![SmallBytes::from(vec![7_u8; bytes])] })
}

fn commit(ends: &mut SiteEnds, id: TxnId, calls: Option<CallsEnd>) {
    let end = (Decision::Commit(Timestamp(id.sequence)), calls);
    ends.remember(id, end, (QUOTA, true), Nanos(1));
    ends.assert_invariants();
}

fn is_known(ends: &SiteEnds, id: TxnId) -> bool {
    matches!(ends.known(id), KnownOutcome::Decided(_))
}

#[test]
#[should_panic(expected = "what all take")]
fn an_end_that_is_not_counted_is_noticed() {
    let mut ends = SiteEnds::default();
    commit(&mut ends, txn(7, 1), None);
    ends.entries = 0;
    ends.assert_invariants();
}

#[test]
fn what_is_settled_is_forgotten_and_nobody_is_told_of_it() {
    let mut ends = SiteEnds::default();
    (1..=3).for_each(|sequence| commit(&mut ends, txn(7, sequence), given(10)));
    ends.settle(txn(7, 3), 3);
    ends.assert_invariants();
    assert_eq!(ends.known(txn(7, 2)), KnownOutcome::Gone);
    assert!(is_known(&ends, txn(7, 3)) && !ends.is_complete_for(txn(7, 2)));
    assert!(ends.is_complete_for(txn(7, 4)), "it cannot have been forgotten");
    let newer = TxnId { incarnation: 2, ..txn(7, 1) };
    commit(&mut ends, newer, None);
    assert_eq!(ends.known(txn(7, 3)), KnownOutcome::Gone);
    assert_eq!(ends.answer(txn(7, 3)), None);
}

#[test]
fn beyond_the_bound_the_oldest_ends_of_a_client_go_and_count_as_forgotten() {
    let mut ends = SiteEnds::default();
    (1..=5).for_each(|sequence| commit(&mut ends, txn(7, sequence), None));
    let known = (1..=5).map(|it| is_known(&ends, txn(7, it))).collect::<Vec<_>>();
    assert_eq!(known, [false, false, true, true, true]);
    assert!(!ends.is_complete_for(txn(7, 2)) && ends.is_forgotten(txn(7, 2), false));
    assert!(ends.is_complete_for(txn(7, 6)) && !ends.is_forgotten(txn(7, 6), false));
    assert!(ends.lacks_capacity(NodeId(7), QUOTA) && !ends.lacks_capacity(NodeId(8), QUOTA));
}

#[test]
fn where_no_client_has_room_any_more_nothing_is_taken_to_be_complete() {
    let mut ends = SiteEnds::default();
    (0..5).for_each(|node| commit(&mut ends, txn(node, 1), None));
    assert!(ends.lacks_capacity(NodeId(9), QUOTA));
    commit(&mut ends, txn(9, 1), None);
    assert!(!is_known(&ends, txn(9, 1)) && !ends.is_complete_for(txn(9, 1)));
    ends.expire(Nanos(1) + LEASE, LEASE);
    assert!(ends.is_complete_for(txn(9, 1)), "whoever asks has asked for it since");
}

#[test]
fn the_oldest_answers_go_and_the_ends_stay() {
    let mut ends = SiteEnds::default();
    (1..=3).for_each(|sequence| commit(&mut ends, txn(7, sequence), given(600)));
    let answers = (1..=3).map(|it| ends.answer(txn(7, it)).is_some()).collect::<Vec<_>>();
    assert_eq!(answers, [false, false, true]);
    assert!((1..=3).all(|it| is_known(&ends, txn(7, it))));
    commit(&mut ends, txn(8, 1), given(2_000));
    assert!(is_known(&ends, txn(8, 1)) && ends.answer(txn(8, 1)).is_none(), "too large");
}

#[test]
fn a_client_that_was_silent_is_forgotten_and_its_name_a_lease_after_that() {
    let mut ends = SiteEnds::default();
    commit(&mut ends, txn(7, 1), given(1));
    let silent = |ends: &SiteEnds, now| ends.silent(Nanos(now), LEASE).collect::<Vec<_>>();
    assert_eq!(silent(&ends, 100), []);
    ends.observe(NodeId(7), Nanos(50));
    assert_eq!((silent(&ends, 101), silent(&ends, 150)), (vec![], vec![NodeId(7)]));
    ends.forget(NodeId(7), Nanos(150));
    ends.assert_invariants();
    assert_eq!(ends.known(txn(7, 1)), KnownOutcome::New);
    assert!(!ends.is_complete_for(txn(7, 1)) && ends.is_forgotten(txn(7, 1), true));
    ends.expire(Nanos(249), LEASE);
    assert!(!ends.is_complete_for(txn(7, 1)));
    ends.expire(Nanos(250), LEASE);
    assert!(ends.is_complete_for(txn(7, 1)));
}

#[test]
#[should_panic(expected = "1 ends, of 0 in all")]
fn what_takes_memory_is_counted() {
    let mut ends = SiteEnds::default();
    commit(&mut ends, txn(7, 1), None);
    ends.entries = 0;
    ends.settle(txn(7, 2), 2);
}

#[test]
fn the_first_end_of_two_counts() {
    let mut ends = SiteEnds::default();
    commit(&mut ends, txn(7, 1), None);
    let other = (Decision::Abort(Abort::StaleRead), None);
    ends.remember(txn(7, 1), other, (QUOTA, true), Nanos(2));
    let first = Decision::Commit(Timestamp(1));
    assert_eq!(ends.known(txn(7, 1)), KnownOutcome::Decided(first));
}

#[test]
fn what_a_checkpoint_has_is_what_there_was() {
    let mut ends = SiteEnds::default();
    (1..=5).for_each(|sequence| commit(&mut ends, txn(7, sequence), given(10)));
    ends.observe_asked(txn(8, 4), Nanos(1));
    ends.forget(NodeId(9), Nanos(1));
    let mut restored = SiteEnds::default();
    ends.heads().for_each(|head| restored.restore_head(head, Nanos(5)));
    ends.ended().for_each(|end| restored.restore_end(end));
    restored.restore_forgotten(ends.forgotten(), Nanos(5));
    restored.assert_invariants();
    assert!(restored.heads().eq(ends.heads()) && restored.ended().eq(ends.ended()));
    assert_eq!(restored.forgotten(), ends.forgotten());
    assert!(!restored.is_forgotten(txn(8, 4), true), "it was asked for here");
}

#[test]
fn who_takes_a_state_keeps_what_was_asked_for_here() {
    let (mut own, mut taken) = (SiteEnds::default(), SiteEnds::default());
    own.observe_asked(txn(7, 1), Nanos(1));
    own.remember(txn(7, 1), (Decision::Abort(Abort::OutOfMemory), None), (QUOTA, true), Nanos(1));
    commit(&mut taken, txn(7, 2), given(10));
    taken.observe_asked(txn(8, 1), Nanos(1));
    taken.replace(own, QUOTA, Nanos(2));
    taken.assert_invariants();
    assert!(is_known(&taken, txn(7, 1)) && is_known(&taken, txn(7, 2)));
    assert!(!taken.is_forgotten(txn(7, 3), true), "it is asked for here");
    assert!(taken.is_forgotten(txn(8, 1), true), "that was asked for elsewhere");
}

/// A site that forgets a client, and gives its state to one of which that client still asks.
#[test]
fn who_takes_a_state_does_not_answer_for_those_that_it_has_forgotten() {
    let of = |change: fn(&mut SiteEnds)| {
        let (mut own, mut taken) = (SiteEnds::default(), SiteEnds::default());
        own.observe_asked(txn(7, 1), Nanos(1));
        change(&mut taken);
        taken.replace(own, QUOTA, Nanos(2));
        taken.assert_invariants();
        taken.is_forgotten(txn(7, 2), true)
    };
    assert!(of(|_| {}), "it does not know the client");
    assert!(!of(|taken| commit(taken, txn(7, 9), None)));
    let again = |taken: &mut SiteEnds| {
        commit(taken, txn(7, 8), None);
        taken.forget(NodeId(7), Nanos(1));
        commit(taken, txn(7, 9), None);
    };
    assert!(of(again), "it has forgotten what came before");
}
