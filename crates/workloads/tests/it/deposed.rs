//! Reads of a node that was cut off with the leader of a group: they must not be answered from
//! what was right before others went on.
//!
//! What SCORe promises does not tell the difference: old reads are serializable, and a leader that
//! is deposed cannot serve a snapshot that reaches what its successor writes, because its ceiling
//! would have to be decided. So this looks at the clock, as a user would.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;

use muesli::{Db, Error, Space, Tx};
use muesli_core::Nanos;
use muesli_core::client;
use muesli_group::GroupSettings;
use muesli_sim::time::Span;
use muesli_sim::world::ClientBody;

use crate::one_group::{OneGroup, one_group};

const NODES: u32 = 3;
/// A read may miss what was acknowledged so shortly before it began: the writer's last message may
/// be under way.
const SLACK: Nanos = Nanos::from_millis(20);

/// What was acknowledged when, and reads that missed it.
#[derive(Default)]
struct Seen {
    database: u64,
    acknowledged: RefCell<Vec<(Nanos, u64)>>,
    reads: Cell<u64>,
    late: Cell<u64>,
}

impl Seen {
    fn now(&self) -> Nanos {
        client::with(self.database, |engine| engine.now()).expect("polled in the world")
    }

    async fn sleep(&self, length: Nanos) {
        let here = "polled in the world";
        let op = client::with(self.database, |engine| engine.sleep(length)).expect(here);
        poll_fn(|cx| {
            let answer = client::with(self.database, |engine| engine.poll(op, cx.waker()));
            answer.expect(here).map(|_| ())
        })
        .await;
    }

    /// The newest value acknowledged well before `begun`.
    fn due(&self, begun: Nanos) -> u64 {
        let acknowledged = self.acknowledged.borrow();
        let before = acknowledged.iter().filter(|(at, _)| at.0 + SLACK.0 <= begun.0);
        before.map(|(_, value)| *value).max().unwrap_or(0)
    }
}

async fn value(tx: &Tx, space: Space) -> Result<u64, Error> {
    let found = tx.get(space, b"x".to_vec()).await?;
    Ok(found.map_or(0, |bytes| u64::from_be_bytes(bytes.as_slice().try_into().expect("8 bytes"))))
}

/// Runs a group of three of which one, as the seed says, is alone for a while; its clients read,
/// those of the others write.
fn run(seed: u64, confirms_answers: bool) -> Rc<Seen> {
    let cut_off = seed as u32 % NODES;
    let plan = format!("horizon 300ms; 50ms+150ms partition n{cut_off}");
    let group_settings = GroupSettings { confirms_answers, ..GroupSettings::default() };
    let OneGroup { mut world, db, space, nodes } =
        one_group(NODES, NODES, seed, &plan, group_settings);
    let database = world.database();
    let seen = Rc::new(Seen { database, ..Seen::default() });
    for node in nodes {
        let (db, seen) = (db.independent(), Rc::clone(&seen));
        let writes = node.0 != cut_off;
        let body: ClientBody = Rc::new(move |start| {
            let (db, seen) = (db.independent(), Rc::clone(&seen));
            Box::pin(async move {
                while !start.stop.is_raised() {
                    match writes {
                        true => write(&db, space, &seen).await,
                        false => read(&db, space, &seen).await,
                    }
                }
            })
        });
        world.add_client(node, body);
    }
    world.run_to_end(Span::from_secs(60)).expect("everything ends");
    seen
}

async fn write(db: &Db, space: Space, seen: &Seen) {
    let written = db.transact_here(async move |tx| {
        let next = value(tx, space).await? + 1;
        tx.put(space, b"x".to_vec(), next.to_be_bytes().to_vec()).await?;
        Ok::<_, Error>(next)
    });
    if let Ok(written) = written.await {
        seen.acknowledged.borrow_mut().push((seen.now(), written));
    }
    // A leader that is cut off with an entry under way answers nothing any more, sure of itself or
    // not; so mostly there is none.
    seen.sleep(Nanos::from_millis(5)).await;
}

async fn read(db: &Db, space: Space, seen: &Seen) {
    seen.sleep(Nanos::from_millis(1)).await;
    let due = seen.due(seen.now());
    let read = db.independent().read_only();
    let read = read.transact_here(async move |tx| value(tx, space).await);
    if let Ok(read) = read.await {
        seen.reads.set(seen.reads.get() + 1);
        seen.late.set(seen.late.get() + u64::from(read < due));
    }
}

#[test]
fn no_answer_is_of_the_past() {
    for seed in 0..6 {
        let seen = run(seed, true);
        assert!(seen.reads.get() > 50 && seen.acknowledged.borrow().len() > 20);
        assert_eq!(seen.late.get(), 0, "seed {seed}");
    }
}

#[test]
fn answers_of_deposed_leaders_are_noticed() {
    assert!((0..60).any(|seed| run(seed, false).late.get() > 0));
}
