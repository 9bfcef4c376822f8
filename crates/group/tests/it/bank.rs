//! A bank on groups whose members change while clients work, as an administrator says, and whatever
//! a plan lets fail.
//!
//! Who the members are is decided in the database itself: by a row of a space, changed by
//! transactions as rules allow (`muesli_group::placement`), so that epochs follow each other
//! whoever asks. Whoever made a change tells one node; the others hear of it from each other.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error, Retry, Space, SpaceOptions, Tx};
use muesli_check::{Level, Options};
use muesli_core::wire::Wire;
use muesli_core::{Catalog, Isolation, NodeId, Protocol, ReplicaRole, RepositoryId, Typed};
use muesli_group::placement::{KEY, PlacementRow, Refused, Shape};
use muesli_group::{GroupSettings, Grouped, Limits, layout};
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::fault::FaultKinds;
use muesli_sim::plan::{Plan, PlanShape};
use muesli_sim::random::{Random, Seed};
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{ClientBody, ClientStart, Run, Setup, World};
use serde_json::Map;

pub const GROUPS: u16 = 4;
pub const SIZE: u16 = 3;
const CLIENTS: u32 = 6;
const ACCOUNTS: u64 = 12;
const OPENING: u64 = 100;
const SHAPE: Shape = Shape { group: SIZE, loops: 1 };

/// What an administrator does on and on.
pub type Administration = fn(&PlacementRow, &mut Random, u32) -> Change;

/// A change of a row.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Move(RepositoryId, NodeId),
    Grow(u16, NodeId),
    /// The first part, or the second one where the member is to go already.
    Shrink(RepositoryId),
}

/// A world to be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub plan: Plan,
    /// Groups live on all nodes but the last at first.
    pub nodes: u32,
    pub administration: Administration,
    pub keeps_to_placement: bool,
    pub ends_configurations: bool,
}

impl Scenario {
    /// One in which everything may go wrong but the code.
    pub fn new(
        seed: u64,
        kinds: &FaultKinds,
        nodes: u32,
        administration: Administration,
    ) -> Scenario {
        let horizon = VirtualTime::ZERO + Span::from_millis(600);
        let kinds = kinds.clone();
        let shape = PlanShape { nodes, clients: CLIENTS, horizon, kinds, trees: 0, faults_max: 6 };
        let plan = shape.draw(Seed::new(seed));
        let (keeps_to_placement, ends_configurations) = (true, true);
        Scenario { seed, plan, nodes, administration, keeps_to_placement, ends_configurations }
    }

    fn catalog(&self) -> Catalog {
        let homes = layout::homes(GROUPS, SIZE, self.nodes - 1).expect("enough nodes");
        let nodes: Vec<NodeId> = (0..self.nodes).map(NodeId).collect();
        let catalog = Catalog::new(&homes, 1, &nodes).expect("a catalog");
        let catalog = catalog.with_space("accounts", SpaceOptions::default()).expect("a space");
        catalog.with_space("directory", SpaceOptions::default()).expect("a space")
    }
}

async fn balance(tx: &Tx, accounts: Space, account: u64) -> Result<u64, Error> {
    let found = tx.get(accounts, account.to_be_bytes().to_vec()).await?;
    let read = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
    Ok(found.map_or(OPENING, |value| read(value.as_slice())))
}

