//! What each client knows it has written and added, and what it may have.

use std::collections::{BTreeMap, BTreeSet};

use muesli::{Db, Error, SmallBytes, Space};

use crate::check::{Check, Complaints};
use crate::per_client::PerClient;
use crate::reading::read_many;
use crate::tally::Ended;

/// What a transaction adds to each of a workload's sums.
pub(super) type Added = [i64; 2];

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
pub(super) struct HomeLedger {
    /// The number of its last transaction that had one.
    number: u64,
    /// The number of the last committed write to each key.
    sure: BTreeMap<SmallBytes, u64>,
    /// Writes that may have committed.
    perhaps: BTreeSet<(SmallBytes, u64)>,
    /// What committed transactions added.
    added: Added,
    /// What others may have added.
    added_perhaps: Vec<Added>,
    /// What the transaction under way writes and adds, as of its last attempt.
    writes: BTreeSet<(SmallBytes, u64)>,
    adds: Added,
    /// What reads found that cannot be.
    pub wrong: Complaints,
}

impl HomeLedger {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown);
    }

    /// A number for a new transaction's writes.
    pub fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// An attempt begins.
    pub fn begin_attempt(&mut self) {
        (self.writes, self.adds) = (BTreeSet::new(), [0; 2]);
    }

    /// The attempt writes a key.
    pub fn write(&mut self, key: SmallBytes, number: u64) {
        self.writes.insert((key, number));
    }

    /// The attempt adds so much to one of the sums.
    pub fn add(&mut self, sum: usize, amount: i64) {
        self.adds[sum] += amount;
    }

    /// The transaction has ended.
    pub fn settle(&mut self, ended: &Ended) {
        let (writes, adds) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.adds));
        match ended {
            Ended::Committed => {
                self.sure.extend(writes);
                self.added = [self.added[0] + adds[0], self.added[1] + adds[1]];
            }
            Ended::Unknown => {
                self.perhaps.extend(writes);
                self.added_perhaps.extend((adds != [0; 2]).then_some(adds));
            }
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }
}

/// Who wrote a value, and the number of the transaction; the value begins with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriterTag {
    /// 0 for the loader, else one above the client's number.
    pub writer: u32,
    pub number: u64,
}

const WRITER_TAG_BYTES: usize = 12;

impl WriterTag {
    /// That of the values that are loaded.
    pub const LOADED: WriterTag = WriterTag { writer: 0, number: 0 };

    /// A value of so many bytes, or a few more.
    pub fn value(self, bytes: usize) -> SmallBytes {
        let mut value = Vec::with_capacity(bytes.max(WRITER_TAG_BYTES));
        value.extend_from_slice(&self.writer.to_le_bytes());
        value.extend_from_slice(&self.number.to_le_bytes());
        value.resize(bytes.max(WRITER_TAG_BYTES), b'.');
        value.into()
    }

    /// That of a value.
    ///
    /// # Errors
    /// The value is none of ours.
    pub fn of(value: &SmallBytes) -> Result<WriterTag, Error> {
        let wrong = || Error::Codec(format!("a value of {} bytes is none of ours", value.len()));
        let (writer, rest) = value.as_slice().split_first_chunk().ok_or_else(wrong)?;
        let number = rest.first_chunk().ok_or_else(wrong)?;
        Ok(WriterTag { writer: u32::from_le_bytes(*writer), number: u64::from_le_bytes(*number) })
    }
}

/// The ledgers of all clients.
#[derive(Debug)]
pub(super) struct Ledgers(PerClient<HomeLedger>);

impl Ledgers {
    pub fn new(clients: u32) -> Ledgers {
        Ledgers(PerClient::new(clients, |_| HomeLedger::default()))
    }

