//! SCORe in the world: transfers between accounts and audits of them, under every kind of fault.
//!
//! Whatever happens, every audit sees the same total, nothing acknowledged is lost, and once
//! nothing is wrong any more everything that was begun ends.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error, Range, Retry, Space, SpaceOptions, Tx};
use muesli_check::{Level, Options, Verdict};
use muesli_core::recorder::Status;
use muesli_core::{Catalog, NodeId, Typed};
use muesli_protocols::score::{FamilySwitch, Score, Switches};
use muesli_protocols::two_phase::Sabotage;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::fault::{FaultKind, FaultKinds};
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::{Random, Seed};
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Run, Setup, World};
use serde_json::Map;

const NODES: u32 = 4;
const CLIENTS: u32 = 8;
const ACCOUNTS: u64 = 20;
const OPENING: u64 = 100;

#[derive(Default)]
struct Tally {
    transfers: Cell<u64>,
    audits: Cell<u64>,
    notes: Cell<u64>,
    wrong_totals: Cell<u64>,
}

fn catalog(replicas: usize) -> Catalog {
    let homes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
    let catalog = Catalog::new(&homes, replicas, &homes).expect("a catalog");
    let with_space = |catalog: Catalog, name| catalog.with_space(name, SpaceOptions::default());
    let catalog = with_space(catalog, "accounts").and_then(|catalog| with_space(catalog, "notes"));
    catalog.expect("two spaces")
}

fn setup(seed: u64, plan: Plan, replicas: usize) -> Setup {
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = Latency::Exponential { least, mean_tail };
    let topology = Topology::uniform(NODES as usize, ChannelClass { latency, bandwidth: 0 });
    let mut setup = Setup::new(
        Arc::new(Typed::<Score>(Switches::default())),
        Seed::new(seed),
        Arc::new(catalog(replicas)),
        topology,
        plan,
    );
    setup.history = true;
    setup.settings.record_collected = true;
    setup
}

fn drawn_plan(seed: u64, kinds: &str) -> Plan {
    let kinds: FaultKinds = kinds.parse().expect("kinds of faults");
    // Here every repository is on one disk alone.
    let kinds = kinds.without(FaultKind::Loss);
    let horizon = VirtualTime::ZERO + Span::from_millis(600);
    let shape =
        PlanShape { nodes: NODES, clients: CLIENTS, horizon, kinds, trees: 0, faults_max: 8 };
    shape.draw(Seed::new(seed))
}

async fn balance(tx: &Tx, accounts: Space, account: u64) -> Result<u64, Error> {
    let bytes = tx.get(accounts, account.to_be_bytes().to_vec()).await?;
    let bytes = bytes.and_then(|bytes| bytes.as_slice().try_into().ok());
    Ok(bytes.map_or(OPENING, u64::from_be_bytes))
}

async fn set_balance(tx: &Tx, accounts: Space, account: u64, to: u64) -> Result<(), Error> {
    tx.put(accounts, account.to_be_bytes().to_vec(), to.to_be_bytes().to_vec()).await
}

async fn transfer(db: &Db, accounts: Space, random: &mut Random) -> Result<(), Error> {
    let (from, amount) = (random.below(ACCOUNTS), random.below(5));
    let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    db.transact_here(async move |tx| {
        let (mine, theirs) = (balance(tx, accounts, from).await?, balance(tx, accounts, to).await?);
        let amount = amount.min(mine);
        set_balance(tx, accounts, from, mine - amount).await?;
        set_balance(tx, accounts, to, theirs + amount).await
    })
    .await
}

async fn total(db: &Db, accounts: Space) -> Result<u64, Error> {
    db.transact_here(async move |tx| {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += balance(tx, accounts, account).await?;
        }
        Ok(sum)
    })
    .await
}

/// Reads a note or a range of notes, and then writes or deletes one, so that conflicts are between
/// readers and writers too.
async fn note(db: &Db, notes: Space, random: &mut Random) -> Result<(), Error> {
    let (first, second, text) = (random.below(12), random.below(12), random.bits());
    let key = |note: u64| note.to_be_bytes().to_vec();
    db.transact_here(async move |tx| {
        if text.is_multiple_of(2) {
            tx.get(notes, key(second)).await?;
        } else {
            tx.scan(notes, Range::of(key(second)..key(second + 3))).await?;
        }
        tx.get(notes, key(first)).await?;
        match text % 3 {
            0 => tx.delete(notes, key(first)).await,
            _ => tx.put(notes, key(first), text.to_be_bytes().to_vec()).await,
        }
    })
    .await
}

