use muesli_core::{Abort, Gave};

use super::silent::REFUSED_CLIENTS_MAX;
use super::*;
use crate::client_quota::ClientQuota;
use crate::score::Snapshots;

#[test]
fn what_was_refused_lately_is_kept_however_long_its_coordinator_was_silent() {
    let txn = |sequence| TxnId { node: NodeId(9), incarnation: 1, sequence };
    let mut table = Table::<Snapshots>::default();
    assert!(table.is_current(txn(1), 0));
    table.remember(txn(1), Vote::No(Abort::Abandoned));
    table.tell_time(Nanos(100));
    table.remember(txn(2), Vote::No(Abort::Abandoned));
    table.forget_silent(Nanos(100), true, 0, |_| true);
    assert!(matches!(table.known_vote(txn(2)), Some(Vote::No(_))));
    table.forget_silent(Nanos(101), true, 0, |_| true);
    assert!(table.known_vote(txn(2)).is_none() && table.may_be_forgotten(txn(2), 0));
}

#[test]
fn answers_that_are_kept_for_a_client_have_a_bound_until_it_settles() {
    let node = NodeId(9);
    let txn = |sequence| TxnId { node, incarnation: 1, sequence };
    let mut table = Table::<Snapshots>::default();
    assert!(table.is_current(txn(1), 0));
    for sequence in 1..=3 {
        let gave = Gave::Value(Some(SmallBytes::from(vec![7; 100])));
        table.keep_answers(txn(sequence), vec![(0, gave)]);
    }
    let all = usize::MAX;
    let quota = |bytes| ClientQuota { entries: 10, bytes, all };
    let is_full = |table: &Table<Snapshots>| !table.has_capacity(txn(4), 0, quota(300));
    assert!(is_full(&table) && table.has_capacity(txn(4), 0, quota(1_000)));
    assert!(table.has_capacity(txn(4), 3, quota(300)), "it says that the first two are settled");
    table.settle_below(txn(3));
    assert!(!is_full(&table));
    let again = table.answers(txn(3)).unwrap();
    table.keep_answers(txn(3), again);
    assert!(!is_full(&table), "told once more");
    table.settle_below(txn(9));
    assert!(table.has_capacity(txn(10), 0, quota(1)), "nothing is kept");
    assert_eq!(table.answer_bytes, 0);
}

/// A place in the order, and so a commit.
fn commit() -> Vote<Snapshots> {
    Vote::Decided(Decision::Commit(muesli_core::Timestamp(7)))
}

#[test]
fn commits_of_earlier_lives_leave_no_more_room_to_later_ones() {
    let id = |incarnation, sequence| TxnId { node: NodeId(9), incarnation, sequence };
    let quota = ClientQuota { entries: 4, bytes: 1_000, all: usize::MAX };
    let mut table = Table::<Snapshots>::default();
    let mut admitted = 0;
    for incarnation in 1..=20 {
        let of = id(incarnation, 1);
        if table.has_capacity(of, 1, quota) {
            admitted += 1;
            assert!(table.is_current(of, 1));
            table.remember(of, commit());
        }
    }
    assert_eq!((admitted, table.remembered()), (4, 4));
    // Refusals go with the life that they are of, so they leave room.
    let mut table = Table::<Snapshots>::default();
    for sequence in 1..=4 {
        assert!(table.has_capacity(id(1, sequence), 1, quota));
        assert!(table.is_current(id(1, sequence), 1));
        table.remember(id(1, sequence), Vote::No(Abort::Locked));
    }
    assert!(!table.has_capacity(id(1, 5), 1, quota));
    assert!(table.has_capacity(id(2, 1), 1, quota) && table.is_current(id(2, 1), 1));
    assert_eq!(table.remembered(), 0);
}

#[test]
fn saying_that_nothing_is_settled_which_is_there_makes_no_room() {
    let id = |sequence| TxnId { node: NodeId(9), incarnation: 1, sequence };
    let quota = ClientQuota { entries: 4, bytes: 1_000, all: usize::MAX };
    let mut table = Table::<Snapshots>::default();
    for number in 1..=20 {
        let of = id(1_000 + number);
        if table.has_capacity(of, number, quota) {
            assert!(table.is_current(of, number));
            table.remember(of, commit());
        }
    }
    assert_eq!(table.remembered(), 4);
    assert!(table.has_capacity(id(2_000), 1_003, quota), "two of them are settled");
}

