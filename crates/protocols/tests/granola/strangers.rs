//! What clients may fill, and what a request may not say it is.

use std::sync::Arc;

use muesli_core::{
    Abort, Address, LoggedRole as _, Nanos, NodeId, ProcedureId, Protocol, Rejection, RepositoryId,
    Role, Sender, Settings, StateMachine as _, Timestamp, TxnId, View,
};
use muesli_protocols::granola::message::Fetched;
use muesli_protocols::granola::message::Move;
use muesli_protocols::granola::message::{
    Agreement, Message, Refusal, ReplyOutcome, Request, Task, TimestampVote, VoteOrder,
    WatchedReads,
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{Granola, Switches};

use super::procedures::SPACE;
use super::steps::{Harness, txn};

/// No node of the catalog.
pub(super) const CLIENT: NodeId = NodeId(77);

/// A request of a client.
pub(super) fn of_client(harness: &Harness, sequence: u64) -> Request {
    let txn = TxnId { node: CLIENT, ..txn(sequence) };
    Request { txn, ..harness.request(sequence, Agreement::Alone, &[0]) }
}

/// Judges a client's message as a node does, and takes it if it may.
pub(super) fn receive_any(
    harness: &mut Harness,
    request: Request,
) -> Result<Vec<Message>, Rejection> {
    add_data(harness, request, Sender::CLIENT)
}

pub(super) fn add_data(
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

pub(super) fn refused(sent: &[Message]) -> Option<&Refusal> {
    sent.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Refused { refusal, .. }, .. } => Some(refusal),
        _ => None,
    })
}

pub(super) fn is_done(sent: &[Message]) -> bool {
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

/// A client may watch; what all watches take together has an end, and leaves nothing in a log.
#[test]
fn watches_of_clients_come_to_an_end_of_their_room() {
    let mut harness = Harness::new(Switches::default());
    harness.settings.limits.transaction_bytes = 1_000;
    let space = harness.catalog.space_named(SPACE).unwrap();
    let reads = vec![(space, harness.key_in(0), Timestamp::ZERO)];
    let reads = Box::new(WatchedReads { reads, ..WatchedReads::default() });
    let own = Address::coordinator(CLIENT);
    let mut kept = 0;
    for request in 1..1_000 {
        let message = Message::Watch { request, reads: reads.clone() };
        let sent = receive_any_from(&mut harness, own, message, Sender::CLIENT).unwrap();
        kept += usize::from(sent.is_empty());
        let is_answer =
            |it: &Message| matches!(it, Message::Changed { request: of, .. } if *of == request);
        assert!(sent.iter().all(is_answer), "{sent:?}");
    }
    assert!((1..20).contains(&kept), "{kept} watches");
    let left = (harness.participant.remembered(), harness.participant.known_coordinators());
    assert_eq!((left, harness.log.len()), ((0, 0), 0));
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
