//! Reads of keys.

use muesli_core::{
    Answer, Failure, Here, OpId, RepositoryId, Role, SmallBytes, SpaceId, Step, Txn,
};

use super::CertifiedCoordinator;
use super::operations::{PendingOperation, PendingReads};
use crate::certified::message::moment::ReadMoment;
use crate::certified::message::{KeysReply, KeysRequest, Message, ReaderNumber};
use crate::certified::{Certified, CertifiedSite, Context};
use crate::sizes::grow_answer;

impl CertifiedCoordinator {
    /// Reads keys; `single`: one, by itself.
    pub(super) fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        (keys, single): (Vec<SmallBytes>, bool),
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) -> Step {
        let records = cx.effects.recorder.is_some();
        let running = match self.open(txn) {
            Ok(running) => running,
            Err(failure) => return Step::Done(Err(failure)),
        };
        if cx.catalog.space(space).is_none() {
            return Step::Done(Err(Failure::Space(format!("there is no space {}", space.0))));
        }
        let mut values = vec![None; keys.len()];
        let mut missing = Vec::new();
        for (place, key) in keys.into_iter().enumerate() {
            let Some(own) = running.sets.own(space, &key).cloned() else {
                missing.push((place, key));
                continue;
            };
            if records {
                running.sets.operations.read_own(space, &key, own.as_ref());
            }
            values[place] = own;
        }
        let op = OpId(self.next_number());
        let kind = PendingReads::Keys { space, single, values, missing };
        self.look_for_keys(op, txn, (kind, 0), here, cx)
    }

    /// Asks for what is missing of an operation, or has it.
    fn look_for_keys(
        &mut self,
        op: OpId,
        txn: Txn,
        (mut kind, mut bytes): (PendingReads, usize),
        mut here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) -> Step {
        self.leave_lost_site(txn, cx);
        let at = self.site_of(txn);
        loop {
            let PendingReads::Keys { space, single, values, missing } = &mut kind else {
                unreachable!("keys are looked for")
            };
            if missing.is_empty() {
                let mut values = std::mem::take(values);
                return Step::Done(Ok(match single {
                    true => Answer::Value(values.swap_remove(0)),
                    false => Answer::Values(values),
                }));
            }
            let (request, reader) = (self.next_number(), self.reader(txn));
            let moment = self.moment_to_ask_for(txn);
            let page = missing.iter().take(cx.settings.limits.page_rows);
            let keys = page.map(|(_, key)| (*space, key.clone())).collect();
            let asked = KeysRequest { request, reader, moment, keys };
            let Some(site) = site_to_read(&mut here, at, (reader, &moment), cx) else {
                let asked = Message::Keys(asked);
                let operation = PendingOperation::new(txn, (request, asked), (bytes, kind), cx);
                self.wait(op, operation, cx);
                return Step::Wait(op);
            };
            let reply = at_site(site, at, cx, |site, cx| site.read_keys(cx.me.node, asked, cx));
            if let Err(failure) = self.take_keys(txn, reply, (&mut kind, &mut bytes), cx) {
                self.fail(txn, &failure, cx);
                return Step::Done(Err(failure));
            }
        }
    }

    /// What a site has answered.
    pub(super) fn on_keys(
        &mut self,
        reply: KeysReply,
        here: Here<'_, Certified>,
        cx: &mut Context<'_>,
    ) {
        let is_of_keys = |kind: &PendingReads| matches!(kind, PendingReads::Keys { .. });
        let taken = self.take_operation(reply.request, is_of_keys);
        let Some((op, operation)) = taken else { return };
        let PendingOperation { txn, mut kind, mut bytes, .. } = operation;
        let taken = self.take_keys(txn, reply, (&mut kind, &mut bytes), cx);
        let step = match taken {
            Ok(()) => self.look_for_keys(op, txn, (kind, bytes), here, cx),
            Err(failure) => {
                self.fail(txn, &failure, cx);
                Step::Done(Err(failure))
            }
        };
        if let Step::Done(answer) = step {
            cx.complete(op, answer);
        }
    }

    /// Notes what was read.
    fn take_keys(
        &mut self,
        txn: Txn,
        reply: KeysReply,
        (kind, bytes): (&mut PendingReads, &mut usize),
        cx: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let records = cx.effects.recorder.is_some();
        self.take_snapshot(txn, reply.snapshot, reply.cut)?;
        let running = self.open(txn)?;
        let PendingReads::Keys { space, values, missing, .. } = kind else {
            unreachable!("keys were looked for")
        };
        let count = reply.found.len().min(missing.len());
        let lengths = missing.iter().map(|(_, key)| key.len());
        let entries = lengths.zip(reply.found.iter().map(|found| found.value.as_ref()));
        grow_answer(bytes, entries, &cx.settings.limits)?;
        for ((place, key), found) in missing.drain(..count).zip(reply.found) {
            running.has_read(*space, key, &found, records);
            values[place] = found.value;
        }
        Ok(())
    }
}

/// A site of this node that can answer a read at once.
pub(super) fn site_to_read<'h>(
    here: &'h mut Here<'_, Certified>,
    at: RepositoryId,
    (reader, moment): (ReaderNumber, &ReadMoment),
    cx: &mut Context<'_>,
) -> Option<&'h mut CertifiedSite> {
    let site = here.repository(at).filter(|site| site.is_member())?;
    let reader = (cx.me.node, reader);
    at_site(site, at, cx, |site, cx| site.has_moment(reader, moment, cx)).then_some(site)
}

/// Has a site of this node do something at once.
pub(super) fn at_site<T>(
    site: &mut CertifiedSite,
    id: RepositoryId,
    cx: &mut Context<'_>,
    run: impl FnOnce(&mut CertifiedSite, &mut Context<'_>) -> T,
) -> T {
    run(site, &mut cx.at(Role::Repository(id)))
}
