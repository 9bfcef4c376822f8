//! One-round transactions, which all members of their shards run when their turn has come.

use std::collections::BTreeMap;

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::procedure::Place;
use muesli_core::{Call, Catalog, Failure, Fragment, Here, OpId, Staleness, Step, TxnOptions};

use super::ShardedCoordinator;
use super::running::{DeferredEnd, ShardedTransaction};
use crate::certified::message::command::{CertifiedCommand, ReplicatedCall};
use crate::sharded::locator::{ShardId, shard_of_partition};
use crate::sharded::{Context, Sharded};

impl ShardedCoordinator {
    pub(super) fn invoke(
        &mut self,
        (options, call): (TxnOptions, Call),
        here: Here<'_, Sharded>,
        cx: &mut Context<'_>,
    ) -> Step {
        let calls: Result<Vec<_>, _> =
            call.fragments.into_iter().map(|it| replicated(it, cx.catalog)).collect();
        let calls = match calls.and_then(|calls| checked(calls, &options, cx)) {
            Ok(calls) => calls,
            Err(failure) => return Step::Done(Err(failure)),
        };
        let txn = self.id(self.sequence + 1);
        let after = options.lower_bound.counter();
        let mut commands: BTreeMap<ShardId, CertifiedCommand> = BTreeMap::new();
        let mut fragments = Vec::with_capacity(calls.len());
        for call in calls {
            let shard = shard_of_partition(call.partition, cx.catalog);
            let command = commands.entry(shard).or_insert_with(|| {
                let (spaces, reads, ranges, writes, calls) = Default::default();
                CertifiedCommand { txn, after, spaces, reads, ranges, writes, calls }
            });
            command.calls.push(call);
            fragments.push(shard);
        }
        let all: usize = commands.values().map(|command| command.calls.len()).sum();
        assert_eq!(all, fragments.len(), "each procedure is of one shard");
        assert!(!fragments.is_empty(), "a call of no procedure");
        let bytes = commands.values().map(CertifiedCommand::bytes).sum();
        let limit = cx.settings.limits.transaction_bytes;
        if let Err(failure) = check_size(Limit::Transaction, bytes, limit) {
            return Step::Done(Err(failure));
        }
        let op = OpId(self.next_number());
        if options.strict || options.staleness.is_some() {
            let staleness = options.staleness.map(|_| Staleness::NONE);
            let options = TxnOptions { strict: true, staleness, ..options };
            let txn = self.begin(options, cx);
            let running = self.running.get_mut(&txn.slot).expect("just begun");
            running.ends = Some(DeferredEnd { op, calls: Some((commands, fragments)) });
            self.ask_clocks(txn, here, cx);
            return Step::Wait(op);
        }
        self.sequence += 1;
        let transaction = ShardedTransaction::new(options, cx.now());
        self.ask_for_commit((txn, op), commands, (transaction, fragments), cx);
        Step::Wait(op)
    }
}

/// A fragment as the members of its shard run it.
fn replicated(fragment: Fragment, catalog: &Catalog) -> Result<ReplicatedCall, Failure> {
    let Fragment { procedure, place, arguments } = fragment;
    let count = catalog.partitions();
    let partition = match place {
        Place::Key(space, key) if catalog.space(space).is_some() => catalog.partition(space, &key),
        Place::Key(space, _) => {
            return Err(Failure::Space(format!("there is no space {}", space.0)));
        }
        Place::Repository(at) if usize::from(at.0) < count => at.0,
        Place::Repository(at) => {
            let text = format!("there is no repository {} among the {count}", at.0);
            return Err(Failure::Procedure(text));
        }
    };
    Ok(ReplicatedCall { procedure, partition, arguments })
}

fn checked(
    calls: Vec<ReplicatedCall>,
    options: &TxnOptions,
    cx: &Context<'_>,
) -> Result<Vec<ReplicatedCall>, Failure> {
    let settings = cx.settings;
    if calls.is_empty() {
        return Err(Failure::Procedure("a call has at least one fragment".to_owned()));
    }
    for call in &calls {
        check_size(Limit::Argument, call.arguments.len(), settings.limits.value_bytes)?;
        let only_reads = settings.procedures.get(&call.procedure).is_some_and(|it| it.read_only);
        if options.read_only && !only_reads {
            return Err(Failure::ReadOnly);
        }
    }
    Ok(calls)
}
