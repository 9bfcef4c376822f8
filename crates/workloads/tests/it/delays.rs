//! How long things take in message delays, and how many messages they cost: in a world whose links
//! all take the same time, in which nothing else takes any and nothing fails.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use muesli::{Db, Error, Retry, SmallBytes, Space, SpaceOptions, Tx};
use muesli_core::parts::locator::Static;
use muesli_core::{Catalog, NodeId, client};
use muesli_sim::hardware::costs::Costs;
use muesli_sim::latency::Latency;
use muesli_sim::network::topology::{ChannelClass, Topology};
use muesli_sim::plan::Plan;
use muesli_sim::random::Seed;
use muesli_sim::time::{Span, VirtualTime};
use muesli_sim::world::{Setup, World};

const NODES: u32 = 4;
const DELAY: Span = Span::from_millis(1);
/// When what is measured begins: all is quiet by then.
const BEGIN: Duration = Duration::from_millis(500);
/// When all is over.
const END: Span = Span::from_millis(1_500);

/// A repository on each node, and each key in one.
struct ConstantLinks {
    world: World,
    db: Db,
    space: Space,
    catalog: Arc<Catalog>,
}

impl ConstantLinks {
    fn new(protocol: &str) -> ConstantLinks {
        let nodes: Vec<NodeId> = (0..NODES).map(NodeId).collect();
        let catalog = Catalog::new(&nodes, 1, &nodes).unwrap();
        let catalog = Arc::new(catalog.with_space("s", SpaceOptions::default()).unwrap());
        let class = ChannelClass { latency: Latency::Constant(DELAY), bandwidth: 0 };
        let topology = Topology::uniform(nodes.len(), class);
        let protocol = muesli_registry::protocol(protocol, None).unwrap();
        let plan = Plan::calm(VirtualTime::ZERO);
        let mut setup = Setup::new(protocol, Seed::new(1), catalog.clone(), topology, plan);
        setup.costs = Costs::FREE;
        setup.settings.logging = false;
        setup.trace_text = true;
        let world = World::new(setup).unwrap();
        let db = Db::for_driver(world.database(), catalog.clone(), Retry::default());
        let space = db.space("s").unwrap();
        ConstantLinks { world, db, space, catalog }
    }

    /// A key whose repository is on this node.
    fn key_at(&self, node: u32) -> SmallBytes {
        let at = |key: &SmallBytes| {
            let partition = self.catalog.partition(self.space.id(), key);
            let repository = Static.replicas_of(partition, &self.catalog).next().unwrap();
            self.catalog.home(repository) == NodeId(node)
        };
        let mut keys = (0..1_000_u32).map(|number| SmallBytes::new(&number.to_be_bytes()));
        keys.find(at).unwrap()
    }

    /// Runs this on a node, from the beginning.
    fn client(&mut self, node: u32, body: impl AsyncFn(Db) -> Result<(), Error> + 'static) {
        let (db, body) = (self.db.clone(), Rc::new(body));
        let begin = Rc::new(move |_| {
            let (db, body) = (db.independent(), body.clone());
            let task: client::Task = Box::pin(async move { body(db).await.unwrap() });
            task
        });
        self.world.add_client(NodeId(node), begin);
    }

    /// Makes keys, each by its own node.
    fn make(&mut self, homes: &[u32]) -> Vec<SmallBytes> {
        let keys: Vec<_> = homes.iter().map(|home| self.key_at(*home)).collect();
        for (home, key) in homes.iter().zip(&keys) {
            let (space, key) = (self.space, key.clone());
            self.client(*home, async move |db| {
                let put = async |tx: &Tx| tx.put(space, key.clone(), "made").await;
                db.transact_here(put).await
            });
        }
        keys
    }
}

/// The time, which all nodes tell alike.
fn now(database: u64) -> VirtualTime {
    VirtualTime::from_nanos(client::with(database, |engine| engine.now().0).unwrap())
}

