//! Commands that are delivered: each is certified or run, and applied if it commits.
//!
//! # Several at a time
//! Where the driver has workers for it ([`Parallel`](muesli_core::Parallel)), commands that are
//! delivered one after the other in one step, and of which no two conflict, are a *batch*: what
//! becomes of each is found out on the state before all of them, by the workers; then each is
//! applied, in the order of their delivery. That is as if each had been done at its place: a
//! partial order delivers what does not conflict in different orders at different sites, so nothing
//! of what becomes of one can depend on another one of them. Batches are short where commands come
//! one by one, and long where a site catches up, or where one delivery lets others go.

use std::collections::VecDeque;

use muesli_broadcast::CommandId;
use muesli_broadcast::epochs::{DeliveredRequest, EpochEffect};
use muesli_core::Decision;

use super::CertifiedSite;
use super::execute::ExecutedCalls;
use super::ordering::{SiteEffect, decoded};
use crate::certified::Context;
use crate::certified::message::Record;
use crate::certified::message::command::{BroadcastCommit, CallsEnd};
use crate::certified::message::objects::is_cut;
use crate::certified::switches::CertifiedSwitch;
use crate::client_quota::ClientQuota;
use crate::sight::Sight;

/// What became of a command, and what of its procedures.
pub(super) type CommandEnd = (Decision, Option<CallsEnd>);

/// What becomes of a command, before anything is changed.
enum CommandFate {
    Certified(Decision),
    Ran(ExecutedCalls),
}

impl CertifiedSite {
    /// The command that is delivered, and those behind it that can be decided together with it.
    /// What the broadcast has logged of these is written down before what becomes of any: decisions
    /// follow the order of deliveries all the same.
    pub(super) fn batch(
        &self,
        first: DeliveredRequest,
        behind: &mut VecDeque<SiteEffect>,
        cx: &mut Context<'_>,
    ) -> Vec<DeliveredRequest> {
        let most = cx.settings.parallel.at_most().max(1);
        let conflicts = |batch: &[DeliveredRequest], next: &DeliveredRequest| {
            let objects = &next.command.objects;
            let mut all = batch.iter();
            self.switches.keeps(CertifiedSwitch::DecidesApart)
                && all.any(|it| it.command.objects.conflicts_with(objects))
        };
        let mut batch = vec![first];
        while batch.len() < most {
            let goes_on = |effect: &mut SiteEffect| match effect {
                EpochEffect::Log(_) => true,
                EpochEffect::Deliver(next) => {
                    let mut all = batch.iter().chain([&*next]);
                    !all.any(|it| is_cut(&it.command)) && !conflicts(&batch, next)
                }
                _ => false,
            };
            match behind.pop_front_if(goes_on) {
                Some(EpochEffect::Log(record)) => cx.log_lazily(|| Record::Broadcast { record }),
                Some(EpochEffect::Deliver(next)) => batch.push(next),
                _ => break,
            }
        }
        assert!(batch.len() <= most, "{} are decided together, of {most}", batch.len());
        batch
    }

    /// The place of these commands in the order has come.
    pub(super) fn deliver(&mut self, batch: Vec<DeliveredRequest>, cx: &mut Context<'_>) {
        assert!(!batch.is_empty(), "nothing is delivered");
        let mut commands = Vec::with_capacity(batch.len());
        for DeliveredRequest { request, id, command, .. } in batch {
            if is_cut(&command) {
                assert!(commands.is_empty(), "a cut is decided together with others");
                self.on_cut(request, id, cx);
                continue;
            }
            if let Some(commit) = self.proposed.remove(&request) {
                self.proposed_ids.remove(&commit.txn);
            }
            // What no site can have proposed has no effect at any.
            commands.extend(decoded(&command).ok().map(|commit| (id, commit)));
        }
        let (sight, all) = (Sight::of(cx), &*self);
        let fate = |(id, commit): &(CommandId, BroadcastCommit)| all.fate(*id, commit, sight);
        let fates: Vec<_> = match &commands[..] {
            [] | [_] => commands.iter().map(fate).collect(),
            several => {
                cx.effects.modes.parallel += several.len() as u64;
                sight.settings.parallel.map(several.iter().collect(), fate)
            }
        };
        assert_eq!(fates.len(), commands.len(), "how many were decided together");
        for ((id, commit), fate) in commands.into_iter().zip(fates) {
            let (commit, end) = self.settle(id, commit, fate, cx);
            // Nobody may know of it before: a leader that has decided at once, and has forgotten
            // that, would have others decide otherwise.
            cx.wait_for_log();
            self.finish(id, commit, end, cx);
        }
        self.collect_sometimes(cx);
    }

    /// What becomes of a command, in place of procedures with what they have written, and what came
    /// of these. It is logged.
    pub(super) fn decide(
        &mut self,
        id: CommandId,
        commit: BroadcastCommit,
        cx: &mut Context<'_>,
    ) -> (BroadcastCommit, CommandEnd) {
        let fate = self.fate(id, &commit, Sight::of(cx));
        self.settle(id, commit, fate, cx)
    }

    fn fate(&self, id: CommandId, commit: &BroadcastCommit, cx: Sight<'_>) -> CommandFate {
        match commit.command.calls.is_empty() {
            true => CommandFate::Certified(self.certify(id.leader, commit)),
            false => CommandFate::Ran(self.execute(id.leader, &commit.command, cx)),
        }
    }

    fn settle(
        &mut self,
        id: CommandId,
        mut commit: BroadcastCommit,
        fate: CommandFate,
        cx: &mut Context<'_>,
    ) -> (BroadcastCommit, CommandEnd) {
        let ExecutedCalls { decision, writes, end, operations } = match fate {
            CommandFate::Ran(ran) => ran,
            CommandFate::Certified(decision) => {
                cx.log_lazily(|| Record::Certified { id, decision });
                return (commit, (decision, None));
            }
        };
        if let (Some((at, operations)), Some(recorder)) = (operations, &mut cx.effects.recorder) {
            recorder.ran(commit.command.txn, 0, at, operations);
        }
        // What is too large to be kept its coordinator gets at once, or never.
        let is_kept = end.bytes() <= ClientQuota::of(cx.settings).bytes;
        let calls = || is_kept.then(|| end.clone());
        cx.log_lazily(|| Record::Ran { id, decision, writes: writes.clone(), calls: calls() });
        commit.command.writes = writes;
        (commit, (decision, Some(end)))
    }
}

#[cfg(test)]
mod tests {
    use muesli_core::{Address, Catalog, Effects, NodeId, RepositoryId, Settings};

    use super::*;
    use crate::certified::Switches;

    #[test]
    #[should_panic(expected = "nothing is delivered")]
    fn a_batch_has_a_command() {
        let catalog = Catalog::new(&[NodeId(0)], 1, &[]).expect("it can be");
        let (settings, id) = (Settings::default(), RepositoryId(0));
        let me = Address::repository(NodeId(0), id);
        let effects = &mut Effects::default();
        let cx = &mut Context { me, catalog: &catalog, settings: &settings, effects };
        let switches = Switches::default();
        let mut site: CertifiedSite = muesli_core::Participant::new(id, &settings, &switches);
        site.deliver(Vec::new(), cx);
    }
}
