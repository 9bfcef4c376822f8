//! Reads of keys.

use std::collections::BTreeMap;

use muesli_core::{Failure, Here, OpId, SmallBytes, SpaceId, Step, Txn};

use super::ShardedCoordinator;
use super::operations::ShardedReads;
use crate::sharded::locator::{ShardId, shard_of_key};
use crate::sharded::message::ShardKeysReply;
use crate::sharded::{Context, Sharded};
use crate::sizes::grow_answer;

impl ShardedCoordinator {
    /// Reads keys; `single`: one, by itself.
    pub(super) fn get(
        &mut self,
        txn: Txn,
        space: SpaceId,
        (keys, single): (Vec<SmallBytes>, bool),
        here: Here<'_, Sharded>,
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
        let mut missing: BTreeMap<ShardId, Vec<_>> = BTreeMap::new();
        for (place, key) in keys.into_iter().enumerate() {
            let Some(own) = running.sets.own(space, &key).cloned() else {
                let shard = shard_of_key(space, &key, cx.catalog);
                missing.entry(shard).or_default().push((place, key));
                continue;
            };
            if records {
                running.sets.operations.read_own(space, &key, own.as_ref());
            }
            values[place] = own;
        }
        self.read(txn, ShardedReads::Keys { space, single, values, missing }, here, cx)
    }

    /// What a member has answered.
    pub(super) fn on_keys(
        &mut self,
        reply: ShardKeysReply,
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) {
        let is_of_keys = |kind: &ShardedReads| matches!(kind, ShardedReads::Keys { .. });
        let taken = self.take_request(reply.request, is_of_keys);
        let Some((op, shard)) = taken else { return };
        let taken = self.take_keys(op, shard, reply, cx);
        self.answered(op, taken, here, cx);
    }

    /// Notes what was read.
    pub(super) fn take_keys(
        &mut self,
        op: OpId,
        shard: ShardId,
        reply: ShardKeysReply,
        cx: &mut Context<'_>,
    ) -> Result<(), Failure> {
        let records = cx.effects.recorder.is_some();
        let txn = self.operations[&op].txn;
        self.take_snapshot(txn, (reply.snapshot, reply.clock))?;
        let operation = self.operations.get_mut(&op).expect("it waits");
        let running = self.running.get_mut(&txn.slot).expect("a transaction that runs");
        let ShardedReads::Keys { space, values, missing, .. } = &mut operation.kind else {
            unreachable!("keys were looked for")
        };
        let of_shard = missing.get_mut(&shard).expect("it was asked for some");
        assert!(!of_shard.is_empty(), "{shard:?} was asked for no key");
        let count = reply.found.len().min(of_shard.len());
        let lengths = of_shard.iter().map(|(_, key)| key.len());
        let entries = lengths.zip(reply.found.iter().map(|found| found.value.as_ref()));
        grow_answer(&mut operation.bytes, entries, &cx.settings.limits)?;
        for ((place, key), found) in of_shard.drain(..count).zip(reply.found) {
            running.has_read(*space, key, &found, records);
            values[place] = found.value;
        }
        if of_shard.is_empty() {
            missing.remove(&shard);
        }
        Ok(())
    }
}
