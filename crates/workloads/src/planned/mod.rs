//! The procedures of workloads that are plans, by name, with what is derived of each; and
//! [traces] of what they touch.

pub mod traces;

use muesli::plans::PlanExplanation;
use thiserror::Error;

use crate::workload::ExplainsPlan;
use crate::{auctionmark, epinions, retwis, tpcc, tpcw};

/// A plan of a workload.
#[derive(Clone, Copy, Debug)]
pub struct DescribedPlan {
    /// The procedure's name.
    pub name: &'static str,
    /// The workload that calls it.
    pub workload: &'static str,
    explain: ExplainsPlan,
}

/// All plans of workloads.
pub fn plans() -> impl Iterator<Item = DescribedPlan> {
    let all = [
        ("tpcc-procedures", tpcc::plans::EXPLAINED),
        ("epinions", epinions::plans::EXPLAINED),
        ("retwis", retwis::plans::EXPLAINED),
        ("tpcw", tpcw::plans::EXPLAINED),
        ("auctionmark", auctionmark::plans::EXPLAINED),
    ];
    all.into_iter().flat_map(|(workload, plans)| {
        plans.iter().map(move |(name, explain)| DescribedPlan { name, workload, explain: *explain })
    })
}

/// A plan that there is not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no planned procedure `{0}`; there are: {names}", names = names())]
pub struct UnknownPlan(String);

fn names() -> String {
    plans().map(|plan| plan.name).collect::<Vec<_>>().join(", ")
}

/// The plan of the procedure called `name`.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<DescribedPlan, UnknownPlan> {
    let found = plans().find(|plan| plan.name == name);
    found.ok_or_else(|| UnknownPlan(name.to_owned()))
}

impl DescribedPlan {
    /// What is derived of it.
    pub fn explanation(&self) -> PlanExplanation {
        (self.explain)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plan_has_a_name_of_its_own_and_is_explained_by_it() {
        for (place, plan) in plans().enumerate() {
            assert_eq!(plan.explanation().procedure, plan.name);
            assert!(plans().take(place).all(|other| other.name != plan.name), "{}", plan.name);
            assert_eq!(find(plan.name).map(|found| found.name), Ok(plan.name));
        }
        let error = find("tpcc-planed-order").unwrap_err().to_string();
        assert!(plans().all(|plan| error.contains(plan.name)), "{error}");
    }
}
