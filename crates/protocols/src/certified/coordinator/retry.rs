//! What was not answered is asked again, and given up at last.

use std::collections::BTreeMap;

use muesli_core::{Failure, Nanos, RepositoryId, Txn};

use super::CertifiedCoordinator;
use crate::certified::Context;
use crate::certified::message::{Message, ReaderNumber};

impl CertifiedCoordinator {
    /// Asks again, says who still reads and who does no more, and gives up what takes too long.
    pub(super) fn repeat(&mut self, cx: &mut Context<'_>) {
        self.pass_over_silent(cx);
        self.repeat_operations(cx);
        self.repeat_commits(cx);
        self.ask_elsewhere(cx);
        self.watch_again(cx);
        self.send_released(cx);
        self.renew(cx);
    }

    fn repeat_operations(&mut self, cx: &mut Context<'_>) {
        let (settings, now) = (cx.settings, cx.now());
        let mut late: Vec<Txn> = Vec::new();
        for operation in self.operations.values_mut() {
            let site = self.running.get(&operation.txn.slot).expect("an open transaction").site;
            if operation.since + settings.give_up_after <= now {
                late.push(operation.txn);
            } else if operation.sent + settings.retry_after <= now
                && !cx.is_outstanding(site, operation.sent)
            {
                operation.sent = now;
                cx.send_to_repository(site, operation.asked.clone());
            }
        }
        let after_ms = settings.give_up_after.as_millis();
        for txn in late {
            cx.effects.maintenance.given_up += 1;
            self.fail(txn, &Failure::Timeout { after_ms }, cx);
        }
    }

    fn repeat_commits(&mut self, cx: &mut Context<'_>) {
        let (settings, now) = (cx.settings, cx.now());
        let settled_below = self.settled_below();
        let (mut late, mut forgotten) = (Vec::new(), Vec::new());
        for (sequence, commit) in &mut self.commits {
            let site = commit.site();
            assert!(commit.since <= commit.sent, "{sequence} was asked for before it began");
            if commit.op.is_some() && commit.since + settings.give_up_after <= now {
                late.push(*sequence);
            }
            let asked_for = settings.give_up_after + settings.client_lease;
            if commit.op.is_none() && commit.since + asked_for <= now {
                forgotten.push(*sequence); // Its site has probably forgotten it as well.
            } else if commit.sent + settings.retry_after <= now
                && !cx.is_outstanding(site, commit.sent)
                && !commit.elsewhere.is_lost
            {
                commit.sent = now;
                let (command, reader) = (commit.command.clone(), commit.reader);
                let ask = Message::Commit {
                    settled_below,
                    reader,
                    again: true,
                    member: commit.member,
                    tried_since: commit.tried_since(),
                    command,
                };
                cx.send_to_repository(site, ask);
            }
        }
        late.into_iter().for_each(|sequence| self.give_up(sequence, cx));
        for sequence in forgotten {
            self.commits.remove(&sequence);
            self.unknown.forget(sequence);
        }
    }

    /// Says who still reads, well before the site takes them to be gone.
    fn renew(&mut self, cx: &mut Context<'_>) {
        if self.renewed + Nanos(cx.settings.snapshot_lease.0 / 4) > cx.now() {
            return;
        }
        self.renewed = cx.now();
        let incarnation = self.incarnation;
        let mut reading: BTreeMap<RepositoryId, Vec<ReaderNumber>> = BTreeMap::new();
        for (&number, running) in self.running.iter().filter(|(_, it)| it.snapshot.is_some()) {
            reading.entry(running.site).or_default().push(ReaderNumber { incarnation, number });
        }
        for (site, readers) in reading {
            cx.send_to_repository(site, Message::Renew { readers });
        }
    }
}
