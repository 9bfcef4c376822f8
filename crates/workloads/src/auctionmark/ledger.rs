//! What each client knows that it has done, or may have.

use std::collections::BTreeMap;

use super::tables::ItemState;
use crate::check::Complaints;
use crate::ledgers::{NumberedUpdates, Surely};
use crate::tally::Ended;

/// A rating: who is rated, the seller and the item, and who rates.
pub(super) type RatingKey = (u64, u64, u32, u64);

/// What the transaction under way changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuctionUpdate {
    /// A seller lists an item.
    Listing(u64),
    /// An item, by its seller and number.
    Item(u64, u32),
    /// The same, which is bought.
    Purchase(u64, u32),
    Rating(RatingKey),
    /// A comment is answered.
    Answer(u64, u32, u32),
}

/// What one client knows.
#[derive(Clone, Debug, Default)]
pub(super) struct AuctionLedger {
    /// The items that each seller has listed.
    pub listings: BTreeMap<u64, NumberedUpdates<()>>,
    /// How each item was after a change, where that is known.
    pub items: BTreeMap<(u64, u32), NumberedUpdates<Option<ItemState>>>,
    pub purchases: Surely<(u64, u32)>,
    pub ratings: Surely<RatingKey>,
    pub answers: Surely<(u64, u32, u32)>,
    /// Answers that no moment can have given, and what was to be refused.
    pub wrong_answers: Complaints,
    under_way: Option<AuctionUpdate>,
}

impl AuctionLedger {
    /// An incarnation of the client begins; what the one before left open may have committed.
    pub fn begin_incarnation(&mut self) {
        self.settle(&Ended::Unknown, None, None);
    }

    /// An attempt is about to commit this.
    pub fn set_out(&mut self, update: AuctionUpdate) {
        self.under_way = Some(update);
    }

    /// The transaction has ended: with the number of what was listed, or with how the item is.
    pub fn settle(&mut self, ended: &Ended, number: Option<u64>, state: Option<ItemState>) {
        let changes = state.map(|state| state.changes);
        match self.under_way.take() {
            Some(AuctionUpdate::Listing(seller)) => {
                self.listings.entry(seller).or_default().note((), ended, number);
            }
            Some(AuctionUpdate::Item(seller, item)) => {
                self.items.entry((seller, item)).or_default().note(state, ended, changes);
            }
            Some(AuctionUpdate::Purchase(seller, item)) => {
                self.items.entry((seller, item)).or_default().note(state, ended, changes);
                self.purchases.note((seller, item), ended);
            }
            Some(AuctionUpdate::Rating(key)) => self.ratings.note(key, ended),
            Some(AuctionUpdate::Answer(seller, item, comment)) => {
                self.answers.note((seller, item, comment), ended);
            }
            None => {}
        }
    }

    /// Adds what another client knows.
    pub fn join(&mut self, other: &AuctionLedger) {
        for (seller, listings) in &other.listings {
            self.listings.entry(*seller).or_default().extend(listings);
        }
        for (item, changes) in &other.items {
            self.items.entry(*item).or_default().extend(changes);
        }
        self.purchases.extend(&other.purchases);
        self.ratings.extend(&other.ratings);
        self.answers.extend(&other.answers);
        self.wrong_answers.extend(&other.wrong_answers);
    }
}
