//! The core workloads: each operation is a transaction.

use muesli::{Error, Range, SmallBytes};

use super::record::Record;
use super::{Ycsb, YcsbMemory};
use crate::chance::Chance;
use crate::tally::Ended;
use crate::workload::{Seat, ended, transact};

/// Shares of operations, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    pub read: u64,
    pub update: u64,
    pub insert: u64,
    pub scan: u64,
    pub read_modify_write: u64,
}

impl Shares {
    /// Those of core workload `a` to `f`.
    pub fn of(workload: &str) -> Shares {
        let (read, update, insert, scan, read_modify_write) = match workload {
            "a" => (50, 50, 0, 0, 0),
            "b" => (95, 5, 0, 0, 0),
            "c" => (100, 0, 0, 0, 0),
            "d" => (95, 0, 5, 0, 0),
            "e" => (0, 0, 5, 95, 0),
            "f" => (50, 0, 0, 0, 50),
            other => unreachable!("`{other}` is no core workload"),
        };
        Shares { read, update, insert, scan, read_modify_write }
    }

    fn draw(&self, chance: &mut Chance) -> YcsbOperation {
        let mut left = chance.below(100);
        for (share, operation) in [
            (self.read, YcsbOperation::Read),
            (self.update + self.read_modify_write, YcsbOperation::Update),
            (self.insert, YcsbOperation::Insert),
        ] {
            if left < share {
                return operation;
            }
            left -= share;
        }
        YcsbOperation::Scan
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YcsbOperation {
    Read,
    /// A record is one value: an update of a field and a read-modify-write are the same.
    Update,
    Insert,
    Scan,
}

impl Ycsb {
    pub(super) async fn core(
        &self,
        shares: Shares,
        seat: &mut Seat,
        memory: &mut YcsbMemory,
    ) -> (Ended, u32) {
        let operation = shares.draw(&mut seat.chance);
        if operation == YcsbOperation::Insert {
            return self.insert(seat, memory).await;
        }
        let number = memory.distribution.draw(self.keys.known(), &mut seat.chance);
        match operation {
            YcsbOperation::Read => self.read(seat, memory, number).await,
            YcsbOperation::Update => self.update(seat, memory, number).await,
            YcsbOperation::Insert => unreachable!("done above"),
            YcsbOperation::Scan => {
                let rows = seat.chance.between(1, self.scan) as usize;
                self.scan_from(seat, memory, number, rows).await
            }
        }
    }

    async fn read(&self, seat: &Seat, memory: &YcsbMemory, number: u64) -> (Ended, u32) {
        let (space, key) = (memory.space, &self.keys.name(number));
        let (answer, attempts) =
            memory.reader.transact(async |tx| tx.get(space, key.clone()).await).await;
        if let Ok(value) = &answer {
            let record = value.as_ref().map(|value| self.decode(value));
            self.judge_record(seat, number, record);
        }
        (ended(answer), attempts)
    }

    async fn update(&self, seat: &Seat, memory: &YcsbMemory, number: u64) -> (Ended, u32) {
        let (space, key, client) = (memory.space, &self.keys.name(number), seat.client);
        let (answer, attempts) = transact(&seat.db, async |tx| {
            let value = tx.get(space, key.clone()).await?;
            let value = value.ok_or_else(|| Error::Codec("a record is missing".to_owned()))?;
            let record = self.decode(&value)?.changed(0);
            self.ledgers.of(client).set_out(1);
            tx.put(space, key.clone(), self.layout.encode(&record)).await?;
            Ok(record)
        })
        .await;
        if let Ok(record) = &answer {
            self.judge_record(seat, number, Some(Ok(*record)));
        }
        let ended = ended(answer);
        self.ledgers.of(client).settle(&ended);
        (ended, attempts)
    }

    async fn insert(&self, seat: &Seat, memory: &YcsbMemory) -> (Ended, u32) {
        // One that failed before, or is not known to be there, is tried again.
        let number = self.ledgers.of(seat.client).inserting.take();
        let number = number.unwrap_or_else(|| self.keys.take_number());
        self.ledgers.of(seat.client).inserting = Some(number);
        let (space, key) = (memory.space, &self.keys.name(number));
        let value = &self.layout.encode(&Record::first(number));
        let (answer, attempts) =
            transact(&seat.db, async |tx| tx.put(space, key.clone(), value.clone()).await).await;
        if answer.is_ok() {
            self.ledgers.of(seat.client).inserting = None;
            self.keys.acknowledge(number);
        }
        (ended(answer), attempts)
    }

    async fn scan_from(
        &self,
        seat: &Seat,
        memory: &YcsbMemory,
        number: u64,
        rows: usize,
    ) -> (Ended, u32) {
        let (space, key) = (memory.space, &self.keys.name(number));
        let range = &Range::of::<SmallBytes>(key..).limit(rows);
        let (answer, attempts) =
            memory.reader.transact(async |tx| tx.scan(space, range.clone()).await).await;
        if let Ok(found) = &answer {
            if number < self.keys.first_count() {
                let first = found.first().map(|(_, value)| self.decode(value));
                self.judge_record(seat, number, first);
            }
            for (key, value) in found {
                let named = self.decode(value).map(|record| self.keys.name(record.number));
                if named.as_ref() != Ok(key) {
                    let complain = || format!("a scan found {named:?} under {key:?}");
                    self.ledgers.of(seat.client).wrong_records.add(complain);
                }
            }
        }
        (ended(answer), attempts)
    }

    /// The record with this number was asked for, and this is what came.
    pub(super) fn judge_record(
        &self,
        seat: &Seat,
        number: u64,
        found: Option<Result<Record, Error>>,
    ) {
        let right = match &found {
            Some(record) => record.as_ref().is_ok_and(|record| record.number == number),
            // What other sessions inserted may not be in this one's snapshot yet.
            None => number >= self.keys.first_count(),
        };
        if !right {
            let complain = || format!("record {number} is {found:?}");
            self.ledgers.of(seat.client).wrong_records.add(complain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_are_drawn_as_they_say() {
        for workload in ["a", "b", "c", "d", "e", "f"] {
            let shares = Shares::of(workload);
            let Shares { read, update, insert, scan, read_modify_write } = shares;
            assert_eq!(read + update + insert + scan + read_modify_write, 100, "{workload}");
            let mut chance = Chance::new(3, 0, 1);
            let drawn: Vec<_> = (0..20_000).map(|_| shares.draw(&mut chance)).collect();
            let share = |wanted| drawn.iter().filter(|drawn| **drawn == wanted).count() / 200;
            let near = |wanted, share: usize| share.abs_diff(wanted as usize) <= 2;
            assert!(near(read, share(YcsbOperation::Read)), "{workload}");
            assert!(near(insert, share(YcsbOperation::Insert)), "{workload}");
            assert!(near(scan, share(YcsbOperation::Scan)), "{workload}");
        }
    }
}
