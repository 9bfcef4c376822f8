//! At the limit of memory what may write is refused, and nothing else; what waits has an end.

use std::sync::Arc;

use muesli_core::memory::{Held, Memory};
use muesli_core::{Abort, LoggedRole as _, Participant as _, SmallBytes};
use muesli_protocols::granola::Rules;
use muesli_protocols::granola::message::{
    Agreement, Message, Refusal, ReplyOutcome, Request, Task, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;

use super::steps::{Stage, vote};

use super::strangers::{hear, is_done, of_client, refused};

#[test]
fn at_the_limit_of_memory_what_may_write_is_refused_and_nothing_else() {
    for rules in [Rules::default(), Rules::locking(), Rules::sinfonia()] {
        let mut stage = Stage::new(rules);
        stage.settings.memory = Memory::new(20_000, u64::MAX >> 1);
        let mut sequence = 0;
        let refusal = loop {
            sequence += 1;
            assert!(sequence < 10_000, "there is a limit");
            let mut request = of_client(&stage, sequence);
            request.settled_below = sequence;
            let Task::Install(install) = &mut request.parts[0].task else { panic!("it installs") };
            install.writes[0].2 = Some(SmallBytes::from(vec![7; 100]));
            install.writes[0].1 = (sequence * 1_000..)
                .map(|number| SmallBytes::new(&number.to_be_bytes()))
                .find(|key| stage.catalog.partition(install.writes[0].0, key) == 0)
                .unwrap();
            let said = hear(&mut stage, request).unwrap();
            if let Some(refusal) = refused(&said) {
                break refusal.clone();
            }
        };
        assert_eq!(refusal, Refusal::Aborted(Abort::OutOfMemory));
        // One of several repositories votes against it, before anybody has voted for it.
        let several = stage.request(sequence + 1, Agreement::Coordinated, &[0, 1]);
        let said = stage.receive(Message::Request(Arc::new(several)));
        let against = |message: &Message| match message {
            Message::Vote { ballot, .. } => matches!(ballot, TimestampVote::Abort(..)),
            _ => false,
        };
        assert!(said.iter().any(against), "{said:?}");
        // Deletes and reads go on.
        let mut deletes = of_client(&stage, sequence + 2);
        let Task::Install(install) = &mut deletes.parts[0].task else { panic!("it installs") };
        install.writes[0].2 = None;
        assert!(is_done(&hear(&mut stage, deletes).unwrap()));
        let mut reads = of_client(&stage, sequence + 3);
        reads.read_only = true;
        reads.parts[0].task = Task::Read(Vec::new());
        assert!(is_done(&hear(&mut stage, reads).unwrap()));
        stage.participant.end(&stage.settings);
        assert_eq!(stage.settings.memory.held().all, 0);
    }
}

/// A transaction of both repositories that writes so much under a key of this one, or deletes it.
fn of_both(stage: &Stage, sequence: u64, value: Option<usize>) -> Request {
    let mut request = stage.request(sequence, Agreement::Independent, &[0, 1]);
    for part in request.parts.iter_mut().filter(|_| value.is_none()) {
        let Task::Install(install) = &mut part.task else { panic!("it installs") };
        install.writes[0].2 = None;
    }
    let Task::Install(install) = &mut request.parts[0].task else { panic!("it installs") };
    let (space, key, written) = &mut install.writes[0];
    *written = value.map(|bytes| vec![7; bytes].into());
    let keys = (sequence * 1_000..).map(|number| SmallBytes::new(&number.to_be_bytes()));
    *key = keys.into_iter().find(|key| stage.catalog.partition(*space, key) == 0).unwrap();
    request
}

/// Whether this repository has voted for it.
fn is_voted_for(said: &[Message]) -> bool {
    let vote = |message: &Message| match message {
        Message::Vote { ballot, .. } => matches!(ballot, TimestampVote::Commit(_)),
        _ => false,
    };
    said.iter().any(vote)
}

/// What waits for votes that never come counts, and keeps further writes out; nothing else.
#[test]
fn what_waits_for_votes_keeps_further_writes_out_at_the_limit_of_memory() {
    const MIB: usize = 1 << 20;
    for rules in [Rules::default(), Rules::locking()] {
        let mut stage = Stage::new(rules);
        stage.settings.memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
        let take = |stage: &mut Stage, sequence, value| {
            let request = of_both(stage, sequence, value);
            stage.receive(Message::Request(Arc::new(request)))
        };
        let met = (1..64).find_map(|sequence| {
            let said = take(&mut stage, sequence, Some(MIB));
            refused(&said).cloned().map(|refusal| (sequence, refusal))
        });
        let (first, refusal) = met.expect("there is a limit");
        assert_eq!(refusal, Refusal::Aborted(Abort::OutOfMemory));
        // In locking mode, what came of a request counts beside it.
        assert!((4..12).contains(&first), "{first} MiB");
        let held = stage.settings.memory.held().all;
        assert!(held < 12 * MIB as u64, "{held}");
        // Deletes, reads and votes go on.
        assert!(is_voted_for(&take(&mut stage, 70, None)));
        let mut reads = of_client(&stage, 1);
        reads.read_only = true;
        reads.parts[0].task = Task::Read(Vec::new());
        assert_eq!(refused(&hear(&mut stage, reads).unwrap()), None);
        // It counts once more, in builds that do.
        stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
        for sequence in 1..first {
            stage.receive(vote(sequence, TimestampVote::Conflict));
        }
        stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
        let held = stage.settings.memory.held().all;
        assert!(held < MIB as u64, "{held} when they are over");
        assert!(is_voted_for(&take(&mut stage, 71, Some(MIB))));
    }
}

/// What adds nothing is taken up at the limit, but not without end.
#[test]
fn at_the_limit_of_memory_what_waits_for_votes_has_an_end_too() {
    let mut stage = Stage::new(Rules::default());
    stage.settings.limits.transaction_bytes = 20_000;
    stage.settings.memory = Memory::new(0, u64::MAX >> 1);
    stage.settings.memory.report(Held::default(), Held { all: 1, old: 0 });
    let met = (1..1_000).find_map(|sequence| {
        let request = of_both(&stage, sequence, None);
        let said = stage.receive(Message::Request(Arc::new(request)));
        refused(&said).cloned().map(|refusal| (sequence, refusal))
    });
    let (first, refusal) = met.expect("they have an end");
    assert_eq!(refusal, Refusal::Aborted(Abort::Overloaded));
    assert!((10..60).contains(&first), "{first} deletes");
    stage.receive(vote(1, TimestampVote::Conflict));
    let next = of_both(&stage, first + 1, None);
    assert!(is_voted_for(&stage.receive(Message::Request(Arc::new(next)))));
}

/// What waits for locking mode has a bound in bytes.
#[test]
fn what_waits_for_locking_mode_takes_no_more_bytes_than_a_transaction() {
    let mut stage = Stage::new(Rules::default());
    stage.settings.limits.transaction_bytes = 200_000;
    // Two that conflict are queued, so nothing coordinated can be prepared.
    for sequence in 1..=2 {
        let request = stage.request(sequence, Agreement::Independent, &[0, 1]);
        assert!(is_voted_for(&stage.receive(Message::Request(Arc::new(request)))));
    }
    let conflicts = (3..=9).filter(|sequence| {
        let agreement = Agreement::Coordinated;
        let request = Request { agreement, ..of_both(&stage, *sequence, Some(60_000)) };
        let said = stage.receive(Message::Request(Arc::new(request)));
        let conflict =
            |it: &Message| matches!(it, Message::Reply { end: ReplyOutcome::Conflict, .. });
        said.iter().any(conflict)
    });
    assert_eq!(conflicts.collect::<Vec<_>>(), [6, 7, 8, 9]);
}
