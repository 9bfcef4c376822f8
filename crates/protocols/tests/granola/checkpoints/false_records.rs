//! Records that a lying member of a group made up: whatever they say, they are left out or can be
//! replayed, and what comes of them is a state that a repository can work from.

use muesli_core::{LoggedRole as _, TxnId};
use muesli_protocols::granola::message::ReplyOutcome;

use super::*;

/// How a log is changed; where, and by what else of it.
type Change = (u8, usize, usize);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0..6_u8, any::<usize>(), any::<usize>()), 1..8)
}

fn txn_of(record: &Record) -> Option<TxnId> {
    match record {
        Record::Voted { request, .. } => Some(request.txn),
        Record::Against { txn, .. }
        | Record::Done { txn, .. }
        | Record::SharedData { txn, .. }
        | Record::Dropped { txn, .. } => Some(*txn),
        Record::Staged { .. } | Record::Reached { .. } | Record::UpperBound { .. } => None,
    }
}

/// What a liar makes of an honest log.
fn changed(mut log: Vec<Record>, changes: &[Change]) -> Vec<Record> {
    for &(kind, one, other) in changes {
        if log.len() < 2 {
            break;
        }
        let (one, other) = (one % log.len(), other % log.len());
        let (first, second) = (log[one].clone(), log[other].clone());
        let named = txn_of(&second);
        match (kind, &mut log[one]) {
            (0, _) => drop(log.remove(one)),
            (1, _) => log.insert(other, first),
            (2, _) => log.swap(one, other),
            (3, Record::Voted { at, .. } | Record::Done { at, .. }) => {
                *at = Timestamp(at.0 - at.0.min(9_000_000));
            }
            (
                _,
                Record::Done { txn, .. }
                | Record::Against { txn, .. }
                | Record::Dropped { txn, .. },
            ) => *txn = named.unwrap_or(*txn),
            (_, record) => *record = second,
        }
    }
    log
}

/// Members of a group replay a changed log, and one of them goes on from there.
fn members_live(
    switches: Switches,
    script: &[Happening],
    changes: &[Change],
    then: &[Happening],
) -> Result<(), TestCaseError> {
    let mut live = Working::new(switches);
    script.iter().for_each(|happening| live.happen(happening.clone()));
    let mut member = live.anew();
    for record in changed(live.harness.log.clone(), changes) {
        if member.judge(&record).is_ok() {
            member.harness.step(|participant, cx| participant.replay(record, cx));
        }
    }
    // It leads now.
    member.harness.step(|participant, cx| participant.start(cx));
    then.iter().for_each(|happening| member.happen(happening.clone()));
    // Another one begins with its state.
    let participant = &member.harness.participant;
    let mut cursor = participant.begin_checkpoint().expect("it has checkpoints");
    let mut pieces = vec![Vec::new()];
    while participant.checkpoint_piece(&mut cursor, 64, pieces.last_mut().expect("there is one")) {
        pieces.push(Vec::new());
    }
    pieces.pop();
    let mut other = member.anew();
    for piece in &pieces {
        let mut restored = Ok(());
        other.harness.step(|participant, cx| restored = participant.restore(piece, cx));
        prop_assert!(restored.is_ok(), "{restored:?}");
    }
    other.harness.step(|participant, cx| participant.start(cx));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn members_outlive_false_records(
        script in happenings(),
        changes in changes(),
        then in happenings(),
    ) {
        let then: Vec<_> =
            then.into_iter().filter(|it| !matches!(it, Happening::Piece(_))).collect();
        members_live(Switches::default(), &script, &changes, &then)?;
        members_live(Switches::out_of_order(), &script, &changes, &then)?;
        members_live(Switches::locking(), &script, &changes, &then)?;
        // What a master says is judged by its message, which this stage does not do.
        members_live(Switches::sinfonia(), &script, &changes, &[])?;
    }
}

#[test]
fn contradictions_are_left_out() {
    let state = Err(Rejection::State);
    let mut live = Working::new(Switches::default());
    live.happen(Happening::Install(vec![(1, true)]));
    let mut member = live.anew();
    member.replay(&live, 0);
    let found = live.harness.log.iter().find_map(|record| match record {
        Record::Voted { request, at } => Some((request.clone(), *at)),
        _ => None,
    });
    let (request, at) = found.expect("it voted");
    let of = request.txn;
    let voted = |request: Request, at| Record::Voted { request: Arc::new(request), at };
    let like = |sequence| Request { txn: txn(sequence), ..(*request).clone() };
    assert_eq!(member.judge(&voted((*request).clone(), at)), state, "voted twice");
    assert_eq!(member.judge(&voted(like(2), Timestamp::MAX)), Err(Rejection::Range));
    assert_eq!(member.judge(&voted(like(u64::MAX), at)), Err(Rejection::Range));
    let participants = [RepositoryId(0), RepositoryId(9)].into_iter().collect();
    let unknown = Request { participants, ..like(2) };
    assert_eq!(member.judge(&voted(unknown, at)), Err(Rejection::Catalog));
    let apart = Request { participants: [RepositoryId(1)].into_iter().collect(), ..like(2) };
    assert_eq!(member.judge(&voted(apart, at)), Err(Rejection::Role));
    let alone = Request { agreement: Agreement::Alone, ..like(2) };
    assert_eq!(member.judge(&voted(alone, at)), Err(Rejection::Range));
    let against = |ballot| Record::Against { txn: of, ballot };
    assert_eq!(member.judge(&against(TimestampVote::Conflict)), state, "it voted for it");
    assert_eq!(member.judge(&against(TimestampVote::Commit(at))), Err(Rejection::Range));
    let done = |at| Record::Done { txn: of, at, writes: Vec::new(), end: ReplyOutcome::Conflict };
    assert_eq!(member.judge(&done(Timestamp::MAX)), Err(Rejection::Range));
    assert_eq!(member.judge(&done(at)), Ok(()));
    let dropped = |sequence| Record::Dropped { txn: txn(sequence), end: ReplyOutcome::Conflict };
    assert_eq!(member.judge(&dropped(9)), state, "nobody has voted on it");
    let data = Record::SharedData { txn: txn(9), shared: Vec::new() };
    assert_eq!(member.judge(&data), state, "nobody knows of it");
    let staged = |partition| Record::Staged { partition, anew: true, keys: Vec::new() };
    assert_eq!(member.judge(&staged(0)), state, "the partition is here");
    assert_eq!(member.judge(&staged(1)), Ok(()));
    assert_eq!(member.judge(&staged(2)), Err(Rejection::Catalog));
    for record in
        [Record::UpperBound { at: Timestamp::MAX }, Record::Reached { at: Timestamp::MAX }]
    {
        assert_eq!(member.judge(&record), Err(Rejection::Range));
    }
}
