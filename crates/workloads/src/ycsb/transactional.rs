//! Transactions over several records.
//!
//! Groups are `reads` records with consecutive numbers. Units move only within a group, so that
//! whoever reads a group whole finds as many as there were at first, whatever else was changed,
//! deleted or inserted in it.

use muesli::{Error, Range, Tx};
use muesli_core::Row;

use super::record::{Record, UNITS};
use super::{Ycsb, YcsbMemory};
use crate::parted::PartsTx;
use crate::tally::Ended;
use crate::workload::{Seat, ended};

/// What an update of a range does, drawn before its first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YcsbChange {
    /// Changes so many records, moving units from the first to the others.
    Move(u64),
    /// Deletes a record; another one takes over its units and counter.
    Delete,
    /// Inserts a record that was deleted, with units of another one.
    Insert,
}

/// What an update does with the range from a record on.
#[derive(Clone, Copy, Debug)]
struct RangeChange {
    first: u64,
    place: u64,
    change: YcsbChange,
}

/// What becomes of a record.
type Write = (u64, Option<Record>);

impl Ycsb {
    /// A transaction of variant `t`.
    pub(super) async fn transactional(
        &self,
        seat: &mut Seat,
        memory: &mut YcsbMemory,
    ) -> (Ended, u32) {
        let count = self.keys.first_count();
        let groups = count / self.reads as u64;
        let whole_group = groups > 0 && seat.chance.percent(self.groups);
        let updates = seat.chance.percent(self.updates);
        let mut numbers: Vec<u64> = if whole_group {
            let place = memory.distribution.draw(count, &mut seat.chance) / self.reads as u64;
            let first = place.min(groups - 1) * self.reads as u64;
            (first..first + self.reads as u64).collect()
        } else {
            let many = if updates { self.reads } else { self.reader_reads };
            let share = u64::from(seat.client) % self.shares;
            let own = (count / self.shares).max(1);
            let drawn = memory.distribution.draw_distinct(many, own, &mut seat.chance);
            drawn.into_iter().map(|number| number * self.shares + share).collect()
        };
        let is_open = self.nesting.may_be_open();
        if is_open {
            numbers.sort_unstable(); // So that who is the furthest is refused no lock.
        }
        if !updates {
            return self.read_many(seat, memory, &numbers, whole_group).await;
        }
        let changed = seat.chance.between(1, self.writes).min(numbers.len() as u64) as usize;
        let first = seat.chance.below(numbers.len() as u64) as usize;
        let first = if whole_group || is_open { first } else { 0 };
        self.change_many(seat, memory, &numbers, (first, changed), whole_group).await
    }

    async fn read_many(
        &self,
        seat: &Seat,
        memory: &YcsbMemory,
        numbers: &[u64],
        whole_group: bool,
    ) -> (Ended, u32) {
        let (answer, attempts) =
            memory.reader.transact(async |tx| self.records(tx, memory, numbers).await).await;
        if let Ok(records) = &answer {
            for (number, record) in numbers.iter().zip(records) {
                self.judge_record(seat, *number, Some(Ok(*record)));
            }
            if whole_group {
                self.judge_group(seat, numbers[0], records);
            }
        }
        (ended(answer), attempts)
    }

    /// Reads records all of which must be there, each in a part of its own.
    async fn records(
        &self,
        tx: PartsTx<'_>,
        memory: &YcsbMemory,
        numbers: &[u64],
    ) -> Result<Vec<Record>, Error> {
        if self.nesting.is_flat() {
            return self.records_of_part(&tx, memory, numbers).await;
        }
        let mut records = Vec::with_capacity(numbers.len());
        for number in numbers {
            let read = async |tx: &Tx| self.records_of_part(tx, memory, &[*number]).await;
            records.extend(self.nesting.part(tx, read).await?);
        }
        Ok(records)
    }

    /// Reads them in one part.
    async fn records_of_part(
        &self,
        tx: &Tx,
        memory: &YcsbMemory,
        numbers: &[u64],
    ) -> Result<Vec<Record>, Error> {
        let mut keys = numbers.iter().map(|number| self.keys.name(*number));
        let mut values = Vec::with_capacity(numbers.len());
        if self.one_by_one {
            for key in keys {
                values.push(tx.get(memory.space, key).await?);
            }
        } else {
            values = tx.get_many(memory.space, &mut keys).await?;
        }
        let decoded = values.iter().map(|value| match value {
            Some(value) => self.decode(value),
            None => Err(Error::Codec("a record is missing".to_owned())),
        });
        decoded.collect()
    }