/// Transfers, audits and notes until told to stop.
async fn bank(db: Db, start: ClientStart, tally: Rc<Tally>) {
    let space = |name| db.space(name).expect("it was set up");
    let (db, accounts, notes) = (db.independent(), space("accounts"), space("notes"));
    let mut random = start.seed.stream();
    let add = |counter: &Cell<u64>, more: bool| counter.set(counter.get() + u64::from(more));
    while !start.stop.is_raised() {
        let choice = random.below(10);
        if choice < 5 {
            let done = transfer(&db, accounts, &mut random).await;
            add(&tally.transfers, done.is_ok());
        } else if choice < 8 {
            let done = note(&db, notes, &mut random).await;
            add(&tally.notes, done.is_ok());
        } else {
            let audited = total(&db.read_only(), accounts).await;
            let wrong = audited.as_ref().is_ok_and(|total| *total != ACCOUNTS * OPENING);
            add(&tally.audits, audited.is_ok());
            add(&tally.wrong_totals, wrong);
        }
    }
}

struct Outcome {
    run: Run,
    tally: Rc<Tally>,
    settled: Result<(), muesli_sim::world::Stuck>,
}

fn run(setup: Setup) -> Outcome {
    let catalog = Arc::clone(&setup.catalog);
    let mut world = World::new(setup).expect("a setup");
    let retry = Retry { attempts: 100, pause_max: Duration::from_millis(5), ..Retry::default() };
    let db = Db::for_driver(world.database(), catalog, retry);
    let tally: Rc<Tally> = Rc::default();
    let counted = Rc::clone(&tally);
    let body: ClientBody =
        Rc::new(move |start| Box::pin(bank(db.clone(), start, Rc::clone(&counted))));
    for client in 0..CLIENTS {
        world.add_client(NodeId(client % NODES), Rc::clone(&body));
    }
    let settled = world.run_to_end(Span::from_secs(60));
    Outcome { run: world.finish(), tally, settled }
}

/// Serializable, and in the order of each session.
fn judge(run: &Run) -> Verdict {
    let history = run.history(Map::new());
    let options = Options { session_order: true, ..Options::default() };
    muesli_check::check(&history.expect("a history"), Level::Serializable, &options)
}

#[test]
fn totals_hold_and_everything_ends_under_every_kind_of_fault() {
    let kinds =
        ["none", "crash", "client", "partition", "link", "pause", "disk", "skew", "sync", "all"];
    for kind in kinds {
        for seed in 0..4 {
            let (plan, replicas) = (drawn_plan(seed, kind), 1 + seed as usize % 3);
            let context = format!("seed {seed}, {replicas} replicas, plan {plan}");
            let outcome = run(setup(seed, plan, replicas));
            assert_eq!(outcome.settled, Ok(()), "{context}");
            assert_eq!(outcome.tally.wrong_totals.get(), 0, "{context}");
            let verdict = judge(&outcome.run);
            assert!(verdict.holds(), "{context}\n{verdict}");
            assert!(outcome.tally.transfers.get() > 50, "{context}");
            assert!(outcome.tally.audits.get() > 20, "{context}");
        }
    }
}

#[test]
fn one_seed_gives_one_trace_byte_for_byte() {
    for seed in 0..3 {
        let traced = || {
            let setup = Setup { trace_text: true, ..setup(seed, drawn_plan(seed, "all"), 2) };
            run(setup).run
        };
        let (first, second) = (traced(), traced());
        assert!(first.trace_text.as_ref().is_some_and(|text| text.len() > 100_000));
        assert_eq!(first.trace_text, second.trace_text);
        assert_eq!(first.digest, second.digest);
        let transactions = |run: &Run| {
            let all = run.hosts.iter().flat_map(|host| host.transactions());
            all.map(|txn| format!("{txn:?}")).collect::<Vec<_>>()
        };
        assert_eq!(transactions(&first), transactions(&second));
    }
}

#[test]
fn histories_have_every_transaction_and_what_its_client_was_told() {
    let plan = "horizon 600ms; 100ms+20ms vanish 0; 110ms+20ms vanish 5; 200ms+100ms crash n1; \
                350ms+50ms crash n2; 390ms+10ms vanish 7; 450ms+9ms crash n3";
    let (mut unknown, mut learnt) = (0, 0);
    for seed in 0..10 {
        let outcome = run(setup(seed, plan.parse().expect("a plan"), 1));
        let all: Vec<_> = outcome.run.hosts.iter().flat_map(|host| host.transactions()).collect();
        let committed = all.iter().filter(|txn| txn.status == Status::Committed).count() as u64;
        let context =
            outcome.tally.transfers.get() + outcome.tally.audits.get() + outcome.tally.notes.get();
        // Of a commit whose client is gone, the session learns.
        assert!(
            committed >= context && committed <= context + 3,
            "{committed} committed, {context} told"
        );
        learnt += committed - context;
        for txn in &all {
            assert_eq!(
                txn.end.is_some(),
                matches!(txn.status, Status::Committed | Status::Aborted)
            );
            assert!(txn.end.is_none_or(|end| end >= txn.begin));
            assert!(txn.begin <= outcome.run.ended);
        }
        unknown += all.iter().filter(|txn| txn.status == Status::Unknown).count();
    }
    assert!(unknown > 0, "no crash ever left a commit of unknown outcome");
    assert!(learnt > 0, "no client was gone before its commit was decided");
}

