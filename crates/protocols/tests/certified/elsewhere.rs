//! A coordinator whose site is lost asks the others, and takes one end for each commit.

use std::sync::Arc;

use muesli_broadcast::epochs::MemberName;
use muesli_core::options::CLIENT_LEASE_LEAST;
use muesli_core::parts::single_repository::UNSETTLED_MAX;
use muesli_core::procedure::{Call, Class, Fragment, Place};
use muesli_core::{
    Abort, Address, Answer, Catalog, Decision, Effect, Effects, Envelope, Environment, Failure,
    Nanos, Node, NodeId, Outcome, Procedure, ProcedureId, Procedures, RepositoryId, Role, Sender,
    Settings, SmallBytes, SpaceId, SpaceOptions, Step, Stop, Store, Timestamp, Txn, TxnId,
    TxnOptions,
};
use muesli_protocols::certified::message::command::CallsEnd;
use muesli_protocols::certified::message::moment::{CutBound, ReadMoment};
use muesli_protocols::certified::message::{FoundKey, KeysReply, SiteSnapshot};
use muesli_protocols::certified::{Certified, Message, Switches};

const CLIENT: NodeId = NodeId(77);
const SITES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];
/// No site is asked.
const NOBODY: [u16; 0] = [];
/// The site that this client's transactions are run at.
const OWN: u16 = 77 % 3;

fn nothing(_: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    Ok(SmallBytes::EMPTY)
}

/// What the client's node has said: to which site, and what.
#[derive(Debug, PartialEq)]
enum Asked {
    Commit { site: u16, txn: TxnId, settled_below: u64, member: Option<MemberName> },
    Question { site: u16, txn: TxnId, settled_below: u64, member: Option<MemberName> },
}

/// A client's node, which calls a procedure.
struct Client {
    node: Node<Certified>,
    effects: Effects<Certified>,
}

impl Client {
    fn new() -> Client {
        Client::under(&Switches::default())
    }

    fn under(switches: &Switches) -> Client {
        Client::of_incarnation(1, switches)
    }

    fn of_incarnation(incarnation: u32, switches: &Switches) -> Client {
        let catalog = Catalog::new(&SITES, 1, &SITES).unwrap().with_visiting_coordinators();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let procedures = Procedures::default().with("nothing", 1, Procedure::new(nothing));
        let settings = Arc::new(Settings { procedures, ..Settings::default() });
        let node = Node::new(CLIENT, incarnation, Arc::new(catalog), settings, switches);
        let now = Nanos::from_millis(1);
        Client { node, effects: Effects::new(Environment { now, ..Environment::default() }) }
    }

    /// Calls the procedure; the commit that is asked for.
    fn call(&mut self) -> TxnId {
        match &self.asks_for_call()[..] {
            [Asked::Commit { site: OWN, txn, .. }] => *txn,
            other => panic!("{other:?}"),
        }
    }

    fn asks_for_call(&mut self) -> Vec<Asked> {
        let procedure = ProcedureId { name: "nothing".into(), version: 1 };
        let place = Place::Repository(RepositoryId(0));
        let fragments = vec![Fragment { procedure, place, arguments: SmallBytes::EMPTY }];
        let call = Call { class: Class::Independent, fragments };
        let step = self.node.invoke(TxnOptions::default(), call, &mut self.effects);
        assert!(matches!(step, Step::Wait(_)));
        self.asked()
    }

    fn asked(&mut self) -> Vec<Asked> {
        let sent = std::mem::take(&mut self.effects.list).into_iter();
        let sent = sent.filter_map(|effect| match effect {
            Effect::Send { envelope, .. } => Some(envelope),
            _ => None,
        });
        let asked = sent.filter_map(|Envelope { to, message, .. }| {
            let Role::Repository(RepositoryId(site)) = to.role else { return None };
            match message {
                Message::Commit { settled_below, member, command, .. } => {
                    Some(Asked::Commit { site, txn: command.txn, settled_below, member })
                }
                Message::Ask { txn, settled_below, member } => {
                    Some(Asked::Question { site, txn, settled_below, member })
                }
                _ => None,
            }
        });
        asked.collect()
    }