    /// Reads all, changes some from a place on; in a whole group, units move with that.
    async fn change_many(
        &self,
        seat: &Seat,
        memory: &YcsbMemory,
        numbers: &[u64],
        (first, changed): (usize, usize),
        whole_group: bool,
    ) -> (Ended, u32) {
        let client = seat.client;
        let (answer, attempts) = memory
            .writer
            .transact(async |tx| {
                if !self.nesting.is_flat() {
                    self.ledgers.of(client).set_out(changed as u64);
                    return self
                        .change_each(tx, memory, numbers, (first, changed), whole_group)
                        .await;
                }
                let records = self.records(tx, memory, numbers).await?;
                self.ledgers.of(client).set_out(changed as u64);
                for step in 0..changed {
                    let record = &records[(first + step) % records.len()];
                    let units = if whole_group { moved(step, changed) } else { 0 };
                    let value = self.layout.encode(&record.changed(units));
                    tx.put(memory.space, self.keys.name(record.number), value).await?;
                }
                Ok(())
            })
            .await;
        let ended = ended(answer);
        self.ledgers.of(client).settle(&ended);
        (ended, attempts)
    }

    /// The same with a part for each record, which writes it if it is one of those that change.
    async fn change_each(
        &self,
        tx: PartsTx<'_>,
        memory: &YcsbMemory,
        numbers: &[u64],
        (first, changed): (usize, usize),
        whole_group: bool,
    ) -> Result<(), Error> {
        for (at, number) in numbers.iter().enumerate() {
            let step = (at + numbers.len() - first) % numbers.len();
            let units = if whole_group { moved(step, changed) } else { 0 };
            let change = async |tx: &Tx| {
                let record = self.records_of_part(tx, memory, &[*number]).await?[0];
                if step >= changed {
                    return Ok(());
                }
                let value = self.layout.encode(&record.changed(units));
                tx.put(memory.space, self.keys.name(*number), value).await
            };
            self.nesting.part(tx, change).await?;
        }
        Ok(())
    }

    /// A transaction of variant `s`.
    pub(super) async fn scanning(&self, seat: &mut Seat, memory: &mut YcsbMemory) -> (Ended, u32) {
        let reads = self.reads as u64;
        let groups = self.keys.first_count() / reads;
        let groups: Vec<u64> = match self.ranges {
            1 => vec![memory.distribution.draw(groups, &mut seat.chance)],
            many => memory.distribution.draw_distinct(many, groups, &mut seat.chance),
        };
        let firsts: Vec<u64> = groups.into_iter().map(|group| group * reads).collect();
        if !seat.chance.percent(self.updates) {
            return self.scan_groups(seat, memory, &firsts).await;
        }
        let change = |first| {
            let change = match seat.chance.below(3) {
                0 => YcsbChange::Delete,
                1 => YcsbChange::Insert,
                _ => YcsbChange::Move(seat.chance.between(1, self.writes)),
            };
            RangeChange { first, place: seat.chance.below(reads), change }
        };
        let changes: Vec<RangeChange> = firsts.into_iter().map(change).collect();
        self.change_ranges(seat, memory, &changes).await
    }

    fn range(&self, first: u64) -> Range {
        Range::of(self.keys.name(first)..self.keys.name(first + self.reads as u64))
    }

    fn decode_rows(&self, rows: &[Row]) -> Result<Vec<Record>, Error> {
        rows.iter().map(|(_, value)| self.decode(value)).collect()
    }

    async fn scan_groups(&self, seat: &Seat, memory: &YcsbMemory, firsts: &[u64]) -> (Ended, u32) {
        let (answer, attempts) = memory
            .reader
            .transact(async |tx| {
                let mut found = Vec::with_capacity(firsts.len());
                for first in firsts {
                    let range = &self.range(*first);
                    let scan = async |tx: &Tx| {
                        self.decode_rows(&tx.scan(memory.space, range.clone()).await?)
                    };
                    found.push(self.nesting.part(tx, scan).await?);
                }
                Ok(found)
            })
            .await;
        if let Ok(found) = &answer {
            for (first, records) in firsts.iter().zip(found) {
                self.judge_group(seat, *first, records);
            }
        }
        (ended(answer), attempts)
    }

