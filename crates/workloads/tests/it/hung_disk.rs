//! A leader whose disk stands still: another member leads, whose disk does not, and what clients
//! wait for is short against how long the disk hangs.

use std::cell::RefCell;
use std::rc::Rc;

use muesli::{Db, Error, Space, Tx};
use muesli_core::Nanos;
use muesli_core::client;
use muesli_group::Rules;
use muesli_group::protocol::Limits;
use muesli_sim::time::Span;
use muesli_sim::world::ClientBody;

use crate::one_group::{OneGroup, one_group};

const NODES: u32 = 3;
/// When the disk begins to hang, and for how long it does at least: one of its syncs takes seconds.
const HANGS_AT: Nanos = Nanos::from_millis(100);
const HANGS_FOR: Nanos = Nanos::from_millis(600);

async fn write(db: &Db, space: Space, by: u32) -> Result<(), Error> {
    db.transact_here(move |tx: Tx| async move {
        tx.put(space, by.to_be_bytes().to_vec(), b"written".to_vec()).await
    })
    .await
}

/// Runs a group of three of which one's disk hangs; how long clients beside the other two waited
/// for a commit at most while it did.
fn longest_wait(hung: u32, limits: Limits) -> Nanos {
    let plan = format!("horizon 700ms; 100ms+600ms disk n{hung} x20000");
    let rules = Rules { limits, ..Rules::default() };
    let OneGroup { mut world, db, space, nodes } = one_group(NODES, NODES, 7, &plan, rules);
    let database = world.database();
    let ends: Rc<RefCell<Vec<Nanos>>> = Rc::default();
    for node in nodes.into_iter().filter(|node| node.0 != hung) {
        let (db, ends) = (db.session(), Rc::clone(&ends));
        let body: ClientBody = Rc::new(move |start| {
            let (db, ends) = (db.session(), Rc::clone(&ends));
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
    let hangs = HANGS_AT.0..HANGS_AT.0 + HANGS_FOR.0;
    let waits = ends.windows(2).filter(|pair| hangs.contains(&pair[0].0));
    let longest = waits.map(|pair| Nanos(pair[1].0 - pair[0].0)).max();
    longest.expect("some committed before and while it hung")
}

#[test]
fn another_member_leads_whose_disk_does_not_hang() {
    for hung in 0..NODES {
        let waited = longest_wait(hung, Limits::default());
        assert!(waited < Nanos::from_millis(200), "n{hung}: {waited:?}");
    }
}

#[test]
fn a_leader_that_goes_on_leading_with_a_hung_disk_is_noticed() {
    let patient = || Limits { disk_ticks_max: u64::MAX / 2, ..Limits::default() };
    let longest = (0..NODES).map(|hung| longest_wait(hung, patient())).max();
    assert!(longest > Some(HANGS_FOR), "{longest:?}");
}
