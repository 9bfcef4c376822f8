//! Searches of a protocol that this program has registered.

use muesli_core::Protocol;
use muesli_workloads::available;
use muesli_workloads::trial::Trial;

/// The trials of a protocol with a workload. No marks are used: they are scanned, which the samples
/// do not offer.
pub fn trial(protocol: &str, workload: &str) -> Trial {
    let workload = available::find(workload).expect("a workload of the product");
    let parameters = vec!["marks=0".to_owned()];
    Trial { protocol: protocol.to_owned(), parameters, ..Trial::of(workload) }
}

/// The same trials with each repository kept by three nodes.
pub fn in_groups(trial: Trial) -> Trial {
    Trial { group: 3, ..trial }
}

/// Runs seeds, each with its faults, and gives what was wrong, each with its seed.
pub fn search(trial: &Trial, seeds: std::ops::Range<u64>) -> Vec<String> {
    let mut problems = Vec::new();
    for seed in seeds {
        let trialled = trial.run(seed, false).expect("a run that can be made");
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
pub fn register<P: Protocol>(name: &'static str, rules: P::Rules) {
    muesli::register_protocol::<P>(name, rules).expect("a name that is free");
}
