//! The list of workloads.

use muesli_workloads::available::{find, workloads};

#[test]
fn every_workload_is_built_from_its_defaults_and_small() {
    for workload in workloads() {
        assert!(workload.build(&[], 4).is_ok(), "{}", workload.name);
        let small = workload.build(&workload.small_parameters(), 4);
        assert!(small.is_ok(), "{}", workload.name);
    }
    let error = find("tpcx").unwrap_err().to_string();
    assert!(workloads().iter().all(|workload| error.contains(workload.name)));
}
