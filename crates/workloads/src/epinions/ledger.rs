//! What each client knows that it has overwritten, or may have.

use crate::check::Complaints;
use crate::tally::Ended;

/// What the transaction under way overwrites, if it finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpinionsUpdate {
    Name,
    Title,
    Review,
    Trust,
}

/// How often what was overwritten, for sure and perhaps.
#[derive(Clone, Debug, Default)]
pub(super) struct EpinionsLedger {
    pub names: (u64, u64),
    pub titles: (u64, u64),
    pub reviews: (u64, u64),
    pub trust: (u64, u64),
    /// Answers that no moment can have given.
    pub wrong_answers: Complaints,
    under_way: Option<EpinionsUpdate>,
}

impl EpinionsLedger {
    /// An incarnation of the client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown, true);
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, update: EpinionsUpdate) {
        self.under_way = Some(update);
    }

    /// The transaction has ended, and has found what it was to overwrite, or not.
    pub fn settle(&mut self, ended: &Ended, found: bool) {
        let (sure, perhaps) = match self.under_way.take() {
            Some(EpinionsUpdate::Name) => &mut self.names,
            Some(EpinionsUpdate::Title) => &mut self.titles,
            Some(EpinionsUpdate::Review) => &mut self.reviews,
            Some(EpinionsUpdate::Trust) => &mut self.trust,
            None => return,
        };
        match ended {
            Ended::Committed => *sure += u64::from(found),
            Ended::Unknown => *perhaps += 1,
            Ended::RolledBack | Ended::Failed(_) => {}
        }
    }

    /// Adds what another client knows, once it does not run any more.
    pub fn join(&mut self, other: &mut EpinionsLedger) {
        other.begin_incarnation();
        for (sum, part) in [
            (&mut self.names, other.names),
            (&mut self.titles, other.titles),
            (&mut self.reviews, other.reviews),
            (&mut self.trust, other.trust),
        ] {
            *sum = (sum.0 + part.0, sum.1 + part.1);
        }
        self.wrong_answers.extend(&other.wrong_answers);
    }
}