#[test]
fn all_clients_together_have_a_bound_and_members_do_not_count() {
    let id = |node, sequence| TxnId { node: NodeId(node), incarnation: 1, sequence };
    let quota = ClientQuota { entries: 100, bytes: 1_000, all: 10 };
    let mut table = Table::<Snapshots>::default();
    for sequence in 1..=20 {
        assert!(table.is_current(id(1, sequence), 1));
        table.remember(id(1, sequence), commit());
    }
    let mut admitted = 0;
    for client in 50..70 {
        if table.has_capacity(id(client, 1), 1, quota) {
            admitted += 1;
            assert!(table.is_current(id(client, 1), 1));
            table.observe(NodeId(client), Nanos(1));
            table.remember(id(client, 1), commit());
        }
    }
    assert_eq!(admitted, 5, "each client counts, and its transaction");
    let before = table.bytes();
    assert!(table.has_capacity(id(50, 2), 2, quota), "it says that the first one is settled");
    (50..55).for_each(|client| table.settle_below(id(client, 2)));
    assert!(table.bytes() < before);
    assert!(table.has_capacity(id(60, 1), 1, quota));
    table.settle_below(id(77, 9));
    table.forget_silent(Nanos(2), true, 0, |node| node.0 >= 50);
    assert_eq!((table.known(), table.of_clients), (1, 0));
}

#[test]
fn what_is_left_of_clients_that_are_gone_keeps_no_room_from_others() {
    let id = |node, sequence| TxnId { node: NodeId(node), incarnation: 1, sequence };
    let quota = ClientQuota { entries: 100, bytes: 1_000, all: 10 };
    let mut table = Table::<Snapshots>::default();
    for sequence in 1..=9 {
        assert!(table.is_current(id(50, sequence), 1));
        table.remember(id(50, sequence), commit());
    }
    table.observe(NodeId(50), Nanos(1));
    assert!(!table.has_capacity(id(51, 1), 1, quota));
    table.forget_silent(Nanos(2), true, 0, |_| true);
    assert_eq!(
        (table.remembered(), table.of_clients),
        (9, 0),
        "somebody may ask for what was done"
    );
    assert!(table.has_capacity(id(51, 1), 1, quota));
    table.observe(NodeId(50), Nanos(3));
    assert!(!table.has_capacity(id(51, 1), 1, quota), "it was only away");
}

/// A table with a commit of a client, which was heard of at 1.
fn with_commit() -> Table<Snapshots> {
    let of = TxnId { node: NodeId(50), incarnation: 1, sequence: 1 };
    let mut table = Table::<Snapshots>::default();
    table.tell_time(Nanos(1));
    assert!(table.is_current(of, 1));
    table.observe(of.node, Nanos(1));
    table.remember(of, commit());
    table
}

/// About whom others are asked at this time, with a lease of 10.
fn kept_at(table: &mut Table<Snapshots>, now: u64) -> Vec<(NodeId, u32)> {
    table.tell_time(Nanos(now));
    table.forget_silent(Nanos(now - 10), true, 100, |_| true);
    table.assert_invariants();
    table.kept_for_others(Nanos(now - 10), None, 8, |_| true)
}

#[test]
fn commits_of_silent_clients_go_when_nobody_is_in_doubt() {
    let mut table = with_commit();
    assert_eq!(kept_at(&mut table, 11), [], "it is not silent");
    let client = (NodeId(50), 2);
    assert_eq!(kept_at(&mut table, 12), [client]);
    table.forget_commits(client, Nanos(12), 100);
    assert_eq!((table.remembered(), table.known(), table.lower_bounds()), (0, 0, (100, vec![])));
    table.assert_invariants();
}

/// Who marked the client as one that speaks for that would have it forgotten as such, which no
/// server outlives.
#[test]
fn what_is_settled_is_not_remembered_of_a_silent_client() {
    let mut table = with_commit();
    let settled = TxnId { node: NodeId(50), incarnation: 1, sequence: 0 };
    let client = (NodeId(50), 2);
    assert_eq!(kept_at(&mut table, 12), [client]);
    assert!(!table.remember(settled, Vote::No(Abort::Abandoned)), "nobody asks for it");
    table.forget_commits(client, Nanos(12), 100);
    assert_eq!((table.remembered(), table.known()), (0, 0));
    table.assert_invariants();
}

/// The others are asked about one client after the other, and time passes between.
#[test]
fn a_client_that_became_silent_during_the_questions_is_forgotten() {
    let mut table = with_commit();
    assert_eq!(kept_at(&mut table, 11), [], "it is not silent");
    let client = (NodeId(50), 2);
    assert_eq!(table.kept_for_others(Nanos(2), None, 8, |_| true), [client]);
    table.forget_commits(client, Nanos(12), 100);
    assert_eq!((table.remembered(), table.known()), (0, 0));
    table.assert_invariants();
}

