//! A client that moves a key, and tells its owner and the one that is to have it different things:
//! the key is never at two places, or at none.

use std::collections::BTreeMap;
use std::sync::Arc;

use muesli_core::{Decision, Rejection, RepositoryId, Settings, SmallBytes, Timestamp};
use muesli_protocols::tfa::{OwnedObjects, Tfa, TransactionAge};
use muesli_protocols::two_phase::message::moves::{ArrivingWrite, LeavingWrite};
use muesli_protocols::two_phase::message::{Few, Message, Mostly, Prepare, RepositoryVote, Vote};

use crate::harness::copies::{BOTH, LONG, Pair, SPACE, key, newest, txn};

/// Two repositories; the key is at one of them and has a value.
struct Client {
    pair: Pair<Tfa>,
    owner: usize,
    other: usize,
}

/// What the client says to the owner, or to the other one, as far as it is not the same always.
struct Request<'a> {
    participants: &'a [RepositoryId],
    keys: &'a [&'a str],
    moves: bool,
}

/// As it should be.
const HONEST: Request<'_> = Request { participants: &BOTH, keys: &["key"], moves: true };

impl Client {
    fn new() -> Client {
        let pair = Pair::<Tfa>::with_copies(&Default::default(), Settings::default(), 1);
        let owner = usize::from(pair.nodes[0].catalog().partition(SPACE, &key()));
        Client { pair, owner, other: 1 - owner }
    }

    fn leaves(&mut self, asked: &Request<'_>) -> Result<(), Rejection> {
        let mut prepare = self.prepare(asked, |key| match asked.moves {
            true => (SPACE, SmallBytes::from(key), None),
            false => (SPACE, SmallBytes::from(key), Some("value".into())),
        });
        let to = BOTH[self.other];
        let leaving = |place| LeavingWrite { place, to };
        prepare.leaving.extend((0..asked.keys.len() as u32).filter(|_| asked.moves).map(leaving));
        self.pair.hand_to(self.owner, Message::Prepare(Arc::new(prepare)))
    }

    fn arrives(&mut self, asked: &Request<'_>) -> Result<(), Rejection> {
        let value = |key: &str| (SPACE, SmallBytes::from(key), Some("value".into()));
        let mut prepare = self.prepare(asked, value);
        let from = BOTH[self.owner];
        let arriving = |place| ArrivingWrite { place, from };
        prepare.arriving.extend((0..asked.keys.len() as u32).map(arriving));
        self.pair.hand_to(self.other, Message::Prepare(Arc::new(prepare)))
    }

    fn prepare(
        &self,
        asked: &Request<'_>,
        write: impl Fn(&str) -> (muesli_core::SpaceId, SmallBytes, Option<SmallBytes>),
    ) -> Prepare<OwnedObjects> {
        let reader = TransactionAge::default();
        Prepare {
            settled_below: txn().sequence,
            participants: asked.participants.iter().copied().collect(),
            writes: asked.keys.iter().map(|key| write(key)).collect::<Few<_>>(),
            ..Prepare::new(txn(), Timestamp::ZERO, reader)
        }
    }

    /// The client shows one of them that its transaction commits, by the votes that it got.
    fn commit(&mut self, place: usize) -> Result<(), Rejection> {
        let votes = self.pair.answered_to.iter().filter_map(|message| match message.clone() {
            Message::Vote { repository, vote, about, tag, .. } => {
                Some((repository, RepositoryVote { repository, vote, about, tag }))
            }
            _ => None,
        });
        let votes: BTreeMap<_, _> = votes.collect();
        let ballots: Mostly<_> = votes.into_values().collect();
        let proposal = |ballot: &RepositoryVote<OwnedObjects>| match ballot.vote {
            Vote::Yes(at) => at,
            ref other => panic!("{other:?}"),
        };
        let at = ballots.iter().map(proposal).max().expect("votes");
        let decision = Decision::Commit(at);
        self.pair.hand_to(place, Message::Decide { txn: txn(), decision, ballots })
    }

    /// What the owner and the other one have.
    fn found(&self) -> [Option<SmallBytes>; 2] {
        [self.owner, self.other]
            .map(|place| newest(self.pair.nodes[place].participants()[0].1.versions(SPACE)))
    }

    /// It says this to both, and neither believes that it commits; nor is anything left of it.
    fn refused(mut self, owner: &Request<'_>, other: &Request<'_>) {
        assert_eq!((self.leaves(owner), self.arrives(other)), (Ok(()), Ok(())));
        let shown = [self.commit(self.owner), self.commit(self.other)];
        assert_eq!(shown, [Err(Rejection::Unproven); 2]);
        self.pair.wait(LONG);
        assert_eq!(self.found(), [None, None]);
        for node in &self.pair.nodes {
            let versions = node.participants()[0].1.versions(SPACE);
            let lock = versions.and_then(|it| Some(it.lock(it.find(&key())?)));
            assert!(!lock.is_some_and(|lock| lock.is_for_writing()), "the key is locked");
        }
    }
}

#[test]
fn a_key_moves_where_both_are_asked_for_it() {
    let mut client = Client::new();
    assert_eq!((client.leaves(&HONEST), client.arrives(&HONEST)), (Ok(()), Ok(())));
    assert_eq!((client.commit(0), client.commit(1)), (Ok(()), Ok(())));
    assert_eq!(client.found(), [None, Some("value".into())]);
}

#[test]
fn both_finish_a_move_whose_client_is_gone() {
    let mut client = Client::new();
    assert_eq!((client.leaves(&HONEST), client.arrives(&HONEST)), (Ok(()), Ok(())));
    client.pair.wait(LONG);
    assert_eq!(client.found(), [None, Some("value".into())]);
}

#[test]
fn a_key_does_not_arrive_that_does_not_leave() {
    let stays = Request { moves: false, ..HONEST };
    Client::new().refused(&stays, &HONEST);
    let none = Request { keys: &[], ..HONEST };
    Client::new().refused(&none, &HONEST);
}

#[test]
fn a_key_does_not_leave_that_does_not_arrive() {
    let none = Request { keys: &[], ..HONEST };
    Client::new().refused(&HONEST, &none);
    let another = Request { keys: &["another"], ..HONEST };
    Client::new().refused(&HONEST, &another);
}

#[test]
fn a_key_arrives_from_one_who_takes_part() {
    let mut client = Client::new();
    let alone = [BOTH[client.other]];
    let asked = Request { participants: &alone, ..HONEST };
    assert_eq!(client.arrives(&asked), Err(Rejection::Range));
}
