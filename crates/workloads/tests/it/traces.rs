//! Traces of workloads whose procedures are plans.

use std::sync::Arc;

use muesli_placement::AccessTrace;
use muesli_placement::scheme::{SearchTerms, search, shares};
use muesli_workloads::available;
use muesli_workloads::embedded::Length;
use muesli_workloads::planned::traces::{PLANNED, RoundRobin, TraceRequest, planned};
use muesli_workloads::simulated::{self, Simulated};
use muesli_workloads::tally::Tallies;

/// Traces of this many transactions.
const TRANSACTIONS: u64 = 260;

fn record(seed: u64, warehouses: u32) -> AccessTrace {
    let parameters = vec!["keys=30".to_owned(), format!("warehouses={warehouses}")];
    let recording = TraceRequest { parameters, transactions: TRANSACTIONS, seed };
    planned("tpcc-procedures").unwrap().record(&recording).unwrap()
}

#[test]
fn the_manual_scheme_of_tpcc_is_found_whatever_the_seed() {
    let manual = planned("tpcc-procedures").unwrap().manual();
    for seed in 0..20 {
        let trace = record(seed, 3);
        assert_eq!(trace.transactions.len() as u64, TRANSACTIONS);
        let (learnt, fresh) = trace.transactions.split_at(150);
        let (found, _) = search(&trace, learnt, SearchTerms::default());
        assert_eq!(found.described(&trace), manual.described(&trace), "seed {seed}");
        let shares = shares(&trace, fresh, &found, &RoundRobin(3));
        assert_eq!(shares.crossing, 0.0, "seed {seed}: {shares:?}");
    }
}

#[test]
fn rounds_of_one_transaction_are_no_attempts_that_were_aborted() {
    for planned in PLANNED.iter().filter(|planned| planned.name != "tpcc-procedures") {
        let description = available::find(planned.name).unwrap();
        let small: Vec<_> = description.small.iter().map(|it| (*it).to_owned()).collect();
        let workload = description.build(&small, 1).unwrap();
        let plan = Simulated::calm("granola", 1, 1, Length::Transactions(300));
        let tallies = Arc::new(Tallies::new(1));
        let outcome = simulated::run(&workload, &plan, &tallies).unwrap();
        // One client meets no conflict.
        assert_eq!(outcome.tally.aborted, 0, "{}", planned.name);
        assert!(outcome.tally.first.committed > 200, "{}", planned.name);
    }
}

#[test]
fn what_loads_or_reads_for_another_is_not_traced() {
    let parameters = ["users=20", "items=12", "communities=2"].map(str::to_owned).to_vec();
    let recording = TraceRequest { parameters, transactions: 200, seed: 1 };
    let epinions = planned("epinions").unwrap();
    let trace = epinions.record(&recording).unwrap();
    assert_eq!(trace.transactions.len(), 200);
    assert!(epinions.apart.iter().all(|it| !trace.procedures.iter().any(|of| of == it)));
}

#[test]
fn workloads_without_plans_name_those_that_have_some() {
    let error = planned("bank").unwrap_err().to_string();
    assert!(error.contains("`bank`") && error.contains("tpcc-procedures"), "{error}");
    assert!(planned("tpcx").unwrap_err().to_string().contains("bank"));
}
