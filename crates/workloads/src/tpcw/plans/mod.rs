//! The interactions of TPC-W as plans.
//!
//! Which items a cart has follows from what is read of it, and so does whose stock Buy Confirm
//! takes from: carts are read in a round before, passed as arguments, and the order is refused
//! where the cart has changed by then. The same for Admin Confirm, which reads with what an item
//! was bought, and for best sellers, which are counted now and then.

pub(crate) mod admin;
pub(crate) mod browsing;
pub(crate) mod buying;
pub(crate) mod carts;
pub(crate) mod customers;
pub(crate) mod loads;

use muesli::Procedures;
use muesli::plans::{PlannedProcedure, PlannedProcedureError, with};

use crate::workload::{ExplainsPlan, explained};
use admin::{ConfirmAdmin, CountBestSellers, ReadStock};
use browsing::{BestSellersPage, HomePage, NewProducts, ProductDetail, SearchPage, SearchResults};
use buying::ConfirmOrder;
use carts::{ChangeCart, ReadCart};
use customers::{DisplayOrder, LogIn, ReadCustomer, RegisterCustomer};
use loads::{LoadCustomer, LoadItems, LoadReference, LoadStock};

/// The names of the plans, each with what says what is derived of it.
pub const EXPLAINED: &[(&str, ExplainsPlan)] = explained! {
    LoadReference LoadItems LoadStock LoadCustomer HomePage NewProducts BestSellersPage
    ProductDetail SearchPage SearchResults ReadCart ChangeCart ReadCustomer RegisterCustomer LogIn
    ConfirmOrder DisplayOrder ReadStock ConfirmAdmin CountBestSellers
};

/// The names of plans that are no transactions of the mix: those that load, and rounds that read
/// for another one.
pub const APART: &[&str] = &[
    LoadReference::NAME,
    LoadItems::NAME,
    LoadStock::NAME,
    LoadCustomer::NAME,
    ReadCart::NAME,
    ReadStock::NAME,
];

/// The plans.
///
/// # Errors
/// One of them cannot be in one round.
pub fn procedures() -> Result<Procedures, PlannedProcedureError> {
    let loads = with::<LoadItems>(with::<LoadReference>(Procedures::default())?)?;
    let loads = with::<LoadCustomer>(with::<LoadStock>(loads)?)?;
    let pages = with::<BestSellersPage>(with::<NewProducts>(with::<HomePage>(loads)?)?)?;
    let pages = with::<SearchResults>(with::<SearchPage>(with::<ProductDetail>(pages)?)?)?;
    let carts = with::<ChangeCart>(with::<ReadCart>(pages)?)?;
    let customers = with::<LogIn>(with::<RegisterCustomer>(with::<ReadCustomer>(carts)?)?)?;
    let orders = with::<DisplayOrder>(with::<ConfirmOrder>(customers)?)?;
    with::<CountBestSellers>(with::<ConfirmAdmin>(with::<ReadStock>(orders)?)?)
}

#[cfg(test)]
mod tests {
    use muesli::plans::PlanExplanation;

    use super::*;

    #[test]
    fn each_interaction_is_of_one_round_and_refuses_alike_where_it_is_at_several_units() {
        let several = |of: &PlanExplanation| of.class != "single";
        let all: Vec<_> = EXPLAINED.iter().map(|(_, explain)| explain()).collect();
        for of in &all {
            assert_eq!(of.errors, [""; 0], "{of}");
            assert!(!several(of) || of.refuses != "alone", "{of}");
        }
        let bought = PlanExplanation::of::<ConfirmOrder>();
        assert_eq!((bought.class, bought.refuses), ("single or independent", "alike"), "{bought}");
        assert_eq!(bought.units, ["customer(customer)", "item(cart.lines[].item)"]);
        let names: Vec<_> = all.iter().filter(|it| several(it)).map(|it| &it.procedure).collect();
        assert!(names.contains(&&"tpcw-confirm-admin".to_owned()), "{names:?}");
    }
}
