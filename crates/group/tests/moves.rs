//! Members of groups move from node to node while clients work and everything fails.
//!
//! Where members live is decided in the database itself: a row of a space, changed by transactions,
//! so that epochs follow each other whoever asks for a move. Whoever made a change tells one node;
//! the others hear of it from each other.
//!
//! `MUESLI_SEEDS=0..2000 cargo test -p muesli-group --test moves everything_fails -- --nocapture`
//! is the long search, and `MUESLI_SEEDS=7..8` repeats a seed.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error, Retry, Space, SpaceOptions, Tx};
use muesli_check::{Level, Options};
use muesli_core::wire::Wire;
use muesli_core::{Catalog, Isolation, NodeId, Protocol, RepositoryId};
use muesli_group::{Grouped, Rules, layout};
use muesli_protocols::gmu::Gmu;
use muesli_protocols::score::Score;
use muesli_sim::fault::{FaultKind, FaultKinds};
use muesli_sim::latency::Latency;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::{Random, Seed};
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::topology::{LaneClass, Topology};
use muesli_sim::world::{ClientBody, ClientStart, Run, Setup, World};
use serde_json::Map;

/// Groups live on all nodes but the last at first.
const NODES: u32 = 5;
const SIZE: u16 = 3;
const CLIENTS: u32 = 6;
const ACCOUNTS: u64 = 12;
const OPENING: u64 = 100;

/// A row of the directory: the epoch, and each member's home and since when.
type Row = (u64, Vec<(NodeId, u64)>);

fn catalog() -> Catalog {
    let homes = layout::homes(4, SIZE, NODES - 1).expect("enough nodes");
    let nodes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
    let catalog = Catalog::new(&homes, 1, &nodes).expect("a catalog");
    let catalog = catalog.with_space("accounts", SpaceOptions::default()).expect("a space");
    catalog.with_space("directory", SpaceOptions::default()).expect("a space")
}

fn drawn_plan(seed: u64, kinds: &FaultKinds) -> Plan {
    let horizon = VirtualTime::ZERO + Span::from_millis(600);
    let kinds = kinds.clone();
    let shape = PlanShape { nodes: NODES, clients: CLIENTS, horizon, kinds, faults_max: 6 };
    shape.draw(Seed::new(seed))
}

async fn balance(tx: &Tx, accounts: Space, account: u64) -> Result<u64, Error> {
    let found = tx.get(accounts, account.to_be_bytes().to_vec()).await?;
    let read = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
    Ok(found.map_or(OPENING, |value| read(value.as_slice())))
}

async fn transfer(db: &Db, accounts: Space, random: &mut Random) -> Result<(), Error> {
    let (from, step) = (random.below(ACCOUNTS), 1 + random.below(ACCOUNTS - 1));
    let to = (from + step) % ACCOUNTS;
    db.transact_here(move |tx: Tx| async move {
        let (left, right) =
            (balance(&tx, accounts, from).await?, balance(&tx, accounts, to).await?);
        let amount = left.min(7);
        let set = |account: u64, value: u64| {
            tx.put(accounts, account.to_be_bytes().to_vec(), value.to_be_bytes().to_vec())
        };
        set(from, left - amount).await?;
        set(to, right + amount).await
    })
    .await
}

async fn total(db: &Db, accounts: Space) -> Result<u64, Error> {
    let sum = |tx: Tx| async move {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += balance(&tx, accounts, account).await?;
        }
        Ok(sum)
    };
    db.transact_here(sum).await
}

/// What clients counted, and what the administrator did.
#[derive(Default)]
struct Tally {
    transfers: Cell<u64>,
    wrong_totals: Cell<u64>,
    /// The epoch in which every member takes part: only from there may one be moved.
    all_take_part: Cell<u64>,
    decided: RefCell<Vec<Arc<Catalog>>>,
}

async fn bank(db: Db, start: ClientStart, tally: Rc<Tally>) {
    let (db, accounts) = (db.session(), db.space("accounts").expect("it was set up"));
    let mut random = start.seed.stream();
    while !start.stop.is_raised() {
        if random.chance(0.7) {
            let done = transfer(&db, accounts, &mut random).await;
            tally.transfers.set(tally.transfers.get() + u64::from(done.is_ok()));
        } else {
            let audited = total(&db.read_only(), accounts).await;
            let wrong = audited.is_ok_and(|total| total != ACCOUNTS * OPENING);
            tally.wrong_totals.set(tally.wrong_totals.get() + u64::from(wrong));
        }
    }
}

