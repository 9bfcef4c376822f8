//! Questions of coordinators about commits that they have asked another site for, or an earlier
//! member of this one.
//!
//! A site that knows the end says it. One that does not is silent, as the command may be under way.
//!
//! # What was asked of a member that is gone
//! A commit is asked of one member of its site, by name, and another one does not propose it. So it
//! is ordered only as a command of that member. Once this site is in an epoch of which that member
//! is none, and that has come by a change which takes it away:
//! * commands of its epochs were delivered here before the change, or are applied nowhere, as the
//!   change conflicts with each, and what comes after it in its epoch comes nowhere;
//! * what was not delivered only its owner proposes anew, in an epoch of which it is a member; a
//!   name that has gone comes never again.
//!
//! So what was asked of it and is not among the ends of this site was not ordered and never will
//! be, unless its end was here and is forgotten; whether it can have been, [`SiteEnds`] says. This
//! holds for each broadcast under epochs; `certified-m2paxos` has none, and there nobody ever goes.
//!
//! [`SiteEnds`]: super::ends::SiteEnds

use muesli_broadcast::epochs::MemberName;
use muesli_core::parts::single_repository::KnownOutcome;
use muesli_core::{Abort, Address, Decision, TxnId};

use super::CertifiedSite;
use super::ordering::founder;
use crate::certified::Context;
use crate::certified::message::Message;
use crate::certified::switches::CertifiedSwitch;

impl CertifiedSite {
    /// The name of the member that this site is.
    pub(super) fn name(&self) -> MemberName {
        self.renamed.unwrap_or_else(|| founder(self.id))
    }

    /// Whether a commit was asked of another member of this site than the one that it is.
    pub(super) fn is_of_another(&self, asked: Option<MemberName>) -> bool {
        let names = self.switches.keeps(CertifiedSwitch::NamesMembers);
        names && asked.is_some_and(|asked| asked != self.name())
    }

    /// A coordinator asks what has become of a commit that it has asked another site for.
    pub(super) fn on_question(
        &mut self,
        from: Address,
        (txn, settled_below): (TxnId, u64),
        asked: Option<MemberName>,
        cx: &mut Context<'_>,
    ) {
        self.ends.observe(txn.node, cx.now());
        self.ends.settle(txn, settled_below);
        let knows = self.switches.keeps(CertifiedSwitch::AnswersWhatItKnows);
        match self.ends.known(txn) {
            KnownOutcome::Decided(decision) => self.answer(from, txn, decision, cx),
            KnownOutcome::Gone => {}
            KnownOutcome::New if self.is_abandoned(txn, asked) || !knows => {
                let decision = Decision::Abort(Abort::Abandoned);
                self.answer(from, txn, decision, cx);
            }
            KnownOutcome::New => {}
        }
    }

    /// A commit is asked for here that was first asked of an earlier member of this site.
    pub(super) fn on_commit_of_another(
        &mut self,
        from: Address,
        (txn, settled_below): (TxnId, u64),
        asked: Option<MemberName>,
        cx: &mut Context<'_>,
    ) {
        self.on_question(from, (txn, settled_below), asked, cx);
        let is_new = self.ends.known(txn) == KnownOutcome::New;
        if is_new && !self.is_abandoned(txn, asked) {
            let member = self.name();
            cx.send(from, Message::NotKnown { txn, member });
        }
    }

    /// Whether a transaction that is not known will never be delivered: the member that it was
    /// asked of is none of this epoch any more.
    fn is_abandoned(&self, txn: TxnId, asked: Option<MemberName>) -> bool {
        let Some(asked) = asked else { return false };
        let list = self.member.as_ref().map(|member| member.list());
        let is_gone = list.is_some_and(|list| list.gone.contains(&asked));
        is_gone && self.ends.is_complete_for(txn)
    }
}
