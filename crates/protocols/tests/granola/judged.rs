//! Each rule by which a message of another process is left out has a message here that breaks that
//! rule alone: the same message is taken where it does not.

use std::sync::Arc;

use muesli_core::ranges::KeyRange;
use muesli_core::{
    Address, NodeId, Protocol, Rejection, RepositoryId, Role, Sender, ServiceId, ServiceKind,
    SmallBytes, SpaceId, Timestamp, TxnId, View,
};
use muesli_protocols::granola::message::{
    Agreement, Fetched, Followed, FoundVersion, Install, Load, Message, News, Noted, Owners,
    PartAnswer, ReplyOutcome, Request, SeenRange, Task, TimestampVote, VoteOrder, WatchedReads,
};
use muesli_protocols::granola::{Granola, Switches};

use super::procedures::SPACE;
use super::steps::{Harness, txn};

const HERE: RepositoryId = RepositoryId(0);
const THERE: RepositoryId = RepositoryId(1);
const FAR: Timestamp = Timestamp::MAX;
const AT: Timestamp = Timestamp(65);
/// More of anything than a message may have.
const TOO_MANY: usize = 100_000;

fn coordinator() -> Address {
    Address::coordinator(NodeId(1))
}

fn repository() -> Address {
    Address::repository(NodeId(1), THERE)
}

/// What the node makes of a member's message to its repository.
fn at_repository(from: Address, message: &Message) -> Result<(), Rejection> {
    judged(Role::Repository(HERE), from, message, &[])
}

/// The same, to its coordinator.
fn at_coordinator(from: Address, message: &Message) -> Result<(), Rejection> {
    judged(Role::Coordinator, from, message, &[])
}

fn judged(
    role: Role,
    from: Address,
    message: &Message,
    masters: &[NodeId],
) -> Result<(), Rejection> {
    let harness = Harness::new(Switches::default());
    let catalog = harness.catalog.clone().with_masters(masters);
    let (me, settings) = (Address { node: NodeId(0), role }, &harness.settings);
    let view = View { me, from, sender: Sender::Member, catalog: &catalog, settings };
    Granola::judge(message, view)
}

fn asks(request: Request) -> Result<(), Rejection> {
    at_repository(coordinator(), &Message::Request(Arc::new(request)))
}

fn alone() -> Request {
    Harness::new(Switches::default()).request(1, Agreement::Alone, &[0])
}

fn of_both() -> Request {
    Harness::new(Switches::default()).request(1, Agreement::Independent, &[0, 1])
}

fn space() -> SpaceId {
    Harness::new(Switches::default()).catalog.space_named(SPACE).unwrap()
}

fn key_in(partition: u16) -> SmallBytes {
    Harness::new(Switches::default()).key_in(partition)
}

fn doing(task: Task) -> Request {
    let mut request = alone();
    request.parts[0].task = task;
    request
}

fn installing(install: Install) -> Request {
    doing(Task::Install(Box::new(install)))
}

fn unknown_range() -> KeyRange {
    KeyRange { space: SpaceId(9), lo: SmallBytes::EMPTY, hi: None }
}

fn beyond() -> TxnId {
    TxnId { sequence: TxnId::SEQUENCE_MAX + 1, ..txn(1) }
}

#[test]
fn a_request_is_of_its_owner_to_who_takes_part() {
    let message = |request| Message::Request(Arc::new(request));
    assert_eq!((asks(alone()), asks(of_both())), (Ok(()), Ok(())));
    assert_eq!(at_repository(repository(), &message(alone())), Err(Rejection::Sender));
    let foreign = Request { txn: TxnId { node: NodeId(77), ..txn(1) }, ..alone() };
    assert_eq!(asks(foreign), Err(Rejection::Sender));
    let elsewhere = Harness::new(Switches::default()).request(1, Agreement::Alone, &[1]);
    assert_eq!(asks(elsewhere), Err(Rejection::Role));
    let no_master = at_coordinator(coordinator(), &message(alone()));
    assert_eq!(no_master, Err(Rejection::Role), "it was not asked to decide");
    let service = Role::Service(ServiceId::new(ServiceKind::Validator, 0));
    let to_service = judged(service, coordinator(), &message(alone()), &[]);
    assert_eq!(to_service, Err(Rejection::Role));
}

