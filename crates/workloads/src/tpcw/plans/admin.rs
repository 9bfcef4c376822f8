//! What changes what is everywhere: Admin Confirm (14), and the count of best sellers. Both go by
//! what was read of items in rounds before.

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure};
use serde::{Deserialize, Serialize};

use super::browsing::OfItem;
use crate::tpcw::tables::{BEST_SELLERS, BestSellers, DETAILS, ItemDetails, ItemStock, STOCKS};

/// Reads what is left of an item, how many were sold, and with what.
pub(in crate::tpcw) struct ReadStock;

impl PlannedProcedure for ReadStock {
    const NAME: &'static str = "tpcw-read-stock";
    type Arguments = OfItem;
    type Answer = Option<ItemStock>;

    fn plan(plan: &mut PlanBuilder<OfItem>) -> PlanValue<Option<ItemStock>> {
        let item = arg!(plan, item);
        plan.read(STOCKS, (item,))
    }
}

/// New details of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct NewDetails {
    pub item: u32,
    pub cost: i64,
    pub picture: u32,
    pub published: u32,
    /// What it was bought with most, of its newest orders.
    pub related: [u32; 5],
}

/// Interaction 14, Admin Confirm: new details of an item, everywhere.
pub(in crate::tpcw) struct ConfirmAdmin;

impl PlannedProcedure for ConfirmAdmin {
    const NAME: &'static str = "tpcw-confirm-admin";
    type Arguments = NewDetails;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<NewDetails>) -> PlanValue<()> {
        let item = arg!(plan, item);
        plan.update(DETAILS, (item,), (), |new, row, ()| {
            let NewDetails { cost, picture, published, related, .. } = *new;
            let thumbnail = picture;
            let updates = row?.updates + 1;
            Some(ItemDetails { cost, picture, thumbnail, published, related, updates })
        });
        plan.nothing()
    }
}

/// The best sellers of a subject, as they were counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tpcw) struct CountedBest {
    pub subject: u8,
    pub items: Vec<(u32, u64)>,
}

/// Writes the best sellers of a subject, everywhere.
pub(in crate::tpcw) struct CountBestSellers;

impl PlannedProcedure for CountBestSellers {
    const NAME: &'static str = "tpcw-count-best-sellers";
    type Arguments = CountedBest;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<CountedBest>) -> PlanValue<()> {
        let subject = arg!(plan, subject);
        plan.write(BEST_SELLERS, (subject,), (), |counted, ()| BestSellers {
            items: counted.items.clone(),
        });
        plan.nothing()
    }
}
