//! What was not answered is asked again, and given up at last.

use std::collections::BTreeMap;

use muesli_core::{Failure, Nanos, RepositoryId, Txn};

use super::ShardedCoordinator;
use super::nearest::NearMembers;
use crate::certified::message::ReaderNumber;
use crate::sharded::Context;
use crate::sharded::message::Message;

impl ShardedCoordinator {
    /// Asks again, says who still reads and who does no more, and gives up what takes too long.
    pub(super) fn repeat(&mut self, cx: &mut Context<'_>) {
        self.repeat_operations(cx);
        self.repeat_commits(cx);
        self.watch_again(cx);
        self.send_released(cx);
        self.renew(cx);
    }

    fn repeat_operations(&mut self, cx: &mut Context<'_>) {
        let (settings, now) = (cx.settings, cx.now());
        let (mut late, mut again): (Vec<Txn>, Vec<_>) = Default::default();
        let patience = NearMembers::patience(settings);
        for (op, operation) in &self.operations {
            if operation.since + settings.give_up_after <= now {
                late.push(operation.txn);
                continue;
            }
            for (shard, asked) in &operation.asked {
                let is_silent = asked.since + patience <= now;
                if is_silent {
                    let here = (self.node, cx.catalog);
                    self.nearest.pass_over(asked.to, here, (now, settings));
                }
                let outstanding = cx.is_outstanding(asked.to, asked.sent) && !is_silent;
                if asked.sent + settings.retry_after <= now && !outstanding {
                    again.push((*op, *shard));
                }
            }
        }
        for (op, shard) in again {
            let to = self.nearest.of(shard, 0, (self.node, cx.catalog), now);
            self.ask_again(op, shard, to, cx);
        }
        let after_ms = settings.give_up_after.as_millis();
        for txn in late {
            cx.effects.maintenance.given_up += 1;
            self.fail(txn, &Failure::Timeout { after_ms }, cx);
        }
    }

    /// Says who still reads, well before members take them to be gone.
    fn renew(&mut self, cx: &mut Context<'_>) {
        if self.renewed + Nanos(cx.settings.snapshot_lease.0 / 4) > cx.now() {
            return;
        }
        self.renewed = cx.now();
        let incarnation = self.incarnation;
        let mut reading: BTreeMap<RepositoryId, Vec<ReaderNumber>> = BTreeMap::new();
        for (&number, running) in &self.running {
            for member in &running.asked {
                reading.entry(*member).or_default().push(ReaderNumber { incarnation, number });
            }
        }
        for (member, readers) in reading {
            cx.send_to_repository(member, Message::Renew { readers });
        }
    }
}
