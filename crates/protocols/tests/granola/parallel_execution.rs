//! Procedures that are run at the same time: whatever goes wrong, and whoever runs them, in
//! whatever order, it cannot be seen; unless those that conflict are run so.

use std::fmt::Debug;
use std::sync::Arc;

use muesli_core::parallel::{Backwards, InARow, Shuffled};
use muesli_core::procedure::{Footprint, Procedure, Stop, Store};
use muesli_core::{Parallel, Participant as _, SmallBytes, SpaceId};
use muesli_protocols::granola::message::{Message, Record};
use muesli_protocols::granola::{GranolaSwitch, LockingExit, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::time::Span;

use super::clients::Mix;
use super::procedures::{SPACE, all, key, the_keys};
use super::sabotage::assert_caught;
use super::seeds::{ALL, TIMESTAMPS};
use super::steps::Harness;
use super::worlds::Shape;

/// Many clients, so that several transactions are ready at one time, on keys enough that many of
/// them have nothing to do with each other.
fn in_parallel(mix: Mix) -> Shape {
    Shape { in_parallel: 5, clients: 18, ..Shape::new(mix) }
}

const SOME_KEYS: Mix = Mix { keys: 40, ..TIMESTAMPS };
const ALL_ON_SOME_KEYS: Mix = Mix { keys: 40, ..ALL };

/// As [`try_seeds`](super::seeds::try_seeds), and enough must have been run together.
fn try_parallel(shape: &Shape, seeds: std::ops::Range<u64>, least: u64) {
    let (mut done, mut in_parallel) = (0, 0);
    for seed in seeds {
        let outcome = shape.run(seed);
        if let Some(problem) = outcome.problem {
            panic!("{shape:?}\n{problem}");
        }
        done += outcome.tally.done.get();
        in_parallel += outcome.in_parallel;
    }
    println!("{done} transactions, {in_parallel} runs together");
    assert!(in_parallel > least, "of {done} transactions only {in_parallel} were run together");
}

#[test]
fn seeds() {
    try_parallel(&in_parallel(TIMESTAMPS), 0..8, 100);
    try_parallel(&in_parallel(SOME_KEYS), 0..8, 100);
    try_parallel(&in_parallel(ALL_ON_SOME_KEYS), 0..8, 100);
    try_parallel(&Shape { in_parallel: 2, ..in_parallel(SOME_KEYS) }, 0..4, 100);
}

#[test]
fn seeds_with_every_kind_of_fault() {
    let faults = "all";
    try_parallel(&Shape { faults, ..in_parallel(SOME_KEYS) }, 0..15, 100);
    try_parallel(&Shape { faults, ..in_parallel(ALL_ON_SOME_KEYS) }, 0..15, 100);
    try_parallel(&Shape { replicas: 2, faults, ..in_parallel(ALL_ON_SOME_KEYS) }, 0..10, 100);
    try_parallel(&Shape { caches: true, faults, ..in_parallel(SOME_KEYS) }, 0..8, 100);
}

#[test]
fn seeds_with_the_other_ways_back() {
    for locking_exit in [LockingExit::UndoOnDemand, LockingExit::Stay] {
        let switches = Switches::default().with_locking_exit(locking_exit);
        let shape = Shape { switches, faults: "all", ..in_parallel(ALL_ON_SOME_KEYS) };
        try_parallel(&shape, 0..8, 100);
    }
}

fn out_of_order(mix: Mix) -> Shape {
    Shape { switches: Switches::out_of_order(), ..in_parallel(mix) }
}

#[test]
fn seeds_ahead_of_who_waits() {
    let sharing = Mix { sharing: 3, ..SOME_KEYS };
    try_parallel(&out_of_order(sharing), 0..8, 100);
    try_parallel(&Shape { far: Span::from_millis(1), ..out_of_order(SOME_KEYS) }, 0..8, 100);
    let faults = "all";
    try_parallel(&Shape { faults, ..out_of_order(sharing) }, 0..15, 100);
    try_parallel(&Shape { faults, ..out_of_order(ALL_ON_SOME_KEYS) }, 0..15, 100);
    try_parallel(&Shape { replicas: 2, faults, ..out_of_order(ALL_ON_SOME_KEYS) }, 0..10, 100);
    try_parallel(&Shape { caches: true, faults, ..out_of_order(SOME_KEYS) }, 0..8, 100);
}

/// All that a run leaves: what was said and when, how much was done together, and what each node
/// recorded and stores in the end.
fn all_of(shape: &Shape, seed: u64, in_parallel: Parallel) -> [String; 2] {
    let run = shape.run_by(seed, in_parallel);
    assert!(run.modes.parallel > 0, "nothing was run together");
    let sent = format!("{:?} {:?} {:?}", run.digest, run.ended, run.modes);
    [sent, format!("{:?}", run.hosts)]
}

#[test]
fn who_runs_them_and_in_which_order_cannot_be_seen() {
    let sharing = Mix { sharing: 3, ..ALL_ON_SOME_KEYS };
    let shapes = [in_parallel(ALL_ON_SOME_KEYS), out_of_order(sharing)];
    for shape in shapes.map(|shape| Shape { faults: "crash,pause,link", ..shape }) {
        for seed in 0..4 {
            let threads = muesli_threads::eager(3).expect("threads");
            let most = threads.at_most();
            let in_a_row = all_of(&shape, seed, Parallel::new(most, Arc::new(InARow)));
            let others = [
                Parallel::new(most, Arc::new(Backwards)),
                Parallel::new(most, Arc::new(Shuffled { seed })),
                threads,
            ];
            for in_parallel in others {
                let name = format!("seed {seed}, {in_parallel:?}, {shape:?}");
                assert_eq!(all_of(&shape, seed, in_parallel), in_a_row, "{name}");
            }
        }
    }
}

#[test]
fn those_run_together_conflict_with_nobody_among_them() {
    let few_keys = Mix { keys: 9, ..TIMESTAMPS };
    for shape in [in_parallel(few_keys), out_of_order(few_keys)] {
        assert_caught(
            "parallel_apart",
            &shape,
            |switches| switches.set(GranolaSwitch::ParallelApart, false),
            20,
        );
    }
}

fn panics(_: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    panic!("as it is to")
}

fn never_ends(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    loop {
        store.get(space, &key(keys.as_slice()[0]))?;
    }
}

/// Writes its first key, and reads its second one, which it does not declare.
fn leaves_its_footprint(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    store.put(space, key(keys.as_slice()[0]), Some("outside".into()))?;
    store.get(space, &key(keys.as_slice()[1]))?;
    Ok(SmallBytes::EMPTY)
}

fn the_first_key(
    space: &dyn Fn(&str) -> Result<SpaceId, Stop>,
    keys: &SmallBytes,
) -> Result<Footprint, Stop> {
    the_keys(space, &SmallBytes::new(&keys.as_slice()[..1]))
}

/// Writes its key, and refuses then.
fn refuses(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    store.put(space, key(keys.as_slice()[0]), Some("refused".into()))?;
    Err(Stop::Refused("as it is to".into()))
}

fn answers_much(_: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    Ok(SmallBytes::from(vec![7; 10_000]))
}

/// Each sort of procedure on two keys of its own, but for the look; `perhaps` declares nothing.
const CALLS: [(&str, usize); 11] = [
    ("bump", 0),
    ("panics", 1),
    ("never ends", 2),
    ("leaves its footprint", 3),
    ("refuses", 4),
    ("says much", 5),
    ("look", 0),
    ("bump", 6),
    ("perhaps", 7),
    ("bump", 8),
    ("chase", 9),
];

fn harness(switches: Switches) -> Harness {
    let mut harness = Harness::new(switches);
    let declared = |run| Procedure::new(run).touches(the_keys);
    harness.settings.procedures = all()
        .with("panics", 1, declared(panics))
        .with("never ends", 1, declared(never_ends))
        .with(
            "leaves its footprint",
            1,
            Procedure::new(leaves_its_footprint).touches(the_first_key),
        )
        .with("refuses", 1, declared(refuses))
        .with("says much", 1, declared(answers_much));
    harness.settings.limits.procedure_steps = 1_000;
    harness.settings.limits.value_bytes = 1_000;
    harness
}

/// What came of all calls, step by step; what was logged and what is stored.
fn after_all_calls(harness: &mut Harness) -> (Vec<Vec<Message>>, Vec<Record>, String) {
    let space = harness.catalog.space_named(SPACE).expect("the space");
    let own: Vec<u8> =
        (0..100).filter(|at| harness.catalog.partition(space, &key(*at)) == 0).collect();
    let mut sent = Vec::new();
    for (number, (name, at)) in CALLS.into_iter().enumerate() {
        let call = harness.call(number as u64 + 1, name, &own[at * 2..at * 2 + 2], true);
        sent.push(harness.receive(call));
    }
    while harness.has_left_over() {
        sent.push(harness.go_on());
    }
    sent.retain(|sent| !sent.is_empty());
    (sent, harness.log.clone(), format!("{:?}", harness.participant.chains(&harness.catalog)))
}

/// In an order that does not depend on who passed whom.
fn sorted<T: Debug>(all: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut all: Vec<_> = all.into_iter().map(|it| format!("{it:?}")).collect();
    all.sort();
    all
}

#[test]
fn procedures_of_every_sort_come_out_as_one_after_the_other() {
    let (sent, log, stored) = after_all_calls(&mut harness(Switches::default()));
    assert_eq!(sent.len(), CALLS.len(), "each is answered at once");
    let texts = ["panicked", "more than the allowed", "not declared", "as it is to", "a result"];
    let (sent, log) = (sorted(sent.concat()), sorted(log));
    let has_sent = |text: &str| sent.iter().any(|it| it.contains(text));
    assert!(texts.into_iter().all(has_sent), "{sent:?}");
    // A look at what was written waits for that, and what declares nothing is alone. Others wait
    // for both, unless they pass the look.
    for (switches, sizes) in
        [(Switches::default(), [6, 2, 1, 2]), (Switches::out_of_order(), [7, 1, 1, 2])]
    {
        let on_threads = muesli_threads::eager(2).expect("threads");
        let in_a_row = Parallel::new(8, Arc::new(InARow));
        for in_parallel in [in_a_row, Parallel::new(8, Arc::new(Backwards)), on_threads] {
            let mut harness = harness(switches);
            (harness.settings.parallel, harness.holds_back) = (in_parallel, true);
            let (steps, its_log, its_stored) = after_all_calls(&mut harness);
            assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "{switches:?}");
            assert_eq!(sorted(steps.concat()), sent, "{switches:?}");
            assert_eq!((sorted(its_log), &its_stored), (log.clone(), &stored), "{switches:?}");
        }
    }
}
