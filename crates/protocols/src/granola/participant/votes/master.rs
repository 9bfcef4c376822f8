//! Votes to a master, and its decision: what differs under Sinfonia at a participant
//! (see [`master`](crate::granola::coordinator::master)).

use muesli_core::{Address, Nanos, Settings, TxnId};

use crate::granola::message::{Agreement, Message, Request, Shown, TimestampVote};
use crate::granola::participant::{Context, Participant};
use crate::granola::switches::GranolaSwitch;

impl Participant {
    pub(in super::super) fn vote_to_master(
        &self,
        request: &Request,
        ballot: TimestampVote,
        about: u64,
        cx: &mut Context<'_>,
    ) {
        let (txn, repository) = (request.txn, self.id);
        let master = Address::coordinator(request.master.unwrap_or(txn.node));
        let shown = Shown { repository, ballot, about, tag: 0 };
        let issuer = cx.settings.issuer.filter(|_| cx.catalog.shows_votes(master));
        let tag = issuer.map_or(0, |issuer| shown.vouched(issuer, txn));
        let vote = Message::Vote { txn, repository, ballot: shown.ballot, about, tag, order: None };
        cx.send_when_logged(master, vote);
    }

    /// A request came once more: the master has not heard the vote, or was not heard.
    pub(in super::super) fn vote_again(&self, txn: TxnId, cx: &mut Context<'_>) {
        let waits = self.active.get(&txn).filter(|active| active.place.is_none());
        if let Some(active) = waits.filter(|_| self.switches.has_master()) {
            let ballot = TimestampVote::Commit(active.proposed);
            self.vote_to_master(&active.request, ballot, active.about, cx);
        }
    }

    /// The master has decided.
    pub(in super::super) fn on_decide(
        &mut self,
        txn: TxnId,
        ballot: TimestampVote,
        cx: &mut Context<'_>,
    ) {
        let Some(active) = self.active.get_mut(&txn) else { return };
        if active.place.is_some() {
            return; // Repeated, or found out otherwise.
        }
        match (&ballot, ballot.end_against()) {
            (TimestampVote::Commit(at), _) => {
                assert!(active.is_prepared(), "{txn} is to be done, and is not prepared");
                active.place = Some(*at);
                self.perform_prepared(txn, cx);
                self.go_on(cx);
            }
            (_, Some(end)) => self.drop_active(txn, end, cx),
            (_, None) => unreachable!("what is not to be done has an end"),
        }
    }

    /// Whether what becomes of a transaction here must survive a crash.
    pub(in super::super) fn is_logged(&self, request: &Request) -> bool {
        let is_guaranteed = self.switches.has_master() && request.agreement != Agreement::Alone;
        request.is_update() || (is_guaranteed && self.switches.keeps(GranolaSwitch::ReadsLogged))
    }

    /// How long it waits for a decision before it asks the others.
    pub(in super::super) fn patience(&self, settings: &Settings) -> Nanos {
        match self.switches.has_master() {
            true => settings.in_doubt_after,
            false => settings.retry_after,
        }
    }
}
