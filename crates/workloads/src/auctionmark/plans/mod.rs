//! The profiles of AuctionMark as plans.
//!
//! Who has won an auction follows from what is read of it at its seller: a purchase reads that in a
//! round before, and is refused where the item has changed by then.

pub(crate) mod bidding;
pub(crate) mod listing;
pub(crate) mod loads;
pub(crate) mod reading;
pub(crate) mod selling;

use muesli::Procedures;
use muesli::plans::{PlannedProcedure, PlannedProcedureError, with};

use crate::workload::{ExplainsPlan, explained};
use bidding::{CloseAuction, PlaceBid};
use listing::{AnswerComment, CommentItem, ListItem, UpdateItem};
use loads::{LoadAuctionReference, LoadAuctionUser};
use reading::{ReadAuctionUser, ReadItem, ReadWinner};
use selling::{BuyItem, RateUser};

/// The names of the plans, each with what says what is derived of it.
pub const EXPLAINED: &[(&str, ExplainsPlan)] = explained! {
    LoadAuctionReference LoadAuctionUser ReadItem ReadAuctionUser PlaceBid CommentItem AnswerComment
    RateUser ListItem ReadWinner BuyItem UpdateItem CloseAuction
};

/// The names of plans that are no transactions of the mix: those that load, and rounds that read
/// for another one.
pub const APART: &[&str] = &[LoadAuctionReference::NAME, LoadAuctionUser::NAME, ReadWinner::NAME];

/// The plans.
///
/// # Errors
/// One of them cannot be in one round.
pub fn procedures() -> Result<Procedures, PlannedProcedureError> {
    let loads = with::<LoadAuctionUser>(with::<LoadAuctionReference>(Procedures::default())?)?;
    let reads = with::<ReadWinner>(with::<ReadAuctionUser>(with::<ReadItem>(loads)?)?)?;
    let bids = with::<CloseAuction>(with::<PlaceBid>(reads)?)?;
    let lists = with::<UpdateItem>(with::<ListItem>(bids)?)?;
    let lists = with::<AnswerComment>(with::<CommentItem>(lists)?)?;
    with::<RateUser>(with::<BuyItem>(lists)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_purchases_and_ratings_are_at_several_users_and_they_refuse_alike() {
        let mut several = Vec::new();
        for of in EXPLAINED.iter().map(|(_, explain)| explain()) {
            assert_eq!(of.errors, [""; 0], "{of}");
            if of.class != "single" {
                assert_ne!(of.refuses, "alone", "{of}");
                several.push(of.procedure);
            }
        }
        let known = ["auctionmark-load-reference", "auctionmark-rate-user", "auctionmark-buy"];
        several.sort_unstable();
        let mut known = known.map(str::to_owned).to_vec();
        known.sort_unstable();
        assert_eq!(several, known);
    }
}
