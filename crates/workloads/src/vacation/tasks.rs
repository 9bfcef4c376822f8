//! The tasks, each a transaction.

use muesli::{Action, Error, SmallBytes, Tx};

use super::rows::{
    Counts, FLIGHTS, ReservedEntry, ResourceRow, TABLES, customer_key, decode_entries,
    decode_price, encode_entries, encode_price, is_price,
};
use super::{Added, Vacation, VacationMemory, VacationTask};
use crate::tally::Ended;
use crate::workload::{Seat, ended, transact};

/// One attempt at a task.
struct VacationAttempt<'a> {
    vacation: &'a Vacation,
    tx: &'a Tx,
    memory: &'a VacationMemory,
    /// What it adds to units and customers.
    added: Added,
}

impl Vacation {
    pub(super) async fn run(
        &self,
        seat: &Seat,
        memory: &VacationMemory,
        task: &VacationTask,
    ) -> (Ended, u32) {
        if let VacationTask::Look(resources) = task {
            return self.look(seat, memory, resources).await;
        }
        let client = seat.client;
        let (answer, attempts) = transact(&seat.db, async |tx| {
            let mut attempt = VacationAttempt { vacation: self, tx, memory, added: [0, 0] };
            match task {
                VacationTask::Look(_) => unreachable!("done above"),
                VacationTask::Reserve(customer, resources) => {
                    attempt.reserve(*customer, resources).await?
                }
                VacationTask::Delete(customer) => attempt.delete(*customer).await?,
                VacationTask::Update(updates) => attempt.update(updates).await?,
            }
            self.ledgers.of(client).set_out(attempt.added);
            Ok(())
        })
        .await;
        let ended = ended(answer);
        self.ledgers.of(client).settle(&ended);
        (ended, attempts)
    }

    async fn look(
        &self,
        seat: &Seat,
        memory: &VacationMemory,
        resources: &[ResourceRow],
    ) -> (Ended, u32) {
        let (answer, attempts) = transact(&memory.reader, async |tx| {
            let keys = resources.iter().map(|resource| resource.price_key());
            let prices = tx.get_many(memory.resources, keys).await?;
            prices.iter().flatten().map(decode_price).collect::<Result<Vec<_>, _>>()
        })
        .await;
        if let Ok(prices) = &answer {
            let mut ledger = self.ledgers.of(seat.client);
            ledger.looks += prices.len() as u64;
            for price in prices.iter().filter(|price| !is_price(**price)) {
                ledger.wrong.add(|| format!("a price of {price}"));
            }
        }
        (ended(answer), attempts)
    }
}