/// How many delays this is: an event of a node takes a nanosecond.
fn delays(span: Span) -> u64 {
    let count = span.as_nanos() / DELAY.as_nanos();
    let rest = span.as_nanos() % DELAY.as_nanos();
    assert!(rest < 1_000, "{span} is not of whole delays");
    count
}

/// How many message delays pass until a transaction runs again that waits for a change of the first
/// of some keys, from the moment at which the client that wrote all of them knows that it has
/// committed.
fn delays_until_woken(protocol: &str, (sleeper, writer): (u32, u32), homes: &[u32]) -> u64 {
    let mut links = ConstantLinks::new(protocol);
    let (space, database) = (links.space, links.world.database());
    let keys = links.make(homes);
    let (runs, committed) = <(Rc<RefCell<Vec<_>>>, Rc<RefCell<Vec<_>>>)>::default();
    let (ran, watched) = (runs.clone(), keys[0].clone());
    links.client(sleeper, async move |db| {
        db.sleep(BEGIN / 2).await?;
        let wait = async |tx: &Tx| {
            ran.borrow_mut().push(now(database));
            match tx.get(space, watched.clone()).await? {
                Some(changed) if changed.as_slice() == b"changed" => Ok(()),
                _ => tx.retry(),
            }
        };
        db.transact_here(wait).await
    });
    let known = committed.clone();
    links.client(writer, async move |db| {
        db.sleep(BEGIN).await?;
        let change = async |tx: &Tx| {
            for key in &keys {
                tx.get(space, key.clone()).await?;
                tx.put(space, key.clone(), "changed").await?;
            }
            Ok::<_, Error>(())
        };
        db.transact_here(change).await?;
        known.borrow_mut().push(now(database));
        Ok(())
    });
    links.world.run_until(VirtualTime::ZERO + END);
    let (runs, committed) = (runs.borrow(), committed.borrow());
    assert_eq!((runs.len(), committed.len()), (2, 1), "{protocol} {homes:?}: woken once");
    assert!(runs[1] >= committed[0], "{protocol} {homes:?}: woken before the commit was known");
    delays(runs[1].since(committed[0]))
}

/// The writer knows that it has committed when all votes are there. With these came who waits, and
/// it tells these, and the repositories, which tell them, too.
#[test]
fn who_waits_for_a_change_runs_again_within_one_delay_of_its_commit() {
    // The sleeper, the writer, where the keys are that it writes, and the delays.
    let cases: [(u32, u32, &[u32], u64); 8] = [
        (0, 1, &[2], 1),
        (0, 1, &[0], 1),
        (0, 1, &[1], 1),
        (0, 0, &[2], 0),
        (0, 1, &[2, 3], 1),
        (0, 1, &[0, 3], 1),
        (0, 1, &[1, 3], 1),
        (0, 0, &[2, 3], 0),
    ];
    for protocol in ["tfa", "tfa-staying", "score"] {
        for (sleeper, writer, homes, expected) in cases {
            let woken = delays_until_woken(protocol, (sleeper, writer), homes);
            assert_eq!(woken, expected, "{protocol}: {sleeper}, {writer}, {homes:?}");
        }
    }
}

/// The messages of one transaction of node 0, by name, and how long its parts take.
struct Measured {
    messages: BTreeMap<String, usize>,
    delays_to_read: u64,
    delays_to_commit: u64,
}

