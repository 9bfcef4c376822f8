//! What is remembered, for how long, and what of it counts.

use muesli_core::SmallBytes;
use muesli_core::SpaceId;

use super::*;
use crate::granola::message::FoundVersion;

fn txn(incarnation: u32, sequence: u64) -> TxnId {
    TxnId { node: NodeId(1), incarnation, sequence }
}

#[test]
fn what_is_left_of_clients_that_are_gone_keeps_no_room_from_others() {
    let (lease, at) = (Nanos(1_000), muesli_core::Timestamp(1));
    let mut memory = EndedTransactions::default();
    memory.observe(txn(1, 1), 1);
    memory.observe_client(NodeId(1), Nanos(10));
    memory.remember(txn(1, 1), over(TimestampVote::Commit(at)));
    assert_eq!(memory.of_clients, 2);
    memory.forget_silent(Nanos(2_000), lease, Timestamp::ZERO);
    assert_eq!((memory.len(), memory.of_clients), (1, 0), "somebody may ask");
    memory.observe_client(NodeId(1), Nanos(2_001));
    assert_eq!(memory.of_clients, 2, "it was only away");
}

fn over(ballot: TimestampVote) -> Over {
    Over { ballot: Some(ballot), about: 0, end: ReplyOutcome::Conflict, noted: Noted::default() }
}

#[test]
fn what_is_settled_is_forgotten_and_known_as_used() {
    let mut memory = EndedTransactions::default();
    memory.observe(txn(2, 3), 1);
    for sequence in 1..5 {
        memory.remember(txn(2, sequence), over(TimestampVote::Conflict));
    }
    memory.observe(txn(2, 9), 4);
    assert_eq!(memory.len(), 1);
    assert_eq!(memory.age(txn(2, 3)), Age::Settled);
    assert_eq!(memory.age(txn(2, 4)), Age::Current);
    memory.remember(txn(2, 2), over(TimestampVote::Conflict));
    assert_eq!(memory.len(), 1);
    memory.observe(txn(1, 50), 40);
    assert_eq!(memory.age(txn(2, 3)), Age::Settled);
}

/// What a client was not told while it was cut off is kept for its lease from then on.
#[test]
fn answers_of_who_was_silent_are_kept_for_a_lease_from_then_on() {
    let (lease, one) = (Nanos(1_000), NodeId(1));
    let done = |sequence| {
        let at = muesli_core::Timestamp(sequence);
        let answers =
            [(0, crate::granola::message::PartAnswer::Given("given".into()))].into_iter().collect();
        let end = ReplyOutcome::Done { at, answers };
        (
            txn(1, sequence),
            Over {
                ballot: Some(TimestampVote::Commit(at)),
                about: 0,
                end,
                noted: Noted::default(),
            },
        )
    };
    let kept = |memory: &EndedTransactions, number: u64| {
        let over = memory.get(txn(1, number)).expect("that it is done stays");
        matches!(&over.end, ReplyOutcome::Done { answers, .. } if !answers.is_empty())
    };
    let mut memory = EndedTransactions::default();
    let (id, over) = done(1);
    memory.set_time(Nanos(10));
    memory.remember(id, over);
    memory.observe_client(one, Nanos(10));
    // It is silent, and what it asked for before is done late.
    let (id, over) = done(2);
    memory.set_time(Nanos(900));
    memory.remember(id, over);
    memory.forget_silent(Nanos(1_500), lease, Timestamp::ZERO);
    assert!(kept(&memory, 1) && kept(&memory, 2));
    memory.forget_silent(Nanos(2_000), lease, Timestamp::ZERO);
    assert!(!kept(&memory, 1) && !kept(&memory, 2));
}

