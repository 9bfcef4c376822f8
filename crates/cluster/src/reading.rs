//! A server reads a row of its own database, as any client does: a transaction on its own loop.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use muesli_core::client::{self, Engine};
use muesli_core::{Failure, Nanos, OpId, OpResult, SmallBytes, SpaceId, Step, TxnOptions, Wire};

use crate::register::{KEY, Register};

/// So often is the register read before it is given up: a group may be without a leader.
const ATTEMPTS: u32 = 50;
/// The pause after an attempt that failed.
const PAUSE: Nanos = Nanos::from_millis(100);

/// The register, when it says at least `epoch`; `None`: it does not, so whoever said that it does
/// was wrong.
///
/// # Errors
/// It cannot be read, or is damaged.
pub(crate) async fn register(
    database: u64,
    space: SpaceId,
    epoch: u64,
) -> Result<Option<Register>, String> {
    let mut trouble = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            sleep(database).await.map_err(|failure| failure.to_string())?;
        }
        match get(database, space, KEY).await {
            Ok(None) => return Ok(None),
            Ok(Some(row)) => {
                let row = Register::decode_all(row.as_slice());
                let row = row.map_err(|error| format!("the row is damaged: {error}"))?;
                return Ok((row.epoch >= epoch).then_some(row));
            }
            Err(Failure::Closed) => return Ok(None),
            Err(failure) => trouble = failure.to_string(),
        }
    }
    Err(trouble)
}

/// The newest value of a key: a strict transaction sees all that was acknowledged before it.
async fn get(database: u64, space: SpaceId, key: &[u8]) -> Result<Option<SmallBytes>, Failure> {
    let options = TxnOptions { read_only: true, strict: true, ..TxnOptions::default() };
    let txn = here(database, |engine| engine.begin(options))??;
    let key = SmallBytes::new(key);
    let read = match here(database, |engine| engine.get(txn, space, &key))? {
        Step::Done(value) => value,
        Step::Wait(op) => match (Waiting { database, op: Some(op) }).await? {
            OpResult::Value(value) => Ok(value),
            OpResult::Failed(failure) => Err(failure),
            other => unreachable!("a get is answered by a value, not by {other:?}"),
        },
    };
    let Ok(value) = read else {
        here(database, |engine| engine.rollback(txn))?;
        return read;
    };
    match here(database, |engine| engine.commit(txn))? {
        Step::Done(done) => done.map(|_| value),
        Step::Wait(op) => match (Waiting { database, op: Some(op) }).await? {
            OpResult::Failed(failure) => Err(failure),
            _ => Ok(value),
        },
    }
}

async fn sleep(database: u64) -> Result<(), Failure> {
    let op = here(database, |engine| engine.sleep(PAUSE))?;
    Waiting { database, op: Some(op) }.await.map(drop)
}

fn here<T>(database: u64, call: impl FnOnce(&dyn Engine) -> T) -> Result<T, Failure> {
    client::with(database, call).ok_or(Failure::Closed)
}

/// Waits for an operation; dropping it tells the engine that nobody does.
struct Waiting {
    database: u64,
    op: Option<OpId>,
}

impl Future for Waiting {
    type Output = Result<OpResult, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let op = self.op.expect("polled after it was ready");
        let polled = here(self.database, |engine| engine.poll(op, context.waker()))?;
        polled.map(|result| {
            self.op = None;
            Ok(result)
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(op) = self.op {
            client::with(self.database, |engine| engine.forget(op));
        }
    }
}
