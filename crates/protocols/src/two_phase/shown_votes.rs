//! What a client shows with a decision: the votes that decide it, and what they are about.
//!
//! # Ends
//! Members believe a member that says how a transaction ended. A client is not believed: it could
//! tell each participant something else, or place its transaction where another one's is. So what a
//! participant says of a vote to a client comes with a tag that only members make, and a client's
//! decision counts where the votes that come with it are those, and decide that. A participant
//! that is told what the votes do not decide goes on waiting, and in the end asks the others. So it
//! does where the client was told only that its request may have been forgotten, or that another
//! incarnation followed: that is not remembered, and a vote of yes may come after it.
//!
//! # Copies
//! A client sends each participant its part of the transaction, and could send the copies of a key
//! different values, or send some of them nothing: then they differ for ever, and other clients see
//! it. So a vote on a client's transaction says what it is [about](About), where keys have copies:
//! who takes part, and for each partition what stands for its changes, under the members' key.
//! Whoever decides, by what a client shows or by asking, commits only where all votes are about the
//! same participants and all copies of a partition about the same changes. Two participants that
//! were told alike of who takes part see the same votes, and so decide alike; and copies that were
//! not are not told alike.
//!
//! # Moves
//! Where keys move, a client tells a key's owner that it leaves, and another participant that it
//! arrives. If it told only one of them the key would be at two places, or at none. So votes are
//! there about what stands for the keys that change hands between two, and a commit needs that both
//! were told the same.

use std::collections::BTreeMap;

use muesli_core::issuance::Issuer;
use muesli_core::judgement::ensure;
use muesli_core::parts::locator::Static;
use muesli_core::parts::votes::{Counted, Votes};
use muesli_core::{Catalog, Decision, Rejection, RepositoryId, TxnId, View, Wire};

use super::message::{About, Few, Prepare, RepositoryVote, Vote};
use super::table::Prepared;
use super::time::Time;
use super::{Context, Variant};

/// What is vouched for of a vote without copies takes no more bytes than this.
const VOUCHED_BYTES: usize = 64;

impl<V: Variant> RepositoryVote<V> {
    /// What members vouch for with it.
    fn put(&self, txn: TxnId, bytes: &mut Vec<u8>) {
        bytes.clear();
        txn.encode(bytes);
        self.repository.encode(bytes);
        self.vote.encode(bytes);
        self.about.encode(bytes);
    }

    /// What members vouch with for it; `bytes` are room for what that is about.
    pub(super) fn vouched(&self, issuer: Issuer, txn: TxnId, bytes: &mut Vec<u8>) -> u64 {
        self.put(txn, bytes);
        issuer.vouch(bytes)
    }

    /// Whether a member has said it of this transaction; `bytes` as above.
    fn is_issued(&self, issuer: Issuer, txn: TxnId, bytes: &mut Vec<u8>) -> bool {
        self.put(txn, bytes);
        issuer.has_vouched(bytes, self.tag)
    }
}

/// Whether votes on clients' transactions are about something: keys have copies, or move.
pub(super) fn are_about_something<V: Variant>(catalog: &Catalog) -> bool {
    catalog.replicas > 1 || V::keys_move(catalog)
}

/// What `me` votes about on this; `None` where the coordinator is believed, and where keys have no
/// copies and stay.
pub(super) fn about<V: Variant>(
    me: RepositoryId,
    prepare: &Prepare<V>,
    cx: &Context<'_, V>,
) -> Option<Box<About>> {
    let (issuer, catalog) = (cx.settings.issuer?, cx.catalog);
    if !are_about_something::<V>(catalog) || !catalog.is_client(prepare.txn.node) {
        return None;
    }
    // Keys move between two who take part; where there is one alone, nobody else is told a thing.
    if catalog.replicas == 1 && prepare.participants.len() == 1 {
        return None;
    }
    let mut bytes = Vec::new();
    prepare.participants.encode(&mut bytes);
    // Zero stands for nothing.
    let participants = issuer.vouch(&bytes).max(1);
    assert!(!prepare.participants.is_empty(), "nobody takes part in {}", prepare.txn);
    if catalog.replicas == 1 {
        let moves = moves_about(me, prepare, issuer);
        return Some(Box::new(About { participants, moves, ..About::default() }));
    }
    let mut changes: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    for write in &prepare.writes {
        write.encode(changes.entry(catalog.partition(write.0, &write.1)).or_default());
    }
    for delayed in &prepare.delayed {
        let change = changes.entry(catalog.partition(delayed.0, &delayed.1)).or_default();
        delayed.encode(change);
        prepare.result_bytes().encode(change);
    }
    for call in prepare.calls() {
        call.encode(changes.entry(call.partition).or_default());
    }
    let changes = changes.into_iter().map(|(partition, it)| (partition, issuer.vouch(&it)));
    Some(Box::new(About { participants, changes: changes.collect(), moves: Vec::new() }))
}

/// Between which repositories keys change hands of which `me` is one, and what stands for them. Two
/// that are told the same have the keys in the same order.
fn moves_about<V: Variant>(
    me: RepositoryId,
    prepare: &Prepare<V>,
    issuer: Issuer,
) -> Vec<(RepositoryId, RepositoryId, u64)> {
    let mut moves: BTreeMap<(RepositoryId, RepositoryId), Vec<u8>> = BTreeMap::new();
    let leaving = prepare.leaving.iter().map(|it| (it.place, (me, it.to)));
    let arriving = prepare.arriving.iter().map(|it| (it.place, (it.from, me)));
    for (place, between) in leaving.chain(arriving) {
        assert!(between.0 != between.1, "a key of {} moves to where it is", prepare.txn);
        if let Some((space, key, _)) = prepare.writes.get(place as usize) {
            let bytes = moves.entry(between).or_default();
            space.encode(bytes);
            key.encode(bytes);
        }
    }
    let is_mine = |between: &(RepositoryId, RepositoryId)| between.0 == me || between.1 == me;
    assert!(moves.keys().all(is_mine), "{} moves what others have", prepare.txn);
    moves.into_iter().map(|((from, to), keys)| (from, to, issuer.vouch(&keys))).collect()
}

