//! What clients may fill, and what a request may not say it is.

use std::sync::Arc;

use muesli_core::memory::{Held, Memory};
use muesli_core::{
    Abort, Address, LoggedRole as _, Nanos, NodeId, Participant as _, ProcedureId, Protocol,
    Rejection, RepositoryId, Role, Sender, Settings, SmallBytes, StateMachine as _, Timestamp,
    TxnId, View,
};
use muesli_protocols::granola::message::Fetched;
use muesli_protocols::granola::message::Move;
use muesli_protocols::granola::message::{
    Agreement, FoundVersion, Message, Refusal, ReplyOutcome, Request, Task, TimestampVote,
    VoteOrder,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{Granola, GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

use super::procedures::{SPACE, key};
use super::steps::{Harness, txn, vote};

/// No node of the catalog.
const CLIENT: NodeId = NodeId(77);

/// A request of a client.
fn of_client(harness: &Harness, sequence: u64) -> Request {
    let txn = TxnId { node: CLIENT, ..txn(sequence) };
    Request { txn, ..harness.request(sequence, Agreement::Alone, &[0]) }
}

/// Judges a client's message as a node does, and takes it if it may.
fn receive_any(harness: &mut Harness, request: Request) -> Result<Vec<Message>, Rejection> {
    add_data(harness, request, Sender::CLIENT)
}

fn add_data(
    harness: &mut Harness,
    request: Request,
    sender: Sender,
) -> Result<Vec<Message>, Rejection> {
    let from = Address::coordinator(request.txn.node);
    receive_any_from(harness, from, Message::Request(Arc::new(request)), sender)
}

fn receive_any_from(
    harness: &mut Harness,
    from: Address,
    message: Message,
    sender: Sender,
) -> Result<Vec<Message>, Rejection> {
    let me = Address { node: NodeId(0), role: Role::Repository(RepositoryId(0)) };
    let view = View { me, from, sender, catalog: &harness.catalog, settings: &harness.settings };
    Granola::judge(&message, view)?;
    harness.participant.judge(&message, view)?;
    Ok(harness.step(|participant, cx| participant.receive(from, message, cx)))
}

fn refused(sent: &[Message]) -> Option<&Refusal> {
    sent.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Refused { refusal, .. }, .. } => Some(refusal),
        _ => None,
    })
}

fn is_done(sent: &[Message]) -> bool {
    sent.iter()
        .any(|message| matches!(message, Message::Reply { end: ReplyOutcome::Done { .. }, .. }))
}

/// What repositories ask each other is not asked by clients, under no address of theirs.
#[test]
fn questions_of_clients_leave_nothing() {
    for switches in [Switches::default(), Switches::locking(), Switches::sinfonia()] {
        let mut harness = Harness::new(switches);
        for sequence in 1..1_000 {
            let request = Request {
                txn: TxnId { node: CLIENT, ..txn(sequence) },
                ..harness.request(sequence, Agreement::Independent, &[0, 1])
            };
            let (txn, repository) = (request.txn, RepositoryId(1));
            let ballot = TimestampVote::Commit(Timestamp::new(sequence, repository));
            let order = VoteOrder { stream: Timestamp::new(1, repository), number: sequence };
            let at = order.stream;
            let questions = [
                Message::Ask { request: Arc::new(request), repository, ballot: ballot.clone() },
                Message::Vote { txn, repository, ballot, about: 0, tag: 0, order: Some(order) },
                Message::WhichPosition { repository },
                Message::Position { repository, order, at, voted: vec![txn] },
                Message::Fetch { repository, has: Fetched::default(), partition: 0 },
            ];
            for message in questions {
                let own = Address::coordinator(CLIENT);
                for from in [own, Address::repository(CLIENT, repository)] {
                    let answered =
                        receive_any_from(&mut harness, from, message.clone(), Sender::CLIENT);
                    assert_eq!(answered, Err(Rejection::Sender), "{message:?} of {from:?}");
                }
            }
        }
        let participant = &harness.participant;
        let left = (participant.remembered(), participant.known_coordinators());
        assert_eq!((left, participant.early_votes(), harness.log.len()), ((0, 0), 0, 0));
    }
}

#[test]
fn a_client_that_settles_nothing_comes_to_an_end_of_its_room() {
    let mut harness = Harness::new(Switches::default());
    harness.settings.unsettled_max = 10;
    for sequence in 1..=10 {
        let request = of_client(&harness, sequence);
        assert!(is_done(&receive_any(&mut harness, request).unwrap()));
    }
    let (known, next) = (of_client(&harness, 3), of_client(&harness, 11));
    assert_eq!(receive_any(&mut harness, next), Err(Rejection::Full));
    assert!(receive_any(&mut harness, known).is_ok(), "what is known is answered again");
    let settles = Request { settled_below: 12, ..of_client(&harness, 12) };
    assert!(is_done(&receive_any(&mut harness, settles).unwrap()));
    assert_eq!(harness.participant.remembered(), 1);
}

#[test]
fn a_client_of_many_lives_comes_to_an_end_of_its_room() {
    let mut harness = Harness::new(Switches::default());
    harness.settings.unsettled_max = 10;
    let of_incarnation = |harness: &Harness, incarnation| {
        let request = of_client(harness, 1);
        Request { txn: TxnId { incarnation, ..request.txn }, ..request }
    };
    let mut admitted = 0;
    for incarnation in 1..=30 {
        let request = of_incarnation(&harness, incarnation);
        admitted += usize::from(receive_any(&mut harness, request).is_ok());
    }
    assert_eq!((admitted, harness.participant.remembered()), (10, 10));
    // Nor does it help to say that what is not there is settled.
    for sequence in 100..130 {
        let request = of_incarnation(&harness, 10);
        let txn = TxnId { sequence, ..request.txn };
        let _ = receive_any(&mut harness, Request { txn, settled_below: sequence - 99, ..request });
    }
    assert_eq!(harness.participant.remembered(), 10);
}

