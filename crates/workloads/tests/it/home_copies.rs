//! Workloads on home copies: with one client for each copy a protocol that can serialize an update
//! before what it missed refuses none, by construction; one that cannot does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use muesli::open_nesting::NestingCounts;
use muesli::{Abort, Db, Error, SpaceOptions};
use muesli_workloads::available;
use muesli_workloads::check::Check;
use muesli_workloads::embedded::Length;
use muesli_workloads::list_history::ListHistory;
use muesli_workloads::machines::MachineModel;
use muesli_workloads::nesting::roots::RecordsRoots;
use muesli_workloads::simulated::{self, Simulated};
use muesli_workloads::tally::Tallies;
use muesli_workloads::workload::{AnyWorkload, LocalFuture, Seat};

use super::workloads::assert_checks;

const COPIES: u32 = 8;

/// Small, with many remote updates.
const CASES: &[(&str, &str)] = &[
    ("home-lists", "keys=60 initial=20 remote=40"),
    ("home-ycsb", "keys=8 remote=40"),
    ("home-vacation", "keys=4 remote=40 reads=30 units=10000"),
    ("home-vacation", "keys=4 users=70 remote=40 reads=30 units=10000"),
];

/// A workload, and which conflicts its clients met.
struct Watched {
    workload: Arc<dyn AnyWorkload>,
    conflicts: Mutex<Vec<(Abort, u64)>>,
}

impl AnyWorkload for Watched {
    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        self.workload.spaces(repositories)
    }

    fn is_one_round(&self) -> bool {
        self.workload.is_one_round()
    }

    fn load<'a>(&'a self, db: &'a Db) -> LocalFuture<'a, Result<(), Error>> {
        self.workload.load(db)
    }

    fn load_progress(&self) -> Option<(u64, u64)> {
        self.workload.load_progress()
    }

    fn run(&self, seat: Seat) -> LocalFuture<'_, Result<(), Error>> {
        self.workload.run(seat)
    }

    fn check<'a>(&'a self, db: &'a Db) -> LocalFuture<'a, Result<Vec<Check>, Error>> {
        *self.conflicts.lock().unwrap() = db.conflicts();
        self.workload.check(db)
    }

    fn history(&self) -> Option<ListHistory> {
        self.workload.history()
    }

    fn notes(&self) -> Vec<String> {
        self.workload.notes()
    }

    fn roots(&self) -> Option<&dyn RecordsRoots> {
        self.workload.roots()
    }

    fn open_children(&self) -> Option<NestingCounts> {
        self.workload.open_children()
    }
}

/// How many attempts of a run over eight nodes with a copy each were refused, but for waits for
/// locks that ended; and which conflicts there were, of looks whether all is loaded, too.
fn refused(case: &(&str, &str), protocol: &str, clients: u32) -> (u64, Vec<(Abort, u64)>) {
    let context = format!("{case:?} under {protocol}, {clients} clients");
    let mut given: Vec<String> = case.1.split(' ').map(str::to_owned).collect();
    given.push(format!("homes={COPIES}"));
    let workload = available::find(case.0).unwrap().build(&given, clients).unwrap();
    let watched = Arc::new(Watched { workload, conflicts: Mutex::default() });
    let workload: Arc<dyn AnyWorkload> = watched.clone();
    let length = Length::Time(Duration::from_millis(500));
    let plan = Simulated::calm(protocol, COPIES as usize, 3, length);
    let tallies = Arc::new(Tallies::new(clients));
    let outcome = simulated::run_on(&MachineModel::bumper_port(), &workload, &plan, &tallies)
        .expect("it runs");
    assert_checks(&outcome.checks, &context);
    assert!(outcome.tally.committed > 500, "{context}: {:?}", outcome.tally);
    let conflicts = watched.conflicts.lock().unwrap().clone();
    let locked = conflicts.iter().find(|(reason, _)| *reason == Abort::Locked);
    let locked = locked.map_or(0, |(_, count)| *count);
    (outcome.tally.aborted.saturating_sub(locked), conflicts)
}

#[test]
fn time_warped_updates_are_not_refused_with_one_client_a_copy() {
    for case in CASES {
        let (bumper, why) = refused(case, "bumper-waiting", COPIES);
        assert_eq!(bumper, 0, "{case:?}: {why:?}");
        let (score, why) = refused(case, "score-waiting", COPIES);
        let stale = why.iter().any(|(reason, _)| *reason == Abort::StaleRead);
        assert!(score > 10 && stale, "{case:?}: {why:?}");
    }
}

/// It is how few write a copy that spares them: where several clients do, they are refused.
#[test]
fn time_warped_updates_are_refused_with_six_clients_a_copy() {
    for case in CASES {
        let (bumper, why) = refused(case, "bumper-waiting", 6 * COPIES);
        let stale = why.iter().any(|(reason, _)| *reason == Abort::StaleRead);
        assert!(bumper > 3 && stale, "{case:?}: {bumper}, {why:?}");
    }
}

/// The run that shows what a protocol costs by itself: nobody meets anybody.
#[test]
fn updates_that_put_one_record_at_home_meet_nobody() {
    let case = ("home-ycsb", "keys=8 update=put");
    for protocol in ["score-waiting", "bumper-waiting", "gmu"] {
        let (refused, why) = refused(&case, protocol, COPIES);
        assert_eq!(refused, 0, "{protocol}: {why:?}");
    }
}
