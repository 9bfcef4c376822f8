//! A site that comes back without its disk: it joins as another member of the broadcast, and takes
//! the keys, what certification needs, and how transactions ended, from another site.

use muesli_broadcast::epochs::{MemberChange, MemberName, MemberState, RequestId};
use muesli_core::RepositoryId;
use muesli_core::parts::single_repository::KnownOutcome;

use crate::certified::Context;
use crate::certified::message::{Message, Record};
use crate::certified::participant::CertifiedSite;

/// Of a name so many bits say which site it is.
const SITE_BITS: u32 = u16::BITS;

/// The name of a site with which the group begins.
pub(in crate::certified) fn founder(site: RepositoryId) -> MemberName {
    MemberName(u64::from(site.0))
}

/// Which site a member is.
pub(in crate::certified) fn site_of(member: MemberName) -> RepositoryId {
    RepositoryId(member.0 as u16)
}

impl CertifiedSite {
    /// Nothing is known of earlier incarnations, and there was something: it is another member from
    /// now on, which is written down before it says anything.
    pub(in crate::certified::participant) fn begin_member(&mut self, cx: &mut Context<'_>) {
        let Some(number) = cx.settings.lost_disk.filter(|_| !self.has_begun) else { return };
        let name = MemberName((number << SITE_BITS) | founder(self.id).0);
        self.rename(name);
        cx.log(|| Record::Named { member: name });
    }

    /// It is a member of this name.
    pub(in crate::certified::participant) fn rename(&mut self, name: MemberName) {
        assert_eq!(site_of(name), self.id, "{name} is of another site");
        self.renamed = Some(name);
        self.member = None;
    }

    /// Asks one site after the other to be exchanged for the member that was lost.
    pub(in crate::certified::participant) fn ask_to_join(&mut self, cx: &mut Context<'_>) {
        let Some(member) = &self.member else { return };
        let (state, member) = (member.state(), member.name());
        if state != MemberState::Empty {
            return;
        }
        let others = cx.catalog.repositories() as u16 - 1;
        if others > 0 {
            let next = self.asked_to_join % others;
            self.asked_to_join = next + 1;
            let to = RepositoryId(next + u16::from(next >= self.id.0));
            cx.send_to_repository(to, Message::Join { member });
        }
    }

    /// Another site has lost its disk.
    pub(in crate::certified::participant) fn on_join(
        &mut self,
        joins: MemberName,
        cx: &mut Context<'_>,
    ) {
        let Some(member) = self.member.as_ref().filter(|_| self.is_member()) else { return };
        let leaves = member.list().names().find(|name| site_of(*name) == site_of(joins));
        let Some(leaves) = leaves.filter(|leaves| *leaves != joins) else { return };
        let change = MemberChange { leaves, joins };
        if !member.asks_for(change) {
            // Another site may have asked for it, or the broadcast may exchange nobody.
            self.order(cx, |it, out| it.change(change, out).map_or((), |_| ()));
        }
    }

    /// A commit of this site is part of what it has taken.
    pub(in crate::certified::participant) fn end_taken(
        &mut self,
        request: RequestId,
        cx: &mut Context<'_>,
    ) {
        self.cuts.lose(request);
        let Some(commit) = self.proposed.remove(&request) else { return };
        let txn = commit.txn;
        let known = self.proposed_ids.remove(&txn);
        assert_eq!(known, Some(request), "{txn} was proposed as another request");
        let Some(to) = self.waiting.remove(&txn) else { return };
        match self.ends.known(txn) {
            KnownOutcome::Decided(decision) => self.answer(to, txn, decision, cx),
            KnownOutcome::Gone => {}
            KnownOutcome::New => {
                // Who gave the state has forgotten it.
                let member = self.name();
                cx.send(to, Message::NotKnown { txn, member });
            }
        }
    }
}