/// Whether two were told the same of who takes part, as far as it matters to the first.
pub(super) fn same_participants(mine: Option<&About>, other: Option<&About>) -> bool {
    mine.is_none_or(|mine| other.is_some_and(|it| it.participants == mine.participants))
}

/// Whether votes are about one transaction: all copies of what changes were told alike, both ends
/// of each move, and all of who takes part.
pub(super) fn are_about_one<'a>(
    abouts: impl Iterator<Item = (RepositoryId, Option<&'a About>)>,
    catalog: &Catalog,
) -> bool {
    let all: Vec<_> = abouts.collect();
    let Some((_, first)) = all.first() else { return true };
    let has = |holder: RepositoryId, change: &(u16, u64)| {
        let found = all.iter().find(|(voter, _)| *voter == holder).and_then(|(_, about)| *about);
        found.is_some_and(|about| about.changes.contains(change))
    };
    let is_whole = |change: &(u16, u64)| {
        Static.replicas_of(change.0, catalog).all(|holder| has(holder, change))
    };
    let moves = |voter: RepositoryId, moved: &(RepositoryId, RepositoryId, u64)| {
        let found = all.iter().find(|(other, _)| *other == voter).and_then(|(_, about)| *about);
        found.is_some_and(|about| about.moves.contains(moved))
    };
    let has_both_ends =
        |moved: &(RepositoryId, RepositoryId, u64)| moves(moved.0, moved) && moves(moved.1, moved);
    let mut abouts = all.iter().filter_map(|(_, about)| *about);
    all.iter().all(|(_, about)| same_participants(*first, *about))
        && abouts.all(|it| it.changes.iter().all(is_whole) && it.moves.iter().all(has_both_ends))
}

/// Keeps a vote to be shown. One of no is enough, and so is one that says how it ended.
pub(super) fn keep<V: Variant>(ballots: &mut Few<RepositoryVote<V>>, ballot: &RepositoryVote<V>) {
    match ballot.vote {
        Vote::Yes(_) if ballots.iter().any(|it| it.repository == ballot.repository) => return,
        Vote::Yes(_) => {}
        Vote::No(_) | Vote::Decided(_) => ballots.clear(),
    }
    ballots.push(ballot.clone());
    let is_yes = |ballot: &RepositoryVote<V>| matches!(ballot.vote, Vote::Yes(_));
    assert!(ballots.len() == 1 || ballots.iter().all(is_yes), "what decides is shown alone");
}

/// Whether what a client says of the end of its transaction is what these votes decide.
///
/// # Errors
/// It is not, or members have not said all of them.
pub(super) fn judge<V: Variant>(
    prepared: &Prepared<V>,
    decision: &Decision<V::Place>,
    ballots: &[RepositoryVote<V>],
    switches: &V::Switches,
    view: View<'_>,
) -> Result<(), Rejection> {
    let issuer = view.settings.issuer.ok_or(Rejection::Unproven)?;
    let prepare = &prepared.prepare;
    let mut bytes = Vec::with_capacity(VOUCHED_BYTES);
    let mut is_issued = |ballot: &RepositoryVote<V>| {
        prepare.participants.contains(&ballot.repository)
            && ballot.is_issued(issuer, prepare.txn, &mut bytes)
    };
    ensure(ballots.len() <= prepare.participants.len(), Rejection::Unproven)?;
    ensure(ballots.iter().all(&mut is_issued), Rejection::Unproven)?;
    let decided =
        decided_by(prepared, ballots, switches, view.catalog).ok_or(Rejection::Unproven)?;
    ensure(same_end(&decided, decision), Rejection::State)
}

/// What votes decide, as the coordinator counts them.
fn decided_by<V: Variant>(
    prepared: &Prepared<V>,
    ballots: &[RepositoryVote<V>],
    switches: &V::Switches,
    catalog: &Catalog,
) -> Option<Decision<V::Place>> {
    let mut votes = Votes::from_voters(prepared.prepare.participants.iter().copied());
    for ballot in ballots {
        match &ballot.vote {
            Vote::No(reason) => return Some(Decision::Abort(*reason)),
            Vote::Decided(Decision::Abort(reason)) => return Some(Decision::Abort(*reason)),
            Vote::Decided(decision) => {
                // Of other participants it says nothing of this transaction.
                let same = same_participants(prepared.about.as_deref(), ballot.about.as_deref());
                return same.then(|| decision.clone());
            }
            Vote::Yes(yes) => {
                let txn = prepared.prepare.txn;
                V::Time::judge_yes(txn, yes, catalog.repositories()).ok()?;
                if votes.count(ballot.repository, yes.clone()) == Counted::Complete {
                    let abouts = ballots.iter().map(|it| (it.repository, it.about.as_deref()));
                    let one = are_about_one(abouts, catalog);
                    return one.then(|| V::Time::decide(switches, &votes));
                }
            }
        }
    }
    None
}

/// Why a transaction aborts is told to its client only.
fn same_end<P: PartialEq>(one: &Decision<P>, other: &Decision<P>) -> bool {
    match (one, other) {
        (Decision::Commit(one), Decision::Commit(other)) => one == other,
        (Decision::Abort(_), Decision::Abort(_)) => true,
        (Decision::Commit(_), Decision::Abort(_)) | (Decision::Abort(_), Decision::Commit(_)) => {
            false
        }
    }
}
