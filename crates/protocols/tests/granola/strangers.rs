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
use muesli_protocols::granola::{Granola, GranolaSwitch, Rules};
use muesli_protocols::two_phase::Sabotage;

use super::procedures::{SPACE, key};
use super::steps::{Stage, txn, vote};

/// No node of the catalog.
const CLIENT: NodeId = NodeId(77);

/// A request of a client.
fn of_client(stage: &Stage, sequence: u64) -> Request {
    let txn = TxnId { node: CLIENT, ..txn(sequence) };
    Request { txn, ..stage.request(sequence, Agreement::Alone, &[0]) }
}

/// Judges a client's message as a node does, and takes it if it may.
fn hear(stage: &mut Stage, request: Request) -> Result<Vec<Message>, Rejection> {
    add_data(stage, request, Sender::CLIENT)
}

fn add_data(
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

fn refused(said: &[Message]) -> Option<&Refusal> {
    said.iter().find_map(|message| match message {
        Message::Reply { end: ReplyOutcome::Refused { refusal, .. }, .. } => Some(refusal),
        _ => None,
    })
}

fn is_done(said: &[Message]) -> bool {
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

/// A transaction of a client is done in which participants told each other 500 bytes, and the
/// client is killed; how many bytes are held a lease later, and whom the repository asks about.
fn told_to_one_that_is_gone() -> (Stage, u64, Vec<Message>) {
    let mut stage = Stage::new(Rules::telling());
    (stage.now, stage.settings.memory) = (Nanos(1), Memory::default());
    let space = stage.catalog.space_named(SPACE).unwrap();
    let mut request = stage.request(1, Agreement::Independent, &[0, 1]);
    request.txn.node = CLIENT;
    for (part, at) in request.parts.iter_mut().zip([0, 1]) {
        let is_there = |it: &u8| stage.catalog.partition(space, &key(*it)) == at;
        let own = (0..).find(is_there).unwrap();
        let procedure = ProcedureId { name: "share".into(), version: 1 };
        let arguments = SmallBytes::new(&[1, own]);
        part.task = Task::Call { procedure, arguments, tells: true, spaces: 1 };
    }
    let (txn, repository) = (request.txn, RepositoryId(1));
    stage.receive(Message::Request(Arc::new(request)));
    let ballot = TimestampVote::Commit(Timestamp::new(1_000, repository));
    stage.receive(Message::Vote { txn, repository, ballot, about: 0, tag: 0, order: None });
    let zero = Timestamp::ZERO;
    let value = Some(SmallBytes::from(vec![0; 500]));
    let found = FoundVersion { version: zero, value, collected: zero };
    let told = vec![(1, vec![(space, stage.key_in(1), found)])];
    assert!(is_done(&stage.receive(Message::Tell { txn, told })));
    stage.now = Nanos(2 * Settings::default().client_lease.0);
    let asked =
        stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
    let held = stage.settings.memory.held().all;
    (stage, held, asked)
}

#[test]
fn what_a_client_that_is_gone_was_told_goes_when_nobody_waits_for_it() {
    for waits in [true, false] {
        let (mut stage, before, asked) = told_to_one_that_is_gone();
        let [Message::AskDoubts { asked, clients }] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(clients[..], [(CLIENT, 2)]);
        let clients = if waits { Vec::new() } else { clients.clone() };
        let (repository, asked) = (RepositoryId(1), *asked);
        stage.receive(Message::NoDoubts { repository, asked, clients });
        stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
        let freed = before - stage.settings.memory.held().all;
        assert_eq!(freed > 500, !waits, "{freed} bytes are free");
        let kept = (stage.participant.remembered(), stage.participant.known_coordinators());
        assert_eq!(kept, if waits { (1, 1) } else { (0, 0) });
    }
}

/// A client's transaction was done, the client was killed, and nobody waits for it: it is
/// forgotten. Then a copy of its request comes.
fn copy_of_one_that_is_forgotten(rules: Rules) -> (Stage, Vec<Message>) {
    let mut stage = Stage::new(rules);
    stage.now = Nanos(1);
    let request = of_client(&stage, 1);
    assert!(is_done(&hear(&mut stage, request.clone()).unwrap()));
    stage.now = Nanos(2 * Settings::default().client_lease.0);
    let asked =
        stage.step(|participant, cx| participant.timer(GranolaParticipantTimer::Silent, cx));
    let [Message::AskDoubts { asked, clients }] = &asked[..] else { panic!("{asked:?}") };
    let (repository, asked, clients) = (RepositoryId(1), *asked, clients.clone());
    stage.receive(Message::NoDoubts { repository, asked, clients });
    assert_eq!(stage.participant.known_coordinators(), 0);
    let said = stage.receive(Message::Request(Arc::new(request)));
    (stage, said)
}

#[test]
fn what_was_forgotten_is_not_done_a_second_time() {
    for rules in [Rules::default(), Rules::locking(), Rules::sinfonia()] {
        let (mut stage, said) = copy_of_one_that_is_forgotten(rules);
        let end = said.iter().find_map(|message| match message {
            Message::Reply { end, .. } => Some(end.clone()),
            _ => None,
        });
        let Some(ReplyOutcome::Refused { at, refusal }) = end else { panic!("{said:?}") };
        assert_eq!(refusal, Refusal::Aborted(Abort::Forgotten));
        // Another transaction, of a session that has seen as much, is done.
        let above = Request { floor: at, ..of_client(&stage, 2) };
        let issued = Sender::Client { issued: stage.participant.issued() };
        assert!(is_done(&add_data(&mut stage, above, issued).unwrap()));
        let below = of_client(&stage, 3);
        assert!(!is_done(&hear(&mut stage, below).unwrap()));
    }
}

#[test]
fn a_repository_that_takes_up_what_it_forgot_is_noticed() {
    let rules = Rules::broken(GranolaSwitch::RefusesForgotten);
    let (_, said) = copy_of_one_that_is_forgotten(rules);
    assert!(is_done(&said), "it is done a second time: {said:?}");
}

#[test]
fn a_checkpoint_knows_what_was_forgotten() {
    let (mut stage, _) = copy_of_one_that_is_forgotten(Rules::default());
    let mut cursor = stage.participant.begin_checkpoint().expect("it has checkpoints");
    let mut pieces = Vec::new();
    loop {
        let mut piece = Vec::new();
        if !stage.participant.checkpoint_piece(&mut cursor, 100, &mut piece) {
            break;
        }
        pieces.push(piece);
    }
    stage.crash(0);
    stage.step(|participant, cx| {
        for piece in &pieces {
            participant.restore(piece, cx).expect("a piece of a checkpoint");
        }
    });
    for of in [CLIENT, NodeId(78)] {
        let late = of_client(&stage, 9);
        let late = Request { txn: TxnId { node: of, ..late.txn }, ..late };
        let said = hear(&mut stage, late).unwrap();
        assert_eq!(refused(&said), Some(&Refusal::Aborted(Abort::Forgotten)), "{said:?}");
    }
}

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
