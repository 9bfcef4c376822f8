//! Counters whose phase in the middle is an open child: the benchmark for nested transactions with
//! what is done before it and after it in the transaction itself.
//!
//! Adding to a counter and adding to it go together, reading and reading do, and the two do not
//! with each other. A transaction that is aborted subtracts what it has added.

use muesli::open_nesting::{CompatibilityMatrix, LockMode, OpenNesting, OpenTx};
use muesli::structures::Counter;
use muesli::{Db, Error, Space, Tx};

use super::handle::CounterHandle;
use crate::calls::CallLength;
use crate::interface::Interface;
use crate::nesting::{NestingPlan, open_layer};
use crate::workload::transact_nested;

/// Subtracts an amount from counters, by their names.
const SUBTRACT: &str = "counters/subtract";
/// Counts a commit of a client, by its number.
const COUNT_COMMIT: &str = "counters/count-commit";

/// How many commits of a client its open children's commit handlers have counted.
pub(super) fn commits_of(space: Space, client: u32) -> Counter {
    Counter::new(space, &format!("commits of {client}"))
}

/// The layer with the inverse of an add, and what counts commits.
pub(super) fn layer(
    plan: &NestingPlan,
    db: &Db,
    (interface, space): (Interface, Space),
) -> Result<OpenNesting, Error> {
    let subtract =
        open_layer::layer(plan, db)?.handler(SUBTRACT, move |tx, of: (Vec<String>, i64)| {
            Box::pin(async move {
                let (names, amount) = of;
                for name in &names {
                    CounterHandle::new(interface, space, name).add(tx, -amount).await?;
                }
                Ok(())
            })
        });
    Ok(subtract.handler(COUNT_COMMIT, move |tx, client: u32| {
        Box::pin(async move { commits_of(space, client).add(tx, 1).await.map(drop) })
    }))
}

/// What counters would show without what may still be undone, of what they show in a transaction.
pub(super) async fn without_undecided(
    layer: &OpenNesting,
    tx: &Tx,
    (names, shown): (&[String], &mut [i64]),
) -> Result<(), Error> {
    for (changed, amount) in layer.undecided::<(Vec<String>, i64)>(tx, SUBTRACT).await? {
        for (name, shows) in names.iter().zip(&mut *shown) {
            *shows -= changed.iter().filter(|it| *it == name).count() as i64 * amount;
        }
    }
    Ok(())
}

fn modes() -> Result<(LockMode, LockMode), Error> {
    let pairs = [("read", "read"), ("add", "add")];
    let matrix = CompatibilityMatrix::new("counter", &["read", "add"], &pairs)?;
    Ok((matrix.mode("read")?, matrix.mode("add")?))
}

/// Counters by their names, and what is added to each; nothing: they are read.
pub(super) struct NamedPhase {
    pub counters: Vec<(String, CounterHandle)>,
    pub amount: Option<i64>,
    /// Whether it takes locks as an open child.
    pub locks: bool,
}

impl NamedPhase {
    /// Does it in a transaction; what the counters showed, if they were read.
    async fn run(&self, tx: &Tx, (db, length): (&Db, CallLength)) -> Result<Vec<i64>, Error> {
        let all: Vec<CounterHandle> =
            self.counters.iter().map(|(_, counter)| counter.clone()).collect();
        let mut shown = Vec::new();
        match self.amount {
            None => shown = CounterHandle::get_many(tx, &all).await?,
            Some(amount) => {
                for counter in &all {
                    counter.add(tx, amount).await?;
                }
            }
        }
        length.wait_for(db, all.len() as u32).await?;
        Ok(shown)
    }

    /// Does it as an open child.
    async fn run_open(
        &self,
        tx: &OpenTx,
        waits: (&Db, CallLength),
        handlers: ChildHandlers,
    ) -> Result<Vec<i64>, Error> {
        let (read, add) = modes()?;
        let mut child = tx.open_atomic((), async |child| self.run(child, waits).await);
        for (name, _) in self.counters.iter().filter(|_| self.locks) {
            child = child.lock(name, if self.amount.is_some() { &add } else { &read });
        }
        if let Some(amount) = self.amount {
            let names: Vec<&str> = self.counters.iter().map(|(name, _)| &**name).collect();
            child = child.on_abort(SUBTRACT, &(names, amount));
        }
        if let Some(client) = handlers.counts {
            child = child.on_commit(COUNT_COMMIT, &client);
        }
        child.await
    }
}

/// What open children leave for after the commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildHandlers {
    /// The client whose commits are counted.
    pub counts: Option<u32>,
}

/// Told of the phases of a transaction.
pub(crate) trait PhaseWatcher {
    /// An attempt begins.
    fn begin_attempt(&self);
    /// The phase on a group has been run, and was shown this if it reads.
    fn done(&self, group: usize, shown: &[i64]);
}

/// Runs the phases one after the other and something `after` them; what the counters of the phase
/// in the middle showed, and how many attempts it took.
pub(super) async fn run(
    (layer, db, length): (&OpenNesting, &Db, CallLength),
    phases: &[NamedPhase; 3],
    (watcher, handlers): (&impl PhaseWatcher, ChildHandlers),
    after: impl AsyncFn(&Tx) -> Result<(), Error>,
) -> (Result<Vec<i64>, Error>, u32) {
    let body = async |tx: &OpenTx| {
        watcher.begin_attempt();
        let [before, middle, last] = phases;
        watcher.done(0, &before.run(tx, (db, length)).await?);
        let shown = match middle.counters.is_empty() {
            true => Vec::new(),
            false => middle.run_open(tx, (db, length), handlers).await?,
        };
        watcher.done(1, &shown);
        watcher.done(2, &last.run(tx, (db, length)).await?);
        after(tx).await?;
        Ok(shown)
    };
    transact_nested(db, layer, body).await
}
