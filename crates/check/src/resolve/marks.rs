//! A map from keys to numbers that is emptied in constant time, once per transaction.

use crate::history::KeyId;

/// `get` sees what was `set` since the last `clear`.
#[derive(Debug)]
pub(super) struct VersionMarks {
    round: u32,
    marks: Vec<(u32, u32)>,
}

impl VersionMarks {
    pub(super) fn new(keys: usize) -> Self {
        VersionMarks { round: 1, marks: vec![(0, 0); keys] }
    }

    pub(super) fn clear(&mut self) {
        match self.round.checked_add(1) {
            Some(round) => self.round = round,
            None => *self = VersionMarks::new(self.marks.len()),
        }
    }

    pub(super) fn set(&mut self, key: KeyId, number: u32) {
        self.marks[key.index()] = (self.round, number);
    }

    pub(super) fn get(&self, key: KeyId) -> Option<u32> {
        let (round, number) = self.marks[key.index()];
        (round == self.round).then_some(number)
    }
}
