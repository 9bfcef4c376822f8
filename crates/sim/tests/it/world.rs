//! The world, run with a small protocol: what it promises of time, faults and repetition.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use muesli_core::{AnyProtocol, Catalog, Nanos, NodeId, SmallBytes, Typed};
use muesli_sim::hardware::costs::Costs;
use muesli_sim::hardware::disk::DiskSpeed;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::fault::{FaultKind, FaultKinds};
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Run, Setup, SetupError, Stuck, World};

use crate::registers::client::{Db, number};
use crate::registers::{Registers, Switches};

const NODES: u32 = 4;
const CLIENTS: u32 = 8;
const PATIENCE: Span = Span::from_secs(5);

/// What clients were told.
#[derive(Default)]
struct ReportedTransaction {
    /// The largest number acknowledged, per register.
    acknowledged: BTreeMap<String, u64>,
    /// How many reads missed an acknowledged write.
    stale_reads: usize,
}

fn at(text: &str) -> VirtualTime {
    text.parse().expect("a time")
}

fn protocol(switches: Switches) -> Arc<dyn AnyProtocol> {
    Arc::new(Typed::<Registers>(switches))
}

fn setup(seed: u64, plan: Plan) -> Setup {
    let homes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
    let catalog = Arc::new(Catalog::new(&homes, 1, &homes).expect("a catalog"));
    let channel = ChannelClass { latency: Latency::Constant(Span::from_micros(50)), bandwidth: 0 };
    let topology = Topology::uniform(NODES as usize, channel);
    let mut setup =
        Setup::new(protocol(Switches::default()), Seed::new(seed), catalog, topology, plan);
    setup.costs = Costs::FREE;
    let sync = Latency::Constant(Span::from_micros(270));
    setup.disk = DiskSpeed { sync, bandwidth: 0, at_once: 1 };
    setup
}

fn drawn_plan(seed: u64, kinds: &str) -> Plan {
    let kinds: FaultKinds = kinds.parse().expect("kinds of faults");
    // Here every repository is on one disk alone.
    let kinds = kinds.without(FaultKind::Loss);
    let horizon = at("1s");
    let shape =
        PlanShape { nodes: NODES, clients: CLIENTS, horizon, kinds, trees: 0, faults_max: 12 };
    shape.draw(Seed::new(seed))
}

/// Writes ever larger numbers to a register of its own and one at another node, reads them back
/// now and then, and notes what it was told.
async fn count(db: Db, start: ClientStart, acknowledged_to: Rc<RefCell<ReportedTransaction>>) {
    let (mine, other) = (format!("a{}", start.number), format!("b{}", start.number));
    let mut random = start.seed.stream();
    let mut next = u64::from(start.incarnation) * 1_000_000;
    while !start.stop.is_raised() {
        next += 1;
        let open = db.begin().expect("the node is up");
        open.put(&mine, next).expect("the transaction is open");
        open.put(&other, next).expect("the transaction is open");
        open.commit().await.expect("commits succeed");
        for key in [&mine, &other] {
            acknowledged_to.borrow_mut().acknowledged.insert(key.clone(), next);
        }
        if random.chance(0.2) {
            let open = db.begin().expect("the node is up");
            let value = open.get(&mine).await.expect("reads succeed");
            acknowledged_to.borrow_mut().stale_reads += usize::from(number(value.as_ref()) < next);
        }
        db.sleep(Nanos::from_micros(random.below(3_000))).await;
    }
}

fn add_clients(world: &mut World, acknowledged_to: &Rc<RefCell<ReportedTransaction>>) {
    let (db, acknowledged_to) = (Db(world.database()), Rc::clone(acknowledged_to));
    let body: ClientBody =
        Rc::new(move |start| Box::pin(count(db, start, Rc::clone(&acknowledged_to))));
    for client in 0..CLIENTS {
        world.add_client(NodeId(client % NODES), Rc::clone(&body));
    }
}