/// A client that writes all accounts, again and again, in a session of its own or a shared one.
fn writes_all(session: impl Fn() -> Db + 'static) -> ClientBody {
    Rc::new(move |start| {
        let db = session();
        let accounts = db.space("accounts").expect("it was set up");
        Box::pin(async move {
            while !start.stop.is_raised() {
                let write = async move |tx: &Tx| {
                    for account in 0..ACCOUNTS {
                        set_balance(tx, accounts, account, 0).await?;
                    }
                    Ok::<_, Error>(())
                };
                db.transact_here(write).await.expect("nobody is in the way for long");
            }
        })
    })
}

/// Node 1 is out of reach while a client of node 0 commits there, and the client is gone before it
/// is back: the commit takes effect, and the session hears of it then, not before.
#[test]
fn a_commit_whose_client_vanished_ends_when_its_session_learns_of_it() {
    let plan = "horizon 300ms; 50ms+100ms partition n1; 100ms+150ms vanish 0";
    let setup = setup(1, plan.parse().expect("a plan"), 1);
    let catalog = Arc::clone(&setup.catalog);
    let mut world = World::new(setup).expect("a setup");
    let db = Db::for_driver(world.database(), catalog, Retry::default());
    world.add_client(NodeId(0), writes_all(move || db.independent()));
    world.run_to_end(Span::from_secs(60)).expect("everything ends");
    let run = world.finish();
    let all: Vec<_> = run.hosts[0].transactions().collect();
    let millis = |time: VirtualTime| time.as_nanos() / 1_000_000;
    let waited = all
        .iter()
        .filter(|txn| millis(txn.begin) < 100 && txn.end.is_none_or(|end| millis(end) >= 150));
    let [late] = waited.collect::<Vec<_>>()[..] else { panic!("not one waited for node 1") };
    assert_eq!((late.status, late.record.status), (Status::Committed, Status::Committed));
    assert_eq!(late.end.map(millis), Some(150), "once node 1 is back");
    let installed = late.record.at.expect("it has committed");
    let chains = run.hosts[1].chains.iter().flat_map(|(_, chains)| chains);
    assert!(chains.into_iter().any(|(_, _, versions)| versions.contains(&installed)));
    assert!(judge(&run).holds());
}

/// A session is shared by clients of nodes 0 and 2, and the one at node 0 is gone in its commit,
/// which waits for node 1. No other task of node 0 has anything to do: the commit is decided when
/// node 1 is back, and then the session has learnt of it.
#[test]
fn a_shared_session_learns_of_a_commit_where_no_client_is_left() {
    let plan = "horizon 300ms; 50ms+100ms partition n1; 100ms+150ms vanish 0";
    let setup = setup(1, plan.parse().expect("a plan"), 1);
    let catalog = Arc::clone(&setup.catalog);
    let mut world = World::new(setup).expect("a setup");
    let db = Db::for_driver(world.database(), catalog, Retry::default()).roaming();
    let accounts = db.space("accounts").expect("it was set up");
    let shared = db.clone();
    let settles: ClientBody = Rc::new(move |_| {
        let db = db.clone();
        Box::pin(async move {
            db.sleep(Duration::from_millis(120)).await.expect("the node is up");
            db.settle().await;
            let read = async move |tx: &Tx| tx.get(accounts, "marks when it begins").await;
            db.independent().transact_here(read).await.expect("nobody is in the way");
        })
    });
    world.add_client(NodeId(0), writes_all(move || shared.clone()));
    world.add_client(NodeId(2), settles);
    world.run_to_end(Span::from_secs(60)).expect("everything ends");
    let run = world.finish();
    let began: Vec<_> = run.hosts[2].transactions().map(|txn| txn.begin.as_nanos()).collect();
    let [settled] = began[..] else { panic!("one transaction, not {}", began.len()) };
    assert_eq!(settled / 1_000_000, 150, "once node 1 is back");
}

/// Whether some seed shows that SCORe without one of its rules is not serializable.
fn is_caught(switch_off: impl Fn(&mut Switches), kinds: &str) -> bool {
    (0..40).any(|seed| {
        let replicas = 1 + seed as usize % 2;
        let mut broken = setup(seed, drawn_plan(seed, kinds), replicas);
        let mut switches = Switches::default();
        switch_off(&mut switches);
        broken.protocol = Arc::new(Typed::<Score>(switches));
        let outcome = run(broken);
        !judge(&outcome.run).holds()
    })
}

#[test]
fn without_a_rule_score_is_caught() {
    assert!(is_caught(|switches| switches.set(FamilySwitch::Validate, false), "none"), "validate");
    assert!(
        is_caught(|switches| switches.set(FamilySwitch::ReadsWait, false), "none"),
        "reads_wait"
    );
    assert!(
        is_caught(|switches| switches.set(FamilySwitch::LockReads, false), "none"),
        "lock_reads"
    );
    assert!(
        is_caught(|switches| switches.set(FamilySwitch::ReadsRaise, false), "none"),
        "reads_raise"
    );
    assert!(
        is_caught(|switches| switches.set(FamilySwitch::ValidateScans, false), "none"),
        "validate_scans"
    );
}