/// Moves members, one at a time, by the directory.
async fn administrator(db: Db, first: Arc<Catalog>, start: ClientStart, tally: Rc<Tally>) {
    let (db, directory) = (db.session(), db.space("directory").expect("it was set up"));
    let mut random = start.seed.stream();
    while !start.stop.is_raised() {
        let (member, to) = (random.below(12) as u16, NodeId(random.below(NODES.into()) as u32));
        let (first, all_take_part) = (first.clone(), tally.all_take_part.get());
        let change = move |tx: Tx| {
            let first = first.clone();
            async move {
                let found = tx.get(directory, b"members".to_vec()).await?;
                let row = found.and_then(|row| Row::decode_all(row.as_slice()).ok());
                let known = row.and_then(|(epoch, homes)| first.placed(epoch, &homes));
                let known = known.unwrap_or_else(|| Catalog::clone(&first));
                if known.placement > all_take_part {
                    // A move whose answer was lost, or one that is not over.
                    return Ok(Some(known));
                }
                let Some(next) = moved(&known, RepositoryId(member), to) else { return Ok(None) };
                let row: Row = (next.placement, next.stays());
                let mut bytes = Vec::new();
                row.encode(&mut bytes);
                tx.put(directory, b"members".to_vec(), bytes).await?;
                Ok(Some(next))
            }
        };
        let Ok(Some(next)) = db.transact_here(change).await else { continue };
        let mut decided = tally.decided.borrow_mut();
        if decided.last().is_none_or(|known| known.placement < next.placement) {
            decided.push(Arc::new(next));
        }
    }
}

/// The catalog with a member moved, if no other member of its group lives there.
fn moved(catalog: &Catalog, member: RepositoryId, to: NodeId) -> Option<Catalog> {
    let (group, _) = layout::place(member, SIZE);
    let members = (0..SIZE).map(|place| layout::member(group, place, SIZE));
    let is_free = members.into_iter().all(|other| catalog.home(other) != to);
    is_free.then(|| catalog.moved(member, to))
}

/// Whether every member is at its home, up and taking part, and its node goes by this placement:
/// one that does not may have the member still from an earlier stay.
fn all_take_part<P: Protocol>(world: &World<Grouped<P>>, catalog: &Catalog) -> bool {
    (0..catalog.repositories() as u16).map(RepositoryId).all(|member| {
        let takes_part = world.with_node(catalog.home(member), |node| {
            let found = node.participants().iter().find(|(id, _)| *id == member);
            let is_told = node.catalog().placement == catalog.placement;
            is_told && found.is_some_and(|(_, replica)| replica.takes_part())
        });
        takes_part == Some(true)
    })
}

struct Outcome {
    run: Run,
    /// Versions that leaders hold in the end, and those that were ever written.
    held: usize,
    written: usize,
    moves: usize,
    transfers: u64,
}

impl Outcome {
    /// Something was tried: members moved in each of so many runs, and clients worked.
    fn assert_busy(&self, seeds: Range<u64>) {
        let runs = seeds.end - seeds.start;
        assert!(self.moves as u64 > runs, "{} moves in {runs} runs", self.moves);
        assert!(self.transfers > 40 * runs, "{} transfers in {runs} runs", self.transfers);
    }
}

/// Runs a seed; panics where something does not hold.
fn run<P: Protocol>(seed: u64, plan: Plan, keeps_to_placement: bool) -> Outcome {
    let said = format!("seed {seed}, {plan}");
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = Latency::Exponential { least, mean_tail };
    let topology = Topology::uniform(NODES as usize, LaneClass { latency, bandwidth: 0 });
    let first = Arc::new(catalog());
    let mut setup = Setup::<Grouped<P>>::new(Seed::new(seed), Arc::clone(&first), topology, plan);
    setup.rules = Rules { compact_every: 60, keeps_to_placement, ..Rules::default() };
    setup.settings.logging = true;
    setup.settings.keep_tombstones = true;
    setup.checkpoint_every = Some(Span::from_millis(40));
    setup.history = true;
    let mut world = World::new(setup).expect("a setup");
    let retry = Retry { attempts: 100, pause_max: Duration::from_millis(5), ..Retry::default() };
    let db = Db::for_driver(world.database(), Arc::clone(&first), retry);
    let tally: Rc<Tally> = Rc::default();
    for client in 0..CLIENTS {
        let (db, tally, first) = (db.clone(), Rc::clone(&tally), Arc::clone(&first));
        let body: ClientBody = Rc::new(move |start| match client {
            0 => Box::pin(administrator(db.clone(), first.clone(), start, tally.clone())),
            _ => Box::pin(bank(db.clone(), start, tally.clone())),
        });
        world.add_client(NodeId(client % NODES), body);
    }
    let mut newest = first;
    let mut random = Seed::new(seed).split("whom is told").stream();
    let mut told = 0;
    while world.now() < world.plan().horizon() {
        world.run_until(world.now() + Span::from_millis(3));
        let decided = tally.decided.borrow().clone();
        newest = decided.last().map_or(newest, Arc::clone);
        // Now and then, for whoever is told may be down.
        if decided.len() > told || random.chance(0.1) {
            told = decided.len();
            world.place(NodeId(random.below(NODES.into()) as u32), Arc::clone(&newest));
        }
        let settled = all_take_part(&world, &newest);
        tally.all_take_part.set(if settled { newest.placement } else { 0 });
    }
    (0..NODES).for_each(|node| world.place(NodeId(node), Arc::clone(&newest)));
    let settled = world.run_to_end(Span::from_secs(60));
    if let Err(stuck) = settled {
        let posts = |node| world.with_node(NodeId(node), |node| node.posts());
        let posts: Vec<_> = (0..NODES).map(|node| (node, posts(node))).collect();
        panic!("{said}: {stuck}; {posts:?}; homes {:?}", newest.stays());
    }
    assert_eq!(tally.wrong_totals.get(), 0, "{said}");
    let moves = tally.decided.borrow().len();
    let (run, transfers) = (world.finish(), tally.transfers.get());
    let chains = run.hosts.iter().flat_map(|host| &host.chains).flat_map(|(_, chains)| chains);
    let held = chains.map(|(_, _, versions)| versions.len()).sum();
    let written = ACCOUNTS as usize + 2 * transfers as usize;
    Outcome { run, held, written, moves, transfers }
}

