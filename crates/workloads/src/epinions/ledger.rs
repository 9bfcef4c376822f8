//! What each client knows that it has overwritten, or may have.

use std::collections::BTreeMap;

use crate::check::Complaints;
use crate::ledgers::NumberedUpdates;
use crate::tally::Ended;

/// A row that is overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EpinionsRow {
    /// A user's name.
    Name(u64),
    /// An item's title.
    Title(u64),
    /// The review of an item by a user.
    Review(u64, u64),
    /// What a user thinks of another one.
    Trust(u64, u64),
}

/// What a client knows.
#[derive(Clone, Debug, Default)]
pub(super) struct EpinionsLedger {
    /// How each row was overwritten: by the draw that what is written follows from.
    pub updates: BTreeMap<EpinionsRow, NumberedUpdates<u64>>,
    /// Answers that no moment can have given.
    pub wrong_answers: Complaints,
    under_way: Option<(EpinionsRow, u64)>,
}

impl EpinionsLedger {
    /// An incarnation of the client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown, None);
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, row: EpinionsRow, drawn: u64) {
        self.under_way = Some((row, drawn));
    }

    /// The transaction has ended; with the number of the update, if it found what it was to
    /// overwrite.
    pub fn settle(&mut self, ended: &Ended, number: Option<u64>) {
        if let Some((row, drawn)) = self.under_way.take() {
            self.updates.entry(row).or_default().note(drawn, ended, number);
        }
    }

    /// Adds what another client knows.
    pub fn join(&mut self, other: &EpinionsLedger) {
        for (row, updates) in &other.updates {
            self.updates.entry(*row).or_default().extend(updates);
        }
        self.wrong_answers.extend(&other.wrong_answers);
    }
}
