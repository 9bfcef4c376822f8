//! Two members of a group of three lose their disks at once, and the third does not know what they
//! had decided; or all three do, and only a node outside knows that there was such a group. It must
//! not go on as if that had never been.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use muesli::{Db, Error, Space, Tx};
use muesli_core::{NodeId, ReplicaRole};
use muesli_group::GroupSettings;
use muesli_group::Grouped;
use muesli_protocols::score::Score;
use muesli_sim::time::VirtualTime;
use muesli_sim::world::{ClientBody, ClientStart};

use crate::one_group::{OneGroup, one_group};

/// Members live on the first three, the client on the last.
const NODES: u32 = 4;
/// Node 2 is cut off while the others decide; when they lose their disks it comes back.
const PLAN: &str = "horizon 200ms; 30ms+70ms partition n2; 100ms+5ms lose n0; 100ms+5ms lose n1";
/// All members lose their disks.
const ALL: &str = "horizon 200ms; 100ms+5ms lose n0; 100ms+5ms lose n1; 100ms+5ms lose n2";
const BEFORE: VirtualTime = VirtualTime::from_nanos(100_000_000);
const END: VirtualTime = VirtualTime::from_nanos(600_000_000);

/// What the client saw.
#[derive(Default)]
struct Seen {
    acknowledged: Cell<u64>,
    /// Reads of less than was acknowledged.
    missed: Cell<u64>,
    reads: RefCell<Vec<u64>>,
}

async fn value(tx: &Tx, space: Space) -> Result<u64, Error> {
    let found = tx.get(space, b"x".to_vec()).await?;
    Ok(found.map_or(0, |bytes| u64::from_be_bytes(bytes.as_slice().try_into().expect("8 bytes"))))
}

/// Reads, and writes one more.
async fn count_up(db: Db, space: Space, start: ClientStart, seen: Rc<Seen>) {
    while !start.stop.is_raised() {
        let due = seen.acknowledged.get();
        let written = db.transact_here(async move |tx| {
            let read = value(tx, space).await?;
            tx.put(space, b"x".to_vec(), (read + 1).to_be_bytes().to_vec()).await?;
            Ok::<_, Error>(read)
        });
        if let Ok(read) = written.await {
            seen.missed.set(seen.missed.get() + u64::from(read < due));
            seen.acknowledged.set(due.max(read + 1));
            seen.reads.borrow_mut().push(read);
        }
    }
}

/// What was seen, what was acknowledged before the disks were lost, and which part the members
/// that lost them take in the end.
fn run(seed: u64, plan: &str, accepts_loss: bool) -> (Rc<Seen>, u64, Vec<ReplicaRole>) {
    let group_settings = GroupSettings { accepts_loss, ..GroupSettings::default() };
    let OneGroup { mut world, db, space, .. } =
        one_group(NODES, NODES - 1, seed, plan, group_settings);
    let seen = Rc::new(Seen::default());
    let seen_by_client = Rc::clone(&seen);
    let body: ClientBody = Rc::new(move |start| {
        Box::pin(count_up(db.independent(), space, start, Rc::clone(&seen_by_client)))
    });
    world.add_client(NodeId(NODES - 1), body);
    world.run_until(BEFORE);
    let before = seen.acknowledged.get();
    world.run_until(END);
    let replica_roles = |node| {
        world
            .with_node::<Grouped<Score>, _>(NodeId(node), |node| node.replica_roles())
            .expect("it is up")
    };
    let replica_roles = [0, 1].into_iter().flat_map(replica_roles).map(|(_, role)| role).collect();
    (seen, before, replica_roles)
}

#[test]
fn a_group_of_which_a_majority_forgot_says_so_and_waits() {
    for seed in 0..5 {
        let (seen, before, replica_roles) = run(seed, PLAN, false);
        assert!(before > 20, "seed {seed}: {before}");
        assert_eq!(replica_roles, [ReplicaRole::Lost, ReplicaRole::Lost], "seed {seed}");
        assert_eq!(seen.missed.get(), 0, "seed {seed}");
        // The disks go in the middle of a turn: what was under way may still be answered.
        assert!(seen.acknowledged.get() <= before + 1, "seed {seed}");
    }
}

#[test]
fn where_the_loss_is_accepted_the_group_goes_on_with_what_is_left() {
    let (seen, before, replica_roles) = run(0, PLAN, true);
    assert!(replica_roles.iter().all(|role| role.takes_part()), "{replica_roles:?}");
    assert!(seen.reads.borrow().len() as u64 > before + 20, "it serves again");
    assert!(seen.missed.get() > 0, "what was decided without node 2 is lost");
}

#[test]
fn a_group_that_forgot_everything_is_told_by_whoever_knows_that_there_was_one() {
    for seed in 0..5 {
        let (seen, before, replica_roles) = run(seed, ALL, false);
        assert!(before > 20, "seed {seed}: {before}");
        assert_eq!(replica_roles, [ReplicaRole::Lost, ReplicaRole::Lost], "seed {seed}");
        assert_eq!(seen.missed.get(), 0, "seed {seed}");
        assert!(seen.acknowledged.get() <= before + 1, "seed {seed}");
    }
    // A transaction may have read before the loss and commit after it: then nothing is missed.
    let mut missed = 0;
    for seed in 0..10 {
        let (seen, before, replica_roles) = run(seed, ALL, true);
        assert!(replica_roles.iter().all(|role| role.takes_part()), "{replica_roles:?}");
        assert!(seen.reads.borrow().len() as u64 > before + 20, "it serves again");
        missed += seen.missed.get();
    }
    assert!(missed > 0, "everything is lost");
}