#[test]
fn what_a_client_began_after_the_question_is_not_what_was_asked_about() {
    for (incarnation, left) in [(1, 2), (2, 2)] {
        let mut table = with_commit();
        let client = kept_at(&mut table, 12)[0];
        table.tell_time(Nanos(13));
        let next = TxnId { node: NodeId(50), incarnation, sequence: 2 };
        assert!(table.is_current(next, 1));
        table.observe(next.node, Nanos(13));
        table.remember(next, commit());
        table.forget_commits(client, Nanos(12), 100);
        assert_eq!((table.remembered(), table.known()), (left, 1), "incarnation {incarnation}");
        table.assert_invariants();
    }
}

#[test]
fn commits_of_earlier_incarnations_are_asked_for_though_the_client_speaks() {
    let mut table = with_commit();
    table.tell_time(Nanos(5));
    let next = TxnId { node: NodeId(50), incarnation: 4, sequence: 1 };
    assert!(table.is_current(next, 1));
    table.observe(next.node, Nanos(5));
    table.remember(next, commit());
    let client = (NodeId(50), 4);
    assert_eq!(kept_at(&mut table, 12), [client]);
    table.forget_commits(client, Nanos(12), 100);
    assert_eq!((table.remembered(), table.lower_bounds().0), (1, 0), "that of the newest stays");
    assert_eq!(kept_at(&mut table, 13), []);
}

#[test]
fn a_client_that_was_forgotten_is_known_by_the_floor_of_then() {
    let mut table = with_commit();
    let client = kept_at(&mut table, 12)[0];
    table.forget_commits(client, Nanos(12), 100);
    let again = TxnId { node: NodeId(50), incarnation: 1, sequence: 1 };
    assert!(table.is_current(again, 1));
    assert!(table.may_be_forgotten(again, 99) && !table.may_be_forgotten(again, 100));
    // A checkpoint carries it, and of those that were known before nothing is forgotten.
    let (lower_bound, lower_bounds) = table.lower_bounds();
    assert_eq!((lower_bound, &lower_bounds[..]), (100, &[(NodeId(50), 100)][..]));
    let other = TxnId { node: NodeId(51), ..again };
    let mut restored = Table::<Snapshots>::default();
    restored.recall(vec![(again, commit(), 0), (other, commit(), 0)]);
    restored.recall_lower_bounds(lower_bounds);
    restored.recall_lower_bound(lower_bound);
    assert!(restored.may_be_forgotten(again, 99) && !restored.may_be_forgotten(other, 99));
    let new = TxnId { node: NodeId(52), ..again };
    assert!(restored.is_current(new, 1) && restored.may_be_forgotten(new, 99));
}

/// Its client may have the votes of all others, and come back with the request.
#[test]
fn what_was_refused_of_a_silent_client_is_not_taken_up_when_it_comes_back() {
    let of = |sequence| TxnId { node: NodeId(50), incarnation: 1, sequence };
    for has_commit in [true, false] {
        let mut table = if has_commit { with_commit() } else { Table::default() };
        table.tell_time(Nanos(1));
        assert!(table.is_current(of(7), 1));
        table.observe(NodeId(50), Nanos(1));
        table.remember(of(7), Vote::No(Abort::Abandoned));
        kept_at(&mut table, 12);
        assert!(!table.knows(of(7)) && table.may_be_forgotten(of(7), u64::MAX));
        assert!(!table.may_be_forgotten(of(8), u64::MAX), "that one is new");
        let (settled, refused) = (table.memory().1, table.refused());
        let mut restored = Table::<Snapshots>::default();
        restored.recall_settled(settled);
        restored.recall_refused(refused);
        assert!(restored.may_be_forgotten(of(7), u64::MAX), "a checkpoint carries it");
        assert!(table.is_current(of(9), 7) && table.may_be_forgotten(of(7), u64::MAX));
        assert!(table.is_current(of(9), 8) && table.refused().is_empty(), "it is settled");
        let next = TxnId { incarnation: 2, ..of(1) };
        assert!(table.is_current(next, 1) && !table.may_be_forgotten(next, u64::MAX));
    }
}