#[test]
fn a_master_passes_on_what_it_was_asked_to_decide() {
    let (master, owner) = (NodeId(1), TxnId { node: NodeId(77), ..txn(1) });
    let answered = |named, masters: &[NodeId]| {
        let message = Message::Request(Arc::new(Request { master: named, txn: owner, ..alone() }));
        judged(Role::Repository(HERE), Address::coordinator(master), &message, masters)
    };
    assert_eq!(answered(Some(master), &[master]), Ok(()));
    assert_eq!(answered(None, &[master]), Err(Rejection::Sender), "another one decides");
    assert_eq!(answered(Some(master), &[NodeId(5)]), Err(Rejection::Sender), "it is no master");
    let unknown = Request { master: Some(NodeId(5)), ..alone() };
    assert_eq!(asks(unknown), Err(Rejection::Catalog));
}

#[test]
fn the_numbers_of_a_request_can_be() {
    assert_eq!(asks(Request { txn: beyond(), ..alone() }), Err(Rejection::Range));
    assert_eq!(asks(Request { settled_below: 2, ..alone() }), Err(Rejection::Range));
    assert_eq!(asks(Request { lower_bound: FAR, ..alone() }), Err(Rejection::Range));
    let two_alone = Request { agreement: Agreement::Alone, ..of_both() };
    assert_eq!(asks(two_alone), Err(Rejection::Range));
    let one_with_others = Request { agreement: Agreement::Independent, ..alone() };
    assert_eq!(asks(one_with_others), Err(Rejection::Range));
    assert_eq!(
        asks(Request { follower_read: true, ..alone() }),
        Err(Rejection::Range),
        "it writes"
    );
    let reads = Request { read_only: true, ..doing(Task::Read(Vec::new())) };
    assert_eq!(asks(Request { follower_read: true, ..reads }), Ok(()));
    assert_eq!(asks(Request { read_only: true, ..alone() }), Err(Rejection::Range));
}

/// A request that nobody takes part in comes to no repository, but one may ask another about it.
#[test]
fn a_question_is_about_a_request_that_can_be() {
    let ask = |request: Request, repository, ballot| {
        let request = Arc::new(request);
        at_repository(self::repository(), &Message::Ask { request, repository, ballot })
    };
    let commit = |at| TimestampVote::Commit(at);
    assert_eq!(ask(of_both(), THERE, commit(AT)), Ok(()));
    assert_eq!(ask(of_both(), HERE, commit(AT)), Err(Rejection::Sender));
    assert_eq!(ask(of_both(), THERE, commit(FAR)), Err(Rejection::Range));
    let nobody = Request { participants: [].into_iter().collect(), ..of_both() };
    assert_eq!(ask(nobody, THERE, commit(AT)), Err(Rejection::Range));
}

#[test]
fn what_is_written_is_written_by_all_who_hold_it() {
    let mut short = of_both();
    short.agreement = Agreement::Alone;
    short.participants = [HERE].into_iter().collect();
    assert_eq!(asks(short), Err(Rejection::Catalog));
    let owned = |holders: &[RepositoryId]| {
        let mut request = alone();
        let holders = holders.iter().copied().collect();
        request.parts[0].owners = Some(Arc::new(Owners { epoch: 1, holders }));
        asks(request)
    };
    assert_eq!(owned(&[HERE]), Ok(()));
    assert_eq!(owned(&[HERE, THERE]), Err(Rejection::Catalog), "more than there are copies");
    assert_eq!(owned(&[]), Err(Rejection::Catalog));
}

#[test]
fn a_part_is_about_keys_of_its_partition() {
    let reads = |partition| doing(Task::Read(vec![(space(), key_in(partition))]));
    assert_eq!((asks(reads(0)), asks(reads(1))), (Ok(()), Err(Rejection::Catalog)));
    let scan = Task::Scan { range: unknown_range(), reverse: false, limit: 1 };
    assert_eq!(asks(doing(scan)), Err(Rejection::Catalog));
    let read = |partition, at| {
        let reads = vec![(space(), key_in(partition), at)];
        asks(installing(Install { reads, ..Install::default() }))
    };
    assert_eq!(read(0, AT), Ok(()));
    assert_eq!(read(1, AT), Err(Rejection::Catalog));
    assert_eq!(read(0, FAR), Err(Rejection::Range));
    let seen = |range, at| {
        let scans = vec![SeenRange { range, at, live: 0 }];
        asks(installing(Install { scans, ..Install::default() }))
    };
    let known = || KeyRange { space: space(), ..unknown_range() };
    assert_eq!(seen(known(), AT), Ok(()));
    assert_eq!(seen(unknown_range(), AT), Err(Rejection::Catalog));
    assert_eq!(seen(known(), FAR), Err(Rejection::Range));
    let written = |keys: &[SmallBytes]| {
        let writes = keys.iter().map(|key| (space(), key.clone(), None)).collect();
        asks(installing(Install { writes, ..Install::default() }))
    };
    assert_eq!(written(&[key_in(0)]), Ok(()));
    assert_eq!(written(&[key_in(1)]), Err(Rejection::Catalog));
    assert_eq!(written(&[key_in(0), key_in(0)]), Err(Rejection::Range), "written twice");
}

