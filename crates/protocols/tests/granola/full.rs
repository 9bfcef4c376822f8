//! At the limit of memory what may write is refused, and nothing else; what waits has an end.

use std::sync::Arc;

use muesli_core::memory::{Held, Memory};
use muesli_core::{Abort, LoggedRole as _, Participant as _, SmallBytes};
use muesli_protocols::granola::Switches;
use muesli_protocols::granola::message::{
    Agreement, Message, Refusal, ReplyOutcome, Request, Task, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;

use super::steps::{Harness, vote};

use super::strangers::{is_done, of_client, receive_any, refused};

#[test]
fn at_the_limit_of_memory_what_may_write_is_refused_and_nothing_else() {
    for switches in [Switches::default(), Switches::locking(), Switches::sinfonia()] {
        let mut harness = Harness::new(switches);
        harness.settings.memory = Memory::new(20_000, u64::MAX >> 1);
        let mut sequence = 0;
        let refusal = loop {
            sequence += 1;
            assert!(sequence < 10_000, "there is a limit");
            let mut request = of_client(&harness, sequence);
            request.settled_below = sequence;
            let Task::Install(install) = &mut request.parts[0].task else { panic!("it installs") };
            install.writes[0].2 = Some(SmallBytes::from(vec![7; 100]));
            install.writes[0].1 = (sequence * 1_000..)
                .map(|number| SmallBytes::new(&number.to_be_bytes()))
                .find(|key| harness.catalog.partition(install.writes[0].0, key) == 0)
                .unwrap();
            let sent = receive_any(&mut harness, request).unwrap();
            if let Some(refusal) = refused(&sent) {
                break refusal.clone();
            }
        };
        assert_eq!(refusal, Refusal::Aborted(Abort::OutOfMemory));
        // One of several repositories votes against it, before anybody has voted for it.
        let several = harness.request(sequence + 1, Agreement::Coordinated, &[0, 1]);
        let sent = harness.receive(Message::Request(Arc::new(several)));
        let against = |message: &Message| match message {
            Message::Vote { ballot, .. } => matches!(ballot, TimestampVote::Abort(..)),
            _ => false,
        };
        assert!(sent.iter().any(against), "{sent:?}");
        // Deletes and reads go on.
        let mut deletes = of_client(&harness, sequence + 2);
        let Task::Install(install) = &mut deletes.parts[0].task else { panic!("it installs") };
        install.writes[0].2 = None;
        assert!(is_done(&receive_any(&mut harness, deletes).unwrap()));
        let mut reads = of_client(&harness, sequence + 3);
        reads.read_only = true;
        reads.parts[0].task = Task::Read(Vec::new());
        assert!(is_done(&receive_any(&mut harness, reads).unwrap()));
        harness.participant.end(&harness.settings);
        assert_eq!(harness.settings.memory.held().all, 0);
    }
}

/// A transaction of both repositories that writes so much under a key of this one, or deletes it.
fn of_both(harness: &Harness, sequence: u64, value: Option<usize>) -> Request {
    let mut request = harness.request(sequence, Agreement::Independent, &[0, 1]);
    for part in request.parts.iter_mut().filter(|_| value.is_none()) {
        let Task::Install(install) = &mut part.task else { panic!("it installs") };
        install.writes[0].2 = None;
    }
    let Task::Install(install) = &mut request.parts[0].task else { panic!("it installs") };
    let (space, key, written) = &mut install.writes[0];
    *written = value.map(|bytes| vec![7; bytes].into());
    let keys = (sequence * 1_000..).map(|number| SmallBytes::new(&number.to_be_bytes()));
    *key = keys.into_iter().find(|key| harness.catalog.partition(*space, key) == 0).unwrap();
    request
}

/// Whether this repository has voted for it.
fn is_voted_for(sent: &[Message]) -> bool {
    let vote = |message: &Message| match message {
        Message::Vote { ballot, .. } => matches!(ballot, TimestampVote::Commit(_)),
        _ => false,
    };
    sent.iter().any(vote)
}

/// What waits for votes that never come counts, and keeps further writes out; nothing else.
#[test]
fn what_waits_for_votes_keeps_further_writes_out_at_the_limit_of_memory() {
    const MIB: usize = 1 << 20;
    for switches in [Switches::default(), Switches::locking()] {
        let mut harness = Harness::new(switches);
        harness.settings.memory = Memory::new(8 * MIB as u64, u64::MAX >> 1);
        let take = |harness: &mut Harness, sequence, value| {
            let request = of_both(harness, sequence, value);
            harness.receive(Message::Request(Arc::new(request)))
        };
        let met = (1..64).find_map(|sequence| {
            let sent = take(&mut harness, sequence, Some(MIB));
            refused(&sent).cloned().map(|refusal| (sequence, refusal))
        });
        let (first, refusal) = met.expect("there is a limit");
        assert_eq!(refusal, Refusal::Aborted(Abort::OutOfMemory));
        // In locking mode, what came of a request counts beside it.
        assert!((4..12).contains(&first), "{first} MiB");
        let held = harness.settings.memory.held().all;
        assert!(held < 12 * MIB as u64, "{held}");
        // Deletes, reads and votes go on.
        assert!(is_voted_for(&take(&mut harness, 70, None)));
        let mut reads = of_client(&harness, 1);
        reads.read_only = true;
        reads.parts[0].task = Task::Read(Vec::new());
        assert_eq!(refused(&receive_any(&mut harness, reads).unwrap()), None);
        // It counts once more, in builds that do.
        harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
        for sequence in 1..first {
            harness.receive(vote(sequence, TimestampVote::Conflict));
        }
        harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
        let held = harness.settings.memory.held().all;
        assert!(held < MIB as u64, "{held} when they are over");
        assert!(is_voted_for(&take(&mut harness, 71, Some(MIB))));
    }
}

/// What adds nothing is taken up at the limit, but not without end.
#[test]
fn at_the_limit_of_memory_what_waits_for_votes_has_an_end_too() {
    let mut harness = Harness::new(Switches::default());
    harness.settings.limits.transaction_bytes = 20_000;
    harness.settings.memory = Memory::new(0, u64::MAX >> 1);
    harness.settings.memory.report(Held::default(), Held { all: 1, old: 0 });
    let met = (1..1_000).find_map(|sequence| {
        let request = of_both(&harness, sequence, None);
        let sent = harness.receive(Message::Request(Arc::new(request)));
        refused(&sent).cloned().map(|refusal| (sequence, refusal))
    });
    let (first, refusal) = met.expect("they have an end");
    assert_eq!(refusal, Refusal::Aborted(Abort::Overloaded));
    assert!((10..60).contains(&first), "{first} deletes");
    harness.receive(vote(1, TimestampVote::Conflict));
    let next = of_both(&harness, first + 1, None);
    assert!(is_voted_for(&harness.receive(Message::Request(Arc::new(next)))));
}

/// What waits for locking mode has a bound in bytes.
#[test]
fn what_waits_for_locking_mode_takes_no_more_bytes_than_a_transaction() {
    let mut harness = Harness::new(Switches::default());
    harness.settings.limits.transaction_bytes = 200_000;
    // Two that conflict are queued, so nothing coordinated can be prepared.
    for sequence in 1..=2 {
        let request = harness.request(sequence, Agreement::Independent, &[0, 1]);
        assert!(is_voted_for(&harness.receive(Message::Request(Arc::new(request)))));
    }
    let conflicts = (3..=9).filter(|sequence| {
        let agreement = Agreement::Coordinated;
        let request = Request { agreement, ..of_both(&harness, *sequence, Some(60_000)) };
        let sent = harness.receive(Message::Request(Arc::new(request)));
        let conflict =
            |it: &Message| matches!(it, Message::Reply { end: ReplyOutcome::Conflict, .. });
        sent.iter().any(conflict)
    });
    assert_eq!(conflicts.collect::<Vec<_>>(), [6, 7, 8, 9]);
}
