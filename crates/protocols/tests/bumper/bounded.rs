//! No record, piece of a checkpoint or message grows with the data: long chains of versions, what
//! delayed actions leave and give, what is remembered, and transactions that read much.

use std::sync::Arc;

use muesli_core::actions::Actions;
use muesli_core::parts::votes::Votes;
use muesli_core::{
    Action, Address, Catalog, Decision, DelayedCall, Effect, Effects, Envelope, Gave, Limits, Node,
    NodeId, Procedure, ProcedureId, Procedures, RepositoryId, Settings, SmallBytes, SpaceId,
    SpaceOptions, Stop, Store, Timestamp, TxnId, Wire,
};
use muesli_protocols::bumper::{Bumper, TimeWarp, TimeWarpVote};
use muesli_protocols::two_phase::message::{Answers, Extra, Few, Mostly, Prepare, Vote};
use muesli_protocols::two_phase::{Message, Record, Time, Variant};

const SPACE: SpaceId = SpaceId(0);
const HERE: RepositoryId = RepositoryId(0);
const NODE: NodeId = NodeId(0);
/// Where the coordinator would be.
const ELSEWHERE: NodeId = NodeId(1);
const LIMITS: Limits = Limits {
    key_bytes: 100,
    value_bytes: 1_000,
    transaction_bytes: 5_000,
    page_rows: 100,
    page_bytes: 1_000,
    answer_bytes: 10_000,
    procedure_steps: 1_000,
};
/// What a record or a message has beside its transaction, in these tests.
const BESIDE: usize = 400;

/// A repository alone on its node.
struct Lone {
    node: Node<Bumper>,
    effects: Effects<Bumper>,
    log: Vec<Record<TimeWarp>>,
    sent: Vec<Message<TimeWarp>>,
    sequence: u64,
}

fn double(old: Option<&SmallBytes>, _: &SmallBytes) -> Option<SmallBytes> {
    old.map(|old| [old.as_slice(), old.as_slice()].concat().into())
}

/// Writes a thousand bytes to each key that is named, a letter each.
fn fill(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    for key in keys.as_slice() {
        store.put(SPACE, SmallBytes::new(&[*key]), Some(vec![7; 1_000].into()))?;
    }
    Ok("filled".into())
}

fn txn(sequence: u64) -> TxnId {
    TxnId { node: ELSEWHERE, incarnation: 1, sequence }
}

impl Lone {
    fn new(limits: Limits) -> Lone {
        let catalog = Catalog::new(&[NODE], 1, &[NODE, ELSEWHERE]).expect("one repository");
        let catalog = catalog.with_space("keys", SpaceOptions::default()).expect("a space");
        let settings = Settings {
            logging: true,
            limits,
            actions: Actions::default().with("double", double),
            procedures: Procedures::default().with("fill", 1, Procedure::new(fill)),
            ..Settings::default()
        };
        let node = Node::new(NODE, 1, Arc::new(catalog), Arc::new(settings), &Default::default());
        let (log, sent) = (Vec::new(), Vec::new());
        Lone { node, effects: Effects::default(), log, sent, sequence: 0 }
    }

    fn tell(&mut self, message: Message<TimeWarp>) {
        let (from, to) = (Address::coordinator(ELSEWHERE), Address::repository(NODE, HERE));
        self.node.deliver(Envelope { from, to, message }, &mut self.effects);
        for effect in std::mem::take(&mut self.effects.list) {
            match effect {
                Effect::Log { record, .. } => self.log.push(record),
                Effect::Send { envelope, .. } => self.sent.push(envelope.message),
                Effect::Complete { .. } | Effect::SetTimer { .. } => {}
            }
        }
    }

    /// A transaction that does nothing yet.
    fn empty(&mut self) -> Prepare<TimeWarp> {
        self.sequence += 1;
        let snapshot = self.node.participants()[0].1.committed();
        let participants = [HERE].into_iter().collect();
        Prepare { participants, ..Prepare::new(txn(self.sequence), snapshot, (0, 0)) }
    }

    /// One that delays actions on a key and asks what they gave.
    fn delaying(&mut self, key: &str, actions: &[Action], result_bytes: u64) -> TxnId {
        let asked = (0..actions.len() as u32).map(|at| (at, at)).collect();
        let extra = Some(Box::new(Extra { asked, result_bytes, ..Extra::default() }));
        let delayed = actions.iter().map(|action| (SPACE, key.into(), action.clone())).collect();
        let prepare = Prepare { delayed, extra, ..self.empty() };
        self.prepare(prepare)
    }

    fn prepare(&mut self, prepare: Prepare<TimeWarp>) -> TxnId {
        let txn = prepare.txn;
        self.tell(Message::Prepare(Arc::new(prepare)));
        txn
    }

