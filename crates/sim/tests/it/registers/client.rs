//! What a client of the registers writes, on the bare client port.

use muesli_core::client::{self, AnswerFuture, Engine};
use muesli_core::{Answer, Failure, Nanos, Operation, Put, SmallBytes, SpaceId, Txn, TxnOptions};

/// The database that the client is polled in.
#[derive(Clone, Copy)]
pub struct Db(pub u64);

/// A transaction, rolled back when it is dropped.
pub struct Open {
    db: Db,
    txn: Txn,
}

impl Db {
    pub fn with<T>(self, operation: impl FnOnce(&dyn Engine) -> T) -> T {
        client::with(self.0, operation).expect("clients are polled where their database is")
    }

    pub async fn sleep(self, duration: Nanos) {
        let op = self.with(|engine| engine.sleep(duration));
        assert_eq!(AnswerFuture::new(self.0, op).await, Ok(Answer::Awake));
    }

    pub fn begin(self) -> Result<Open, Failure> {
        let begun = self.with(|engine| engine.operate(Operation::Begin(TxnOptions::default())));
        Ok(Open { db: self, txn: begun.map(Answer::begun).at_once()? })
    }
}

impl Open {
    pub async fn get(&self, key: &str) -> Result<Option<SmallBytes>, Failure> {
        let get = Operation::Get(self.txn, SpaceId(0), key.into());
        client::operate(self.db.0, get).await.map(Answer::value)
    }

    pub fn put(&self, key: &str, value: u64) -> Result<(), Failure> {
        let value = Some(SmallBytes::new(&value.to_le_bytes()));
        let put = Put { space: SpaceId(0), key: key.into(), value, may_wait: false };
        let put = Operation::Put(self.txn, put);
        self.db.with(|engine| engine.operate(put)).map(Answer::written).at_once()
    }

    pub async fn commit(self) -> Result<(), Failure> {
        client::operate(self.db.0, Operation::Commit(self.txn)).await.map(drop)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        client::with(self.db.0, |engine| engine.operate(Operation::rollback(self.txn)));
    }
}

/// The number in a register; nothing counts as zero.
pub fn number(value: Option<&SmallBytes>) -> u64 {
    let bytes = value.and_then(|value| value.as_slice().try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}