    /// The sites that are asked what has become of a commit, as time goes on.
    fn questions(&mut self, from_ms: u64) -> Vec<u16> {
        self.effects.now = Nanos::from_millis(from_ms);
        self.node.timer(Role::Coordinator, 0, &mut self.effects);
        let asked = self.asked().into_iter();
        let site = |asked| match asked {
            Asked::Question { site, .. } => Some(site),
            Asked::Commit { .. } => None,
        };
        asked.filter_map(site).collect()
    }

    fn receives(&mut self, site: u16, message: Message) {
        let from = Address::repository(SITES[usize::from(site)], RepositoryId(site));
        let envelope = Envelope { from, to: Address::coordinator(CLIENT), message };
        self.node.receive(Sender::Member, envelope, &mut self.effects).expect("it can be");
    }

    fn ended(&mut self, site: u16, txn: TxnId, decision: Decision, calls: Option<CallsEnd>) {
        let member = MemberName(u64::from(site));
        self.receives(site, Message::Ended { txn, decision, calls, member });
    }

    /// Time goes on.
    fn waits(&mut self) {
        self.effects.now = self.effects.now + Nanos(1);
    }

    /// A transaction that only reads asks for a key: by this request, at this moment.
    fn asks_for_a_key(&mut self) -> (Txn, u64, ReadMoment) {
        self.waits();
        let options = TxnOptions { read_only: true, ..TxnOptions::default() };
        let txn = self.node.begin(options, &mut self.effects).expect("it begins");
        self.effects.list.clear();
        assert!(matches!(
            self.node.get(txn, SpaceId(0), &"a".into(), &mut self.effects),
            Step::Wait(_)
        ));
        let sent = self.effects.list.iter().find_map(|effect| match effect {
            Effect::Send { envelope, .. } => envelope.message.read(),
            _ => None,
        });
        let (request, _, moment) = sent.expect("it asks its site");
        self.effects.list.clear();
        (txn, request, moment)
    }

    /// A transaction that only reads, and whether it is to read at a cut that is proposed now.
    fn begins_to_read(&mut self) -> (Txn, bool) {
        let (txn, request, moment) = self.asks_for_a_key();
        let snapshot = Some(SiteSnapshot { incarnation: 1, clock: 0 });
        let (cut, found) = (Timestamp::ZERO, vec![FoundKey::ABSENT]);
        self.receives(OWN, Message::KeysReply(KeysReply { request, snapshot, cut, found }));
        self.effects.list.clear();
        let is_fresh = |bound: CutBound| bound.most == Nanos(0) && bound.waits;
        (txn, matches!(moment, ReadMoment::Cut(bound) if is_fresh(bound)))
    }

    /// Whether who begins now is to read at a cut. It does not come to read.
    fn is_behind(&mut self) -> bool {
        let (_, _, moment) = self.asks_for_a_key();
        matches!(moment, ReadMoment::Cut(_))
    }

    /// Whether the site was asked for the end of a transaction that has read.
    fn is_certified(&mut self, txn: Txn) -> bool {
        let _ = self.node.commit(txn, &mut self.effects);
        !self.asked().is_empty()
    }

    /// Whether who only reads does so at a cut from now on. It ends where it has read in any case.
    fn next_reader_needs_a_cut(&mut self) -> bool {
        let (txn, needs_a_cut) = self.begins_to_read();
        assert!(!self.is_certified(txn));
        needs_a_cut
    }

    /// Below which number all is settled, as its site is told with the next commit.
    fn settled_below_of_next(&mut self) -> u64 {
        match &self.asks_for_call()[..] {
            [Asked::Commit { settled_below, .. }] => *settled_below,
            other => panic!("{other:?}"),
        }
    }

    /// What the client is told.
    fn result(&mut self) -> Option<Result<Answer, Failure>> {
        let results = std::mem::take(&mut self.effects.list).into_iter();
        let mut results = results.filter_map(|effect| match effect {
            Effect::Complete { result, .. } => Some(result),
            _ => None,
        });
        let result = results.next();
        assert_eq!(results.next(), None, "it is told twice");
        result
    }
}

const AT: Decision = Decision::Commit(Timestamp(9));
const ABANDONED: Decision = Decision::Abort(Abort::Abandoned);

fn given() -> Option<CallsEnd> {
    Some(CallsEnd::Given { results: vec!["7".into()] })
}

