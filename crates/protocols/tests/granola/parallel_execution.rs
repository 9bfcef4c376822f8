//! Procedures that are run at the same time: whatever goes wrong, and whoever runs them, in
//! whatever order, it cannot be seen; unless those that conflict are run so.

use std::fmt::Debug;
use std::sync::Arc;

use muesli_core::parallel::{Backwards, InARow, Shuffled};
use muesli_core::procedure::{Footprint, Procedure, Stop, Store};
use muesli_core::{Parallel, Participant as _, SmallBytes, SpaceId};
use muesli_protocols::granola::message::{Message, Record};
use muesli_protocols::granola::{GranolaSwitch, LockingExit, Rules};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::time::Span;

use super::clients::Mix;
use super::procedures::{SPACE, all, key, the_keys};
use super::sabotage::assert_caught;
use super::seeds::{ALL, TIMESTAMPS};
use super::steps::Stage;
use super::worlds::Shape;

/// Many clients, so that several transactions are ready at one time, on keys enough that many of
/// them have nothing to do with each other.
fn together(mix: Mix) -> Shape {
    Shape { together: 5, clients: 18, ..Shape::new(mix) }
}

const SOME_KEYS: Mix = Mix { keys: 40, ..TIMESTAMPS };
const ALL_ON_SOME_KEYS: Mix = Mix { keys: 40, ..ALL };

/// As [`try_seeds`](super::seeds::try_seeds), and enough must have been run together.
fn try_together(shape: &Shape, seeds: std::ops::Range<u64>, least: u64) {
    let (mut done, mut together) = (0, 0);
    for seed in seeds {
        let outcome = shape.run(seed);
        if let Some(problem) = outcome.problem {
            panic!("{shape:?}\n{problem}");
        }
        done += outcome.tally.done.get();
        together += outcome.together;
    }
    println!("{done} transactions, {together} runs together");
    assert!(together > least, "of {done} transactions only {together} were run together");
}

#[test]
fn seeds() {
    try_together(&together(TIMESTAMPS), 0..8, 100);
    try_together(&together(SOME_KEYS), 0..8, 100);
    try_together(&together(ALL_ON_SOME_KEYS), 0..8, 100);
    try_together(&Shape { together: 2, ..together(SOME_KEYS) }, 0..4, 100);
}

#[test]
fn seeds_with_every_kind_of_fault() {
    let faults = "all";
    try_together(&Shape { faults, ..together(SOME_KEYS) }, 0..15, 100);
    try_together(&Shape { faults, ..together(ALL_ON_SOME_KEYS) }, 0..15, 100);
    try_together(&Shape { replicas: 2, faults, ..together(ALL_ON_SOME_KEYS) }, 0..10, 100);
    try_together(&Shape { caches: true, faults, ..together(SOME_KEYS) }, 0..8, 100);
}

#[test]
fn seeds_with_the_other_ways_back() {
    for locking_exit in [LockingExit::UndoOnDemand, LockingExit::Stay] {
        let rules = Rules::default().with_locking_exit(locking_exit);
        let shape = Shape { rules, faults: "all", ..together(ALL_ON_SOME_KEYS) };
        try_together(&shape, 0..8, 100);
    }
}

fn out_of_order(mix: Mix) -> Shape {
    Shape { rules: Rules::out_of_order(), ..together(mix) }
}

#[test]
fn seeds_past_who_waits() {
    let telling = Mix { telling: 3, ..SOME_KEYS };
    try_together(&out_of_order(telling), 0..8, 100);
    try_together(&Shape { far: Span::from_millis(1), ..out_of_order(SOME_KEYS) }, 0..8, 100);
    let faults = "all";
    try_together(&Shape { faults, ..out_of_order(telling) }, 0..15, 100);
    try_together(&Shape { faults, ..out_of_order(ALL_ON_SOME_KEYS) }, 0..15, 100);
    try_together(&Shape { replicas: 2, faults, ..out_of_order(ALL_ON_SOME_KEYS) }, 0..10, 100);
    try_together(&Shape { caches: true, faults, ..out_of_order(SOME_KEYS) }, 0..8, 100);
}

/// All that a run leaves: what was said and when, how much was done together, and what each node
/// recorded and stores in the end.
fn all_of(shape: &Shape, seed: u64, together: Parallel) -> [String; 2] {
    let run = shape.run_by(seed, together);
    assert!(run.modes.parallel > 0, "nothing was run together");
    let said = format!("{:?} {:?} {:?}", run.digest, run.ended, run.modes);
    [said, format!("{:?}", run.hosts)]
}

