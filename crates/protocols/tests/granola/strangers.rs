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
};
use muesli_protocols::granola::participant::GranolaParticipantTimer;
use muesli_protocols::granola::{Granola, Rules};

use super::steps::{Stage, txn};

/// No node of the catalog.
pub(super) const CLIENT: NodeId = NodeId(77);

/// A request of a client.
pub(super) fn of_client(stage: &Stage, sequence: u64) -> Request {
    let txn = TxnId { node: CLIENT, ..txn(sequence) };
    Request { txn, ..stage.request(sequence, Agreement::Alone, &[0]) }
}

/// Judges a client's message as a node does, and takes it if it may.
pub(super) fn hear(stage: &mut Stage, request: Request) -> Result<Vec<Message>, Rejection> {
    add_data(stage, request, Sender::CLIENT)
}

pub(super) fn add_data(
    stage: &mut Stage,
    request: Request,
    sender: Sender,
) -> Result<Vec<Message>, Rejection> {
    let from = Address::coordinator(request.txn.node);
    hear_from(stage, from, Message::Request(Arc::new(request)), sender)
}

fn hear_from(
    stage: &mut Stage,
    from: Address,
    message: Message,
    sender: Sender,
) -> Result<Vec<Message>, Rejection> {
    let me = Address { node: NodeId(0), role: Role::Repository(RepositoryId(0)) };
    let view = View { me, from, sender, catalog: &stage.catalog, settings: &stage.settings };
    Granola::judge(&message, view)?;
    stage.participant.judge(&message, view)?;
    Ok(stage.step(|participant, cx| participant.receive(from, message, cx)))
}

pub(super) fn refused(said: &[Message]) -> Option<&Refusal> {
    said.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Refused { refusal, .. }, .. } => Some(refusal),
        _ => None,
    })
}

pub(super) fn is_done(said: &[Message]) -> bool {
    said.iter()
        .any(|message| matches!(message, Message::Reply { end: ReplyOutcome::Done { .. }, .. }))
}

/// What repositories ask each other is not asked by clients, under no address of theirs.
#[test]
fn questions_of_clients_leave_nothing() {
    for rules in [Rules::default(), Rules::locking(), Rules::sinfonia()] {
        let mut stage = Stage::new(rules);
        for sequence in 1..1_000 {
            let request = Request {
                txn: TxnId { node: CLIENT, ..txn(sequence) },
                ..stage.request(sequence, Agreement::Independent, &[0, 1])
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
                    let heard = hear_from(&mut stage, from, message.clone(), Sender::CLIENT);
                    assert_eq!(heard, Err(Rejection::Sender), "{message:?} of {from:?}");
                }
            }
        }
        let participant = &stage.participant;
        let left = (participant.remembered(), participant.known_coordinators());
        assert_eq!((left, participant.early_votes(), stage.log.len()), ((0, 0), 0, 0));
    }
}

#[test]
fn a_client_that_settles_nothing_comes_to_an_end_of_its_room() {
    let mut stage = Stage::new(Rules::default());
    stage.settings.unsettled_max = 10;
    for sequence in 1..=10 {
        let request = of_client(&stage, sequence);
        assert!(is_done(&hear(&mut stage, request).unwrap()));
    }
    let (known, next) = (of_client(&stage, 3), of_client(&stage, 11));
    assert_eq!(hear(&mut stage, next), Err(Rejection::Full));
    assert!(hear(&mut stage, known).is_ok(), "what is known is answered again");
    let settles = Request { settled_below: 12, ..of_client(&stage, 12) };
    assert!(is_done(&hear(&mut stage, settles).unwrap()));
    assert_eq!(stage.participant.remembered(), 1);
}

#[test]
fn a_client_of_many_lives_comes_to_an_end_of_its_room() {
    let mut stage = Stage::new(Rules::default());
    stage.settings.unsettled_max = 10;
    let life = |stage: &Stage, incarnation| {
        let request = of_client(stage, 1);
        Request { txn: TxnId { incarnation, ..request.txn }, ..request }
    };
    let mut admitted = 0;
    for incarnation in 1..=30 {
        let request = life(&stage, incarnation);
        admitted += usize::from(hear(&mut stage, request).is_ok());
    }
    assert_eq!((admitted, stage.participant.remembered()), (10, 10));
    // Nor does it help to say that what is not there is settled.
    for sequence in 100..130 {
        let request = life(&stage, 10);
        let txn = TxnId { sequence, ..request.txn };
        let _ = hear(&mut stage, Request { txn, settled_below: sequence - 99, ..request });
    }
    assert_eq!(stage.participant.remembered(), 10);
}

