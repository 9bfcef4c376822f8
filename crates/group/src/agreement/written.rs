//! How much of what a member wrote down is stable.
//!
//! A leader's entries go to the other members while its own disk still writes them, so that both
//! take one sync together and not one after the other. It counts itself among those that have an
//! entry only once that is stable: until then what the others say of it waits
//! ([`Consensus::stable_upto`](crate::agreement::consensus::Consensus::stable_upto)).
//!
//! To learn when, a member sends itself a *note* behind the log: it arrives once everything that
//! was logged before it is stable.

use std::collections::VecDeque;

/// What a member knows of its own disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct StableEntries {
    /// The note that was sent last.
    sent: u64,
    /// The note that arrived last.
    arrived: u64,
    /// Notes under way, and how many entries are stable when they arrive.
    under_way: VecDeque<(u64, u64)>,
    /// How many entries the last note was about.
    noted: Option<u64>,
    /// So many entries are stable.
    stable: u64,
}

impl StableEntries {
    /// Nothing is known of a ledger that was begun anew, or restored.
    pub(crate) fn begin(&mut self) {
        self.under_way.clear();
        (self.noted, self.stable) = (None, 0);
    }

    /// Entries from `from` on were replaced.
    pub(crate) fn cut(&mut self, from: u64) {
        if self.noted.is_some_and(|noted| from < noted) {
            self.under_way.retain(|(_, entries)| *entries <= from);
            (self.noted, self.stable) = (None, self.stable.min(from));
        }
    }

    /// Whether a note is due, where there are so many entries.
    pub(crate) fn is_news(&self, entries: u64) -> bool {
        self.noted != Some(entries)
    }

    /// The number of the next note, where there are so many entries.
    pub(crate) fn note(&mut self, entries: u64) -> u64 {
        self.sent += 1;
        self.noted = Some(entries);
        self.under_way.push_back((self.sent, entries));
        self.sent
    }

    /// A note has arrived.
    pub(crate) fn arrived(&mut self, note: u64) {
        self.arrived = self.arrived.max(note);
        while let Some((_, entries)) = self.under_way.pop_front_if(|(sent, _)| *sent <= note) {
            self.stable = entries;
        }
    }

    /// Whether a note has arrived.
    pub(crate) fn has_arrived(&self, note: u64) -> bool {
        note <= self.arrived
    }

    /// How many entries are known to be stable.
    pub(crate) fn stable(&self) -> u64 {
        self.stable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_tell_what_is_stable() {
        let mut written = StableEntries::default();
        assert!(written.is_news(0));
        let (first, second) = (written.note(3), written.note(5));
        assert!(!written.is_news(5));
        written.arrived(first);
        assert_eq!(written.stable(), 3);
        assert!(written.has_arrived(first) && !written.has_arrived(second));
        written.arrived(second);
        assert_eq!(written.stable(), 5);
    }

    #[test]
    fn a_note_about_entries_that_were_replaced_is_not_believed() {
        let mut written = StableEntries::default();
        let (first, second) = (written.note(3), written.note(5));
        written.arrived(first);
        written.cut(2);
        written.arrived(second);
        assert_eq!(written.stable(), 2);
        assert!(written.is_news(5));
        let third = written.note(5);
        written.arrived(third);
        assert_eq!(written.stable(), 5);
        written.begin();
        assert_eq!(written.stable(), 0);
    }
}