#[test]
fn what_was_told_counts_until_it_is_settled() {
    let found = |bytes: usize| FoundVersion {
        version: muesli_core::Timestamp(1),
        value: Some(SmallBytes::from(vec![7; bytes])),
        collected: muesli_core::Timestamp::ZERO,
    };
    let shared = |part| (part, vec![(SpaceId(0), SmallBytes::from("k"), found(400))]);
    let quota = ClientQuota { entries: 10, bytes: 1_000, all: usize::MAX };
    let mut memory = EndedTransactions::default();
    memory.observe(txn(1, 1), 1);
    memory.add_data(txn(1, 1), [shared(0), shared(1)]);
    assert!(memory.has_capacity(txn(1, 3), 1, 0, quota));
    memory.add_data(txn(1, 2), [shared(0)]);
    memory.add_data(txn(1, 2), [shared(0)]);
    assert_eq!(memory.bytes(), 3 * 417);
    assert!(!memory.has_capacity(txn(1, 3), 1, 0, quota));
    assert!(!memory.has_capacity(txn(2, 1), 1, 0, quota), "nor in another life");
    assert!(memory.has_capacity(txn(1, 3), 2, 0, quota), "the first one is settled");
    memory.observe(txn(1, 3), 3);
    assert_eq!(memory.bytes(), 0);
}

#[test]
fn a_client_of_whom_it_is_known_that_nothing_is_to_know_is_not_forgotten_before_it() {
    let mut memory = EndedTransactions::default();
    memory.observe(txn(1, 1), 1);
    memory.observe_client(NodeId(1), Nanos(10));
    memory.add_data(txn(1, 1), [(0, Vec::new())]);
    memory.forget_silent(Nanos(2_000), Nanos(1_000), Timestamp::ZERO);
    memory.assert_invariants();
    assert!(memory.knows(NodeId(1)) && memory.data(txn(1, 1)).is_some());
    memory.forget_client((NodeId(1), 2), Nanos(2_000), Timestamp::ZERO);
    memory.assert_invariants();
    assert!(!memory.knows(NodeId(1)) && memory.data(txn(1, 1)).is_none());
}

#[test]
fn asking_about_many_clients_that_are_gone_takes_steps_by_their_number() {
    let clients = 20_000;
    let found = FoundVersion {
        version: muesli_core::Timestamp(1),
        value: None,
        collected: muesli_core::Timestamp::ZERO,
    };
    let shared = |part| (part, vec![(SpaceId(0), SmallBytes::from("k"), found.clone())]);
    let mut memory = EndedTransactions::default();
    for node in 0..clients {
        let of = TxnId { node: NodeId(node), incarnation: 1, sequence: 1 };
        memory.observe(of, 1);
        memory.observe_client(of.node, Nanos(1));
        memory.add_data(of, [shared(0)]);
        memory.add_data(TxnId { sequence: 2, ..of }, [shared(0)]);
    }
    memory.forget_silent(Nanos(2_000), Nanos(1_000), Timestamp::ZERO);
    memory.steps.take();
    let (mut after, mut asked) = (None, 0);
    loop {
        // Something is under way of each tenth.
        let left = memory.left_by_clients(after).filter(|(node, _)| node.0 % 10 > 0);
        let left: Vec<_> = left.take(256).collect();
        let Some(last) = left.last() else { break };
        (after, asked) = (Some(*last), asked + left.len());
    }
    assert_eq!(asked, clients as usize / 10 * 9);
    let steps = memory.steps.take();
    assert!(steps <= 2 * u64::from(clients), "{steps} steps");
}

#[test]
fn of_earlier_lives_only_votes_to_commit_are_remembered() {
    let mut memory = EndedTransactions::default();
    memory.observe(txn(1, 1), 1);
    memory.remember(txn(1, 1), over(TimestampVote::Conflict));
    let commit = TimestampVote::Commit(muesli_core::Timestamp(5));
    memory.remember(txn(1, 2), over(commit));
    memory.observe(txn(2, 1), 1);
    assert!(memory.get(txn(1, 1)).is_none() && memory.get(txn(1, 2)).is_some());
    assert_eq!(memory.age(txn(1, 7)), Age::EarlierIncarnation);
    let mut other = EndedTransactions::default();
    let (over, settled) = memory.carried();
    other.recall(over);
    other.recall_settled(settled);
    assert_eq!(other.carried(), memory.carried());
    assert_eq!(other.voted(), [txn(1, 2)]);
}
