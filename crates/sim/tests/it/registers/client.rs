//! What a client of the registers writes, on the bare client port.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use muesli_core::client::{self, Engine};
use muesli_core::{Failure, Nanos, OpId, OpResult, SmallBytes, SpaceId, Step, Txn, TxnOptions};

/// The database that the client is polled in.
#[derive(Clone, Copy)]
pub struct Db(pub u64);

/// A transaction, rolled back when it is dropped.
pub struct Open {
    db: Db,
    txn: Txn,
}

struct Answer(Db, OpId);

impl Future for Answer {
    type Output = OpResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<OpResult> {
        self.0.with(|engine| engine.poll(self.1, cx.waker()))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        client::with(self.0.0, |engine| engine.forget(self.1));
    }
}

impl Db {
    pub fn with<T>(self, operation: impl FnOnce(&dyn Engine) -> T) -> T {
        client::with(self.0, operation).expect("clients are polled where their database is")
    }

    pub async fn sleep(self, duration: Nanos) {
        let op = self.with(|engine| engine.sleep(duration));
        assert_eq!(Answer(self, op).await, OpResult::Awake);
    }

    pub fn begin(self) -> Result<Open, Failure> {
        let txn = self.with(|engine| engine.begin(TxnOptions::default()))?;
        Ok(Open { db: self, txn })
    }
}

impl Open {
    pub async fn get(&self, key: &str) -> Result<Option<SmallBytes>, Failure> {
        match self.db.with(|engine| engine.get(self.txn, SpaceId(0), &key.into())) {
            Step::Done(result) => result,
            Step::Wait(op) => match Answer(self.db, op).await {
                OpResult::Value(value) => Ok(value),
                OpResult::Failed(failure) => Err(failure),
                other => panic!("a get was answered {other:?}"),
            },
        }
    }

    pub fn put(&self, key: &str, value: u64) -> Result<(), Failure> {
        let value = SmallBytes::new(&value.to_le_bytes());
        self.db.with(|engine| engine.put(self.txn, SpaceId(0), key.into(), Some(value)))
    }

    pub async fn commit(self) -> Result<(), Failure> {
        match self.db.with(|engine| engine.commit(self.txn)) {
            Step::Done(result) => result.map(|_| ()),
            Step::Wait(op) => match Answer(self.db, op).await {
                OpResult::Committed(_) => Ok(()),
                OpResult::Failed(failure) => Err(failure),
                other => panic!("a commit was answered {other:?}"),
            },
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        client::with(self.db.0, |engine| engine.rollback(self.txn));
    }
}

/// The number in a register; nothing counts as zero.
pub fn number(value: Option<&SmallBytes>) -> u64 {
    let bytes = value.and_then(|value| value.as_slice().try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}