#[test]
fn a_vote_is_of_the_repository_that_it_names_and_its_numbers_can_be() {
    let vote = |txn, repository, ballot, order| {
        let message = Message::Vote { txn, repository, ballot, about: 0, tag: 0, order };
        at_repository(self::repository(), &message)
    };
    let commit = || TimestampVote::Commit(AT);
    assert_eq!(vote(txn(1), THERE, commit(), None), Ok(()));
    assert_eq!(vote(txn(1), HERE, commit(), None), Err(Rejection::Sender));
    assert_eq!(vote(beyond(), THERE, commit(), None), Err(Rejection::Range));
    for far in [TimestampVote::Commit(FAR), TimestampVote::Moved(FAR)] {
        assert_eq!(vote(txn(1), THERE, far, None), Err(Rejection::Range));
    }
    let order = |stream, number| vote(txn(1), THERE, commit(), Some(VoteOrder { stream, number }));
    assert_eq!(order(AT, 1), Ok(()));
    for (stream, number) in [(FAR, 1), (Timestamp::ZERO, 1), (AT, u64::MAX)] {
        assert_eq!(order(stream, number), Err(Rejection::Range), "{stream} {number}");
    }
}

#[test]
fn who_counts_the_votes_decides() {
    let decide = |txn, at| {
        let ballot = TimestampVote::Commit(at);
        Message::Decide { txn, ballot, shown: Vec::new() }
    };
    let foreign = TxnId { node: NodeId(77), ..txn(1) };
    assert_eq!(at_repository(coordinator(), &decide(txn(1), AT)), Ok(()));
    assert_eq!(at_repository(repository(), &decide(txn(1), AT)), Err(Rejection::Sender));
    assert_eq!(at_repository(coordinator(), &decide(foreign, AT)), Err(Rejection::Sender));
    let master = judged(Role::Repository(HERE), coordinator(), &decide(foreign, AT), &[NodeId(1)]);
    assert_eq!(master, Ok(()));
    assert_eq!(at_repository(coordinator(), &decide(beyond(), AT)), Err(Rejection::Range));
    assert_eq!(at_repository(coordinator(), &decide(txn(1), FAR)), Err(Rejection::Range));
    assert_eq!(at_coordinator(coordinator(), &decide(txn(1), AT)), Err(Rejection::Role));
}

#[test]
fn repositories_send_messages_under_their_own_names() {
    let order = VoteOrder { stream: AT, number: 1 };
    let position = |repository, at, voted| Message::Position { repository, order, at, voted };
    let gone = |count| vec![(NodeId(77), 1); count];
    let tell = |txn| Message::Tell { txn, shared: Vec::new() };
    let ask_doubts = |count| Message::AskDoubts { asked: 1, clients: gone(count) };
    let no_doubts =
        |repository, count| Message::NoDoubts { repository, asked: 1, clients: gone(count) };
    let fetch = |repository, has| Message::Fetch { repository, partition: 0, has };
    let honest = [
        tell(txn(1)),
        ask_doubts(1),
        no_doubts(THERE, 1),
        Message::WhichPosition { repository: THERE },
        position(THERE, AT, vec![txn(1)]),
        fetch(THERE, Fetched::default()),
    ];
    for message in &honest {
        assert_eq!(at_repository(repository(), message), Ok(()), "{message:?}");
        assert_eq!(at_repository(coordinator(), message), Err(Rejection::Sender), "{message:?}");
        assert_eq!(at_coordinator(repository(), message), Err(Rejection::Role), "{message:?}");
    }
    let disguised = [
        no_doubts(HERE, 1),
        Message::WhichPosition { repository: HERE },
        position(HERE, AT, vec![]),
        fetch(HERE, Fetched::default()),
    ];
    for message in &disguised {
        assert_eq!(at_repository(repository(), message), Err(Rejection::Sender), "{message:?}");
    }
    let out_of_range = [
        tell(beyond()),
        ask_doubts(TOO_MANY),
        no_doubts(THERE, TOO_MANY),
        position(THERE, FAR, vec![]),
        position(THERE, AT, vec![beyond()]),
        Message::Position {
            repository: THERE,
            order: VoteOrder { number: u64::MAX, ..order },
            at: AT,
            voted: vec![],
        },
        fetch(THERE, Fetched { changes: u64::MAX, ..Fetched::default() }),
        fetch(THERE, Fetched { pieces: u32::MAX, ..Fetched::default() }),
        fetch(THERE, Fetched { stream: FAR, ..Fetched::default() }),
        fetch(THERE, Fetched { source: FAR, ..Fetched::default() }),
    ];
    for message in &out_of_range {
        assert_eq!(at_repository(repository(), message), Err(Rejection::Range), "{message:?}");
    }
}

