//! The entries of a group's log that a member holds in memory: a suffix of all that there were.
//!
//! Entries before it were trimmed: the state of the member's participant stands for them, in
//! memory and in the checkpoint on the member's disk. The bytes of all entries that there ever were
//! are counted, trimmed ones too, so that members can say by how much one is behind another.

use std::collections::VecDeque;

use crate::agreement::entry::Entry;

/// A suffix of a group's log. Entries are numbered from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryLog {
    /// How many entries were trimmed.
    base: u64,
    /// How many bytes these had.
    base_bytes: u64,
    entries: VecDeque<Entry>,
    /// For each entry, the bytes of all entries up to and with it.
    ends: VecDeque<u64>,
}

impl EntryLog {
    /// The log after so many entries of so many bytes, all of them trimmed.
    pub fn after(base: u64, base_bytes: u64) -> EntryLog {
        EntryLog { base, base_bytes, ..EntryLog::default() }
    }

    /// How many entries were trimmed.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// How many entries there are, with those that were trimmed.
    pub fn length(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// How many entries are in memory.
    pub fn held(&self) -> usize {
        self.entries.len()
    }

    /// The bytes of all entries, with those that were trimmed.
    pub fn bytes(&self) -> u64 {
        self.ends.back().copied().unwrap_or(self.base_bytes)
    }

    /// The bytes of the entries that are in memory.
    pub fn held_bytes(&self) -> u64 {
        self.bytes() - self.base_bytes
    }

    /// The bytes of the first `upto` entries; `None` if that was trimmed, or there are fewer.
    pub fn bytes_upto(&self, upto: u64) -> Option<u64> {
        match upto.checked_sub(self.base)? {
            0 => Some(self.base_bytes),
            after => self.ends.get(after as usize - 1).copied(),
        }
    }

    /// The entry of this number.
    pub fn entry(&self, number: u64) -> Option<&Entry> {
        let place = number.checked_sub(self.base + 1)?;
        self.entries.get(place as usize)
    }

    /// The last entry, if it was not trimmed.
    pub fn last(&self) -> Option<&Entry> {
        self.entries.back()
    }

    /// The entries after the first `from`, up to `to`, without those that were trimmed.
    pub fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Entry> + '_ {
        let place = |at: u64| (at.saturating_sub(self.base) as usize).min(self.entries.len());
        let (from, to) = (place(from), place(to));
        self.entries.range(from..to.max(from))
    }

    /// The entries after the first `from`, up to `to`: at least one, and more as long as they have
    /// no more than `bytes` bytes together.
    pub fn chunk(&self, from: u64, to: u64, bytes: u64) -> Vec<Entry> {
        let mut left = bytes;
        let mut chunk = Vec::new();
        for entry in self.range(from, to) {
            let size = entry.0.len() as u64;
            if size > left && !chunk.is_empty() {
                break;
            }
            left = left.saturating_sub(size);
            chunk.push(entry.clone());
        }
        chunk
    }

    /// These entries stand after the first `from`, and nothing after them. Those that would be
    /// among the trimmed ones are known already.
    ///
    /// # Panics
    /// If there are fewer than `from` entries: whoever writes leaves some out.
    pub fn write(&mut self, from: u64, entries: impl IntoIterator<Item = Entry>) {
        assert!(from <= self.length(), "entries after {from} of {}", self.length());
        let known = self.base.saturating_sub(from) as usize;
        let kept = from.saturating_sub(self.base) as usize;
        self.entries.truncate(kept);
        self.ends.truncate(kept);
        for entry in entries.into_iter().skip(known) {
            self.ends.push_back(self.bytes() + entry.0.len() as u64);
            self.entries.push_back(entry);
        }
    }

    /// Forgets the first `upto` entries; those that are not there count as forgotten.
    pub fn trim(&mut self, upto: u64) {
        let gone = upto.saturating_sub(self.base).min(self.entries.len() as u64);
        if let Some(bytes) = self.bytes_upto(self.base + gone) {
            self.base_bytes = bytes;
        }
        self.base += gone;
        self.entries.drain(..gone as usize);
        self.ends.drain(..gone as usize);
    }

    /// Begins after the first `upto` entries, which have so many bytes. Those that are here after
    /// that stay.
    pub fn rebase(&mut self, upto: u64, bytes: u64) {
        let kept: Vec<Entry> = self.range(upto, self.length()).cloned().collect();
        let stays = upto >= self.base && upto <= self.length();
        *self = EntryLog::after(upto, bytes);
        self.write(upto, kept.into_iter().filter(|_| stays));
    }

    /// The largest number of entries that may be trimmed so that those up to `upto` keep at least
    /// `bytes` bytes, where there are as many.
    pub fn trimmable(&self, upto: u64, bytes: u64) -> u64 {
        let Some(end) = self.bytes_upto(upto) else { return self.base };
        let Some(most) = end.checked_sub(bytes).filter(|most| *most >= self.base_bytes) else {
            return self.base;
        };
        self.base + self.ends.partition_point(|&it| it <= most) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: usize) -> Entry {
        Entry::from(vec![7; bytes])
    }

    fn log(sizes: &[usize]) -> EntryLog {
        let mut log = EntryLog::default();
        log.write(0, sizes.iter().map(|&size| entry(size)));
        log
    }

    #[test]
    fn bytes_are_counted_over_what_was_trimmed() {
        let mut log = log(&[3, 4, 5]);
        assert_eq!((log.length(), log.bytes(), log.bytes_upto(2)), (3, 12, Some(7)));
        log.trim(2);
        assert_eq!((log.base(), log.length(), log.bytes(), log.held()), (2, 3, 12, 1));
        assert_eq!(
            (log.bytes_upto(1), log.bytes_upto(2), log.bytes_upto(3)),
            (None, Some(7), Some(12))
        );
        assert_eq!((log.entry(2), log.entry(3)), (None, Some(&entry(5))));
        log.write(2, [entry(1)]);
        assert_eq!((log.length(), log.bytes()), (3, 8));
        log.write(1, [entry(9), entry(2)]);
        assert_eq!((log.length(), log.bytes()), (3, 9), "the first was trimmed, and is known");
    }

    #[test]
    fn a_log_that_begins_later_keeps_what_comes_after() {
        let mut after = log(&[1, 1, 1, 8]);
        after.rebase(3, 30);
        assert_eq!((after.base(), after.length(), after.bytes()), (3, 4, 38));
        after.rebase(9, 90);
        assert_eq!((after.base(), after.length(), after.bytes()), (9, 9, 90));
    }

    #[test]
    fn chunks_have_at_least_one_entry() {
        let log = log(&[3, 4, 5, 1]);
        assert_eq!(log.chunk(0, 4, 7), [entry(3), entry(4)]);
        assert_eq!(log.chunk(2, 4, 1), [entry(5)]);
        assert_eq!(log.chunk(2, 2, 9), []);
    }

    #[test]
    fn as_much_is_trimmed_as_leaves_enough() {
        let log = log(&[3, 4, 5, 1]);
        assert_eq!(log.trimmable(4, 0), 4);
        assert_eq!(log.trimmable(4, 1), 3);
        assert_eq!(log.trimmable(4, 5), 2);
        assert_eq!(log.trimmable(3, 6), 1);
        assert_eq!(log.trimmable(4, 100), 0);
    }
}
