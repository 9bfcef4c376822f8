//! A leader whose disk stands still: another member leads, whose disk does not, and what clients
//! wait for is short against how long the disk hangs.

use std::cell::RefCell;
use std::rc::Rc;

use muesli::{Db, Error, Space};
use muesli_core::Nanos;
use muesli_core::client;
use muesli_group::GroupSettings;
use muesli_group::protocol::Limits;
use muesli_protocols::score;
use muesli_sim::time::Span;
use muesli_sim::world::ClientBody;

use crate::one_group::{OneGroup, one_group};

const NODES: u32 = 3;
/// When the disk begins to hang, and for how long it does at least: one of its syncs takes seconds.
const HANGS_AT: Nanos = Nanos::from_millis(100);
const HANGS_FOR: Nanos = Nanos::from_millis(600);
/// The same by the settings of servers: these ticks, and a disk that hangs for seconds.
const SERVERS_TICK: Nanos = Nanos::from_millis(20);
const SERVERS_HANG_AT: Nanos = Nanos::from_millis(4_000);
const SERVERS_HANG_FOR: Nanos = Nanos::from_millis(3_000);
/// Leadership is to follow a disk that works within this time.
const FOLLOWS_WITHIN: Nanos = Nanos::from_millis(1_000);

async fn write(db: &Db, space: Space, by: u32) -> Result<(), Error> {
    db.transact_here(async move |tx| {
        tx.put(space, by.to_be_bytes().to_vec(), b"written".to_vec()).await
    })
    .await
}

/// Runs a group of three of which one's disk hangs, after what the plan says of the time before;
/// for how long nobody beside the other two had a commit at most while it hung.
fn longest_wait(
    hung: u32,
    group_settings: GroupSettings<score::Switches>,
    slow: &str,
    (at, long): (Nanos, Nanos),
) -> Nanos {
    let [from, length, horizon] = [at, long, Nanos(at.0 + long.0)].map(|it| it.0 / 1_000_000);
    let plan = format!("horizon {horizon}ms; {slow}{from}ms+{length}ms disk n{hung} x20000");
    let OneGroup { mut world, db, space, nodes } =
        one_group(NODES, NODES, 7, &plan, group_settings);
    let database = world.database();
    let ends: Rc<RefCell<Vec<Nanos>>> = Rc::default();
    for node in nodes.into_iter().filter(|node| node.0 != hung) {
        let (db, ends) = (db.independent(), Rc::clone(&ends));
        let body: ClientBody = Rc::new(move |start| {
            let (db, ends) = (db.independent(), Rc::clone(&ends));
            Box::pin(async move {
                while !start.stop.is_raised() {
                    if write(&db, space, node.0).await.is_ok() {
                        let now = client::with(database, |engine| engine.now());
                        ends.borrow_mut().push(now.expect("polled in the world"));
                    }
                }
            })
        });
        world.add_client(node, body);
    }
    world.run_to_end(Span::from_secs(120)).expect("everything ends");
    let mut ends = ends.take();
    ends.sort();
    let is_during = |pair: &&[Nanos]| pair[1] > at && pair[0].0 < at.0 + long.0;
    let waits = ends.windows(2).filter(is_during);
    let longest = waits.map(|pair| Nanos(pair[1].0 - pair[0].0)).max();
    longest.expect("some committed before and while it hung")
}

fn group_settings(limits: Limits) -> GroupSettings<score::Switches> {
    GroupSettings { limits, ..GroupSettings::default() }
}

/// The longest wait of each of the three where its disk hangs by the settings of servers.
fn waits_of_servers(slow: impl Fn(u32) -> String) -> Vec<Nanos> {
    let group_settings = || GroupSettings { tick: SERVERS_TICK, ..GroupSettings::default() };
    let hangs = (SERVERS_HANG_AT, SERVERS_HANG_FOR);
    (0..NODES).map(|hung| longest_wait(hung, group_settings(), &slow(hung), hangs)).collect()
}

#[test]
fn another_member_leads_whose_disk_does_not_hang() {
    for hung in 0..NODES {
        let waited =
            longest_wait(hung, group_settings(Limits::default()), "", (HANGS_AT, HANGS_FOR));
        assert!(waited < Nanos::from_millis(200), "n{hung}: {waited:?}");
    }
}

#[test]
fn a_leader_that_goes_on_leading_with_a_hung_disk_is_noticed() {
    let patient = || group_settings(Limits { disk_ticks_max: u64::MAX / 2, ..Limits::default() });
    let hangs = (HANGS_AT, HANGS_FOR);
    let longest = (0..NODES).map(|hung| longest_wait(hung, patient(), "", hangs)).max();
    assert!(longest > Some(HANGS_FOR), "{longest:?}");
}

#[test]
fn by_the_settings_of_servers_another_member_leads_within_a_second() {
    let waits = waits_of_servers(|_| String::new());
    assert!(waits.iter().all(|waited| *waited < FOLLOWS_WITHIN), "{waits:?}");
    let leader = waits.iter().max().expect("one of them led");
    assert!(*leader > Nanos::from_millis(400), "its disk may take so long: {waits:?}");
}

#[test]
fn a_disk_that_was_slow_before_it_hangs_makes_nobody_wait_for_longer_than_a_second() {
    // Its syncs take some 150 ms each, and others wait behind them.
    let waits = waits_of_servers(|hung| format!("1s+3s disk n{hung} x1000; "));
    assert!(waits.iter().all(|waited| *waited < FOLLOWS_WITHIN), "{waits:?}");
    let leader = waits.iter().max().expect("one of them led");
    assert!(*leader > Nanos::from_millis(750), "it was waited for longer: {waits:?}");
}