/// Registers whose acknowledged number is not there.
fn lost(world: &World, acknowledged_to: &Rc<RefCell<ReportedTransaction>>) -> Vec<String> {
    let holds = |key: &str| {
        let key = SmallBytes::from(key);
        let values = (0..NODES).filter_map(|node| {
            world.with_node::<Registers, _>(NodeId(node), |node| {
                let banks = node.participants().iter();
                banks.map(|(_, bank)| number(bank.value(&key))).max().unwrap_or(0)
            })
        });
        values.max().unwrap_or(0)
    };
    let acknowledged_to = &acknowledged_to.borrow().acknowledged;
    acknowledged_to
        .iter()
        .filter(|(key, acknowledged_to)| holds(key) < **acknowledged_to)
        .map(|(key, _)| key.clone())
        .collect()
}

struct Outcome {
    run: Run,
    settled: Result<(), Stuck>,
    lost: Vec<String>,
    acknowledged: usize,
    stale_reads: usize,
}

fn run(setup: Setup) -> Outcome {
    let (mut world, acknowledged_to) = (World::new(setup).expect("a setup"), Rc::default());
    add_clients(&mut world, &acknowledged_to);
    let settled = world.run_to_end(PATIENCE);
    let lost = lost(&world, &acknowledged_to);
    let (acknowledged, stale_reads) =
        (acknowledged_to.borrow().acknowledged.len(), acknowledged_to.borrow().stale_reads);
    Outcome { run: world.finish(), settled, lost, acknowledged, stale_reads }
}

#[test]
fn one_seed_gives_one_trace_byte_for_byte() {
    for seed in 0..5 {
        let traced = || {
            let text = Setup { trace_text: true, ..setup(seed, drawn_plan(seed, "all")) };
            run(text).run
        };
        let (first, second) = (traced(), traced());
        assert_eq!(first.trace_text, second.trace_text);
        assert_eq!((first.digest, first.events), (second.digest, second.events));
        let quiet = run(setup(seed, drawn_plan(seed, "all"))).run;
        assert_eq!(first.digest, quiet.digest, "keeping the text changes nothing");
        let other = run(setup(seed + 100, drawn_plan(seed, "all"))).run;
        assert_ne!(first.digest, other.digest, "the seed changes something");
    }
}

#[test]
fn a_plan_that_was_printed_and_given_back_gives_the_same_run() {
    let plan = drawn_plan(3, "all");
    let again: Plan = plan.to_string().parse().expect("a printed plan");
    assert_eq!(run(setup(3, plan)).run.digest, run(setup(3, again)).run.digest);
}

#[test]
fn nothing_acknowledged_is_lost_and_everything_ends_under_every_kind_of_fault() {
    let kinds =
        ["none", "crash", "client", "partition", "link", "pause", "disk", "skew", "sync", "all"];
    for kind in kinds {
        for seed in 0..10 {
            let plan = drawn_plan(seed, kind);
            let outcome = run(setup(seed, plan.clone()));
            assert_eq!(outcome.settled, Ok(()), "seed {seed}, plan {plan}");
            assert!(outcome.lost.is_empty(), "lost {:?}, seed {seed}, plan {plan}", outcome.lost);
            assert_eq!((outcome.acknowledged, outcome.stale_reads), (2 * CLIENTS as usize, 0));
        }
    }
}

#[test]
fn a_protocol_that_speaks_before_it_logs_is_caught() {
    let caught = (0..25).any(|seed| {
        let switches = Switches { log: false, ..Switches::default() };
        let outcome =
            run(Setup { protocol: protocol(switches), ..setup(seed, drawn_plan(seed, "crash")) });
        !outcome.lost.is_empty() && outcome.stale_reads > 0
    });
    assert!(caught, "crashes lose nothing that was not logged");
}

