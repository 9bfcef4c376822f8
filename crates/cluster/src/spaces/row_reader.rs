//! A server reads a row of its own database, as any client does: a transaction on its own loop. One
//! that makes no sense it writes again.
//!
//! It does so when somebody says that the row has changed. Such words come at any time, also while
//! the row is being read, and may be wrong: [`Readings`] says when the next reading begins, so that
//! none that is needed is left out, and those that find nothing are few.

use muesli_core::client::{self, AnswerFuture, Engine, operate};
use muesli_core::{Failure, Nanos, Operation, Put, SmallBytes, SpaceId, Txn, TxnOptions};
use muesli_group::placement::EPOCHS_AHEAD_MAX;

use crate::spaces::limits;
use crate::spaces::map::Map;
use crate::spaces::parts::MapParts;
use crate::spaces::register::{KEY, Register};

/// So often is the register read before it is given up: a group may be without a leader.
const ATTEMPTS: u32 = 50;
/// The pause after an attempt that failed.
const PAUSE: Nanos = Nanos::from_millis(100);

/// After a reading that found nothing new, the next one begins so much later.
const PAUSE_IN_VAIN: Nanos = Nanos::from_millis(1_000);

/// What came of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The row; `None`: there is none.
    Row(Option<Register>),
    /// The row made no sense, for this reason, and was written again as it is known here.
    Mended(String),
    /// It could not be read, or not be written again.
    Failed(String),
}

/// What the reader of a register goes by.
#[derive(Clone, Debug)]
pub(crate) struct RegisterReader {
    /// Whose task it is.
    pub database: u64,
    /// Where the row is.
    pub space: SpaceId,
    /// The spaces known here.
    pub map: Map,
    /// The longest frame, into which the map has to fit.
    pub frame_bytes_max: usize,
    /// Whether the protocol keeps spaces that are everywhere.
    pub keeps_everywhere: bool,
}

impl RegisterReader {
    /// What a row says, if those wrote it who make spaces.
    fn judge(&self, row: &SmallBytes) -> Result<Register, String> {
        let register = Register::of_row(row)?;
        let grown = register.grown_from(&self.map).map_err(|error| error.to_string())?;
        if grown.catalog.epoch > self.map.catalog.epoch {
            let fits = limits::judge_frame(&MapParts::from(&grown), self.frame_bytes_max);
            fits.map_err(|error| error.to_string())?;
            let mut all = grown.catalog.spaces().iter();
            all.try_for_each(|it| it.options.judge_everywhere(&it.name, self.keeps_everywhere))?;
        }
        Ok(register)
    }
}

/// When the register is read.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// The epoch that the reading under way looks for.
    under_way: Option<u64>,
    /// The highest epoch that was said and is not being looked for.
    announced: u64,
    /// After a reading that brought nothing: the next one begins no earlier.
    not_before: Nanos,
}

impl Readings {
    /// Somebody says that the spaces are of this epoch by now, where `known` is known here; false:
    /// there is no such epoch.
    pub fn observe(&mut self, epoch: u64, known: u64) -> bool {
        let can_be = epoch.saturating_sub(known) <= EPOCHS_AHEAD_MAX;
        if can_be {
            self.announced = self.announced.max(epoch);
        }
        can_be
    }

    /// Whether a reading is to begin now, as the spaces known are of an earlier epoch than was
    /// said. It is under way then.
    pub fn begin(&mut self, known: u64, now: Nanos) -> bool {
        let begins = self.under_way.is_none() && self.announced > known && now >= self.not_before;
        if begins {
            self.under_way = Some(std::mem::take(&mut self.announced));
        }
        begins
    }

    /// The reading under way has ended, with spaces that were not known or without.
    pub fn end(&mut self, has_news: bool, now: Nanos) {
        self.under_way = None;
        self.not_before = if has_news { Nanos(0) } else { now + PAUSE_IN_VAIN };
    }

    /// The reading under way has failed, and is to be tried again later.
    pub fn fail(&mut self, now: Nanos) {
        self.announced = self.announced.max(self.under_way.take().unwrap_or_default());
        self.not_before = now + PAUSE_IN_VAIN;
    }
}

