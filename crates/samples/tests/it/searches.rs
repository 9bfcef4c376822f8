//! Searches of a protocol that this program has registered.

use muesli_core::Protocol;
use muesli_workloads::available;
use muesli_workloads::seeded_run::SeededRun;

/// The runs of a protocol with a workload. No marks are used: they are scanned, which the samples
/// do not offer.
pub fn seeded_run(protocol: &str, workload: &str) -> SeededRun {
    let workload = available::find(workload).expect("a workload of the product");
    let parameters = vec!["marks=0".to_owned()];
    SeededRun { protocol: protocol.to_owned(), parameters, ..SeededRun::of(workload) }
}

/// The same runs with each repository kept by three nodes.
pub fn in_groups(seeded_run: SeededRun) -> SeededRun {
    SeededRun { group: 3, ..seeded_run }
}

/// Runs seeds, each with its faults, and gives what was wrong, each with its seed.
pub fn search(seeded_run: &SeededRun, seeds: std::ops::Range<u64>) -> Vec<String> {
    let mut problems = Vec::new();
    for seed in seeds {
        let trialled = seeded_run.run(seed, false).expect("a run that can be made");
        problems.extend(trialled.problems.into_iter().map(|it| format!("seed {seed}: {it}")));
    }
    problems
}

/// Whether a history that the checker judged is among what was wrong: no run that could not be
/// made.
pub fn breaks(problems: &[String]) -> bool {
    assert!(problems.iter().all(|it| !it.contains("not scanned")), "{problems:?}");
    problems.iter().any(|it| it.contains("serializable"))
}

/// Registers a protocol for this test.
pub fn register<P: Protocol>(name: &'static str, switches: P::Switches) {
    muesli::register_protocol::<P>(name, switches).expect("a name that is free");
}