#[test]
fn a_protocol_that_never_repeats_itself_is_caught() {
    for kind in ["link", "crash", "partition"] {
        let caught = (0..25).any(|seed| {
            let switches = Switches { resend: false, ..Switches::default() };
            run(Setup { protocol: protocol(switches), ..setup(seed, drawn_plan(seed, kind)) })
                .settled
                .is_err()
        });
        assert!(caught, "no {kind} loses a message that mattered");
    }
}

/// When one client of node 0 was told that a write of two registers is there, under a plan.
fn trace_of(plan: &str) -> VirtualTime {
    let plan = plan.parse().expect("a plan");
    let mut world = World::new(setup(1, plan)).expect("a setup");
    let (db, done) = (Db(world.database()), Rc::new(RefCell::new(false)));
    let noted = Rc::clone(&done);
    let body: ClientBody = Rc::new(move |_| {
        let noted = Rc::clone(&noted);
        Box::pin(async move {
            db.sleep(Nanos::from_millis(10)).await;
            let open = db.begin().expect("the node is up");
            // The sum of the bytes is 1 modulo 4: the register lives at node 1.
            open.put("a", 7).expect("the transaction is open");
            open.commit().await.expect("commits succeed");
            *noted.borrow_mut() = true;
        })
    });
    world.add_client(NodeId(0), body);
    let mut now = VirtualTime::ZERO;
    while !*done.borrow() {
        now += Span::from_micros(1);
        world.run_until(now);
        assert!(now < at("20s"), "never told");
    }
    now
}

#[test]
fn an_answer_takes_two_flights_and_a_sync_and_faults_delay_it() {
    // 10 ms of sleep, 50 us to node 1, 270 us for the sync, 50 us back.
    let sound = at("10370us") + Span::from_micros(1);
    assert_eq!(trace_of("horizon 1s"), sound);
    let delayed = |plan| trace_of(plan).since(sound);
    let sync = Span::from_micros(270);
    assert_eq!(delayed("horizon 1s; 5ms+100ms disk n1 x10"), sync.times(9));
    assert_eq!(delayed("horizon 1s; 5ms+100ms disk n2 x10"), Span::ZERO);
    // What came to the paused node, or was held by the partition, is taken at 105 ms.
    let until_105 = Span::from_micros(94_950);
    assert_eq!(delayed("horizon 1s; 5ms+100ms pause n1"), until_105);
    assert_eq!(delayed("horizon 1s; 5ms+100ms partition n1"), until_105);
    assert_eq!(delayed("horizon 1s; 5ms+100ms partition-in n1"), until_105);
    assert_eq!(delayed("horizon 1s; 5ms+100ms partition-in n0"), at("105ms").since(sound));
    assert_eq!(delayed("horizon 1s; 5ms+100ms partition n2,n3"), Span::ZERO);
    // A broken link, or one given up, is made anew, and the write is sent again.
    assert!(delayed("horizon 1s; 5ms+100ms break n0 n1") > until_105);
    assert!(delayed("horizon 2s; 5ms+1s partition n1") > Span::from_millis(990));
    assert!(delayed("horizon 1s; 9ms+100ms crash n1") > Span::from_millis(90));
}

#[test]
fn a_slow_node_makes_all_its_work_cost_more() {
    let busy = |plan: &str| {
        let plan = plan.parse().expect("a plan");
        let costs = Costs { receive: Span::from_micros(5), ..Costs::FREE };
        let outcome = run(Setup { costs, ..setup(1, plan) });
        assert_eq!(outcome.settled, Ok(()));
        outcome.run.events
    };
    assert!(busy("horizon 1s; 0s+1s slow n1 x200") < busy("horizon 1s") * 9 / 10);
}