async fn transfer(db: &Db, accounts: Space, random: &mut Random) -> Result<(), Error> {
    let (from, step) = (random.below(ACCOUNTS), 1 + random.below(ACCOUNTS - 1));
    let to = (from + step) % ACCOUNTS;
    db.transact_here(async move |tx| {
        let (left, right) = (balance(tx, accounts, from).await?, balance(tx, accounts, to).await?);
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
    let sum = async |tx: &Tx| {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += balance(tx, accounts, account).await?;
        }
        Ok(sum)
    };
    db.transact_here(sum).await
}

/// What nodes say of themselves: the placement that they go by, and which parts their members take.
type Survey = Vec<Option<(u64, Vec<(RepositoryId, ReplicaRole)>)>>;

/// What clients counted, and what the administrator knows and did.
#[derive(Default)]
struct Tally {
    transfers: Cell<u64>,
    wrong_totals: Cell<u64>,
    survey: RefCell<Survey>,
    decided: RefCell<Vec<Arc<Catalog>>>,
}

async fn bank(db: Db, start: ClientStart, tally: Rc<Tally>) {
    let (db, accounts) = (db.independent(), db.space("accounts").expect("it was set up"));
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

/// The post of a member, as its node said that went by this row.
fn role(survey: &Survey, row: &PlacementRow, member: RepositoryId) -> Option<ReplicaRole> {
    let home = row.home(member).ok()?;
    let (placement, replica_roles) = survey.get(home.0 as usize)?.as_ref()?;
    let role = replica_roles.iter().find(|(it, _)| *it == member).map(|(_, role)| *role);
    role.filter(|_| *placement == row.epoch)
}

fn changed(row: &PlacementRow, change: Change, survey: &Survey) -> Result<PlacementRow, Refused> {
    let role = |member| role(survey, row, member);
    match change {
        Change::Move(member, to) => row.moved(member, to, SHAPE, role),
        Change::Grow(group, to) => row.grown(group, to, SHAPE, role).map(|(row, _)| row),
        Change::Shrink(member) if row.leaving.contains(&member) => row.shrunk(member, role),
        Change::Shrink(member) => row.shrinking(member, role),
    }
}

/// Changes the row, on and on.
async fn administrator(db: Db, first: Arc<Catalog>, start: ClientStart, tally: Rc<Tally>, by: By) {
    let (db, directory) = (db.independent(), db.space("directory").expect("it was set up"));
    let mut random = start.seed.stream();
    let mut known = PlacementRow::of(&first);
    while !start.stop.is_raised() {
        let change = (by.administration)(&known, &mut random, by.nodes);
        let (begin, survey) = (first.clone(), tally.survey.borrow().clone());
        let done = db.transact_here(async move |tx| {
            let found = tx.get(directory, KEY.to_vec()).await?;
            let row = found.and_then(|row| PlacementRow::decode_all(row.as_slice()).ok());
            let row = row.unwrap_or_else(|| PlacementRow::of(&begin));
            let Ok(next) = changed(&row, change, &survey) else { return Ok(row) };
            let mut bytes = Vec::new();
            next.encode(&mut bytes);
            tx.put(directory, KEY.to_vec(), bytes).await?;
            Ok::<_, Error>(next)
        });
        let Ok(row) = done.await else { continue };
        let mut decided = tally.decided.borrow_mut();
        if decided.last().is_none_or(|last| last.placement < row.epoch) {
            let next = first.placed(row.epoch, &row.homes, &row.leaving);
            decided.extend(next.map(Arc::new)); // None before the first change.
        }
        known = row;
    }
}

/// What the administrator does, and on how many nodes.
#[derive(Clone, Copy)]
struct By {
    administration: Administration,
    nodes: u32,
}

/// What nodes that are up say.
fn survey<P: Protocol>(world: &World, nodes: u32) -> Survey {
    let observed = |node: u32| {
        let look =
            |node: &muesli_core::Node<Grouped<P>>| (node.catalog().placement, node.replica_roles());
        world.with_node(NodeId(node), look)
    };
    (0..nodes).map(observed).collect()
}

/// What has become of a trial.
pub struct Outcome {
    pub run: Run,
    /// Versions that leaders hold in the end, and those that were ever written.
    pub held: usize,
    pub written: usize,
    /// Placements that were decided.
    pub changes: usize,
    /// How often a group got another member, or lost one.
    pub sizes: usize,
    pub transfers: u64,
}

impl Outcome {
    /// Something was tried: members changed in each of so many runs, and clients worked.
    pub fn assert_busy(&self, seeds: Range<u64>) {
        let runs = seeds.end - seeds.start;
        assert!(self.changes as u64 > runs, "{} changes in {runs} runs", self.changes);
        assert!(self.transfers > 40 * runs, "{} transfers in {runs} runs", self.transfers);
    }
}

/// The world of a trial, without clients.
fn world<P: Protocol>(scenario: &Scenario, first: &Arc<Catalog>) -> World {
    let (least, mean_tail) = (Span::from_micros(40), Span::from_micros(20));
    let latency = Latency::Exponential { least, mean_tail };
    let topology =
        Topology::uniform(scenario.nodes as usize, ChannelClass { latency, bandwidth: 0 });
    let (seed, plan) = (Seed::new(scenario.seed), scenario.plan.clone());
    let Scenario { keeps_to_placement, ends_configurations, .. } = *scenario;
    let group_settings = GroupSettings { limits: Limits::tight(), ..GroupSettings::default() };
    let group_settings =
        GroupSettings { keeps_to_placement, ends_configurations, ..group_settings };
    let protocol = Arc::new(Typed::<Grouped<P>>(group_settings));
    let mut setup = Setup::new(protocol, seed, Arc::clone(first), topology, plan);
    setup.settings.logging = true;
    setup.settings.record_collected = true;
    setup.checkpoint_every = Some(Span::from_millis(40));
    setup.replicated = true;
    setup.history = true;
    World::new(setup).expect("a setup")
}

/// Runs a trial; panics where something does not hold.
pub fn run<P: Protocol>(scenario: &Scenario) -> Outcome {
    let observed = format!("seed {}, {}", scenario.seed, scenario.plan);
    let nodes = scenario.nodes;
    let first = Arc::new(scenario.catalog());
    let mut world = world::<P>(scenario, &first);
    let retry = Retry { attempts: 100, pause_max: Duration::from_millis(5), ..Retry::default() };
    let db = Db::for_driver(world.database(), Arc::clone(&first), retry);
    let tally: Rc<Tally> = Rc::default();
    let by = By { administration: scenario.administration, nodes };
    for client in 0..CLIENTS {
        let (db, tally, first) = (db.clone(), Rc::clone(&tally), Arc::clone(&first));
        let body: ClientBody = Rc::new(move |start| match client {
            0 => Box::pin(administrator(db.clone(), first.clone(), start, tally.clone(), by)),
            _ => Box::pin(bank(db.clone(), start, tally.clone())),
        });
        world.add_client(NodeId(client % nodes), body);
    }
    let mut newest = first.clone();
    let mut random = Seed::new(scenario.seed).split("whom is told").stream();
    let mut reported = 0;
    while world.now() < world.plan().horizon() {
        world.run_until(world.now() + Span::from_millis(3));
        let decided = tally.decided.borrow().clone();
        newest = decided.last().map_or(newest, Arc::clone);
        // Now and then, for whoever is told may be down.
        if decided.len() > reported || random.chance(0.1) {
            reported = decided.len();
            world.place(NodeId(random.below(nodes.into()) as u32), Arc::clone(&newest));
        }
        *tally.survey.borrow_mut() = survey::<P>(&world, nodes);
    }
    (0..nodes).for_each(|node| world.place(NodeId(node), Arc::clone(&newest)));
    let settled = world.run_to_end(Span::from_secs(60));
    if let Err(stuck) = settled {
        let survey = survey::<P>(&world, nodes);
        for node in 0..nodes {
            let observed =
                |node: &muesli_core::Node<Grouped<P>>| format!("{:?}", node.participants());
            eprintln!("n{node}: {:?}", world.with_node(NodeId(node), observed));
        }
        panic!("{observed}: {stuck}; {survey:?}; homes {:?}", PlacementRow::of(&newest));
    }
    assert_eq!(tally.wrong_totals.get(), 0, "{observed}");
    let decided = tally.decided.borrow().clone();
    let size =
        |it: &Arc<Catalog>| (0..GROUPS).map(|at| layout::wanted(it, at).len()).sum::<usize>();
    let sizes: Vec<_> = [first].iter().chain(decided.iter()).map(size).collect();
    let sizes = sizes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let (run, transfers) = (world.finish(), tally.transfers.get());
    let chains = run.hosts.iter().flat_map(|host| &host.chains).flat_map(|(_, chains)| chains);
    let held = chains.map(|(_, _, versions)| versions.len()).sum();
    let written = ACCOUNTS as usize + 2 * transfers as usize;
    Outcome { run, held, written, changes: decided.len(), sizes, transfers }
}

/// Whether the history is what the protocol promises.
pub fn holds<P: Protocol>(run: &Run) -> bool {
    let level = match P::isolation(&P::Switches::default()) {
        Isolation::ExtendedUpdateSerializable => Level::Eus,
        _ => Level::Serializable,
    };
    let session_order = level == Level::Serializable;
    let options = Options { session_order, ..Options::default() };
    let history = run.history(Map::new()).expect("a history");
    muesli_check::check(&history, level, &options).holds()
}

/// The seeds to run: those that `MUESLI_SEEDS=A..B` names, else `usual`.
pub fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("MUESLI_SEEDS") else { return usual };
    let ends = text.split_once("..").map(|(first, end)| (first.parse(), end.parse()));
    let Some((Ok(first), Ok(end))) = ends else { panic!("MUESLI_SEEDS={text}: not like 0..2000") };
    assert!(first < end, "MUESLI_SEEDS={text}: no seeds");
    first..end
}

/// Runs and judges all seeds; what they did together.
pub fn all_hold<P: Protocol>(seeds: Range<u64>, scenario: impl Fn(u64) -> Scenario) -> Outcome {
    let mut all: Option<Outcome> = None;
    for seed in seeds {
        let scenario = scenario(seed);
        let outcome = run::<P>(&scenario);
        let isolation = P::isolation(&P::Switches::default());
        assert!(holds::<P>(&outcome.run), "seed {seed}, {}: not {isolation:?}", scenario.plan);
        if seed % 100 == 99 {
            eprintln!("seeds up to {seed} hold");
        }
        all = Some(match all {
            None => outcome,
            Some(before) => Outcome {
                changes: before.changes + outcome.changes,
                sizes: before.sizes + outcome.sizes,
                transfers: before.transfers + outcome.transfers,
                held: before.held + outcome.held,
                written: before.written + outcome.written,
                ..outcome
            },
        });
    }
    all.expect("there are seeds")
}