#[test]
fn who_runs_them_and_in_which_order_cannot_be_seen() {
    let telling = Mix { telling: 3, ..ALL_ON_SOME_KEYS };
    let shapes = [together(ALL_ON_SOME_KEYS), out_of_order(telling)];
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
            for together in others {
                let name = format!("seed {seed}, {together:?}, {shape:?}");
                assert_eq!(all_of(&shape, seed, together), in_a_row, "{name}");
            }
        }
    }
}

#[test]
fn those_run_together_conflict_with_nobody_among_them() {
    let few_keys = Mix { keys: 9, ..TIMESTAMPS };
    for shape in [together(few_keys), out_of_order(few_keys)] {
        assert_caught(
            "parallel_apart",
            &shape,
            |rules| rules.set(GranolaSwitch::ParallelApart, false),
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
fn strays(store: &mut dyn Store, keys: &SmallBytes) -> Result<SmallBytes, Stop> {
    let space = store.space(SPACE)?;
    store.put(space, key(keys.as_slice()[0]), Some("strayed".into()))?;
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

fn says_much(_: &mut dyn Store, _: &SmallBytes) -> Result<SmallBytes, Stop> {
    Ok(SmallBytes::from(vec![7; 10_000]))
}

/// Each sort of procedure on two keys of its own, but for the look; `perhaps` declares nothing.
const CALLS: [(&str, usize); 11] = [
    ("bump", 0),
    ("panics", 1),
    ("never ends", 2),
    ("strays", 3),
    ("refuses", 4),
    ("says much", 5),
    ("look", 0),
    ("bump", 6),
    ("perhaps", 7),
    ("bump", 8),
    ("chase", 9),
];

fn stage(rules: Rules) -> Stage {
    let mut stage = Stage::new(rules);
    let declared = |run| Procedure::new(run).touches(the_keys);
    stage.settings.procedures = all()
        .with("panics", 1, declared(panics))
        .with("never ends", 1, declared(never_ends))
        .with("strays", 1, Procedure::new(strays).touches(the_first_key))
        .with("refuses", 1, declared(refuses))
        .with("says much", 1, declared(says_much));
    stage.settings.limits.procedure_steps = 1_000;
    stage.settings.limits.value_bytes = 1_000;
    stage
}

/// What came of all calls, step by step; what was logged and what is stored.
fn after_all_calls(stage: &mut Stage) -> (Vec<Vec<Message>>, Vec<Record>, String) {
    let space = stage.catalog.space_named(SPACE).expect("the space");
    let own: Vec<u8> =
        (0..100).filter(|at| stage.catalog.partition(space, &key(*at)) == 0).collect();
    let mut said = Vec::new();
    for (number, (name, at)) in CALLS.into_iter().enumerate() {
        let call = stage.call(number as u64 + 1, name, &own[at * 2..at * 2 + 2], true);
        said.push(stage.receive(call));
    }
    while stage.has_left_over() {
        said.push(stage.go_on());
    }
    said.retain(|said| !said.is_empty());
    (said, stage.log.clone(), format!("{:?}", stage.participant.chains(&stage.catalog)))
}

/// In an order that does not depend on who passed whom.
fn sorted<T: Debug>(all: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut all: Vec<_> = all.into_iter().map(|it| format!("{it:?}")).collect();
    all.sort();
    all
}

#[test]
fn procedures_of_every_sort_come_out_as_one_after_the_other() {
    let (said, log, stored) = after_all_calls(&mut stage(Rules::default()));
    assert_eq!(said.len(), CALLS.len(), "each is answered at once");
    let texts = ["panicked", "more than the allowed", "not declared", "as it is to", "a result"];
    let (said, log) = (sorted(said.concat()), sorted(log));
    let tells = |text: &str| said.iter().any(|it| it.contains(text));
    assert!(texts.into_iter().all(tells), "{said:?}");
    // A look at what was written waits for that, and what declares nothing is alone. Others wait
    // for both, unless they pass the look.
    for (rules, sizes) in [(Rules::default(), [6, 2, 1, 2]), (Rules::out_of_order(), [7, 1, 1, 2])]
    {
        let on_threads = muesli_threads::eager(2).expect("threads");
        let in_a_row = Parallel::new(8, Arc::new(InARow));
        for together in [in_a_row, Parallel::new(8, Arc::new(Backwards)), on_threads] {
            let mut stage = stage(rules);
            (stage.settings.parallel, stage.holds_back) = (together, true);
            let (steps, its_log, its_stored) = after_all_calls(&mut stage);
            assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "{rules:?}");
            assert_eq!(sorted(steps.concat()), said, "{rules:?}");
            assert_eq!((sorted(its_log), &its_stored), (log.clone(), &stored), "{rules:?}");
        }
    }
}
