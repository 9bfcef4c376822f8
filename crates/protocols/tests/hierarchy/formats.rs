//! Golden files of formats: messages, records and checkpoints.

use muesli_protocols::hierarchy::{HierarchyByIntervals, Intervals};
use muesli_protocols::hierarchy_locking::{HierarchyByLocks, LockingLeaves};

use crate::clusters::cluster;
use crate::harness::samples;
use crate::two_phase::checkpoint_page;

#[test]
fn bytes_of_this_version_mean_what_they_meant() {
    samples::bytes_mean_what_they_meant::<HierarchyByIntervals>(cluster, "hierarchy", None);
}

#[test]
fn bytes_of_this_version_mean_what_they_meant_with_locks() {
    samples::bytes_mean_what_they_meant::<HierarchyByLocks>(cluster, "hierarchy_locking", None);
}

#[test]
fn checkpoints_are_as_they_were() {
    checkpoint_page::of_two_phases::<Intervals>();
    checkpoint_page::of_two_phases::<LockingLeaves>();
}
