//! What the clients of the list workload saw, transaction by transaction.
//!
//! Each attempt is a transaction of its own, with elements of its own: an attempt that aborted
//! must leave no element behind, and only unique elements can show that.

use std::sync::MutexGuard;

use muesli_core::Nanos;

use crate::per_client::PerClient;
use crate::tally::Ended;

/// How a transaction of a list history ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStatus {
    /// Its client was told that it committed.
    Committed,
    /// Its client was told that it did not.
    Aborted,
    /// Its client was told that nobody knows, or vanished.
    Unknown,
}

/// An operation of a list history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOperation {
    /// Appended a unique element to the list at a key.
    Append {
        /// The key, by number.
        key: u64,
        /// The element.
        element: u64,
    },
    /// Read the list at a key.
    Read {
        /// The key, by number.
        key: u64,
        /// The whole list.
        list: Vec<u64>,
    },
}

/// A transaction of a list history: one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTransaction {
    /// Who ran it; the client after the last is the one that reads everything at the end.
    pub client: u32,
    /// In which of its lives; each is a session.
    pub incarnation: u32,
    /// When it began.
    pub begin: Nanos,
    /// When its client was told how it ended.
    pub end: Option<Nanos>,
    /// How it ended.
    pub status: ListStatus,
    /// What it did, in order.
    pub operations: Vec<ListOperation>,
}

/// What all clients of a run saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListHistory {
    /// The transactions, each client's in its order.
    pub transactions: Vec<ListTransaction>,
}

/// What one client noted down, over all of its lives.
#[derive(Debug, Default)]
pub(crate) struct Notebook {
    client: u32,
    incarnation: u32,
    elements: u64,
    /// How many there were when the transaction under way began.
    elements_before: u64,
    ended: Vec<ListTransaction>,
    open: Option<ListTransaction>,
}

impl Notebook {
    /// A life begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self, incarnation: u32) {
        self.close(ListStatus::Unknown, None);
        self.incarnation = incarnation;
    }

    /// An attempt begins; the one before it, if it was not told to have ended, was aborted.
    pub fn begin(&mut self, now: Nanos) {
        self.close(ListStatus::Aborted, Some(now));
        self.elements_before = self.elements;
        self.open = Some(ListTransaction {
            client: self.client,
            incarnation: self.incarnation,
            begin: now,
            end: None,
            status: ListStatus::Unknown,
            operations: Vec::new(),
        });
    }

    /// A transaction begins, or an attempt of one that may go on where the one before was: it does
    /// the same again, with the same elements, and is the same transaction.
    pub fn begin_or_go_on(&mut self, now: Nanos) {
        match &mut self.open {
            None => self.begin(now),
            Some(open) => {
                open.operations.clear();
                self.elements = self.elements_before;
            }
        }
    }

    /// Of what was noted of the attempt so far, so many operations happened.
    pub fn keep(&mut self, operations: usize) {
        if let Some(open) = &mut self.open {
            open.operations.truncate(operations);
        }
    }

    pub fn note(&mut self, operation: ListOperation) {
        if let Some(open) = &mut self.open {
            open.operations.push(operation);
        }
    }

    /// What was noted of the attempt so far, to be noted again with more between.
    pub fn take_operations(&mut self) -> Vec<ListOperation> {
        self.open.as_mut().map_or_else(Vec::new, |open| std::mem::take(&mut open.operations))
    }

    /// The last attempt has ended.
    pub fn end(&mut self, ended: &Ended, now: Nanos) {
        let (status, end) = match ended {
            Ended::Committed => (ListStatus::Committed, Some(now)),
            Ended::Unknown => (ListStatus::Unknown, None),
            Ended::RolledBack | Ended::Failed(_) => (ListStatus::Aborted, Some(now)),
        };
        self.close(status, end);
    }

    fn close(&mut self, status: ListStatus, end: Option<Nanos>) {
        if let Some(open) = self.open.take() {
            self.ended.push(ListTransaction { status, end, ..open });
        }
    }
}

/// The notebooks of all clients, and of the one that reads everything at the end.
#[derive(Debug)]
pub(crate) struct Notebooks(PerClient<Notebook>);

impl Notebooks {
    pub fn new(clients: u32) -> Notebooks {
        let notebook = |client| Notebook { client, ..Notebook::default() };
        Notebooks(PerClient::new(clients + 1, notebook))
    }

    /// The number of the client that reads everything at the end.
    pub fn last(&self) -> u32 {
        self.0.clients() - 1
    }

    pub fn of(&self, client: u32) -> MutexGuard<'_, Notebook> {
        self.0.of(client)
    }

    /// Notes an append to `key` and answers its element, which no other append has.
    pub fn note_append(&self, client: u32, key: u64) -> u64 {
        let mut notebook = self.of(client);
        notebook.elements += 1;
        let element = notebook.elements * u64::from(self.0.clients()) + u64::from(client);
        notebook.note(ListOperation::Append { key, element });
        element
    }

    /// Everything noted down so far; what is open may have committed.
    pub fn history(&self) -> ListHistory {
        let all = self.0.all().flat_map(|notebook| {
            notebook.ended.iter().chain(&notebook.open).cloned().collect::<Vec<_>>()
        });
        ListHistory { transactions: all.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_appends_the_same_elements_and_parts_that_are_undone_are_left_out() {
        let notebooks = Notebooks::new(1);
        notebooks.of(0).begin_or_go_on(Nanos(10));
        let first = notebooks.note_append(0, 7);
        notebooks.of(0).begin_or_go_on(Nanos(20));
        assert_eq!(notebooks.note_append(0, 7), first);
        notebooks.note_append(0, 8);
        notebooks.of(0).keep(1);
        let second = notebooks.note_append(0, 8);
        notebooks.of(0).end(&Ended::Committed, Nanos(30));
        let history = notebooks.history().transactions;
        let [transaction] = &history[..] else { panic!("{history:?}") };
        assert_eq!((transaction.begin, transaction.status), (Nanos(10), ListStatus::Committed));
        let appended = [(7, first), (8, second)];
        let expected = appended.map(|(key, element)| ListOperation::Append { key, element });
        assert_eq!(transaction.operations, expected);
        notebooks.of(0).begin_or_go_on(Nanos(40));
        assert_ne!(notebooks.note_append(0, 8), second, "another transaction");
    }

    #[test]
    fn each_attempt_is_a_transaction_with_elements_of_its_own() {
        let notebooks = Notebooks::new(2);
        notebooks.of(1).begin_incarnation(1);
        notebooks.of(1).begin(Nanos(10));
        let first = notebooks.note_append(1, 7);
        notebooks.of(1).begin(Nanos(20));
        let second = notebooks.note_append(1, 7);
        notebooks.of(1).end(&Ended::Committed, Nanos(30));
        notebooks.of(1).begin(Nanos(40));
        notebooks.of(1).begin_incarnation(2);
        assert_ne!(first, second);
        let history = notebooks.history().transactions;
        let ends: Vec<_> = history.iter().map(|txn| (txn.status, txn.end)).collect();
        let expected = [
            (ListStatus::Aborted, Some(Nanos(20))),
            (ListStatus::Committed, Some(Nanos(30))),
            (ListStatus::Unknown, None),
        ];
        assert_eq!(ends, expected);
        assert_ne!(notebooks.note_append(0, 7), second);
    }
}
