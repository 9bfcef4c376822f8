//! The size limits of operations, transactions and answers, and how a thing over one is refused.
//!
//! A coordinator refuses before anything is sent, and a participant judges what it is asked to
//! prepare once more: a client may run with other limits than the servers. `docs/running/limits.md`
//! lists every limit with its default, its configuration key and its error.

use crate::bytes::SmallBytes;
use crate::exceeded::Limit;
use crate::ids::SpaceId;
use crate::outcome::{Abort, Failure};
use crate::ranges::KeyRange;

/// Sizes above which an operation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest key, in bytes. Default 64 KiB.
    pub key_bytes: usize,
    /// Longest value, in bytes; also the longest argument and the longest result of a procedure.
    /// Default 16 MiB.
    pub value_bytes: usize,
    /// Largest transaction, in bytes: keys and values written, keys read by an update, bounds of
    /// ranges scanned by it, and [`ENTRY_BYTES`] for each of them. Default 96 MiB, which is 64 MiB
    /// of keys and values under two million keys.
    pub transaction_bytes: usize,
    /// Most rows of one page: of a scan that is under way, a server answers so many at a time.
    /// Default 1,000.
    pub page_rows: usize,
    /// Bytes of keys and values after which a page of a scan, or of a read of many keys, ends.
    /// Default 256 KiB.
    pub page_bytes: usize,
    /// Largest answer of one operation, in bytes: keys and values, and [`ENTRY_BYTES`] for each.
    /// Default 1 GiB.
    pub answer_bytes: usize,
    /// Most steps of a procedure: keys looked at, keys written, rows of scans. Default 1,000,000.
    pub procedure_steps: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            key_bytes: 64 << 10,
            value_bytes: 16 << 20,
            transaction_bytes: 96 << 20,
            page_rows: 1_000,
            page_bytes: 256 << 10,
            answer_bytes: 1 << 30,
            procedure_steps: 1_000_000,
        }
    }
}

/// What a key read, a key written or a range counts beside its own bytes: at least what it takes
/// more in a message or a record.
pub const ENTRY_BYTES: usize = 16;

/// What a message or a record takes beside the transaction that it holds, at most.
pub const ENVELOPE_BYTES: usize = 64 << 10;

impl Limits {
    /// Whether the limits fit together.
    ///
    /// # Errors
    /// The rule that they break.
    pub fn check(&self) -> Result<(), String> {
        let entry = self.key_bytes.saturating_add(self.value_bytes).saturating_add(ENTRY_BYTES);
        let checks = [
            (self.key_bytes == 0, "`key_bytes_max` must be at least 1".to_owned()),
            (
                self.transaction_bytes < entry,
                format!(
                    "`transaction_bytes_max` is {} and must be at least {entry}: the longest key \
                     (`key_bytes_max`), the longest value (`value_bytes_max`) and {ENTRY_BYTES}",
                    self.transaction_bytes
                ),
            ),
            (
                self.answer_bytes < entry,
                format!(
                    "`answer_bytes_max` is {} and must be at least {entry}: the longest key \
                     (`key_bytes_max`), the longest value (`value_bytes_max`) and {ENTRY_BYTES}",
                    self.answer_bytes
                ),
            ),
            (self.page_rows == 0, "`page_rows_max` must be at least 1".to_owned()),
            (self.page_bytes == 0, "`page_bytes_max` must be at least 1".to_owned()),
        ];
        checks.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, violated)| Err(violated))
    }

    /// Whether the largest transaction fits into `most` bytes, the longest that `what` may be.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check_fits(&self, what: &str, most: usize) -> Result<(), String> {
        let needed = self.transaction_bytes.saturating_add(ENVELOPE_BYTES);
        match needed <= most {
            true => Ok(()),
            false => Err(format!(
                "{what} is {most} and must be at least {needed}: `transaction_bytes_max`, which is \
                 {}, and {ENVELOPE_BYTES}",
                self.transaction_bytes
            )),
        }
    }

    /// Why a key with its new value is refused, if it is.
    pub fn judge_write(&self, key: &SmallBytes, value: Option<&SmallBytes>) -> Option<Abort> {
        let value_size = value.map_or(0, SmallBytes::len);
        let value = (value_size > self.value_bytes).then_some(Abort::ValueTooLarge);
        self.judge_key(key).or(value)
    }

    /// Why a key is refused, if it is.
    pub fn judge_key(&self, key: &SmallBytes) -> Option<Abort> {
        (key.len() > self.key_bytes).then_some(Abort::KeyTooLarge)
    }

    /// Why a transaction of so many bytes is refused, if it is.
    pub fn judge_transaction(&self, size: usize) -> Option<Abort> {
        (size > self.transaction_bytes).then_some(Abort::TransactionTooLarge)
    }
}

