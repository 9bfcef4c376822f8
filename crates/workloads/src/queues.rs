//! Queues of items that clients take, keep, and put back: who finds none sleeps until there is one.
//!
//! A client has one hand. With an empty one it takes an item from a queue, or else from another;
//! with a full one it puts the item into a queue that has room, or else into another. Where all
//! queues are empty, the clients that hold items are more than those that may go on: the others
//! wait ([`Tx::retry`]) for a change of any queue's head.
//!
//! What makes runs checkable: hands are rows, written with the queues, so that each item is in one
//! queue or in one hand, whoever vanished and whatever is not known to have committed.
//!
//! With `nesting` what is done with queues is a part of a transaction, and what is done with the
//! hand is not.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use muesli::structures::BlockingQueue;
use muesli::{Db, Error, Space, SpaceOptions, Tx, TypedSpace};

use crate::check::{Check, Complaints};
use crate::loading::insist;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::parted::{NESTING_BY_ROWS, PartsDb};
use crate::per_client::PerClient;
use crate::tally::Ended;
use crate::workload::{Seat, Workload, ended};

/// The space of the queues.
const SPACE: &str = "queues";
/// The space of what clients hold.
const HANDS: &str = "hands";

/// What queues take.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new("queues", "3", ParameterKind::Count(1, 8), "How many queues there are."),
    Parameter::new(
        "items",
        "4",
        ParameterKind::Count(1, 10_000),
        "How many items there are in queues and hands together.",
    ),
    Parameter::new(
        "capacity",
        "2",
        ParameterKind::Count(1, 10_000),
        "How many items a queue holds; all of them together have room for all items.",
    ),
    Parameter::new(
        "wait",
        "50",
        ParameterKind::Count(1, 60_000),
        "For how long a client waits for an item, in milliseconds.",
    ),
    NESTING_BY_ROWS,
    PATIENCE,
];

/// What makes them small: the usual ones are.
pub const SMALL: &[&str] = &[];

/// Queues and hands.
#[derive(Debug)]
pub struct Queues {
    count: usize,
    items: u64,
    capacity: u64,
    wait: Duration,
    nesting: NestingPlan,
    counted: PerClient<QueueCounts>,
}

/// What a client counted, over all of its lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Items that it took.
    pub taken: u64,
    /// Transactions that ended without an item, after the longest wait.
    pub in_vain: u64,
}

/// What a client remembers: what it works with.
#[derive(Debug)]
pub struct QueueMemory {
    queues: Vec<BlockingQueue<u64>>,
    hands: TypedSpace<u32, u64>,
    db: PartsDb,
}

impl Queues {
    /// Queues with these parameters, for so many clients.
    ///
    /// # Errors
    /// There are more items than fit.
    pub fn new(values: &Values, clients: u32) -> Result<Queues, ParameterError> {
        let (count, capacity) = (values.count("queues"), values.count("capacity"));
        let items = values.count("items");
        if items > count * capacity {
            return Err(ParameterError::Incompatible(format!(
                "{items} items do not fit into {count} queues of {capacity}"
            )));
        }
        Ok(Queues {
            count: count as usize,
            items,
            capacity,
            wait: Duration::from_millis(values.count("wait")),
            nesting: NestingPlan::seldom_open(values),
            counted: PerClient::new(clients, |_| QueueCounts::default()),
        })
    }

    /// What all clients counted together.
    pub fn counts(&self) -> QueueCounts {
        self.counted.all().fold(QueueCounts::default(), |all, of| QueueCounts {
            taken: all.taken + of.taken,
            in_vain: all.in_vain + of.in_vain,
        })
    }

    fn queues(&self, space: Space) -> Vec<BlockingQueue<u64>> {
        let name = |number| format!("queue {number}");
        (0..self.count).map(|it| BlockingQueue::new(space, &name(it), self.capacity)).collect()
    }

