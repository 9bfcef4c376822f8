//! Data that participants told in transactions, until these are settled.

use muesli_core::TxnId;
use muesli_core::limits::write_bytes;

use super::{Age, EndedTransactions};
use crate::granola::message::{DataByPart, PartData};

impl EndedTransactions {
    /// Something was told in `txn`; what was told before stays.
    pub fn add_data(&mut self, txn: TxnId, told: impl IntoIterator<Item = PartData>) {
        if self.age(txn) == Age::Settled {
            return;
        }
        let heard = self.data.entry(txn).or_default();
        let before = data_bytes(heard);
        for (part, values) in told {
            heard.entry(part).or_insert(values);
        }
        let now = data_bytes(heard);
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
        let told =
            |heard: &DataByPart| heard.iter().map(|(part, it)| (*part, it.clone())).collect();
        self.data.iter().map(|(txn, heard)| (*txn, told(heard))).collect()
    }
}

/// How many bytes are kept of what was told.
pub(super) fn data_bytes(heard: &DataByPart) -> usize {
    let all = heard.values().flatten();
    all.map(|(_, key, found)| write_bytes(key, found.value.as_ref())).sum()
}