/// Reads keys at once, which are on these nodes, and then writes them or not; so many times.
fn measured(protocol: &str, homes: &[u32], writes: bool, times: u32) -> Vec<Measured> {
    let mut links = ConstantLinks::new(protocol);
    let (space, database) = (links.space, links.world.database());
    let keys = links.make(homes);
    let times_seen = Rc::<RefCell<Vec<[VirtualTime; 3]>>>::default();
    let seen = times_seen.clone();
    links.client(0, async move |db| {
        for _ in 0..times {
            db.sleep(BEGIN).await?;
            let begun = now(database);
            let body = async |tx: &Tx| {
                let found = tx.get_many(space, keys.iter().cloned()).await?;
                assert!(found.iter().all(Option::is_some));
                let read = now(database);
                for key in keys.iter().filter(|_| writes) {
                    tx.put(space, key.clone(), "written").await?;
                }
                Ok::<_, Error>(read)
            };
            let read = db.transact_here(body).await?;
            seen.borrow_mut().push([begun, read, now(database)]);
        }
        Ok(())
    });
    let end = VirtualTime::ZERO + END.times(u64::from(times));
    links.world.run_until(end);
    let trace = links.world.finish().trace_text.unwrap();
    let seen = times_seen.borrow();
    assert_eq!(seen.len(), times as usize);
    let measured = seen.iter().map(|[begun, read, ended]| {
        // What it leads to is over before long.
        let over = *ended + DELAY.times(20);
        let mut messages = BTreeMap::new();
        for line in trace.lines() {
            let mut words = line.split_whitespace();
            let (at, _, name) = (words.next(), words.next(), words.next());
            let at: f64 = at.unwrap().parse().unwrap();
            let nanos = VirtualTime::from_nanos((at * 1e9).round() as u64);
            let name = name.unwrap();
            if (*begun..over).contains(&nanos) && name.starts_with(char::is_uppercase) {
                *messages.entry(name.to_owned()).or_default() += 1;
            }
        }
        let (to_read, to_commit) = (read.since(*begun), ended.since(*read));
        Measured { messages, delays_to_read: delays(to_read), delays_to_commit: delays(to_commit) }
    });
    measured.collect()
}

/// The messages by name.
fn counted(messages: &[(&str, usize)]) -> BTreeMap<String, usize> {
    messages.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Two objects are read and written, again and again: where keys move they are here from the first
/// commit on.
#[test]
fn a_commit_of_two_objects_elsewhere_costs_these_messages() {
    let elsewhere = counted(&[
        ("Read", 2),
        ("ReadReply", 2),
        ("Prepare", 2),
        ("Vote", 2),
        ("Decide", 2),
        ("Acknowledge", 2),
    ]);
    let here = counted(&[]);
    for (protocol, table) in [
        ("tfa", [(&elsewhere, 2, 2), (&here, 0, 0), (&here, 0, 0)]),
        ("tfa-staying", [(&elsewhere, 2, 2), (&elsewhere, 2, 2), (&elsewhere, 2, 2)]),
    ] {
        let all = measured(protocol, &[1, 2], true, 3);
        for (one, (messages, to_read, to_commit)) in all.iter().zip(table) {
            assert_eq!(&one.messages, messages, "{protocol}");
            let delays = (one.delays_to_read, one.delays_to_commit);
            assert_eq!(delays, (to_read, to_commit), "{protocol}");
        }
    }
}

/// Objects are opened at once, and nothing is written. Where the first read fixes the snapshot, the
/// others are sent when it is answered; under `tfa`, which begins at its node's clock, all are sent
/// at once, and what was read is looked at by the commit.
#[test]
fn objects_on_three_nodes_are_opened_in_so_many_delays() {
    for (protocol, of_one, of_three, to_commit) in
        [("tfa", 2, 2, 2), ("tfa-staying", 2, 2, 2), ("score", 2, 4, 0), ("gmu", 2, 2, 0)]
    {
        for (homes, to_read) in [(&[1_u32][..], of_one), (&[1, 2, 3], of_three)] {
            for one in measured(protocol, homes, false, 2) {
                let delays = (one.delays_to_read, one.delays_to_commit);
                assert_eq!(delays, (to_read, to_commit), "{protocol} {homes:?}");
                assert_eq!(one.messages["Read"], homes.len(), "{protocol}: each is asked once");
            }
        }
    }
}
