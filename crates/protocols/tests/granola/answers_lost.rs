//! A repository forgets what the procedures of a client gave that was silent for a lease; the
//! client may come back all the same, and is told that answers are missing.

use std::sync::Arc;

use muesli_core::procedure::{Call, Class, Fragment, Invoked, Place};
use muesli_core::{
    Address, Answer, Catalog, Effect, Effects, Envelope, Environment, Failure, Nanos, Node, NodeId,
    Procedure, ProcedureId, Procedures, RepositoryId, Sender, Settings, SmallBytes, SpaceOptions,
    Step, Stop, Store, Timestamp, TxnId, TxnOptions,
};
use muesli_protocols::granola::message::{Message, Noted, PartAnswer, ReplyOutcome};
use muesli_protocols::granola::{Granola, GranolaSwitch, Switches};
use muesli_protocols::two_phase::Sabotage;

const CLIENT: NodeId = NodeId(77);
const SERVERS: [NodeId; 2] = [NodeId(0), NodeId(1)];

fn nothing(_: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    Ok(SmallBytes::EMPTY)
}

/// A client whose call runs at two repositories.
struct Client {
    node: Node<Granola>,
    effects: Effects<Granola>,
}

impl Client {
    fn calls(switches: &Switches, read_only: bool) -> Client {
        let catalog = Catalog::new(&SERVERS, 1, &SERVERS).unwrap().with_visiting_coordinators();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let procedure = match read_only {
            true => Procedure::new(nothing).read_only(),
            false => Procedure::new(nothing),
        };
        let procedures = Procedures::default().with("nothing", 1, procedure);
        let settings = Arc::new(Settings { procedures, ..Settings::default() });
        let mut node = Node::new(CLIENT, 1, Arc::new(catalog), settings, switches);
        let now = Nanos::from_millis(1);
        let mut effects = Effects::new(Environment { now, ..Environment::default() });
        let fragment = |repository: u16| Fragment {
            procedure: ProcedureId { name: "nothing".into(), version: 1 },
            place: Place::Repository(RepositoryId(repository)),
            arguments: SmallBytes::EMPTY,
        };
        let fragments = vec![fragment(0), fragment(1)];
        let options = TxnOptions { read_only, ..TxnOptions::default() };
        let call = Call { class: Class::Independent, fragments };
        assert!(matches!(node.invoke(options, call, &mut effects), Step::Wait(_)));
        Client { node, effects }
    }

    /// The transaction that it asks for now.
    fn asked(&mut self) -> Option<TxnId> {
        let sent = std::mem::take(&mut self.effects.list);
        sent.into_iter().find_map(|effect| match effect {
            Effect::Send { envelope, .. } => match envelope.message {
                Message::Request(request) => Some(request.txn),
                _ => None,
            },
            _ => None,
        })
    }

    /// The pause is over after which it tries again.
    fn waits(&mut self) -> Option<()> {
        self.effects.now = Nanos::from_millis(1_000);
        let set = self.effects.list.iter().rev().find_map(|effect| match effect {
            Effect::SetTimer { role, timer, .. } => Some((*role, *timer)),
            _ => None,
        });
        let (role, timer) = set?;
        self.node.timer(role, timer, &mut self.effects);
        Some(())
    }

    /// A repository says that the transaction was done, and what its part gave, if it knows.
    fn receives(&mut self, txn: TxnId, repository: u16, answer: Option<&str>) {
        let given = answer.map(|it| (repository, PartAnswer::Given(it.into())));
        let at = Timestamp::new(9, RepositoryId(0));
        let end = ReplyOutcome::Done { at, answers: given.into_iter().collect() };
        let repository = RepositoryId(repository);
        let from = Address::repository(SERVERS[usize::from(repository.0)], repository);
        let message = Message::Reply { txn, repository, end, noted: Noted::default() };
        let envelope = Envelope { from, to: Address::coordinator(CLIENT), message };
        self.node.receive(Sender::Member, envelope, &mut self.effects).unwrap();
    }

    fn result(&self) -> Option<Result<Invoked, Failure>> {
        self.effects.list.iter().find_map(|effect| match effect {
            Effect::Complete { result, .. } => Some(result.clone().map(Answer::invoked)),
            _ => None,
        })
    }
}

#[test]
fn a_client_is_told_that_answers_are_missing() {
    let mut all = Client::calls(&Switches::default(), false);
    let txn = all.asked().expect("it asks");
    all.receives(txn, 0, Some("a"));
    assert_eq!(all.result(), None, "one answer is missing");
    all.receives(txn, 1, Some("b"));
    let results = all.result().expect("all have answered").expect("it was done").results;
    assert_eq!(results, ["a".into(), "b".into()]);

    for (first, second) in [(Some("a"), None), (None, Some("b")), (None, None)] {
        let mut some = Client::calls(&Switches::default(), false);
        let txn = some.asked().expect("it asks");
        some.receives(txn, 0, first);
        some.receives(txn, 1, second);
        assert_eq!(some.result(), Some(Err(Failure::AnswerLost)));
    }
}

/// The mistake: a seed of `muesli sim append-procedures --protocol sinfonia` took the answer of one
/// call for that of another.
#[test]
fn without_the_rule_one_answer_is_taken_for_another() {
    let mut some = Client::calls(&Switches::broken(GranolaSwitch::AnswersForgotten), false);
    let txn = some.asked().expect("it asks");
    some.receives(txn, 0, None);
    some.receives(txn, 1, Some("b"));
    let results = some.result().expect("all have answered").expect("it was done").results;
    assert_eq!(results, ["b".into()]);
}

#[test]
fn what_only_reads_is_run_again() {
    let mut reads = Client::calls(&Switches::default(), true);
    let txn = reads.asked().expect("it asks");
    reads.receives(txn, 0, Some("a"));
    reads.receives(txn, 1, None);
    assert_eq!(reads.result(), None);
    let again = reads.waits().and_then(|()| reads.asked());
    let again = again.expect("it asks again");
    assert!(again.sequence > txn.sequence, "{again} after {txn}");
    reads.receives(again, 0, Some("a"));
    reads.receives(again, 1, Some("b"));
    assert_eq!(reads.result().map(|it| it.map(|it| it.results.len())), Some(Ok(2)));
}
