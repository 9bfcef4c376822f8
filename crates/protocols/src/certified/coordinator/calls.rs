//! One-round transactions, which all sites run when their turn has come.

use muesli_core::exceeded::Limit;
use muesli_core::limits::check_size;
use muesli_core::procedure::Place;
use muesli_core::{Call, Catalog, Failure, Fragment, Step, TxnOptions};

use super::CertifiedCoordinator;
use super::running::RunningTransaction;
use crate::certified::Context;
use crate::certified::message::command::{CertifiedCommand, ReplicatedCall};

impl CertifiedCoordinator {
    pub(super) fn invoke(&mut self, options: TxnOptions, call: Call, cx: &mut Context<'_>) -> Step {
        let calls: Result<Vec<_>, _> =
            call.fragments.into_iter().map(|it| replicated(it, cx.catalog)).collect();
        let calls = match calls.and_then(|calls| checked(calls, &options, cx)) {
            Ok(calls) => calls,
            Err(failure) => return Step::Done(Err(failure)),
        };
        let txn = self.next_id();
        let (after, spaces, reads, ranges, writes) = Default::default();
        let command = CertifiedCommand { txn, after, spaces, reads, ranges, writes, calls };
        let limit = cx.settings.limits.transaction_bytes;
        if let Err(failure) = check_size(Limit::Transaction, command.bytes(), limit) {
            return Step::Done(Err(failure));
        }
        let transaction = RunningTransaction::new(options, self.site_of_next(cx), cx.now());
        self.ask_for_commit(command, (transaction, None), cx)
    }
}

/// A fragment as all sites run it.
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