#[test]
fn other_sites_are_asked_once_the_own_one_is_out_of_reach_and_the_first_end_counts() {
    let mut client = Client::new();
    let txn = client.call();
    assert_eq!(client.questions(150), NOBODY, "its site may answer yet");
    client.node.unlinked(SITES[usize::from(OWN)], &mut client.effects);
    assert_eq!(client.questions(300), [0]);
    assert_eq!(client.questions(301), NOBODY, "it is asked for a while");
    assert_eq!(client.questions(500), [1]);
    client.node.linked(SITES[usize::from(OWN)], &mut client.effects);
    assert_eq!(client.questions(700), [0], "others were asked before");
    client.ended(1, txn, AT, given());
    let result = client.result().expect("it is told").expect("it committed");
    assert!(matches!(result, Answer::Invoked(it) if it.results == ["7".into()]));
    client.ended(OWN, txn, ABANDONED, None);
    assert_eq!(client.result(), None);
    assert_eq!(client.questions(900), NOBODY);
}

#[test]
fn a_site_that_is_silent_for_long_is_not_the_only_one_that_is_asked() {
    let mut client = Client::new();
    client.call();
    let patience = Settings::default().in_doubt_after.as_millis() * 5;
    assert_eq!(client.questions(patience), NOBODY);
    assert_eq!(client.questions(patience + 1), [0]);
}

#[test]
fn what_is_asked_of_a_member_names_it_and_says_what_is_settled() {
    let mut client = Client::new();
    let first = client.call();
    client.ended(OWN, first, AT, given());
    assert!(client.result().is_some());
    let second = client.call();
    client.node.unlinked(SITES[usize::from(OWN)], &mut client.effects);
    client.effects.now = Nanos::from_millis(300);
    client.node.timer(Role::Coordinator, 0, &mut client.effects);
    let (settled_below, member) = (second.sequence, Some(MemberName(u64::from(OWN))));
    let again = Asked::Commit { site: OWN, txn: second, settled_below, member };
    let question = Asked::Question { site: 0, txn: second, settled_below, member };
    assert_eq!(client.asked(), [again, question]);
}

#[test]
fn a_client_is_told_that_it_committed_where_the_answer_is_not_kept() {
    let mut client = Client::new();
    let txn = client.call();
    client.ended(0, txn, AT, None);
    assert_eq!(client.result(), Some(Err(Failure::AnswerLost)));
}

#[test]
fn an_abandoned_commit_is_believed_for_the_shortest_lease_that_a_site_may_have() {
    let lease = CLIENT_LEASE_LEAST.as_millis();
    assert!(lease < Settings::default().client_lease.as_millis());
    for (now, result) in
        [(lease - 1, Some(Err(Failure::Aborted(Abort::Abandoned)))), (lease + 1, None)]
    {
        let mut client = Client::new();
        let txn = client.call();
        client.effects.now = Nanos::from_millis(now);
        client.ended(0, txn, ABANDONED, None);
        assert_eq!(client.result(), result, "after {now} ms");
    }
}

#[test]
fn the_outcome_is_learnt_from_another_site_after_the_client_was_told_that_nobody_knows() {
    let mut client = Client::new();
    let txn = client.call();
    let member = MemberName(u64::from(OWN));
    client.receives(OWN, Message::NotKnown { txn, member });
    assert_eq!(client.result(), None, "others may know");
    assert_eq!(client.questions(200), [0], "its site does not");
    client.effects.now = Nanos::from_millis(20_000);
    client.node.timer(Role::Coordinator, 0, &mut client.effects);
    assert!(matches!(client.result(), Some(Err(Failure::Unknown { .. }))));
    assert!(matches!(client.node.outcome(txn), Outcome::NotKnown(_)));
    assert_eq!(client.questions(20_200).len(), 1);
    client.ended(1, txn, AT, given());
    assert!(matches!(client.node.outcome(txn), Outcome::Committed(it) if it.at == Timestamp(9)));
    assert_eq!(client.result(), None);
}

#[test]
fn a_site_speaks_as_a_member_of_its_own() {
    let mut client = Client::new();
    let txn = client.call();
    let (decision, calls, member) = (AT, given(), MemberName(1));
    let message = Message::Ended { txn, decision, calls, member };
    let from = Address::repository(SITES[0], RepositoryId(0));
    let envelope = Envelope { from, to: Address::coordinator(CLIENT), message };
    assert!(client.node.receive(Sender::Member, envelope, &mut client.effects).is_err());
}