/// Refuses what is larger than a limit.
///
/// # Errors
/// [`Failure::TooLarge`], naming the thing, its size and the limit.
#[inline]
pub fn check_size(what: Limit, size: usize, limit: usize) -> Result<(), Failure> {
    if size > limit { Err(Failure::TooLarge { what, size, limit }) } else { Ok(()) }
}

/// What a key written counts towards the limit of its transaction.
#[inline]
pub fn write_bytes(key: &SmallBytes, value: Option<&SmallBytes>) -> usize {
    ENTRY_BYTES + key.len() + value.map_or(0, SmallBytes::len)
}

/// What keys written count towards the limit of their transaction.
pub fn writes_bytes(writes: &[(SpaceId, SmallBytes, Option<SmallBytes>)]) -> usize {
    writes.iter().map(|(_, key, value)| write_bytes(key, value.as_ref())).sum()
}

/// What a key read counts towards the limit of its transaction.
#[inline]
pub fn read_bytes(key: &SmallBytes) -> usize {
    ENTRY_BYTES + key.len()
}

/// What a range scanned counts towards the limit of its transaction.
pub fn range_bytes(range: &KeyRange) -> usize {
    ENTRY_BYTES + range.lo.len() + range.hi.as_ref().map_or(0, SmallBytes::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Timestamp;
    use crate::wire::Wire;

    #[test]
    fn default_limits_fit_together_and_others_are_refused_by_the_name_of_their_rule() {
        let limits = Limits::default();
        assert_eq!(limits.check(), Ok(()));
        let violated = |limits: Limits| limits.check().unwrap_err();
        assert!(violated(Limits { key_bytes: 0, ..limits }).starts_with("`key_bytes_max`"));
        assert!(
            violated(Limits { transaction_bytes: 1, ..limits })
                .starts_with("`transaction_bytes_max`")
        );
        assert!(violated(Limits { answer_bytes: 1, ..limits }).starts_with("`answer_bytes_max`"));
        assert!(violated(Limits { page_rows: 0, ..limits }).starts_with("`page_rows_max`"));
        assert!(violated(Limits { page_bytes: 0, ..limits }).starts_with("`page_bytes_max`"));
        for most in [usize::MAX, usize::MAX - 5] {
            let refused = violated(Limits { key_bytes: most, ..limits });
            assert!(refused.starts_with("`transaction_bytes_max`"), "{refused}");
            let refused = violated(Limits { value_bytes: most, key_bytes: most, ..limits });
            assert!(refused.starts_with("`transaction_bytes_max`"), "{refused}");
        }
        let tight = limits.check_fits("frame_bytes_max", limits.transaction_bytes);
        assert!(
            tight.unwrap_err().starts_with("frame_bytes_max is 100663296 and must be at least")
        );
        let enough = limits.transaction_bytes + ENVELOPE_BYTES;
        assert_eq!(limits.check_fits("frame_bytes_max", enough), Ok(()));
    }

    #[test]
    fn what_is_counted_is_at_least_what_is_encoded() {
        let bytes = |it: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            it(&mut out);
            out.len()
        };
        for length in [0, 1, 23, 24, 300] {
            let key = SmallBytes::from(vec![7; length]);
            let write = (SpaceId(1), key.clone(), Some(key.clone()));
            assert!(bytes(&|out| write.encode(out)) <= write_bytes(&key, Some(&key)));
            let read = (SpaceId(1), key.clone(), Timestamp::ZERO);
            assert!(bytes(&|out| read.encode(out)) <= read_bytes(&key));
            let range = KeyRange { space: SpaceId(1), lo: key.clone(), hi: Some(key) };
            assert!(bytes(&|out| range.encode(out)) <= range_bytes(&range));
        }
    }
}