    async fn change_ranges(
        &self,
        seat: &Seat,
        memory: &YcsbMemory,
        changes: &[RangeChange],
    ) -> (Ended, u32) {
        let client = seat.client;
        let (answer, attempts) = memory
            .writer
            .transact(async |tx| {
                let mut counted = 0;
                for change in changes {
                    let part = async |tx: &Tx| self.change_range(tx, memory, *change).await;
                    counted += self.nesting.part(tx, part).await?;
                }
                self.ledgers.of(client).set_out(counted);
                Ok(())
            })
            .await;
        let ended = ended(answer);
        self.ledgers.of(client).settle(&ended);
        (ended, attempts)
    }

    /// Scans a range and changes it; how many changes the counters of its records show then.
    async fn change_range(
        &self,
        tx: &Tx,
        memory: &YcsbMemory,
        RangeChange { first, place, change }: RangeChange,
    ) -> Result<u64, Error> {
        let (space, range) = (memory.space, self.range(first));
        let records = self.decode_rows(&tx.scan(space, range).await?)?;
        let (writes, changes) = plan(&records, first, self.reads as u64, place, change);
        for (number, record) in writes {
            let key = self.keys.name(number);
            match record {
                Some(record) => tx.put(space, key, self.layout.encode(&record)).await?,
                None => tx.delete(space, key).await?,
            }
        }
        Ok(changes)
    }

    /// A group was read whole.
    fn judge_group(&self, seat: &Seat, first: u64, records: &[Record]) {
        let units: i64 = records.iter().map(|record| record.units).sum();
        let expected = UNITS * self.reads as i64;
        let mut ledger = self.ledgers.of(seat.client);
        ledger.groups_read += 1;
        if units != expected {
            let complain = || format!("the group from {first} on holds {units}, not {expected}");
            ledger.wrong_groups.add(complain);
        }
    }
}

/// What the record at `step` of `changed` gets: the first one pays one unit to each other.
fn moved(step: usize, changed: usize) -> i64 {
    if step == 0 { 1 - changed as i64 } else { 1 }
}

/// The writes of an update of a range that holds these records, and how many changes the
/// counters show then. A change that the records do not allow becomes a plain one.
fn plan(
    records: &[Record],
    first: u64,
    length: u64,
    place: u64,
    change: YcsbChange,
) -> (Vec<Write>, u64) {
    if records.is_empty() {
        return (Vec::new(), 0);
    }
    let at = |step: u64| records[((place + step) % records.len() as u64) as usize];
    match change {
        YcsbChange::Delete if records.len() > 1 => {
            let (gone, heir) = (at(0), at(1));
            let changes = heir.changes + gone.changes;
            let heir = Record { changes, ..heir }.changed(gone.units);
            (vec![(gone.number, None), (heir.number, Some(heir))], 1)
        }
        YcsbChange::Insert if (records.len() as u64) < length => {
            let mut absent = (first..first + length)
                .filter(|number| records.iter().all(|record| record.number != *number));
            let number = absent.next().expect("fewer records than numbers");
            let payer = at(0);
            let new = Record { number, changes: 0, units: 0 }.changed(payer.units / 2);
            let payer = payer.changed(-(payer.units / 2));
            (vec![(number, Some(new)), (payer.number, Some(payer))], 2)
        }
        YcsbChange::Delete | YcsbChange::Insert | YcsbChange::Move(_) => {
            let wanted = if let YcsbChange::Move(many) = change { many } else { 1 };
            let changed = wanted.min(records.len() as u64);
            let write = |step| {
                let record = at(step).changed(moved(step as usize, changed as usize));
                (record.number, Some(record))
            };
            ((0..changed).map(write).collect(), changed)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn units_stay_in_the_group_and_counters_show_every_change(
            steps in prop::collection::vec((0u64..8, 0u64..3, 1u64..5), 0..60),
        ) {
            let mut group: BTreeMap<u64, Record> =
                (40..48).map(|number| (number, Record::first(number))).collect();
            let mut expected = 0;
            for (place, kind, many) in steps {
                let changes = [YcsbChange::Delete, YcsbChange::Insert, YcsbChange::Move(many)];
                let change = changes[kind as usize];
                let records: Vec<Record> = group.values().copied().collect();
                let (writes, changes) = plan(&records, 40, 8, place, change);
                expected += changes;
                for (number, record) in writes {
                    prop_assert!((40..48).contains(&number));
                    match record {
                        Some(record) => group.insert(number, record),
                        None => group.remove(&number),
                    };
                }
                prop_assert_eq!(group.values().map(|record| record.units).sum::<i64>(), 8 * UNITS);
                let counted: u64 = group.values().map(|record| record.changes).sum();
                prop_assert_eq!(counted, expected);
            }
        }
    }
}