/// The mistake: a seed of `muesli sim ycsb --protocol certified-multipaxos` had a session that did
/// not see its own commit at a site which had just said that another one was abandoned.
#[test]
fn who_only_reads_needs_a_cut_where_its_site_may_lack_what_another_one_answered() {
    let mut client = Client::under(&Switches::multipaxos());
    assert!(!client.next_reader_needs_a_cut());
    let early = client.call();
    client.waits();
    let seen = client.call();
    client.ended(0, seen, AT, given());
    let (reader, needs_a_cut) = client.begins_to_read();
    assert!(needs_a_cut, "its site may not have applied it");
    client.ended(OWN, early, AT, given());
    let abandoned = client.call();
    client.ended(OWN, abandoned, ABANDONED, None);
    assert!(!client.is_certified(reader));
    assert!(!client.next_reader_needs_a_cut(), "its site has made a cut since");
}

/// Where commits have one order, a commit that a site has applied says as much as a cut.
#[test]
fn a_commit_shows_that_a_site_has_come_as_far_where_there_is_one_order() {
    for (switches, needs_a_cut) in [(Switches::multipaxos(), false), (Switches::alvin_eus(), true)]
    {
        let mut client = Client::under(&switches);
        let early = client.call();
        client.waits();
        let seen = client.call();
        client.ended(0, seen, AT, given());
        client.ended(OWN, early, AT, given());
        assert!(client.is_behind(), "that one was asked for before");
        let behind = client.call();
        client.ended(OWN, behind, AT, given());
        assert_eq!(client.is_behind(), needs_a_cut);
    }
}

/// Sites refuse what is further ahead of all that is settled than they keep ends.
#[test]
fn one_commit_of_which_nobody_knows_is_not_in_the_way_of_those_behind_it() {
    let mut client = Client::new();
    let lost = client.call();
    client.effects.now = Nanos::from_millis(20_000);
    client.node.timer(Role::Coordinator, 0, &mut client.effects);
    assert!(matches!(client.result(), Some(Err(Failure::Unknown { .. }))));
    let ends_next = |client: &mut Client| {
        let txn = client.call();
        client.ended(OWN, txn, AT, given());
        client.effects.list.clear();
    };
    (0..UNSETTLED_MAX / 2 - 1).for_each(|_| ends_next(&mut client));
    assert_eq!(client.settled_below_of_next(), lost.sequence);
    ends_next(&mut client);
    assert!(client.settled_below_of_next() > UNSETTLED_MAX / 2);
    assert!(matches!(client.node.outcome(lost), Outcome::NotKnown(_)), "not any more");
}

#[test]
fn who_has_asked_a_lost_site_for_nothing_leaves_it() {
    let mut client = Client::under(&Switches::multipaxos());
    let begin = |client: &mut Client, read_only| {
        let options = TxnOptions { read_only, ..TxnOptions::default() };
        client.node.begin(options, &mut client.effects).expect("it begins")
    };
    let (writer, reader) = (begin(&mut client, false), begin(&mut client, true));
    let (key, value) = ("a".into(), Some("1".into()));
    client.node.put(writer, SpaceId(0), key, value, &mut client.effects).expect("it is open");
    client.node.unlinked(SITES[usize::from(OWN)], &mut client.effects);
    client.effects.list.clear();
    let _ = client.node.commit(writer, &mut client.effects);
    assert!(matches!(client.asked()[..], [Asked::Commit { site: 0, .. }]));
    let _ = client.node.get(reader, SpaceId(0), &"a".into(), &mut client.effects);
    let sent = client.effects.list.iter().find_map(|effect| match effect {
        Effect::Send { envelope, .. } => Some((envelope.to.node, envelope.message.read()?.2)),
        _ => None,
    });
    assert!(matches!(sent, Some((node, ReadMoment::Cut(_))) if node == SITES[0]), "{sent:?}");
}

/// A site may answer a read of an earlier incarnation, as that waited for a cut.
#[test]
fn requests_of_an_earlier_incarnation_have_other_numbers() {
    let requests = |incarnation| {
        let mut client = Client::of_incarnation(incarnation, &Switches::default());
        [(); 3].map(|()| client.asks_for_a_key().1)
    };
    let (earlier, now) = (requests(1), requests(2));
    assert!(earlier.iter().all(|it| !now.contains(it)), "{earlier:?}, and {now:?}");
}