    /// What it proposed; `None`: it voted no.
    fn vote(&self, of: TxnId) -> Option<TimeWarpVote> {
        self.sent.iter().rev().find_map(|message| match message {
            Message::Vote { txn, vote: Vote::Yes(yes), .. } if *txn == of => Some(*yes),
            _ => None,
        })
    }

    /// Why it said that something cannot be left to its turn.
    fn violation(&self, of: TxnId) -> Option<String> {
        self.sent.iter().find_map(|message| match message {
            Message::Ran { txn, violation: Some(why), .. } if *txn == of => {
                Some(String::from_utf8_lossy(why.as_slice()).into_owned())
            }
            _ => None,
        })
    }

    fn commit(&mut self, txn: TxnId) {
        let mut votes = Votes::from_voters([HERE]);
        votes.count(HERE, self.vote(txn).expect("it voted yes"));
        let decision =
            <<TimeWarp as Variant>::Time as Time<TimeWarp>>::decide(&Default::default(), &votes);
        assert!(matches!(decision, Decision::Commit(_)), "{decision:?}");
        self.tell(Message::Decide { txn, decision, ballots: Mostly::new() });
    }

    fn put(&mut self, key: &str, value: Vec<u8>) {
        let writes = [(SPACE, key.into(), Some(value.into()))].into_iter().collect();
        let prepare = Prepare { writes, ..self.empty() };
        let txn = self.prepare(prepare);
        self.commit(txn);
    }

    fn results_of(&self, of: TxnId) -> Option<&Answers> {
        self.sent.iter().find_map(|message| match message {
            Message::Ran { txn, answers, violation: None } if *txn == of => Some(answers),
            _ => None,
        })
    }

    fn length(&self, key: &str) -> usize {
        let versions = self.node.participants()[0].1.versions(SPACE).expect("a space in use");
        let found = versions.find(&key.into()).and_then(|it| versions.newest(it).value.cloned());
        found.map_or(0, |value| value.len())
    }

    fn pieces(&self, bytes: usize) -> Vec<Vec<u8>> {
        let mut checkpoint = self.node.begin_checkpoint(&self.effects).expect("it has them");
        let mut pieces = vec![Vec::new()];
        while self.node.checkpoint_piece(&mut checkpoint, bytes, pieces.last_mut().unwrap()) {
            pieces.push(Vec::new());
        }
        pieces.pop();
        pieces
    }

    /// Another one that begins with these pieces, and goes on with these records.
    fn restored(&self, limits: Limits, pieces: &[Vec<u8>], log: &[Record<TimeWarp>]) -> Lone {
        let mut other = Lone::new(limits);
        for piece in pieces {
            other.node.restore(piece, &mut other.effects).expect("its own piece");
        }
        for record in log {
            other.node.replay(HERE, record.clone(), &mut other.effects);
        }
        other.effects.list.clear();
        other
    }

    fn longest_sent(&self) -> usize {
        let bytes = |it: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            it(&mut out);
            out.len()
        };
        let records = self.log.iter().map(|record| bytes(&|out| record.encode(out)));
        let messages = self.sent.iter().map(|message| bytes(&|out| message.encode(out)));
        records.chain(messages).max().unwrap_or(0)
    }
}

