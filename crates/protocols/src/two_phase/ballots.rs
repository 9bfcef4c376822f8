//! What a client shows with a decision: the votes that decide it.
//!
//! Members believe a member that says how a transaction ended. A client is not believed: it could
//! tell each participant something else, or place its transaction where another one's is. So what a
//! participant says of a vote to a client comes with a tag that only members make, and a client's
//! decision counts where the votes that come with it are those, and decide that. A participant
//! that is told what the votes do not decide goes on waiting, and in the end asks the others.

use muesli_core::issuance::Issuer;
use muesli_core::judgement::ensure;
use muesli_core::parts::votes::{Counted, Votes};
use muesli_core::{Address, Catalog, Decision, Rejection, RepositoryId, Role, TxnId, View, Wire};

use super::Variant;
use super::message::{Ballot, Prepare, Vote};
use super::time::Time;

/// What members vouch for as they say to a client how a repository stands to a transaction.
pub(super) fn tag_of<V: Variant>(
    issuer: Issuer,
    txn: TxnId,
    repository: RepositoryId,
    vote: &Vote<V>,
) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    txn.encode(&mut bytes);
    repository.encode(&mut bytes);
    vote.encode(&mut bytes);
    issuer.vouch(&bytes)
}

/// Whether what is said to `to` is shown to others by somebody whom they do not believe.
pub(super) fn is_client(to: Address, catalog: &Catalog) -> bool {
    to.role == Role::Coordinator && !catalog.coordinators.contains(&to.node)
}

/// Keeps a vote to be shown. One of no is enough, and so is one that says how it ended.
pub(super) fn keep<V: Variant>(
    ballots: &mut Vec<Ballot<V>>,
    repository: RepositoryId,
    vote: &Vote<V>,
    tag: u64,
) {
    match vote {
        Vote::Yes(_) if ballots.iter().any(|ballot| ballot.repository == repository) => return,
        Vote::Yes(_) => {}
        Vote::No(_) | Vote::Decided(_) => ballots.clear(),
    }
    ballots.push(Ballot { repository, vote: vote.clone(), tag });
}

/// Whether what a client says of the end of its transaction is what these votes decide.
///
/// # Errors
/// It is not, or members have not said all of them.
pub(super) fn judge<V: Variant>(
    prepare: &Prepare<V>,
    decision: &Decision<V::Place>,
    ballots: &[Ballot<V>],
    rules: &V::Rules,
    view: View<'_>,
) -> Result<(), Rejection> {
    let issuer = view.settings.issuer.ok_or(Rejection::Unproven)?;
    let is_said = |ballot: &Ballot<V>| {
        prepare.participants.contains(&ballot.repository)
            && ballot.tag == tag_of(issuer, prepare.txn, ballot.repository, &ballot.vote)
    };
    ensure(ballots.len() <= prepare.participants.len(), Rejection::Unproven)?;
    ensure(ballots.iter().all(is_said), Rejection::Unproven)?;
    let decided = decided_by::<V>(prepare, ballots, rules).ok_or(Rejection::Unproven)?;
    ensure(same_end(&decided, decision), Rejection::State)
}

/// What votes decide, as the coordinator counts them.
fn decided_by<V: Variant>(
    prepare: &Prepare<V>,
    ballots: &[Ballot<V>],
    rules: &V::Rules,
) -> Option<Decision<V::Place>> {
    let mut votes = Votes::from_voters(prepare.participants.iter().copied());
    for ballot in ballots {
        match &ballot.vote {
            Vote::No(reason) => return Some(Decision::Abort(*reason)),
            Vote::Decided(decision) => return Some(decision.clone()),
            Vote::Yes(yes) => {
                if votes.count(ballot.repository, yes.clone()) == Counted::Complete {
                    return Some(V::Time::decide(rules, &votes));
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