fn holds<P: Protocol>(run: &Run) -> bool {
    let level = match P::ISOLATION {
        Isolation::ExtendedUpdateSerializable => Level::Eus,
        _ => Level::Serializable,
    };
    let session_order = level == Level::Serializable;
    let options = Options { session_order, ..Options::default() };
    let history = run.history(Map::new()).expect("a history");
    muesli_check::check(&history, level, &options).holds()
}

/// The seeds to run: those that `MUESLI_SEEDS=A..B` names, else `usual`.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("MUESLI_SEEDS") else { return usual };
    let ends = text.split_once("..").map(|(first, end)| (first.parse(), end.parse()));
    let Some((Ok(first), Ok(end))) = ends else { panic!("MUESLI_SEEDS={text}: not like 0..2000") };
    assert!(first < end, "MUESLI_SEEDS={text}: no seeds");
    first..end
}

fn all_hold<P: Protocol>(kinds: &FaultKinds, seeds: Range<u64>) -> Outcome {
    let mut all: Option<Outcome> = None;
    for seed in seeds {
        let plan = drawn_plan(seed, kinds);
        let outcome = run::<P>(seed, plan.clone(), true);
        assert!(holds::<P>(&outcome.run), "seed {seed}, {plan}: not {:?}", P::ISOLATION);
        if seed % 100 == 99 {
            eprintln!("seeds up to {seed} hold");
        }
        all = Some(match all {
            None => outcome,
            Some(before) => Outcome {
                moves: before.moves + outcome.moves,
                transfers: before.transfers + outcome.transfers,
                held: before.held + outcome.held,
                written: before.written + outcome.written,
                ..outcome
            },
        });
    }
    all.expect("there are seeds")
}

#[test]
fn members_move_while_clients_work() {
    let seeds = seeds(0..4);
    let all = all_hold::<Score>(&FaultKinds::NONE, seeds.clone());
    all.assert_busy(seeds);
    // Old versions go, also from those that followed when they were written.
    assert!(all.held * 2 < all.written, "{} of {} versions are held", all.held, all.written);
}

#[test]
fn members_move_while_everything_fails() {
    // A disk that is lost while another member of its group is on its way is one too many.
    let kinds = FaultKinds::all().without(FaultKind::Loss);
    let seeds = seeds(0..12);
    let all = all_hold::<Score>(&kinds, seeds.clone());
    all.assert_busy(seeds);
}

#[test]
fn vectors_are_over_repositories_and_mind_no_moves() {
    let kinds = FaultKinds::all().without(FaultKind::Loss);
    let seeds = seeds(0..4);
    let all = all_hold::<Gmu>(&kinds, seeds.clone());
    all.assert_busy(seeds);
}

#[test]
fn members_that_go_by_an_old_placement_are_noticed() {
    let noticed = (0..12).any(|seed| {
        let plan = drawn_plan(seed, &FaultKinds::of(&[FaultKind::Partition]));
        // A wrong total or an assertion of the protocol may be what is noticed.
        !catch_unwind(AssertUnwindSafe(|| holds::<Score>(&run::<Score>(seed, plan, false).run)))
            .unwrap_or(false)
    });
    assert!(noticed);
}
