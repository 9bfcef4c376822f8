//! Commits whose site does not answer: how they ended the other sites are asked, one after the
//! other.
//!
//! A commit is asked for at one site alone, of the member that this site was known to be. Others
//! know how it ended once they have applied it, or once they know that it never will be. What one
//! of them says is as good as the word of the site itself, as all decide alike.

use muesli_broadcast::epochs::MemberName;
use muesli_core::options::CLIENT_LEASE_LEAST;
use muesli_core::{Abort, Address, Decision, Nanos, RepositoryId, Role, TxnId};

use super::CertifiedCoordinator;
use crate::certified::Context;
use crate::certified::message::Message;

/// What a coordinator does about a commit whose site does not answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskedElsewhere {
    /// Its site does not know it, and will not propose it.
    pub is_lost: bool,
    /// So many questions were asked, and when the last one was.
    questions: u32,
    at: Nanos,
}

impl AskedElsewhere {
    /// Whether other sites were asked.
    pub fn has_asked(&self) -> bool {
        self.questions > 0
    }
}

impl CertifiedCoordinator {
    /// Asks other sites about commits whose own one is passed over, or leaves them without an
    /// answer for as long as reads may be. Once others were asked they go on being asked.
    pub(super) fn ask_elsewhere(&mut self, cx: &mut Context<'_>) {
        let (now, retry, count) = (cx.now(), cx.settings.retry_after, cx.catalog.repositories());
        if count == 1 {
            return;
        }
        let (settled_below, sites) = (self.settled_below(), &self.sites);
        let mut questions = Vec::new();
        for commit in self.commits.values_mut() {
            let (own, since) = (commit.site(), commit.since);
            let asked = &mut commit.elsewhere;
            let is_silent = sites.is_passed_over(own) || sites.is_late(since, cx);
            let is_due = !asked.has_asked() || asked.at + retry <= now;
            if !(is_due && (is_silent || asked.is_lost || asked.has_asked())) {
                continue;
            }
            let to = sites.other_than(own, asked.questions, count as u16);
            assert_ne!(to, own, "a site is asked as another one");
            (asked.questions, asked.at) = (asked.questions.wrapping_add(1).max(1), now);
            let (txn, member) = (commit.command.txn, commit.member);
            questions.push((to, Message::Ask { txn, settled_below, member }));
        }
        for (site, question) in questions {
            cx.send_to_repository(site, question);
        }
    }

    /// Whether a site's word counts, of a commit that was first asked for at this time. That it is
    /// abandoned a site says that knows all ends; those of a client it may have forgotten after a
    /// lease, and so its word does not count from then on. How long a site's lease is a client does
    /// not know: it goes by the shortest that one may have.
    pub(super) fn is_believed(&self, since: Nanos, decision: Decision, cx: &Context<'_>) -> bool {
        let lease = cx.settings.client_lease.min(CLIENT_LEASE_LEAST);
        let is_late = since + lease <= cx.now();
        let may_be_forgotten = is_late && cx.catalog.is_client(self.node);
        decision != Decision::Abort(Abort::Abandoned) || !may_be_forgotten
    }

    /// The site of a commit does not know it. Others may, as it may have lost its disk.
    pub(super) fn on_not_known(
        &mut self,
        from: Address,
        (txn, member): (TxnId, MemberName),
        cx: &mut Context<'_>,
    ) {
        let is_own = txn == self.id(txn.sequence);
        let site = self.answers_as(from, member);
        let Some(commit) = self.commits.get_mut(&txn.sequence).filter(|_| is_own) else { return };
        if site != Some(commit.site()) {
            return;
        }
        commit.elsewhere.is_lost = true;
        if cx.catalog.repositories() > 1 {
            return;
        }
        if commit.op.is_some() {
            self.give_up(txn.sequence, cx);
        }
        self.commits.remove(&txn.sequence);
        self.unknown.forget(txn.sequence);
    }

    /// A site answers as this member of it.
    pub(super) fn answers_as(&mut self, from: Address, member: MemberName) -> Option<RepositoryId> {
        let Role::Repository(site) = from.role else { return None };
        self.sites.set_member(site, member);
        Some(site)
    }
}