/// The register as it is now. One that makes no sense is written again.
pub(crate) async fn register(reader: RegisterReader) -> Read {
    let database = reader.database;
    let mut trouble = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0
            && let Err(failure) = sleep(database).await
        {
            return Read::Failed(failure.to_string());
        }
        let row = match transact(&reader, None).await {
            Ok(None) | Err(Failure::Closed) => return Read::Row(None),
            Ok(Some(row)) => row,
            Err(failure) => {
                trouble = failure.to_string();
                continue;
            }
        };
        let why = match reader.judge(&row) {
            Ok(register) => return Read::Row(Some(register)),
            Err(why) => why,
        };
        match transact(&reader, Some(&row)).await {
            Ok(found) if found.as_ref() == Some(&row) => return Read::Mended(why),
            Ok(_) => trouble = format!("{why}; it is being written meanwhile"),
            Err(failure) => trouble = format!("{why}; it cannot be written again: {failure}"),
        }
    }
    Read::Failed(trouble)
}

/// The newest value of the row: a strict transaction sees all that was acknowledged before it.
/// Where that is what is `wrong`, it writes what is known here instead.
async fn transact(
    reader: &RegisterReader,
    wrong: Option<&SmallBytes>,
) -> Result<Option<SmallBytes>, Failure> {
    let database = reader.database;
    let read_only = wrong.is_none();
    let options = TxnOptions { read_only, strict: true, ..TxnOptions::default() };
    let txn = operate(database, Operation::Begin(options)).await?.begun();
    let done = read_and_write(reader, txn, wrong).await;
    if done.is_err() {
        here(database, |engine| engine.operate(Operation::rollback(txn)))?;
        return done;
    }
    operate(database, Operation::Commit(txn)).await.and(done)
}

async fn read_and_write(
    reader: &RegisterReader,
    txn: Txn,
    wrong: Option<&SmallBytes>,
) -> Result<Option<SmallBytes>, Failure> {
    let RegisterReader { database, space, .. } = *reader;
    let key = SmallBytes::new(KEY);
    let found = operate(database, Operation::Get(txn, space, key.clone())).await?.value();
    if wrong.is_some() && found.as_ref() == wrong {
        let value = Some(Register::of(&reader.map).to_row());
        let put = Put { space, key, value, may_wait: true };
        operate(database, Operation::Put(txn, put)).await?;
    }
    Ok(found)
}

async fn sleep(database: u64) -> Result<(), Failure> {
    let op = here(database, |engine| engine.sleep(PAUSE))?;
    AnswerFuture::new(database, op).await.map(drop)
}

fn here<T>(database: u64, call: impl FnOnce(&dyn Engine) -> T) -> Result<T, Failure> {
    client::with(database, call).ok_or(Failure::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Nanos = Nanos::from_millis(7);

    #[test]
    fn what_is_said_while_the_register_is_read_is_looked_for_afterwards() {
        let mut readings = Readings::default();
        assert!(readings.observe(5, 4));
        assert!(readings.begin(4, AT));
        assert!(readings.observe(6, 4));
        assert!(!readings.begin(4, AT), "one at a time");
        readings.end(true, AT);
        assert!(readings.begin(5, AT));
        readings.end(true, AT);
        assert!(!readings.begin(6, AT));
        // What was found with the first is not looked for again.
        assert!(readings.observe(7, 6));
        assert!(readings.begin(6, AT));
        assert!(readings.observe(8, 6));
        readings.end(true, AT);
        assert!(!readings.begin(8, AT));
    }

    #[test]
    fn words_that_are_wrong_cost_a_reading_now_and_then() {
        let mut readings = Readings::default();
        assert!(!readings.observe(u64::MAX, 4), "there are no such epochs");
        assert!(!readings.begin(4, AT));
        assert!(readings.observe(9, 4));
        assert!(readings.begin(4, AT));
        readings.end(false, AT);
        let mut begun = 0;
        for millis in 8..3_500 {
            assert!(readings.observe(9, 4));
            let now = Nanos::from_millis(millis);
            if readings.begin(4, now) {
                begun += 1;
                readings.end(false, now);
            }
        }
        assert_eq!(begun, 3);
    }

    #[test]
    fn a_reading_that_failed_is_tried_again() {
        let mut readings = Readings::default();
        assert!(readings.observe(5, 4));
        assert!(readings.begin(4, AT));
        readings.fail(AT);
        assert!(!readings.begin(4, AT));
        assert!(readings.begin(4, AT + PAUSE_IN_VAIN));
    }
}