#[test]
fn refusals_are_noted_of_so_many_silent_clients_and_no_more() {
    let mut table = Table::<Snapshots>::default();
    let clients = REFUSED_CLIENTS_MAX as u32 + 3;
    for node in 0..clients {
        let txn = TxnId { node: NodeId(node), incarnation: 1, sequence: 1 };
        table.tell_time(Nanos(u64::from(node) + 1));
        assert!(table.is_current(txn, 1));
        table.observe(txn.node, Nanos(u64::from(node) + 1));
        table.remember(txn, Vote::No(Abort::Abandoned));
    }
    let forgotten = table.forget_silent(Nanos(u64::MAX), true, 100, |_| true);
    assert_eq!(
        (forgotten, table.known(), table.refused().len()),
        (3, clients as usize - 3, clients as usize - 3)
    );
    assert!(table.refused().iter().all(|(node, _)| node.0 >= 3), "those heard of longest ago went");
    assert_eq!(table.lower_bounds().0, 100);
    table.assert_invariants();
}

/// Asks about all clients behind each other, and returns how many there were, and how many
/// transactions were looked at.
fn steps_for(clients: u32, in_doubt: u32) -> (usize, u64) {
    let mut table = Table::<Snapshots>::default();
    table.tell_time(Nanos(1));
    for node in 0..clients {
        let txn = TxnId { node: NodeId(node), incarnation: 1, sequence: 1 };
        assert!(table.is_current(txn, 1));
        table.observe(txn.node, Nanos(1));
        table.remember(txn, commit());
    }
    for node in clients..clients + in_doubt {
        let txn = TxnId { node: NodeId(node), incarnation: 1, sequence: 1 };
        assert!(table.is_current(txn, 1));
        table.insert(prepared(txn));
    }
    table.assert_invariants();
    table.steps.take();
    let (mut after, mut asked) = (None, 0);
    loop {
        let kept = table.kept_for_others(Nanos(100), after, 256, |_| true);
        let Some((last, _)) = kept.last() else { break };
        (after, asked) = (Some(*last), asked + kept.len());
        assert_eq!(table.not_in_doubt(&kept), kept);
    }
    (asked, table.steps.take())
}

#[test]
fn asking_about_many_clients_that_are_gone_takes_steps_by_their_number() {
    for (clients, in_doubt) in [(1_000, 0), (20_000, 0), (20_000, 5_000)] {
        let (asked, steps) = steps_for(clients, in_doubt);
        assert_eq!(asked, clients as usize);
        assert!(steps <= 2 * u64::from(clients + in_doubt), "{steps} steps for {clients}");
    }
}

/// A transaction that has voted yes, and has locked nothing.
fn prepared(txn: TxnId) -> Prepared<Snapshots> {
    let prepare = Prepare {
        settled_below: 1,
        participants: [muesli_core::RepositoryId(0)].into_iter().collect(),
        ..Prepare::new(txn, muesli_core::Timestamp(1), ())
    };
    Prepared {
        bytes: prepare.held_bytes(),
        prepare: Arc::new(prepare),
        yes: muesli_core::Timestamp(2),
        decided: None,
        since: Nanos(1),
        writes: Few::new(),
        delayed: Vec::new(),
        calls: Vec::new(),
        shared: Few::new(),
        about: None,
    }
}

/// A table with a transaction that is prepared, and its owner.
fn with_prepared() -> (Table<Snapshots>, Owner) {
    let txn = TxnId { node: NodeId(1), incarnation: 1, sequence: 1 };
    let mut table = Table::default();
    assert!(table.is_current(txn, 1));
    let owner = table.insert(prepared(txn));
    table.assert_invariants();
    (table, owner)
}

#[test]
#[should_panic(expected = "ends otherwise than it was decided")]
fn an_end_that_was_not_decided_is_noticed() {
    let (mut table, owner) = with_prepared();
    table.finish(owner, Decision::Commit(muesli_core::Timestamp(7)));
}

#[test]
#[should_panic(expected = "bytes of what ends")]
fn bytes_of_what_ends_that_were_not_counted_are_noticed() {
    let (mut table, owner) = with_prepared();
    table.prepared_bytes = PreparedBytes::default();
    table.finish(owner, Decision::Abort(Abort::Locked));
}

#[test]
#[should_panic(expected = "transactions of unknown coordinators")]
fn a_coordinator_that_is_not_known_is_noticed() {
    let (mut table, _) = with_prepared();
    table.settled.clear();
    table.assert_invariants();
}

#[test]
#[should_panic(expected = "is prepared twice")]
fn a_transaction_that_is_prepared_twice_is_noticed() {
    let (mut table, owner) = with_prepared();
    let again = table.get(owner).clone();
    table.insert(again);
}

#[test]
#[should_panic(expected = "slots that are free twice")]
fn a_slot_that_is_free_twice_is_noticed() {
    let (mut table, _) = with_prepared();
    table.free = vec![3, 3];
    table.assert_invariants();
}