fn nothing(gave: &Gave) -> String {
    match gave {
        Gave::Nothing(why) => String::from_utf8_lossy(why.as_slice()).into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_over_the_limit_leaves_the_value_on_all_copies_whatever_they_are_configured_with() {
    let mut lone = Lone::new(LIMITS);
    lone.put("k", vec![1; 400]);
    let double = Action::named("double", "");
    // Each alone would do: when they voted there were 400 bytes.
    let all: Vec<_> =
        (0..3).map(|_| lone.delaying("k", std::slice::from_ref(&double), 1_000)).collect();
    all.iter().for_each(|txn| lone.commit(*txn));
    assert_eq!(lone.length("k"), 800);
    assert!(
        matches!(&lone.results_of(all[0]).unwrap()[0].1, Gave::Value(Some(it)) if it.len() == 800)
    );
    for txn in &all[1..] {
        let why = nothing(&lone.results_of(*txn).unwrap()[0].1);
        let expected = "action `double` would leave a value of 1600 bytes, which is over the \
                        limit of 1000 bytes (`value_bytes_max`)";
        assert_eq!(why, expected);
    }
    for value_bytes in [500, 1_000, 3_000] {
        let other = lone.restored(Limits { value_bytes, ..LIMITS }, &[], &lone.log);
        assert_eq!(other.length("k"), 800, "configured with {value_bytes}");
    }
}

#[test]
fn what_cannot_have_more_than_it_is_given_needs_no_limit() {
    let mut lone = Lone::new(LIMITS);
    let value = vec![1; 1_000];
    let put = lone.delaying("k", &[Action::put_if_absent(value)], 0);
    lone.commit(put);
    let again = lone.delaying("k", &[Action::put_if_absent("x")], 0);
    lone.commit(again);
    assert_eq!(lone.length("k"), 1_000);
    let append = lone.delaying("k", &[Action::append("x")], 0);
    assert!(lone.vote(append).is_none(), "it would leave more");
}

#[test]
fn appends_that_may_leave_too_much_together_are_not_left_to_their_turn() {
    let mut lone = Lone::new(LIMITS);
    let append = |bytes| Action::append(vec![7; bytes]);
    let six = lone.delaying("k", &vec![append(300); 6], 1_000);
    assert!(lone.vote(six).is_none());
    let why = lone.violation(six).expect("its coordinator is told why");
    assert!(why.starts_with("action `append` would leave a value of 1200 bytes"), "{why}");
    let three = lone.delaying("k", &vec![append(300); 3], 1_000);
    assert!(lone.vote(three).is_some());
    let more = lone.delaying("k", &[append(101)], 1_000);
    assert!(lone.vote(more).is_none(), "the others are under way");
    let fits = lone.delaying("k", &[append(100)], 1_000);
    [three, fits].into_iter().for_each(|txn| lone.commit(txn));
    assert_eq!(lone.length("k"), 1_000);
}

#[test]
fn who_allows_larger_results_than_the_repository_does_them_at_once() {
    let mut lone = Lone::new(LIMITS);
    let txn = lone.delaying("k", &[Action::append("x")], 1_001);
    assert!(lone.vote(txn).is_none());
    let txn = lone.delaying("k", &[Action::append("x")], 1_000);
    assert!(lone.vote(txn).is_some());
}

#[test]
fn answers_have_no_more_bytes_together_than_a_transaction() {
    let mut lone = Lone::new(LIMITS);
    lone.put("k", vec![1; 1_000]);
    let asked = lone.delaying("k", &vec![Action::put_if_absent("x"); 9], 1_000);
    lone.commit(asked);
    let results_of = lone.results_of(asked).expect("it asked").clone();
    let values = results_of.iter().filter(|(_, gave)| matches!(gave, Gave::Value(Some(_)))).count();
    assert_eq!((values, results_of.len()), (4, 9));
    let size = 4 * 1_024 + 1_024;
    assert_eq!(results_of[4].1, Gave::TooMuch { size, limit: 5_000 });
    assert!(lone.longest_sent() < 5_000 + BESIDE, "{}", lone.longest_sent());
    // A decision that comes again is answered with the same, after a restart too.
    let mut other = lone.restored(LIMITS, &[], &lone.log);
    other.sequence = lone.sequence;
    let decision = lone.log.iter().rev().find_map(|record| match record {
        Record::Decided { decision, .. } => Some(*decision),
        _ => None,
    });
    let decision = decision.expect("it was decided");
    other.tell(Message::Decide { txn: asked, decision, ballots: Mostly::new() });
    assert_eq!(other.results_of(asked), Some(&results_of));
}

#[test]
fn procedures_that_write_too_much_together_are_not_left_to_their_turn() {
    let mut lone = Lone::new(LIMITS);
    let mut calling = |all: &[&str]| {
        let call = |letters: &&str| DelayedCall {
            procedure: ProcedureId { name: "fill".into(), version: 1 },
            arguments: (*letters).into(),
            partition: 0,
            keys: letters.bytes().map(|key| (SPACE, SmallBytes::new(&[key]))).collect(),
            ranges: Vec::new(),
            steady: false,
        };
        let calls = all.iter().map(call).collect();
        let extra = Some(Box::new(Extra { calls, ..Extra::default() }));
        let prepare = Prepare { extra, ..lone.empty() };
        let txn = lone.prepare(prepare);
        (txn, lone.vote(txn).is_some(), lone.violation(txn))
    };
    let (_, voted, why) = calling(&["abc", "de"]);
    let expected = "delayed procedures: a transaction of 5085 bytes is over the limit of \
                    5000 bytes (`transaction_bytes_max`)";
    assert_eq!((voted, why.as_deref()), (false, Some(expected)));
    let (fits, voted, _) = calling(&["abc", "d"]);
    assert!(voted);
    lone.commit(fits);
    assert_eq!(["a", "d", "e"].map(|key| lone.length(key)), [1_000, 1_000, 0]);
    assert!(lone.longest_sent() < 5_000 + BESIDE, "{}", lone.longest_sent());
}

#[test]
fn a_chain_longer_than_a_piece_comes_back_whole() {
    let mut lone = Lone::new(LIMITS);
    for count in 0..50_u8 {
        lone.put("k", vec![count; 1_000]);
        lone.put("other", vec![count]);
    }
    let pieces = lone.pieces(2_000);
    // What is remembered of the transactions comes first.
    let versions = pieces.iter().map(Vec::len).filter(|bytes| *bytes > 1_000);
    let longest = versions.clone().skip(1).max().unwrap_or(0);
    assert!(longest < 2_000 + 1_000 + BESIDE && versions.count() > 20, "{longest}");
    let restored = lone.restored(LIMITS, &pieces, &[]);
    assert_eq!(restored.node.chains(), lone.node.chains());
    let read = |lone: &Lone, at| {
        let versions = lone.node.participants()[0].1.versions(SPACE).unwrap();
        versions.at(versions.find(&"k".into()).unwrap(), at).value.cloned()
    };
    for (_, _, versions) in lone.node.chains().into_iter().flat_map(|(_, chains)| chains) {
        for at in versions {
            assert_eq!(read(&restored, at), read(&lone, at), "{at}");
        }
    }
}

#[test]
fn a_transaction_that_reads_much_adds_little_in_a_checkpoint() {
    let most = 1 << 20;
    let mut lone = Lone::new(Limits { transaction_bytes: most, ..LIMITS });
    let keys: Vec<SmallBytes> =
        (0..10_000_u32).map(|it| [&it.to_be_bytes()[..], &[7; 60]].concat().into()).collect();
    let reads = keys.iter().map(|key| (SPACE, key.clone(), Timestamp::ZERO)).collect();
    let writes = [(SPACE, keys[17].clone(), Some("new".into()))].into_iter().collect();
    let prepare = Prepare { reads, writes, ..lone.empty() };
    let txn = lone.prepare(prepare);
    assert!(lone.vote(txn).is_some());
    let pieces = lone.pieces(1_000);
    let longest = pieces.iter().map(Vec::len).max().unwrap_or(0);
    let record = lone.longest_sent();
    assert!((record..record + 10_000 / 8 + BESIDE).contains(&longest), "{longest}, {record}");
    // The same keys are locked, and their locks are given back.
    let mut other = lone.restored(Limits { transaction_bytes: most, ..LIMITS }, &pieces, &[]);
    let locks = |lone: &Lone| {
        let versions = lone.node.participants()[0].1.versions(SPACE).expect("locked");
        let lock = |key| versions.find(key).map(|it| versions.lock(it));
        let kind = |key| lock(key).map(|it| (it.is_free(), it.is_exclusive()));
        keys.iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(locks(&other), locks(&lone));
    assert_eq!(locks(&other)[17], Some((false, true)));
    other.sent.append(&mut lone.sent);
    other.commit(txn);
    assert!(locks(&other).iter().all(|lock| lock.is_none_or(|(is_free, _)| is_free)));
}

#[test]
fn what_is_remembered_is_cut_by_its_bytes() {
    let mut lone = Lone::new(LIMITS);
    lone.put("k", vec![1; 1_000]);
    for _ in 0..300 {
        let asked = lone.delaying("k", &vec![Action::put_if_absent("x"); 4], 1_000);
        lone.commit(asked);
    }
    let pieces = lone.pieces(1_000);
    let longest = pieces.iter().map(Vec::len).max().unwrap_or(0);
    assert!(pieces.iter().map(Vec::len).sum::<usize>() > 1_000_000);
    assert!(longest < (32 << 10) + 5_000 + BESIDE, "{longest}");
    let mut restored = lone.restored(LIMITS, &pieces, &[]);
    for (record, sequence) in lone.log.iter().filter_map(decided).zip(1..) {
        let (txn, ballots) = (self::txn(sequence), Mostly::new());
        restored.tell(Message::Decide { txn, decision: record, ballots });
        assert_eq!(restored.results_of(txn), lone.results_of(txn));
    }
}

fn decided(record: &Record<TimeWarp>) -> Option<Decision<<TimeWarp as Variant>::Place>> {
    match record {
        Record::Decided { decision, .. } => Some(*decision),
        _ => None,
    }
}

/// With each read compared with each write, this would take minutes.
#[test]
fn very_many_stale_reads_beside_very_many_writes_are_judged() {
    let most = 1 << 30;
    let mut lone = Lone::new(Limits { transaction_bytes: most, ..LIMITS });
    let key = |of: u32, at: u32| SmallBytes::from([of.to_be_bytes(), at.to_be_bytes()].concat());
    let writes = |of: u32| {
        let write = move |at: u32| (SPACE, key(of, at), Some("new".into()));
        (0..300_000).map(write).collect::<Few<_>>()
    };
    let mut late = lone.empty();
    let early = Prepare { writes: writes(1), ..lone.empty() };
    late.reads = early.writes.iter().map(|it| (SPACE, it.1.clone(), Timestamp::ZERO)).collect();
    late.writes = writes(2);
    let early = lone.prepare(early);
    lone.commit(early);
    let late = lone.prepare(late);
    assert!(lone.vote(late).is_some(), "it lies before those that it missed");
}