#[test]
fn what_is_loaded_has_numbers_that_can_be() {
    let load = |repository, stream, source, load| {
        let message = Message::Load { repository, partition: 0, stream, source, load };
        at_repository(self::repository(), &message)
    };
    let piece = |number, at| Load::Piece { number, keys: vec![(space(), key_in(0), at, None)] };
    let changes = |from, all: &[Timestamp]| {
        let changes = all.iter().map(|at| (*at, Vec::new())).collect();
        Load::Changes { from, changes, whole: false }
    };
    let honest = [piece(1, AT), changes(1, &[AT, Timestamp(66)]), Load::Unknown];
    for it in honest {
        assert_eq!(load(THERE, AT, AT, it), Ok(()));
    }
    assert_eq!(load(HERE, AT, AT, Load::Unknown), Err(Rejection::Sender));
    assert_eq!(load(THERE, FAR, AT, Load::Unknown), Err(Rejection::Range));
    assert_eq!(load(THERE, AT, FAR, Load::Unknown), Err(Rejection::Range));
    for it in [
        piece(u32::MAX, AT),
        piece(1, FAR),
        changes(u64::MAX, &[]),
        changes(1, &[AT, AT]),
        changes(1, &[Timestamp(66), AT]),
        changes(1, &[FAR]),
    ] {
        assert_eq!(load(THERE, AT, AT, it.clone()), Err(Rejection::Range), "{it:?}");
    }
}

#[test]
fn a_coordinator_follows_and_gets_news() {
    let follow = |upto| Message::Follow { has: Followed { stream: 1, pieces: 0, upto } };
    assert_eq!(at_repository(coordinator(), &follow(AT)), Ok(()));
    assert_eq!(at_repository(coordinator(), &follow(FAR)), Err(Rejection::Range));
    assert_eq!(at_repository(repository(), &follow(AT)), Err(Rejection::Sender));
    assert_eq!(at_coordinator(coordinator(), &follow(AT)), Err(Rejection::Role));
    let news = |repository, news| {
        at_coordinator(self::repository(), &Message::News { repository, stream: 1, news })
    };
    let piece = |number| News::Piece { number, bytes: SmallBytes::EMPTY };
    let changes = |upto, all: &[Timestamp]| {
        let changes = all.iter().map(|at| (*at, Vec::new())).collect();
        News::Changes { upto, changes, held: Vec::new() }
    };
    assert_eq!(news(THERE, piece(1)), Ok(()));
    assert_eq!(news(THERE, changes(AT, &[AT])), Ok(()));
    assert_eq!(news(HERE, News::Unknown), Err(Rejection::Sender));
    for it in [piece(u32::MAX), changes(FAR, &[]), changes(AT, &[AT, AT]), changes(AT, &[FAR])] {
        assert_eq!(news(THERE, it.clone()), Err(Rejection::Range), "{it:?}");
    }
}

