//! A client whose process is killed early in a run.
//!
//! # The problem
//! Repositories keep what clients may still ask for. Those that close say that they are through; of
//! one that is killed nothing is heard any more, and once its lease is over it is forgotten. Most
//! searches have no clients that come and go, and where a fault ends the process of one, the next
//! one begins before the lease is over. So most searches would never see a client forgotten.
//!
//! # The idea
//! In each run of a search one client comes to a node of its own, changes something in a space of
//! its own, and is killed for good, often in the middle of a transaction. Nobody counts it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use muesli::{Db, Error};
use muesli_core::{NodeId, SmallBytes};
use muesli_sim::time::Span;
use muesli_sim::world::{ClientBody, World};

/// The space that it changes.
pub(crate) const SPACE: &str = "guest";
/// It is killed once so many of its transactions have committed.
const CHANGES: u64 = 2;
/// It has so many keys, so that most repositories hear of it.
const KEYS: u64 = 8;
/// It looks at so many of them in a transaction, and changes as many others.
const KEYS_ONCE: u64 = 2;
/// How often it is looked what became of it.
const LOOK_EVERY: Span = Span::from_millis(1);
/// Between two of its transactions.
const PAUSE: Duration = Duration::from_micros(200);

/// A client comes to `node`, which is killed when the client has changed something.
pub(crate) fn comes_and_goes(world: &mut World, db: &Db, node: NodeId) {
    let changes = Rc::<Cell<u64>>::default();
    let (db, counted) = (db.clone(), changes.clone());
    let body: ClientBody = Rc::new(move |_| {
        let (db, changes) = (db.independent(), counted.clone());
        Box::pin(visit(db, changes))
    });
    world.add_client(node, body);
    while changes.get() < CHANGES && world.now() < world.plan().horizon() {
        world.run_until(world.now() + LOOK_EVERY);
    }
    world.end_node(node);
}

/// The lease of clients may be about as long as a run, and begins anew where a node does.
pub(crate) fn wait_until_forgotten(world: &mut World, lease: Span) {
    let limit = world.now() + lease.times(2);
    while world.background().maintenance.clients_forgotten == 0 && world.now() < limit {
        world.run_until(world.now() + LOOK_EVERY);
    }
}

/// The client. It counts its transactions that committed.
async fn visit(db: Db, changes: Rc<Cell<u64>>) {
    for number in 0.. {
        // What becomes of it is in the history.
        if change(&db, number).await.is_ok() {
            changes.set(changes.get() + 1);
        }
        if db.sleep(PAUSE).await.is_err() {
            return;
        }
    }
}

async fn change(db: &Db, number: u64) -> Result<(), Error> {
    let space = db.space(SPACE)?;
    let tx = db.begin().await?;
    let bytes = |number: u64| SmallBytes::from(&number.to_be_bytes()[..]);
    for at in 0..KEYS_ONCE {
        let at = 2 * KEYS_ONCE * number + at;
        tx.get(space, bytes(at % KEYS)).await?;
        tx.put(space, bytes((at + KEYS_ONCE) % KEYS), bytes(number)).await?;
    }
    tx.commit().await
}