#[test]
fn all_clients_together_come_to_an_end_of_their_room_and_members_do_not() {
    let mut stage = Stage::new(Rules::default());
    (stage.now, stage.settings.unsettled_total_max) = (Nanos(1), 10);
    let of = |stage: &Stage, node: u32, sequence| {
        let txn = TxnId { node: NodeId(node), ..txn(sequence) };
        Request { txn, settled_below: sequence, ..of_client(stage, sequence) }
    };
    let mut admitted = 0;
    for node in 100..120 {
        let request = of(&stage, node, 1);
        admitted += usize::from(add_data(&mut stage, request, Sender::CLIENT).is_ok());
    }
    assert_eq!(admitted, 5, "each client counts, and its transaction");
    let (next, other, member) = (of(&stage, 100, 2), of(&stage, 119, 1), of(&stage, 1, 1));
    assert!(add_data(&mut stage, member, Sender::Member).is_ok());
    assert!(add_data(&mut stage, next, Sender::CLIENT).is_ok(), "the first one is settled");
    assert_eq!(add_data(&mut stage, other, Sender::CLIENT), Err(Rejection::Full));
    // Who only reads leaves nothing, and goes on.
    let reads = Request { read_only: true, parts: [].into_iter().collect(), ..of(&stage, 118, 1) };
    assert!(is_done(&add_data(&mut stage, reads, Sender::CLIENT).unwrap()));
    assert_eq!(stage.participant.known_coordinators(), 6);
}

#[test]
fn a_number_that_comes_again_with_a_smaller_incarnation_is_told() {
    let mut stage = Stage::new(Rules::default());
    let of = |stage: &Stage, incarnation| {
        let request = of_client(stage, 1);
        Request { txn: TxnId { incarnation, ..request.txn }, ..request }
    };
    let (newer, older) = (of(&stage, 7), of(&stage, 3));
    assert!(is_done(&hear(&mut stage, newer).unwrap()));
    let said = hear(&mut stage, older).unwrap();
    assert_eq!(refused(&said), Some(&Refusal::Aborted(Abort::Superseded)));
    assert!(!Abort::Superseded.is_retryable());
    // It is forgotten with the next incarnation.
    let next = of(&stage, 8);
    assert!(is_done(&hear(&mut stage, next).unwrap()));
    assert_eq!(stage.participant.remembered(), 2);
}

#[test]
fn a_silent_client_leaves_nothing_where_all_is_settled() {
    let mut stage = Stage::new(Rules::default());
    stage.now = Nanos(1);
    let first = of_client(&stage, 1);
    assert!(is_done(&hear(&mut stage, first).unwrap()));
    let reads = Request { read_only: true, settled_below: 2, ..of_client(&stage, 2) };
    let parts = [].into_iter().collect();
    assert!(is_done(&hear(&mut stage, Request { parts, ..reads }).unwrap()));
    assert_eq!((stage.participant.remembered(), stage.participant.known_coordinators()), (0, 1));
    stage.now = Nanos(3 * Settings::default().client_lease.0);
    let other = Request { txn: TxnId { node: NodeId(78), ..txn(1) }, ..of_client(&stage, 1) };
    stage.receive(Message::Request(Arc::new(other)));
    stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
    assert_eq!(stage.participant.known_coordinators(), 1, "the other one");
}

#[test]
fn a_procedure_that_may_write_is_not_called_to_read() {
    let mut stage = Stage::new(Rules::default());
    let procedure = ProcedureId { name: "bump".into(), version: 1 };
    assert!(stage.settings.procedures.get(&procedure).is_some_and(|it| !it.read_only));
    let mut request = of_client(&stage, 1);
    let key = stage.key_in(0);
    request.parts[0].task = Task::Call { procedure, arguments: key, tells: false, spaces: 1 };
    request.read_only = true;
    let said = hear(&mut stage, request).unwrap();
    let Some(Refusal::Faulty(text)) = refused(&said) else { panic!("{said:?}") };
    assert!(text.contains("may write"), "{text}");
}

#[test]
fn a_move_is_one_of_all_who_know_where_partitions_are() {
    let mut stage = Stage::new(Rules::default());
    let has = Fetched::default();
    let (from, to) = (RepositoryId(0), RepositoryId(1));
    let order = Move { partition: 0, from, to, epoch: 1, has };
    let mut request = Request { agreement: Agreement::Independent, ..of_client(&stage, 1) };
    request.participants = [from, to].into_iter().collect();
    request.parts[0].task = Task::Move(Box::new(order));
    // Repository 0 keeps names, and is the source.
    assert!(hear(&mut stage, request.clone()).is_ok());
    // A move from 1 to somebody else that leaves the name service out.
    let order = Move { partition: 1, from: to, to: RepositoryId(2), epoch: 1, has };
    request.parts[0].partition = 1;
    request.parts[0].task = Task::Move(Box::new(order));
    request.participants = [to, RepositoryId(2)].into_iter().collect();
    let view = View {
        me: Address { node: NodeId(1), role: Role::Repository(to) },
        from: Address::coordinator(CLIENT),
        sender: Sender::CLIENT,
        catalog: &stage.catalog,
        settings: &stage.settings,
    };
    let message = Message::Request(Arc::new(request));
    assert_eq!(Granola::judge(&message, view), Err(Rejection::Catalog));
}