    /// Where each item is.
    async fn places(&self, db: &Db) -> Result<BTreeMap<u64, Vec<String>>, Error> {
        let hands = db.space(HANDS)?.typed::<u32, u64>();
        let mut places: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for client in 0..self.counted.clients() {
            let strict = db.strict().read_only();
            let held = strict.transact_here(async |tx| hands.get(tx, &client).await).await?;
            if let Some(item) = held {
                places.entry(item).or_default().push(format!("the hand of client {client}"));
            }
        }
        for (number, queue) in self.queues(db.space(SPACE)?).iter().enumerate() {
            let found = RefCell::new(Vec::new());
            let drained = db.transact_here(async |tx| {
                found.borrow_mut().clear();
                while !queue.is_empty(tx).await? {
                    let item = queue.take(tx).await?;
                    found.borrow_mut().push(item);
                }
                Err::<(), _>(Error::rollback("they stay where they are"))
            });
            match drained.await {
                Err(Error::Rollback(_)) => {}
                other => other?,
            }
            for item in found.take() {
                places.entry(item).or_default().push(format!("queue {number}"));
            }
        }
        Ok(places)
    }
}

/// Takes an item from the first of these queues that has one, or waits.
async fn take(tx: &Tx, queues: &[BlockingQueue<u64>]) -> Result<u64, Error> {
    match queues {
        [] => tx.retry(),
        [first, others @ ..] => {
            let rest = async |tx: &Tx| Box::pin(take(tx, others)).await;
            tx.or_else(async |tx| first.take(tx).await, rest).await
        }
    }
}

/// Puts an item into the first of these queues that has room, or waits.
async fn put(tx: &Tx, queues: &[BlockingQueue<u64>], item: u64) -> Result<(), Error> {
    match queues {
        [] => tx.retry(),
        [first, others @ ..] => {
            let rest = async |tx: &Tx| Box::pin(put(tx, others, item)).await;
            tx.or_else(async |tx| first.put(tx, &item).await, rest).await
        }
    }
}

impl Workload for Queues {
    type Memory = QueueMemory;

    fn spaces(&self, _repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        vec![(SPACE, SpaceOptions::default()), (HANDS, SpaceOptions::default())]
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        for (number, queue) in self.queues(db.space(SPACE)?).iter().enumerate() {
            let share = (0..self.items).filter(|item| *item as usize % self.count == number);
            let items: Vec<u64> = share.collect();
            let fill = async |tx: &Tx| {
                if queue.is_empty(tx).await? {
                    for item in &items {
                        queue.put(tx, item).await?;
                    }
                }
                Ok(())
            };
            insist(async || db.transact_here(&fill).await).await?;
        }
        Ok(())
    }

    fn begin(&self, seat: &mut Seat) -> Result<QueueMemory, Error> {
        let queues = self.queues(seat.db.space(SPACE)?);
        let hands = seat.db.space(HANDS)?.typed();
        let db = self.nesting.parts_handle(seat.node, &seat.db.timeout(self.wait), "queues")?;
        Ok(QueueMemory { queues, hands, db })
    }

    async fn transact(&self, seat: &mut Seat, memory: &mut QueueMemory) -> (Ended, u32) {
        let (client, hands) = (seat.client, memory.hands);
        memory.queues.rotate_left(seat.chance.below(self.count as u64) as usize);
        let (answer, attempts) = memory
            .db
            .transact(async |tx| {
                let held = hands.get(&tx, &client).await?;
                match held {
                    Some(item) => {
                        let put = async |tx: &Tx| put(tx, &memory.queues, item).await;
                        self.nesting.part(tx, put).await?;
                        hands.delete(&tx, &client).await?;
                    }
                    None => {
                        let take = async |tx: &Tx| take(tx, &memory.queues).await;
                        let item = self.nesting.part(tx, take).await?;
                        hands.put(&tx, &client, &item).await?;
                    }
                }
                Ok(held.is_none())
            })
            .await;
        let mut counted = self.counted.of(client);
        match answer {
            // What its open children did others undo where there was no time left for that.
            Err(Error::TransactionTimeout { .. } | Error::Unfinished { .. }) => {
                counted.in_vain += 1;
                (Ended::RolledBack, attempts)
            }
            answer => {
                counted.taken += u64::from(answer == Ok(true));
                (ended(answer), attempts)
            }
        }
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        let mut places = self.places(db).await?;
        let mut wrong = Complaints::default();
        for item in 0..self.items {
            let places = places.remove(&item).unwrap_or_default();
            if places.len() != 1 {
                wrong.add(|| format!("item {item} is in {places:?}"));
            }
        }
        for (item, places) in places {
            wrong.add(|| format!("item {item} in {places:?} was never there"));
        }
        let QueueCounts { taken, in_vain } = self.counts();
        let details = format!("{} items, taken {taken} times, {in_vain} waits in vain", self.items);
        Ok(vec![Check::none_wrong("each item is in one place", &wrong, details)])
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}
