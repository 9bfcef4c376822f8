//! Records that a lying member of a group made up: whatever they say, they are left out or can be
//! replayed, and what comes of them is a state that a repository can work from.

use std::sync::Arc;

use muesli_core::Abort;
use muesli_core::Decision;
use muesli_core::Gave;
use muesli_core::Rejection;
use muesli_core::RepositoryId;
use muesli_core::Timestamp;
use muesli_core::TxnId;
use muesli_protocols::two_phase::Record;
use muesli_protocols::two_phase::message::Prepare;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::checkpoint::{Happening, Harness, REPOSITORY, SPACE, Tested, decided, key};

/// How a log is changed; where, and by what else of it.
pub type Change = (u8, usize, usize);

pub fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0..6_u8, any::<usize>(), any::<usize>()), 1..8)
}

/// What a liar makes of an honest log.
pub fn changed<V: Tested>(mut log: Vec<Record<V>>, changes: &[Change]) -> Vec<Record<V>> {
    for &(kind, one, other) in changes {
        if log.len() < 2 {
            break;
        }
        let (one, other) = (one % log.len(), other % log.len());
        let (first, second) = (log[one].clone(), log[other].clone());
        match kind {
            0 => drop(log.remove(one)),
            1 => log.insert(other, first),
            2 => log.swap(one, other),
            _ => change(kind, &mut log[one], second),
        }
    }
    log
}

/// A record says something of another one.
pub fn change<V: Tested>(kind: u8, record: &mut Record<V>, other: Record<V>) {
    match (kind, record, other) {
        (_, Record::Decided { decision, .. }, Record::Decided { decision: another, .. }) => {
            *decision = another;
        }
        (3, Record::Prepared { at, .. }, Record::Prepared { at: another, .. }) => *at = another,
        (_, Record::Prepared { prepare, .. }, Record::Prepared { prepare: another, .. }) => {
            let (writes, delayed) = (another.writes.clone(), another.delayed.clone());
            *prepare = Arc::new(Prepare { writes, delayed, ..(**prepare).clone() });
        }
        (_, Record::Decided { txn, .. }, Record::Prepared { prepare, .. }) => *txn = prepare.txn,
        (_, Record::Refused { txn, .. }, Record::Prepared { prepare, .. }) => *txn = prepare.txn,
        (_, Record::Committed { at, .. }, Record::Decided { decision, .. }) => {
            if let Decision::Commit(place) = decision {
                *at = place;
            }
        }
        (_, record, other) => *record = other,
    }
}

/// What happens without a checkpoint.
pub fn without_pieces(mut script: Vec<Happening>) -> Vec<Happening> {
    script.retain(|it| !matches!(it, Happening::Piece(_)));
    script
}

/// Members of a group replay a changed log, and one of them goes on from there.
pub fn members_live<V: Tested>(
    script: &[Happening],
    changes: &[Change],
    then: &[Happening],
) -> Result<(), TestCaseError> {
    let mut live = Harness::<V>::new(V::Switches::default());
    script.iter().for_each(|happening| live.happen(happening.clone()));
    let mut member = Harness::<V>::new(V::Switches::default());
    for record in changed(live.log.clone(), changes) {
        if member.judge(&record).is_ok() {
            member.node.replay(REPOSITORY, record, &mut member.effects);
        }
    }
    // It leads now.
    member.node.start(&mut member.effects);
    member.sequence = live.sequence;
    for record in &live.log {
        if let Record::Prepared { prepare, at } = record {
            member.prepared.insert(prepare.txn, at.clone());
        }
    }
    member.log.clear();
    then.iter().for_each(|happening| member.happen(happening.clone()));
    member.answers(live.sequence + 60);
    // Another one begins with its state.
    let mut checkpoint = member.node.begin_checkpoint(&member.effects).expect("it has them");
    let mut other = Harness::<V>::new(V::Switches::default());
    let mut piece = Vec::new();
    while member.node.checkpoint_piece(&mut checkpoint, 64, &mut piece) {
        let restored = other.node.restore(&piece, &mut other.effects);
        prop_assert!(restored.is_ok(), "{restored:?}");
        piece.clear();
    }
    other.node.start(&mut other.effects);
    Ok(())
}

/// A member that has replayed a vote on a write of this key; with the record of that.
pub fn voted<V: Tested>(number: u8) -> (Harness<V>, Arc<Prepare<V>>, V::Yes) {
    let mut live = Harness::<V>::new(V::Switches::default());
    live.happen(Happening::Prepare(vec![], vec![(number, true)]));
    let mut member = Harness::<V>::new(V::Switches::default());
    member.replay(&live.log);
    let found = live.log.iter().find_map(|record| match record {
        Record::Prepared { prepare, at } => Some((prepare.clone(), at.clone())),
        _ => None,
    });
    let (prepare, at) = found.expect("it voted");
    (member, prepare, at)
}

pub fn contradictions_are_left_out<V: Tested>() {
    let state = Err(Rejection::State);
    let (mut member, prepare, at) = voted::<V>(1);
    let (txn, switches) = (prepare.txn, V::Switches::default());
    let prepared = |prepare: &Prepare<V>, at: &V::Yes| Record::Prepared {
        prepare: Arc::new(prepare.clone()),
        at: at.clone(),
    };
    assert_eq!(member.judge(&prepared(&prepare, &at)), state, "prepared twice");
    let other = TxnId { sequence: txn.sequence + 1, ..txn };
    let late = Prepare { txn: other, ..(*prepare).clone() };
    assert!(member.judge(&prepared(&late, &at)).is_err(), "its place is taken");
    let far = TxnId { sequence: u64::MAX, ..txn };
    let far = Prepare { txn: far, ..(*prepare).clone() };
    assert_eq!(member.judge(&prepared(&far, &at)), Err(Rejection::Range));
    let apart = Prepare { participants: [RepositoryId(1)].into_iter().collect(), ..late.clone() };
    assert!(member.judge(&prepared(&apart, &at)).is_err(), "it takes no part");
    let unknown = [REPOSITORY, RepositoryId(9)].into_iter().collect();
    let unknown = Prepare { participants: unknown, ..late };
    assert!(member.judge(&prepared(&unknown, &at)).is_err(), "there is no such repository");
    let refused = Record::Refused { txn, reason: Abort::Locked };
    assert_eq!(member.judge(&refused), state, "it voted yes");
    let commit = decided::<V>(&switches, txn, at.clone(), 7);
    let of_other = Record::Decided { txn: other, decision: commit.clone() };
    assert_eq!(member.judge(&of_other), state, "it was never prepared");
    let ran = Record::Ran { txn: other, writes: Vec::new(), answers: vec![(0, Gave::Unknown)] };
    assert_eq!(member.judge(&ran), state, "nobody knows of it");
    let writes = vec![(SPACE, key(3), None)];
    let ran = Record::Ran { txn, writes, answers: Vec::new() };
    assert_eq!(member.judge(&ran), state, "its turn has not come");
    assert_eq!(member.judge(&Record::UpperBound { at: Timestamp::MAX }), Err(Rejection::Range));
    let decided = Record::Decided { txn, decision: commit };
    member.replay(std::slice::from_ref(&decided));
    assert_eq!(member.judge(&decided), state, "decided twice");
    let writes = vec![(SPACE, key(3), None)];
    let ran = Record::Ran { txn, writes, answers: Vec::new() };
    assert_eq!(member.judge(&ran), state, "it had no procedures");
}
