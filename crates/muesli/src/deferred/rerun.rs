//! Procedures done at once, in a transaction: synchronous code over keys that may have to be waited
//! for.
//!
//! A procedure asks for a key and wants its value in the same call. So it is run on what is known
//! of the keys so far; where it asks for something that is not known it is stopped, that is read by
//! the transaction, and it is run again from its beginning. It is deterministic, so each run comes
//! as far as the one before and one step farther. Only the last one counts, and its writes become
//! the transaction's.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use muesli_core::parts::execution::space_named;
use muesli_core::parts::transaction::TransactionSets;
use muesli_core::procedure::{NewValue, ProcedureFn};
use muesli_core::ranges::KeyRange;
use muesli_core::{Catalog, Limits, Row, Scan, SmallBytes, SpaceId, Stop, Store};

use crate::data::byte_range::Range;
use crate::data::space::Space;
use crate::error::Error;
use crate::transaction::tx::Tx;

/// Runs a procedure in a transaction of this loop; what it answers.
///
/// # Errors
/// It refused or failed; or a read or a write did.
pub(crate) async fn run(
    tx: &Tx,
    procedure: ProcedureFn,
    arguments: &SmallBytes,
) -> Result<SmallBytes, Error> {
    let mut known = KnownReads {
        catalog: tx.here(|engine| engine.catalog())??,
        values: BTreeMap::new(),
        ranges: Vec::new(),
        sets: TransactionSets::default(),
        wanted: None,
        fault: None,
        steps: 0,
    };
    loop {
        known.sets.clear();
        known.steps = known.reads();
        let ran = catch_unwind(AssertUnwindSafe(|| procedure(&mut known, arguments)));
        if let Some(wanted) = known.wanted.take() {
            known.read(tx, wanted).await?;
            continue;
        }
        let ran = ran.unwrap_or_else(|_| Err(Stop::Faulty("it panicked".to_owned())));
        let answer = match known.fault.take().map_or(ran, Err) {
            Ok(answer) => answer,
            Err(Stop::Refused(why)) => {
                return Err(Error::Refused(String::from_utf8_lossy(why.as_slice()).into_owned()));
            }
            Err(Stop::Faulty(text)) => return Err(Error::Procedure(text)),
        };
        for write in std::mem::take(&mut known.sets.writes) {
            let space = Space::numbered(write.space);
            match write.value {
                Some(value) => tx.put(space, write.key, value).await?,
                None => tx.delete(space, write.key).await?,
            }
        }
        return Ok(answer);
    }
}

/// What a procedure asked for that is not known.
enum WantedRead {
    Key(SpaceId, SmallBytes),
    Range(Scan),
}

/// What is known of the keys, as the procedure sees them.
struct KnownReads {
    catalog: Arc<Catalog>,
    values: BTreeMap<(SpaceId, SmallBytes), Option<SmallBytes>>,
    /// Scans, and what they found in their order.
    ranges: Vec<(Scan, Vec<Row>)>,
    /// What this run has written.
    sets: TransactionSets,
    /// What this run was stopped for.
    wanted: Option<WantedRead>,
    /// What it did wrong first.
    fault: Option<Stop>,
    /// Of this run; what was read for the earlier ones counts, so that they come to an end.
    steps: u64,
}

impl KnownReads {
    /// How many keys and ranges were read.
    fn reads(&self) -> u64 {
        (self.values.len() + self.ranges.len()) as u64
    }

    async fn read(&mut self, tx: &Tx, wanted: WantedRead) -> Result<(), Error> {
        match wanted {
            WantedRead::Key(space, key) => {
                let value = tx.get(Space::numbered(space), key.clone()).await?;
                self.values.insert((space, key), value);
            }
            WantedRead::Range(scan) => {
                let Scan { space, lo, hi, reverse, limit } = scan.clone();
                let rows =
                    tx.scan(Space::numbered(space), Range { lo, hi, reverse, limit }).await?;
                self.ranges.push((scan, rows));
            }
        }
        Ok(())
    }

    /// Stops the run for something that must be read first.
    fn want(&mut self, wanted: WantedRead) -> Stop {
        self.wanted.get_or_insert(wanted);
        Stop::Faulty("it waits for a key".to_owned())
    }

    fn count(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        let limit = Limits::default().procedure_steps;
        if self.steps > limit {
            let text = format!("more than the allowed {limit} steps were taken");
            self.fault.get_or_insert(Stop::Faulty(text));
        }
        match (&self.fault, &self.wanted) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some(_)) => Err(Stop::Faulty("it waits for a key".to_owned())),
            (None, None) => Ok(()),
        }
    }
}

impl Store for KnownReads {
    fn space(&self, name: &str) -> Result<SpaceId, Stop> {
        space_named(&self.catalog, name)
    }

    fn get(&mut self, space: SpaceId, key: &SmallBytes) -> Result<Option<SmallBytes>, Stop> {
        self.count()?;
        if let Some(own) = self.sets.own(space, key) {
            return Ok(own.clone());
        }
        match self.values.get(&(space, key.clone())) {
            Some(value) => Ok(value.clone()),
            None => Err(self.want(WantedRead::Key(space, key.clone()))),
        }
    }

    fn put(&mut self, space: SpaceId, key: SmallBytes, value: NewValue) -> Result<(), Stop> {
        self.count()?;
        let written = self.sets.write(space, key, value, &Limits::default());
        written
            .map_err(|failure| self.fault.get_or_insert(Stop::Faulty(failure.to_string())).clone())
    }

    fn shared(
        &mut self,
        _space: SpaceId,
        _key: &SmallBytes,
    ) -> Result<Option<Option<SmallBytes>>, Stop> {
        self.count()?;
        Ok(None)
    }

    fn scan(&mut self, scan: &Scan) -> Result<Vec<Row>, Stop> {
        self.count()?;
        if scan.limit == 0 || scan.hi.as_ref().is_some_and(|hi| *hi <= scan.lo) {
            return Ok(Vec::new());
        }
        let range = KeyRange { space: scan.space, lo: scan.lo.clone(), hi: scan.hi.clone() };
        let limit = scan.limit.saturating_add(self.sets.deletes_in(&range));
        let wide = Scan { limit, ..scan.clone() };
        let Some((_, rows)) = self.ranges.iter().find(|(known, _)| *known == wide) else {
            return Err(self.want(WantedRead::Range(wide)));
        };
        let (mut rows, complete) = (rows.clone(), rows.len() < limit);
        if scan.reverse {
            rows.reverse();
        }
        Ok(self.sets.overlay(&range, rows, scan.reverse, scan.limit, complete))
    }
}