#[test]
fn a_coordinator_watches_what_can_have_been_read_and_a_repository_tells_it() {
    let watch = |reads, scans| {
        let reads = Box::new(WatchedReads { reads, scans });
        Message::Watch { request: 1, reads }
    };
    let key = |at| watch(vec![(space(), key_in(0), at)], Vec::new());
    let range = |range, at| watch(Vec::new(), vec![(0, SeenRange { range, at, live: 0 })]);
    let known = || KeyRange { space: space(), ..unknown_range() };
    let unwatch = Message::Unwatch { request: 1 };
    for message in [key(AT), range(known(), AT), unwatch] {
        assert_eq!(at_repository(coordinator(), &message), Ok(()), "{message:?}");
        assert_eq!(at_repository(repository(), &message), Err(Rejection::Sender), "{message:?}");
        assert_eq!(at_coordinator(coordinator(), &message), Err(Rejection::Role), "{message:?}");
    }
    assert_eq!(at_repository(coordinator(), &key(FAR)), Err(Rejection::Range));
    assert_eq!(at_repository(coordinator(), &range(known(), FAR)), Err(Rejection::Range));
    assert_eq!(at_repository(coordinator(), &range(unknown_range(), AT)), Err(Rejection::Catalog));
    let changed = |repository| Message::Changed { repository, request: 1 };
    assert_eq!(at_coordinator(repository(), &changed(THERE)), Ok(()));
    assert_eq!(at_coordinator(repository(), &changed(HERE)), Err(Rejection::Sender));
    assert_eq!(at_coordinator(coordinator(), &changed(THERE)), Err(Rejection::Sender));
    assert_eq!(at_repository(repository(), &changed(THERE)), Err(Rejection::Role));
}

/// A reply to the coordinator of node 0.
fn reply(txn: TxnId, repository: RepositoryId, end: ReplyOutcome) -> Result<(), Rejection> {
    let message = Message::Reply { txn, repository, end, noted: Noted(None) };
    at_coordinator(self::repository(), &message)
}

fn ours() -> TxnId {
    TxnId { node: NodeId(0), ..txn(1) }
}

#[test]
fn a_reply_is_of_the_repository_that_it_names_to_the_owner() {
    assert_eq!(reply(ours(), THERE, ReplyOutcome::Conflict), Ok(()));
    assert_eq!(reply(ours(), HERE, ReplyOutcome::Conflict), Err(Rejection::Sender));
    assert_eq!(reply(txn(1), THERE, ReplyOutcome::Conflict), Err(Rejection::Sender));
    assert_eq!(reply(ours(), THERE, ReplyOutcome::Moved { at: AT }), Ok(()));
    assert_eq!(reply(ours(), THERE, ReplyOutcome::Moved { at: FAR }), Err(Rejection::Range));
    let acknowledge = |repository, txns| {
        at_coordinator(self::repository(), &Message::Acknowledge { repository, txns })
    };
    assert_eq!(acknowledge(THERE, vec![ours()]), Ok(()));
    assert_eq!(acknowledge(HERE, vec![ours()]), Err(Rejection::Sender));
    assert_eq!(acknowledge(THERE, vec![ours(), txn(1)]), Err(Rejection::Sender));
    let astray = Message::Acknowledge { repository: THERE, txns: vec![] };
    assert_eq!(at_repository(repository(), &astray), Err(Rejection::Role));
}

#[test]
fn what_a_reply_gives_can_be() {
    let done = |at, answer| {
        reply(
            ours(),
            THERE,
            ReplyOutcome::Done { at, answers: [(0, answer)].into_iter().collect() },
        )
    };
    let found = |version| FoundVersion { version, value: None, collected: Timestamp::ZERO };
    let rows = |version| PartAnswer::Rows(vec![(key_in(0), found(version))], None);
    let taken = |has| PartAnswer::Taken { has, whole: false };
    let absent = |at| PartAnswer::Absent(vec![(space(), key_in(0), at)]);
    let names = |partition, holders: &[RepositoryId]| {
        let holders = holders.iter().copied().collect();
        PartAnswer::Names(vec![(partition, Owners { epoch: 1, holders })])
    };
    assert_eq!(done(FAR, PartAnswer::Installed), Err(Rejection::Range));
    for answer in [
        PartAnswer::Installed,
        PartAnswer::Found(vec![found(AT)]),
        rows(AT),
        absent(AT),
        names(0, &[THERE]),
    ] {
        assert_eq!(done(AT, answer.clone()), Ok(()), "{answer:?}");
    }
    let far = Fetched { stream: FAR, ..Fetched::default() };
    for answer in [PartAnswer::Found(vec![found(FAR)]), rows(FAR), absent(FAR), taken(far)] {
        assert_eq!(done(AT, answer.clone()), Err(Rejection::Range), "{answer:?}");
    }
    for answer in [names(u16::MAX, &[THERE]), names(0, &[RepositoryId(9)]), names(0, &[])] {
        assert_eq!(done(AT, answer.clone()), Err(Rejection::Catalog), "{answer:?}");
    }
}