impl VacationAttempt<'_> {
    async fn price(&self, resource: ResourceRow) -> Result<Option<u32>, Error> {
        let price = self.tx.get(self.memory.resources, resource.price_key()).await?;
        price.map(|price| decode_price(&price)).transpose()
    }

    /// The counts of a resource that is there.
    async fn counts(&self, resource: ResourceRow) -> Result<Counts, Error> {
        let counts = self.tx.get(self.memory.resources, resource.counts_key()).await?;
        let counts = counts.map(|counts| Counts::decode(&counts)).transpose()?;
        counts.ok_or_else(|| Error::Codec(format!("{resource:?} has no counts")))
    }

    /// Adds to the units in use, the free ones, and all.
    async fn count(&self, resource: ResourceRow, by: [i64; 3]) -> Result<(), Error> {
        let (space, key) = (self.memory.resources, resource.counts_key());
        if self.vacation.delayed {
            return self.tx.defer(space, key, Action::add_all(&by)).await;
        }
        let counts = self.counts(resource).await?.plus(by);
        self.tx.put(space, key, counts.encode()).await
    }

    async fn entries(&self, customer: u32) -> Result<Option<Vec<ReservedEntry>>, Error> {
        let entries = self.tx.get(self.memory.customers, customer_key(customer)).await?;
        entries.map(|entries| decode_entries(&entries)).transpose()
    }

    async fn put_customer(&self, id: u32, entries: &[ReservedEntry]) -> Result<(), Error> {
        self.tx.put(self.memory.customers, customer_key(id), encode_entries(entries)).await
    }

    /// Of each table, the dearest of these that is there; the first of equals.
    async fn dearest(&self, resources: &[ResourceRow]) -> Result<Vec<ReservedEntry>, Error> {
        let keys = resources.iter().map(|resource| resource.price_key());
        let prices: Vec<Option<SmallBytes>> = self.tx.get_many(self.memory.resources, keys).await?;
        let mut best: [Option<ReservedEntry>; TABLES as usize] = [None; TABLES as usize];
        for (resource, price) in resources.iter().zip(&prices) {
            let Some(price) = price else { continue };
            let (price, place) = (decode_price(price)?, &mut best[usize::from(resource.table)]);
            if place.is_none_or(|best| price > best.price) {
                *place = Some(ReservedEntry { resource: *resource, price });
            }
        }
        Ok(best.into_iter().flatten().collect())
    }

    async fn reserve(&mut self, customer: u32, resources: &[ResourceRow]) -> Result<(), Error> {
        let wanted = self.dearest(resources).await?;
        if wanted.is_empty() {
            return Ok(());
        }
        let there = self.entries(customer).await?;
        let is_new = there.is_none();
        self.added[1] = i64::from(is_new);
        let mut entries = there.unwrap_or_default();
        let before = entries.len();
        for entry in wanted {
            if entries.iter().any(|held| held.resource == entry.resource) {
                continue;
            }
            if !self.vacation.delayed && self.counts(entry.resource).await?.free < 1 {
                continue;
            }
            self.count(entry.resource, [1, -1, 0]).await?;
            entries.push(entry);
        }
        if is_new || entries.len() > before {
            self.put_customer(customer, &entries).await?;
        }
        Ok(())
    }

    async fn delete(&mut self, customer: u32) -> Result<(), Error> {
        let Some(entries) = self.entries(customer).await? else { return Ok(()) };
        for entry in &entries {
            self.count(entry.resource, [-1, 1, 0]).await?;
        }
        self.tx.delete(self.memory.customers, customer_key(customer)).await?;
        self.added[1] = -1;
        Ok(())
    }

    async fn update(&mut self, updates: &[(ResourceRow, Option<u32>)]) -> Result<(), Error> {
        for (resource, price) in updates {
            match price {
                Some(price) => self.add(*resource, *price).await?,
                None => self.take(*resource).await?,
            }
        }
        Ok(())
    }

    /// More units of a resource, at another price.
    async fn add(&mut self, resource: ResourceRow, price: u32) -> Result<(), Error> {
        let (space, units) = (self.memory.resources, self.vacation.units);
        if self.price(resource).await?.is_some() {
            self.count(resource, [0, units, units]).await?;
        } else {
            let counts = Counts { used: 0, free: units, total: units };
            self.tx.put(space, resource.counts_key(), counts.encode()).await?;
        }
        self.added[0] += units;
        self.tx.put(space, resource.price_key(), encode_price(price)).await
    }

    /// Fewer units of a car or room, if so many are free; a flight that nobody uses, whole.
    async fn take(&mut self, resource: ResourceRow) -> Result<(), Error> {
        let (space, units) = (self.memory.resources, self.vacation.units);
        if self.price(resource).await?.is_none() {
            return Ok(());
        }
        let counts = self.counts(resource).await?;
        let left = if resource.table == FLIGHTS {
            if counts.used > 0 {
                return Ok(());
            }
            Counts::default()
        } else {
            if counts.free < units {
                return Ok(());
            }
            counts.plus([0, -units, -units])
        };
        self.added[0] += left.total - counts.total;
        if left.total > 0 {
            return self.tx.put(space, resource.counts_key(), left.encode()).await;
        }
        self.tx.delete(space, resource.counts_key()).await?;
        self.tx.delete(space, resource.price_key()).await
    }
}
