//! Clients that are killed: what was done for them goes, and is not done a second time.

use std::sync::Arc;

use muesli_core::memory::Memory;
use muesli_core::{
    Abort, LoggedRole as _, Nanos, NodeId, ProcedureId, RepositoryId, Sender, Settings, SmallBytes,
    StateMachine as _, Timestamp, TxnId,
};
use muesli_protocols::granola::message::{
    Agreement, FoundVersion, Message, Refusal, ReplyOutcome, Request, Task, TimestampVote,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::procedures::{SPACE, key};
use super::steps::Harness;

use super::strangers::{CLIENT, add_data, is_done, of_client, receive_any, refused};

/// A transaction of a client is done in which participants told each other 500 bytes, and the
/// client is killed; how many bytes are held a lease later, and whom the repository asks about.
fn told_to_one_that_is_gone() -> (Harness, u64, Vec<Message>) {
    let mut harness = Harness::new(Switches::sharing());
    (harness.now, harness.settings.memory) = (Nanos(1), Memory::default());
    let space = harness.catalog.space_named(SPACE).unwrap();
    let mut request = harness.request(1, Agreement::Independent, &[0, 1]);
    request.txn.node = CLIENT;
    for (part, at) in request.parts.iter_mut().zip([0, 1]) {
        let is_there = |it: &u8| harness.catalog.partition(space, &key(*it)) == at;
        let own = (0..).find(is_there).unwrap();
        let procedure = ProcedureId { name: "share".into(), version: 1 };
        let arguments = SmallBytes::new(&[1, own]);
        part.task = Task::Call { procedure, arguments, shares: true, spaces: 1 };
    }
    let (txn, repository) = (request.txn, RepositoryId(1));
    harness.receive(Message::Request(Arc::new(request)));
    let ballot = TimestampVote::Commit(Timestamp::new(1_000, repository));
    harness.receive(Message::Vote { txn, repository, ballot, about: 0, tag: 0, order: None });
    let zero = Timestamp::ZERO;
    let value = Some(SmallBytes::from(vec![0; 500]));
    let found = FoundVersion { version: zero, value, collected: zero };
    let shared = vec![(1, vec![(space, harness.key_in(1), found)])];
    assert!(is_done(&harness.receive(Message::Tell { txn, shared })));
    harness.now = Nanos(2 * Settings::default().client_lease.0);
    let asked =
        harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
    let held = harness.settings.memory.held().all;
    (harness, held, asked)
}

#[test]
fn what_a_client_that_is_gone_was_told_goes_when_nobody_waits_for_it() {
    for waits in [true, false] {
        let (mut harness, before, asked) = told_to_one_that_is_gone();
        let [Message::AskDoubts { asked, clients }] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(clients[..], [(CLIENT, 2)]);
        let clients = if waits { Vec::new() } else { clients.clone() };
        let (repository, asked) = (RepositoryId(1), *asked);
        harness.receive(Message::NoDoubts { repository, asked, clients });
        harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
        let freed = before - harness.settings.memory.held().all;
        assert_eq!(freed > 500, !waits, "{freed} bytes are free");
        let kept = (harness.participant.remembered(), harness.participant.known_coordinators());
        assert_eq!(kept, if waits { (1, 1) } else { (0, 0) });
    }
}

/// A client's transaction was done, the client was killed, and nobody waits for it: it is
/// forgotten. Then a copy of its request comes.
fn copy_of_one_that_is_forgotten(switches: Switches) -> (Harness, Vec<Message>) {
    let mut harness = Harness::new(switches);
    harness.now = Nanos(1);
    let request = of_client(&harness, 1);
    assert!(is_done(&receive_any(&mut harness, request.clone()).unwrap()));
    harness.now = Nanos(2 * Settings::default().client_lease.0);
    let asked =
        harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
    let [Message::AskDoubts { asked, clients }] = &asked[..] else { panic!("{asked:?}") };
    let (repository, asked, clients) = (RepositoryId(1), *asked, clients.clone());
    harness.receive(Message::NoDoubts { repository, asked, clients });
    assert_eq!(harness.participant.known_coordinators(), 0);
    let sent = harness.receive(Message::Request(Arc::new(request)));
    (harness, sent)
}

#[test]
fn what_was_forgotten_is_not_done_a_second_time() {
    for switches in [Switches::default(), Switches::locking(), Switches::sinfonia()] {
        let (mut harness, sent) = copy_of_one_that_is_forgotten(switches);
        let end = sent.iter().find_map(|message| match message {
            Message::Reply { end, .. } => Some(end.clone()),
            _ => None,
        });
        let Some(ReplyOutcome::Refused { at, refusal }) = end else { panic!("{sent:?}") };
        assert_eq!(refusal, Refusal::Aborted(Abort::Forgotten));
        // Another transaction, of a session that has seen as much, is done.
        let above = Request { lower_bound: at, ..of_client(&harness, 2) };
        let issued = Sender::Client { issued: harness.participant.issued() };
        assert!(is_done(&add_data(&mut harness, above, issued).unwrap()));
        let below = of_client(&harness, 3);
        assert!(!is_done(&receive_any(&mut harness, below).unwrap()));
    }
}

#[test]
fn a_repository_that_takes_up_what_it_forgot_is_noticed() {
    let switches = Switches::broken(GranolaSwitch::RefusesForgotten);
    let (_, sent) = copy_of_one_that_is_forgotten(switches);
    assert!(is_done(&sent), "it is done a second time: {sent:?}");
}

#[test]
fn a_checkpoint_knows_what_was_forgotten() {
    let (mut harness, _) = copy_of_one_that_is_forgotten(Switches::default());
    let mut cursor = harness.participant.begin_checkpoint().expect("it has checkpoints");
    let mut pieces = Vec::new();
    loop {
        let mut piece = Vec::new();
        if !harness.participant.checkpoint_piece(&mut cursor, 100, &mut piece) {
            break;
        }
        pieces.push(piece);
    }
    harness.crash(0);
    harness.step(|participant, cx| {
        for piece in &pieces {
            participant.restore(piece, cx).expect("a piece of a checkpoint");
        }
    });
    for of in [CLIENT, NodeId(78)] {
        let late = of_client(&harness, 9);
        let late = Request { txn: TxnId { node: of, ..late.txn }, ..late };
        let sent = receive_any(&mut harness, late).unwrap();
        assert_eq!(refused(&sent), Some(&Refusal::Aborted(Abort::Forgotten)), "{sent:?}");
    }
}
