//! What clients know they have done to each object, and what they may have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use super::mix::{DrawnObjects, ObjectUse};
use super::value::{BlindWrite, StoredObject};
use crate::per_client::PerClient;
use crate::tally::Ended;

/// The books of all clients. They grow with the objects, and not with the transactions but for
/// those of unknown outcome.
#[derive(Debug)]
pub(super) struct ObjectBooks {
    /// How many committed updates have read and written each object.
    updates: Box<[AtomicU32]>,
    ledgers: PerClient<ObjectLedger>,
}

/// The books of one client, over all of its lives.
#[derive(Debug, Default)]
struct ObjectLedger {
    /// The number of its last transaction that writes.
    transactions: u64,
    /// What the transaction under way writes.
    under_way: DrawnObjects,
    /// For each object, how many more updates may have committed.
    updates_perhaps: BTreeMap<u64, u64>,
    /// The last committed write to each object that did not read it.
    blind: BTreeMap<u64, u64>,
    /// Such writes that may have committed, with their objects.
    blind_perhaps: BTreeSet<(u64, u64)>,
}

impl ObjectLedger {
    fn settle(&mut self, ended: &Ended, committed: &[AtomicU32]) {
        let transaction = self.transactions;
        for (number, used) in std::mem::take(&mut self.under_way) {
            match (ended, used) {
                (Ended::Committed, ObjectUse::Update) => {
                    committed[number as usize].fetch_add(1, Ordering::Relaxed);
                }
                (Ended::Committed, ObjectUse::Blind) => {
                    self.blind.insert(number, transaction);
                }
                (Ended::Unknown, ObjectUse::Update) => {
                    *self.updates_perhaps.entry(number).or_default() += 1;
                }
                (Ended::Unknown, ObjectUse::Blind) => {
                    self.blind_perhaps.insert((number, transaction));
                }
                (_, ObjectUse::Read) | (Ended::RolledBack | Ended::Failed(_), _) => {}
            }
        }
    }
}

impl ObjectBooks {
    /// For so many objects and clients.
    pub fn new(objects: u64, clients: u32) -> ObjectBooks {
        ObjectBooks {
            updates: (0..objects).map(|_| AtomicU32::new(0)).collect(),
            ledgers: PerClient::new(clients, |_| ObjectLedger::default()),
        }
    }

    /// A life of a client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&self, client: u32) {
        self.settle(client, &Ended::Unknown);
    }

    /// A client is about to commit a transaction that writes; by what its writes are known that do
    /// not read.
    pub fn set_out(&self, client: u32, drawn: &DrawnObjects) -> BlindWrite {
        let mut ledger = self.ledgers.of(client);
        ledger.transactions += 1;
        let writes = drawn.iter().filter(|it| it.1 != ObjectUse::Read);
        ledger.under_way = writes.copied().collect();
        BlindWrite { client, transaction: ledger.transactions }
    }

    /// The client's transaction has ended.
    pub fn settle(&self, client: u32, ended: &Ended) {
        self.ledgers.of(client).settle(ended, &self.updates);
    }

    /// All books together, once no client runs any more.
    pub fn closed(&self) -> ClosedBooks<'_> {
        let mut closed = ClosedBooks {
            updates: &self.updates,
            perhaps: BTreeMap::new(),
            blind: BTreeMap::new(),
        };
        for client in 0..self.ledgers.clients() {
            self.begin_incarnation(client);
            let ledger = self.ledgers.of(client);
            for (number, count) in &ledger.updates_perhaps {
                *closed.perhaps.entry(*number).or_default() += count;
            }
            let sure =
                ledger.blind.iter().map(|(number, transaction)| (*number, *transaction, true));
            let perhaps = ledger.blind_perhaps.iter().map(|it| (it.0, it.1, false));
            for (number, transaction, sure) in sure.chain(perhaps) {
                let write = BlindWrite { client, transaction };
                closed.blind.entry(number).or_default().push((write, sure));
            }
        }
        closed
    }
}

/// The books of all clients together.
#[derive(Debug)]
pub(super) struct ClosedBooks<'a> {
    updates: &'a [AtomicU32],
    /// For each object, how many more updates may have committed.
    perhaps: BTreeMap<u64, u64>,
    /// Of each object that was written unread: each client's last such write, and those that may
    /// have committed; and whether one is sure to have.
    blind: BTreeMap<u64, Vec<(BlindWrite, bool)>>,
}

impl ClosedBooks<'_> {
    /// The least and the most updates that an object can show.
    pub fn bounds(&self, number: u64) -> std::ops::RangeInclusive<u64> {
        let sure = u64::from(self.updates[number as usize].load(Ordering::Relaxed));
        let most = sure + self.perhaps.get(&number).copied().unwrap_or(0);
        // A write that does not read begins the count anew.
        let least = if self.blind.contains_key(&number) { 0 } else { sure };
        least..=most
    }

    /// Whether an object was, or may have been, written unread.
    pub fn is_blind(&self, number: u64) -> bool {
        self.blind.contains_key(&number)
    }

    /// Whether an object shows the last write that did not read it of whoever wrote what it shows.
    pub fn may_show(&self, object: &StoredObject) -> bool {
        let writes = self.blind.get(&object.number).map_or(&[][..], Vec::as_slice);
        match object.blind {
            None => writes.iter().all(|(_, sure)| !sure),
            Some(shown) => writes.iter().any(|(write, _)| *write == shown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(books: &ObjectBooks, client: u32, used: ObjectUse, ended: &Ended) -> BlindWrite {
        let write = books.set_out(client, &vec![(3, used), (4, ObjectUse::Read)]);
        books.settle(client, ended);
        write
    }

    #[test]
    fn updates_are_counted_and_unknown_ones_widen_what_may_be() {
        let books = ObjectBooks::new(5, 2);
        wrote(&books, 0, ObjectUse::Update, &Ended::Committed);
        wrote(&books, 1, ObjectUse::Update, &Ended::Committed);
        wrote(&books, 1, ObjectUse::Update, &Ended::RolledBack);
        assert_eq!(books.closed().bounds(3), 2..=2);
        wrote(&books, 1, ObjectUse::Update, &Ended::Unknown);
        books.set_out(0, &vec![(3, ObjectUse::Update)]);
        let closed = books.closed();
        assert_eq!((closed.bounds(3), closed.bounds(4)), (2..=4, 0..=0));
        assert!(!closed.is_blind(3));
    }

    #[test]
    fn an_object_may_show_the_last_blind_write_of_its_writer_alone() {
        let books = ObjectBooks::new(5, 2);
        let shows = |blind| books.closed().may_show(&StoredObject { number: 3, updates: 0, blind });
        let write = |client, ended| wrote(&books, client, ObjectUse::Blind, ended);
        let unknown = write(1, &Ended::Unknown);
        assert!(shows(None) && shows(Some(unknown)));
        let first = write(0, &Ended::Committed);
        let second = write(0, &Ended::Committed);
        let failed = write(0, &Ended::RolledBack);
        assert!(shows(Some(second)) && shows(Some(unknown)));
        assert!(!shows(None) && !shows(Some(first)) && !shows(Some(failed)));
        wrote(&books, 0, ObjectUse::Update, &Ended::Committed);
        assert_eq!(books.closed().bounds(3), 0..=1);
    }
}