#[test]
fn all_clients_together_come_to_an_end_of_their_room_and_members_do_not() {
    let mut harness = Harness::new(Switches::default());
    (harness.now, harness.settings.unsettled_total_max) = (Nanos(1), 10);
    let of = |harness: &Harness, node: u32, sequence| {
        let txn = TxnId { node: NodeId(node), ..txn(sequence) };
        Request { txn, settled_below: sequence, ..of_client(harness, sequence) }
    };
    let mut admitted = 0;
    for node in 100..120 {
        let request = of(&harness, node, 1);
        admitted += usize::from(add_data(&mut harness, request, Sender::CLIENT).is_ok());
    }
    assert_eq!(admitted, 5, "each client counts, and its transaction");
    let (next, other, member) = (of(&harness, 100, 2), of(&harness, 119, 1), of(&harness, 1, 1));
    assert!(add_data(&mut harness, member, Sender::Member).is_ok());
    assert!(add_data(&mut harness, next, Sender::CLIENT).is_ok(), "the first one is settled");
    assert_eq!(add_data(&mut harness, other, Sender::CLIENT), Err(Rejection::Full));
    // Who only reads leaves nothing, and goes on.
    let reads =
        Request { read_only: true, parts: [].into_iter().collect(), ..of(&harness, 118, 1) };
    assert!(is_done(&add_data(&mut harness, reads, Sender::CLIENT).unwrap()));
    assert_eq!(harness.participant.known_coordinators(), 6);
}

#[test]
fn a_number_that_comes_again_with_a_smaller_incarnation_is_told() {
    let mut harness = Harness::new(Switches::default());
    let of = |harness: &Harness, incarnation| {
        let request = of_client(harness, 1);
        Request { txn: TxnId { incarnation, ..request.txn }, ..request }
    };
    let (newer, older) = (of(&harness, 7), of(&harness, 3));
    assert!(is_done(&receive_any(&mut harness, newer).unwrap()));
    let sent = receive_any(&mut harness, older).unwrap();
    assert_eq!(refused(&sent), Some(&Refusal::Aborted(Abort::Superseded)));
    assert!(!Abort::Superseded.is_retryable());
    // It is forgotten with the next incarnation.
    let next = of(&harness, 8);
    assert!(is_done(&receive_any(&mut harness, next).unwrap()));
    assert_eq!(harness.participant.remembered(), 2);
}

#[test]
fn a_silent_client_leaves_nothing_where_all_is_settled() {
    let mut harness = Harness::new(Switches::default());
    harness.now = Nanos(1);
    let first = of_client(&harness, 1);
    assert!(is_done(&receive_any(&mut harness, first).unwrap()));
    let reads = Request { read_only: true, settled_below: 2, ..of_client(&harness, 2) };
    let parts = [].into_iter().collect();
    assert!(is_done(&receive_any(&mut harness, Request { parts, ..reads }).unwrap()));
    assert_eq!(
        (harness.participant.remembered(), harness.participant.known_coordinators()),
        (0, 1)
    );
    harness.now = Nanos(3 * Settings::default().client_lease.0);
    let other = Request { txn: TxnId { node: NodeId(78), ..txn(1) }, ..of_client(&harness, 1) };
    harness.receive(Message::Request(Arc::new(other)));
    harness.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
    assert_eq!(harness.participant.known_coordinators(), 1, "the other one");
}

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

#[test]
fn a_procedure_that_may_write_is_not_called_to_read() {
    let mut harness = Harness::new(Switches::default());
    let procedure = ProcedureId { name: "bump".into(), version: 1 };
    assert!(harness.settings.procedures.get(&procedure).is_some_and(|it| !it.read_only));
    let mut request = of_client(&harness, 1);
    let key = harness.key_in(0);
    request.parts[0].task = Task::Call { procedure, arguments: key, shares: false, spaces: 1 };
    request.read_only = true;
    let sent = receive_any(&mut harness, request).unwrap();
    let Some(Refusal::Faulty(text)) = refused(&sent) else { panic!("{sent:?}") };
    assert!(text.contains("may write"), "{text}");
}

#[test]
fn a_move_is_one_of_all_who_know_where_partitions_are() {
    let mut harness = Harness::new(Switches::default());
    let has = Fetched::default();
    let (from, to) = (RepositoryId(0), RepositoryId(1));
    let order = Move { partition: 0, from, to, epoch: 1, has };
    let mut request = Request { agreement: Agreement::Independent, ..of_client(&harness, 1) };
    request.participants = [from, to].into_iter().collect();
    request.parts[0].task = Task::Move(Box::new(order));
    // Repository 0 keeps names, and is the source.
    assert!(receive_any(&mut harness, request.clone()).is_ok());
    // A move from 1 to somebody else that leaves the name service out.
    let order = Move { partition: 1, from: to, to: RepositoryId(2), epoch: 1, has };
    request.parts[0].partition = 1;
    request.parts[0].task = Task::Move(Box::new(order));
    request.participants = [to, RepositoryId(2)].into_iter().collect();
    let view = View {
        me: Address { node: NodeId(1), role: Role::Repository(to) },
        from: Address::coordinator(CLIENT),
        sender: Sender::CLIENT,
        catalog: &harness.catalog,
        settings: &harness.settings,
    };
    let message = Message::Request(Arc::new(request));
    assert_eq!(Granola::judge(&message, view), Err(Rejection::Catalog));
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