#[test]
fn skewed_clocks_are_seen_by_clients_and_by_timers() {
    let plan = "horizon 1s; 10ms+500ms skew n0 +3s +500000ppm".parse().expect("a plan");
    let mut world = World::new(setup(1, plan)).expect("a setup");
    let (db, seen) = (Db(world.database()), Rc::new(RefCell::new(Vec::new())));
    let noted = Rc::clone(&seen);
    let body: ClientBody = Rc::new(move |_| {
        let noted = Rc::clone(&noted);
        Box::pin(async move {
            // Begun before the leap; measured by the clock as it was when it began.
            for millis in [25, 30] {
                db.sleep(Nanos::from_millis(millis)).await;
                noted.borrow_mut().push(db.with(|engine| engine.now()));
            }
        })
    });
    world.add_client(NodeId(0), body);
    let mut ended = VirtualTime::ZERO;
    while world.tasks_alive() > 0 {
        ended += Span::from_millis(1);
        world.run_until(ended);
    }
    // At 25 ms the clock shows 10 ms + 3 s + 22.5 ms; 30 ms of it are 20 ms.
    assert_eq!(*seen.borrow(), [Nanos(3_032_500_000), Nanos(3_062_500_000)]);
    assert_eq!(ended, at("45ms"));
}

#[test]
fn crashed_and_vanished_clients_begin_new_lives() {
    let plan = "horizon 1s; 100ms+50ms crash n1; 300ms+50ms vanish 0; 500ms+50ms crash n1";
    let mut world = World::new(setup(1, plan.parse().expect("a plan"))).expect("a setup");
    let incarnations: Rc<RefCell<Vec<(u32, u32, VirtualTime)>>> = Rc::default();
    let (db, noted) = (Db(world.database()), Rc::clone(&incarnations));
    let body: ClientBody = Rc::new(move |start: ClientStart| {
        let noted = Rc::clone(&noted);
        Box::pin(async move {
            let now = db.with(|engine| engine.now());
            noted.borrow_mut().push((
                start.number,
                start.incarnation,
                VirtualTime::from_nanos(now.0),
            ));
            db.sleep(Nanos::from_millis(100_000)).await;
        })
    });
    world.add_client(NodeId(0), Rc::clone(&body));
    world.add_client(NodeId(1), body);
    world.run_until(at("1s"));
    let expected = [
        (0, 1, at("0s")),
        (1, 1, at("0s")),
        (1, 2, at("150ms")),
        (0, 2, at("350ms")),
        (1, 3, at("550ms")),
    ];
    assert_eq!(*incarnations.borrow(), expected);
}

#[test]
fn a_client_that_never_waits_does_not_stop_the_time() {
    let setup = Setup { costs: Costs::measured(), ..setup(1, Plan::calm(at("10ms"))) };
    let mut world = World::new(setup).expect("a setup");
    let (db, rounds) = (Db(world.database()), Rc::new(RefCell::new(0)));
    let counted = Rc::clone(&rounds);
    let body: ClientBody = Rc::new(move |start: ClientStart| {
        let counted = Rc::clone(&counted);
        Box::pin(async move {
            while !start.stop.is_raised() {
                drop(db.begin().expect("the node is up"));
                *counted.borrow_mut() += 1;
                if db.with(|engine| engine.should_yield()) {
                    yield_once().await;
                }
            }
        })
    });
    world.add_client(NodeId(0), body);
    world.run_until(at("10ms"));
    world.stop_clients();
    assert_eq!(world.settle(Span::from_millis(1)), Ok(()));
    assert!(*rounds.borrow() > 10_000);
}

/// Lets others run.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[test]
fn setups_that_cannot_be_run_are_refused_with_what_is_allowed() {
    let refused = |setup| World::new(setup).err().map(|error| error.to_string());
    let far = setup(1, "horizon 1s; 1ms+1ms break n1 n9".parse().expect("a plan"));
    let message = refused(far).expect("there is no such node");
    assert_eq!(message, "`1ms+1ms break n1 n9` names node n9, but there are 4 nodes, n0 to n3");
    let mut unlogged = setup(1, "horizon 1s; 1ms+1ms crash n1".parse().expect("a plan"));
    unlogged.settings.logging = false;
    assert!(matches!(World::new(unlogged), Err(SetupError::Unlogged(_))));
}