    /// That of a client.
    pub fn of(&self, client: u32) -> std::sync::MutexGuard<'_, HomeLedger> {
        self.0.of(client)
    }

    /// Closes all books; the least and the most that each of the sums can have gained.
    pub fn close(&self) -> [std::ops::RangeInclusive<i64>; 2] {
        let (mut least, mut most) = ([0_i64; 2], [0_i64; 2]);
        for mut ledger in self.0.all() {
            ledger.begin_incarnation();
            for sum in 0..2 {
                let open = || ledger.added_perhaps.iter().map(|added| added[sum]);
                least[sum] += ledger.added[sum] + open().map(|by| by.min(0)).sum::<i64>();
                most[sum] += ledger.added[sum] + open().map(|by| by.max(0)).sum::<i64>();
            }
        }
        [least[0]..=most[0], least[1]..=most[1]]
    }

    /// Whether each key that was written without being read shows the last write of whoever
    /// wrote what it shows. The books are closed.
    ///
    /// # Errors
    /// What the database says.
    pub async fn check_writes(&self, db: &Db, space: Space) -> Result<Check, Error> {
        let mut keys = BTreeSet::new();
        for ledger in self.0.all() {
            keys.extend(ledger.sure.keys().cloned());
            keys.extend(ledger.perhaps.iter().map(|(key, _)| key.clone()));
        }
        let keys: Vec<SmallBytes> = keys.into_iter().collect();
        let values = read_many(db, space, &keys).await?;
        let mut wrong = Complaints::default();
        for (key, value) in keys.iter().zip(&values) {
            let writer_tag = value.as_ref().map(WriterTag::of).transpose()?;
            if !self.may_show(key, writer_tag) {
                wrong.add(|| format!("{key:?} shows {writer_tag:?}"));
            }
        }
        let looked = format!("{} keys", keys.len());
        Ok(Check::none_wrong("last writes are seen", &wrong, looked))
    }

    fn may_show(&self, key: &SmallBytes, writer_tag: Option<WriterTag>) -> bool {
        match writer_tag {
            None | Some(WriterTag::LOADED) => self.0.all().all(|it| !it.sure.contains_key(key)),
            Some(WriterTag { writer, number }) => {
                let client = writer.checked_sub(1).filter(|it| *it < self.0.clients());
                client.is_some_and(|client| {
                    let ledger = self.0.of(client);
                    let is_last = ledger.sure.get(key) == Some(&number);
                    is_last || ledger.perhaps.contains(&(key.clone(), number))
                })
            }
        }
    }

    /// What reads found that cannot be, as a check.
    pub fn check_reads(&self) -> Check {
        let mut wrong = Complaints::default();
        self.0.all().for_each(|ledger| wrong.extend(&ledger.wrong));
        Check::none_wrong("answers can be", &wrong, String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(ledgers: &Ledgers, client: u32, key: &SmallBytes, ended: &Ended) -> WriterTag {
        let mut ledger = ledgers.of(client);
        let number = ledger.next_number();
        ledger.begin_attempt();
        ledger.write(key.clone(), number);
        ledger.add(0, 1);
        ledger.settle(ended);
        WriterTag { writer: client + 1, number }
    }

    #[test]
    fn a_key_may_show_the_last_write_of_its_writer_alone() {
        let (ledgers, key) = (Ledgers::new(2), SmallBytes::new(b"k"));
        assert!(ledgers.may_show(&key, None) && ledgers.may_show(&key, Some(WriterTag::LOADED)));
        let first = wrote(&ledgers, 0, &key, &Ended::Committed);
        let second = wrote(&ledgers, 0, &key, &Ended::Committed);
        let failed = wrote(&ledgers, 0, &key, &Ended::RolledBack);
        let unknown = wrote(&ledgers, 0, &key, &Ended::Unknown);
        let others = wrote(&ledgers, 1, &key, &Ended::Committed);
        for shown in [second, unknown, others] {
            assert!(ledgers.may_show(&key, Some(shown)), "{shown:?}");
        }
        for shown in [first, failed, WriterTag { writer: 9, number: 1 }, WriterTag::LOADED] {
            assert!(!ledgers.may_show(&key, Some(shown)), "{shown:?}");
        }
        assert!(!ledgers.may_show(&key, None));
        assert_eq!(ledgers.close()[0], 3..=4);
    }

    #[test]
    fn writers_come_back_from_values_of_any_length() {
        let writer_tag = WriterTag { writer: 7, number: 1 << 40 };
        for bytes in [0, 12, 13, 200] {
            let value = writer_tag.value(bytes);
            assert_eq!(value.len(), bytes.max(WRITER_TAG_BYTES));
            assert_eq!(WriterTag::of(&value), Ok(writer_tag));
        }
        assert!(WriterTag::of(&SmallBytes::new(b"short")).is_err());
    }
}
