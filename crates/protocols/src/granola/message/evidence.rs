//! What votes are about, and what a client shows with what it decides.
//!
//! # Copies
//! Whoever has a key has it done what its client says, and a client could say something else to
//! each: then copies differ for ever, and other clients see it. So a vote on a client's transaction
//! carries what stands for the whole request, under the members' key, where keys have copies; a
//! vote about another request is a vote against this one. All who were asked the same see the same
//! votes, and so come to the same end.
//!
//! # Decisions
//! Under Sinfonia a client counts the votes on its transaction, and tells its participants what
//! they come to. It is not believed: it shows the [votes](Shown), with the tags that members gave
//! it with them. Whoever is not shown what decides goes on waiting, and asks the others in the end.

use muesli_core::issuance::Issuer;
use muesli_core::judgement::ensure;
use muesli_core::{Catalog, Rejection, RepositoryId, Settings, Timestamp, TxnId, View, Wire};

use super::{Request, Shown, TimestampVote};

/// What stands for a request; zero where its coordinator is believed, or keys have no copies.
pub(in super::super) fn about(request: &Request, settings: &Settings, catalog: &Catalog) -> u64 {
    let Some(issuer) = settings.issuer else { return 0 };
    if catalog.replicas < 2 || !catalog.is_client(request.txn.node) {
        return 0;
    }
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    issuer.vouch(&bytes).max(1)
}

impl Shown {
    fn bytes(&self, txn: TxnId) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        txn.encode(&mut bytes);
        self.repository.encode(&mut bytes);
        self.ballot.encode(&mut bytes);
        self.about.encode(&mut bytes);
        bytes
    }

    /// What members vouch with for it.
    pub(in super::super) fn vouched(&self, issuer: Issuer, txn: TxnId) -> u64 {
        issuer.vouch(&self.bytes(txn))
    }

    /// Whether a member has said it of this transaction.
    fn is_issued(&self, issuer: Issuer, txn: TxnId) -> bool {
        issuer.has_vouched(&self.bytes(txn), self.tag)
    }
}

/// Keeps a vote to be shown. One against the transaction is enough.
pub(in super::super) fn keep(all: &mut Vec<Shown>, shown: Shown) {
    match shown.ballot {
        TimestampVote::Commit(_) if all.iter().any(|it| it.repository == shown.repository) => {
            return;
        }
        TimestampVote::Commit(_) => {}
        TimestampVote::Conflict | TimestampVote::Abort(..) | TimestampVote::Moved(_) => all.clear(),
    }
    all.push(shown);
}

/// Whether what a client says of its transaction, of which `asked` stands for the request, is what
/// the votes that it shows come to.
///
/// # Errors
/// It is not, or members have not said all of them.
pub(in super::super) fn judge(
    (request, asked): (&Request, u64),
    decided: &TimestampVote,
    shown: &[Shown],
    view: View<'_>,
) -> Result<(), Rejection> {
    let issuer = view.settings.issuer.ok_or(Rejection::Unproven)?;
    let (txn, participants) = (request.txn, &request.participants);
    let is_issued = |it: &Shown| participants.contains(&it.repository) && it.is_issued(issuer, txn);
    ensure(shown.len() <= participants.len() && shown.iter().all(is_issued), Rejection::Unproven)?;
    let TimestampVote::Commit(place) = decided else {
        return ensure(shown.iter().any(|it| it.ballot == *decided), Rejection::Unproven);
    };
    let proposal = |voter: &RepositoryId| {
        let found = shown.iter().find(|it| it.repository == *voter)?;
        match found.ballot {
            TimestampVote::Commit(at) if found.about == asked => Some(at),
            _ => None,
        }
    };
    let all: Option<Vec<Timestamp>> = participants.iter().map(proposal).collect();
    let highest = all.and_then(|all| all.into_iter().max()).ok_or(Rejection::Unproven)?;
    ensure(highest == *place, Rejection::State)
}
