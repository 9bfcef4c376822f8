//! Data that participants told in transactions, until these are settled.

use muesli_core::TxnId;
use muesli_core::limits::write_bytes;

use super::{Age, EndedTransactions};
use crate::granola::message::{DataByPart, PartData};

impl EndedTransactions {
    /// Something was told in `txn`; what was told before stays.
    pub fn add_data(&mut self, txn: TxnId, shared: impl IntoIterator<Item = PartData>) {
        if self.age(txn) == Age::Settled {
            return;
        }
        let received = self.data.entry(txn).or_default();
        let before = data_bytes(received);
        for (part, values) in shared {
            received.entry(part).or_insert(values);
        }
        let now = data_bytes(received);
        assert!(now >= before, "what was told in {txn} before is gone");
        let added = now - before;
        self.change(txn, |known| known.bytes += added);
    }

    /// What was told in `txn`.
    pub fn data(&self, txn: TxnId) -> Option<&DataByPart> {
        self.data.get(&txn)
    }

    /// All that was told, for a checkpoint.
    pub fn all_data(&self) -> Vec<(TxnId, Vec<PartData>)> {
        let shared =
            |received: &DataByPart| received.iter().map(|(part, it)| (*part, it.clone())).collect();
        self.data.iter().map(|(txn, received)| (*txn, shared(received))).collect()
    }
}

/// How many bytes are kept of what was told.
pub(super) fn data_bytes(received: &DataByPart) -> usize {
    let all = received.values().flatten();
    all.map(|(_, key, found)| write_bytes(key, found.value.as_ref())).sum()
}
