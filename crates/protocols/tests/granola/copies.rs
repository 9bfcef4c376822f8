//! A client that tells the copies of a key different things, in one round: they never differ for
//! others.

use std::sync::Arc;

use muesli_core::{Nanos, Rejection, RepositoryId, SmallBytes, Timestamp, TxnId};
use muesli_protocols::granola::Granola;
use muesli_protocols::granola::Ordering;
use muesli_protocols::granola::Switches;
use muesli_protocols::granola::message::Agreement;
use muesli_protocols::granola::message::Install;
use muesli_protocols::granola::message::Message as AnyMessage;
use muesli_protocols::granola::message::Part;
use muesli_protocols::granola::message::Request;
use muesli_protocols::granola::message::Shown;
use muesli_protocols::granola::message::Task;
use muesli_protocols::granola::message::TimestampVote as Vouched;

use crate::harness::copies::{BOTH, LONG, Pair, SPACE, key, newest, txn};

impl Pair<Granola> {
    /// Asks one of them to write, as a transaction of so many.
    fn ask(&mut self, place: usize, participants: &[RepositoryId], value: &str, settled: u64) {
        let writes = vec![(SPACE, key(), Some(SmallBytes::from(value)))];
        let install = Install { writes, ..Install::default() };
        let partition = self.nodes[0].catalog().partition(SPACE, &key());
        let task = Task::Install(Box::new(install));
        let part = Part { partition, owners: None, task };
        let request = Request {
            settled_below: settled,
            agreement: Agreement::Coordinated,
            ..Request::new(
                txn(),
                participants.iter().copied().collect(),
                [part].into_iter().collect(),
            )
        };
        self.hand_to(place, AnyMessage::Request(Arc::new(request))).expect("a request as others");
    }

    /// The votes that the client was told.
    fn shown(&self) -> Vec<Shown> {
        let votes = self.answered_to.iter().filter_map(|message| match message.clone() {
            AnyMessage::Vote { repository, ballot, about, tag, .. } => {
                Some(Shown { repository, ballot, about, tag })
            }
            _ => None,
        });
        votes.collect()
    }

    fn decide(&mut self, place: usize, ballot: Vouched) -> Result<(), Rejection> {
        let (txn, shown) = (txn(), self.shown());
        self.hand_to(place, AnyMessage::Decide { txn, ballot, shown })
    }

    /// The higher one of the proposals that the client was told.
    fn place(&self) -> Vouched {
        let proposal = |shown: &Shown| match shown.ballot {
            Vouched::Commit(at) => at,
            ref other => panic!("{other:?}"),
        };
        Vouched::Commit(self.shown().iter().map(proposal).max().expect("votes"))
    }

    fn found(&self) -> [Option<SmallBytes>; 2] {
        [0, 1].map(|place| newest(self.nodes[place].participants()[0].1.spaces().get(SPACE)))
    }
}

#[test]
fn one_round_copies_that_were_asked_for_different_values_take_none() {
    for switches in [Switches::default(), Switches::locking(), Switches::out_of_order()] {
        let mut pair = Pair::<Granola>::new(&switches);
        (0..2).for_each(|place| pair.ask(place, &BOTH, "new", 1));
        pair.wait(LONG);
        assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
        let mut pair = Pair::<Granola>::new(&switches);
        pair.ask(0, &BOTH, "one", 1);
        pair.ask(1, &BOTH, "another", 1);
        pair.wait(LONG);
        assert_eq!(pair.found(), [None, None]);
    }
}

#[test]
fn a_master_that_is_a_client_shows_the_votes() {
    let mut pair = Pair::<Granola>::new(&Switches::sinfonia());
    (0..2).for_each(|place| pair.ask(place, &BOTH, "new", 1));
    let place = pair.place();
    let votes = std::mem::take(&mut pair.answered_to);
    assert_eq!(pair.decide(0, place.clone()), Err(Rejection::Unproven), "no votes");
    pair.answered_to = votes;
    let Vouched::Commit(at) = place else { unreachable!("a place") };
    let newer = Vouched::Commit(Timestamp(at.0 + 1));
    assert!(pair.decide(0, newer).is_err(), "the votes decide something else");
    assert_eq!(pair.decide(1, Vouched::Conflict), Err(Rejection::Unproven), "nobody said so");
    assert_eq!(pair.decide(0, place), Ok(()));
    assert_eq!(pair.decide(1, Vouched::Conflict), Err(Rejection::Unproven), "nobody said so");
    pair.wait(LONG);
    assert_eq!(pair.found(), [Some("new".into()), Some("new".into())]);
}

#[test]
fn copies_that_a_client_asked_for_different_values_do_not_believe_it_that_both_voted() {
    let mut pair = Pair::<Granola>::new(&Switches::sinfonia());
    pair.ask(0, &BOTH, "one", 1);
    pair.ask(1, &BOTH, "another", 1);
    let place = pair.place();
    assert_eq!([0, 1].map(|it| pair.decide(it, place.clone())), [Err(Rejection::Unproven); 2]);
    pair.wait(LONG);
    assert_eq!(pair.found(), [None, None]);
}

#[test]
fn a_client_that_settles_too_early_does_not_part_copies_that_voted() {
    for switches in [Switches::default(), Switches::sinfonia()] {
        let mut pair = Pair::<Granola>::new(&switches);
        pair.ask(0, &BOTH, "new", 1);
        pair.cut = true;
        pair.ask(1, &BOTH, "new", 1);
        // Without a master, the second one has both votes; the vote of its own is lost.
        let done = if switches.ordering == Ordering::Master { 0 } else { 1 };
        if switches.ordering == Ordering::Master {
            assert_eq!(pair.decide(0, pair.place()), Ok(()));
        }
        pair.wait(Nanos::from_millis(1));
        assert!(pair.found()[done].is_some() && pair.found()[1 - done].is_none());
        // A later request says that it is settled.
        let newer = TxnId { sequence: 9, ..txn() };
        let part = Part { partition: 0, owners: None, task: Task::Names };
        let request = Request {
            settled_below: 9,
            read_only: true,
            ..Request::new(newer, [BOTH[done]].into_iter().collect(), [part].into_iter().collect())
        };
        pair.hand_to(done, AnyMessage::Request(Arc::new(request))).expect("a reader");
        pair.cut = false;
        pair.wait(LONG);
        let found = pair.found();
        assert_eq!(found[0], found[1], "{switches:?}");
        assert!(found[0].is_some());
    }
}

#[test]
fn what_is_written_names_all_that_hold_it() {
    let mut pair = Pair::<Granola>::new(&Switches::default());
    let install = Install { writes: vec![(SPACE, key(), None)], ..Install::default() };
    let partition = pair.nodes[0].catalog().partition(SPACE, &key());
    let part = Part { partition, owners: None, task: Task::Install(Box::new(install)) };
    let request =
        Request::new(txn(), [BOTH[0]].into_iter().collect(), [part].into_iter().collect());
    let sent = AnyMessage::Request(Arc::new(request));
    assert_eq!(pair.hand_to(0, sent), Err(Rejection::Catalog));
}
