//! The tasks, each a transaction. What a part of one adds to the sums is its answer: it may be run
//! again.

use muesli::{Action, Error, SmallBytes, Tx};

use super::rows::{
    Counts, FLIGHTS, ReservedEntry, ResourceRow, TABLES, customer_key, decode_entries,
    decode_price, encode_entries, encode_price, is_price,
};
use super::{Added, Vacation, VacationMemory, VacationTask};
use crate::parted::PartsTx;
use crate::tally::Ended;
use crate::workload::{Seat, ended};

/// One attempt at a task, or at a part of one.
#[derive(Clone, Copy)]
struct VacationAttempt<'a> {
    vacation: &'a Vacation,
    tx: PartsTx<'a>,
    memory: &'a VacationMemory,
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
        let (answer, attempts) = memory
            .writer
            .transact(async |tx| {
                let attempt = VacationAttempt { vacation: self, tx, memory };
                let added = match task {
                    VacationTask::Look(_) => unreachable!("done above"),
                    VacationTask::Reserve(customer, resources) => {
                        attempt.reserve(*customer, resources).await?
                    }
                    VacationTask::Delete(customer) => attempt.delete(*customer).await?,
                    VacationTask::Update(updates) => attempt.update(updates).await?,
                };
                self.ledgers.of(client).set_out(added);
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
        let (answer, attempts) = memory
            .reader
            .transact(async |tx| {
                // All at once, or each in a part of its own.
                let in_part = if self.nesting.is_flat() { resources.len() } else { 1 };
                let mut found = Vec::with_capacity(resources.len());
                for some in resources.chunks(in_part) {
                    let look = async |tx: &Tx| {
                        let keys = some.iter().map(|resource| resource.price_key());
                        tx.get_many(memory.resources, keys).await
                    };
                    let prices = self.nesting.part(tx, look).await?;
                    for price in prices.iter().flatten() {
                        found.push(decode_price(price)?);
                    }
                }
                Ok(found)
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
    /// Does a part of it.
    async fn part<T>(
        &self,
        part: impl AsyncFn(VacationAttempt<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let VacationAttempt { vacation, memory, .. } = *self;
        let run = async |tx: &Tx| part(VacationAttempt { vacation, tx: tx.into(), memory }).await;
        vacation.nesting.part(self.tx, run).await
    }

    /// Does what is no part of it, unless all is.
    async fn rest<T>(
        &self,
        rest: impl AsyncFn(VacationAttempt<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.tx.is_open() {
            true => self.part(rest).await,
            false => rest(*self).await,
        }
    }

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

    async fn reserve(&self, customer: u32, resources: &[ResourceRow]) -> Result<Added, Error> {
        let wanted = self.part(async |part| part.dearest(resources).await).await?;
        if wanted.is_empty() {
            return Ok([0, 0]);
        }
        let there = self.rest(async |rest| rest.entries(customer).await).await?;
        let is_new = there.is_none();
        let mut entries = there.unwrap_or_default();
        let before = entries.len();
        for entry in wanted {
            if entries.iter().any(|held| held.resource == entry.resource) {
                continue;
            }
            if self.part(async |part| part.use_one(entry.resource).await).await? {
                entries.push(entry);
            }
        }
        if is_new || entries.len() > before {
            self.rest(async |rest| rest.put_customer(customer, &entries).await).await?;
        }
        Ok([0, i64::from(is_new)])
    }

    /// Takes a unit that is free; whether there was one.
    async fn use_one(&self, resource: ResourceRow) -> Result<bool, Error> {
        if !self.vacation.delayed && self.counts(resource).await?.free < 1 {
            return Ok(false);
        }
        self.count(resource, [1, -1, 0]).await?;
        Ok(true)
    }

    async fn delete(&self, customer: u32) -> Result<Added, Error> {
        let found = self.rest(async |rest| rest.entries(customer).await).await?;
        let Some(entries) = found else { return Ok([0, 0]) };
        for entry in &entries {
            self.part(async |part| part.count(entry.resource, [-1, 1, 0]).await).await?;
        }
        let customers = self.memory.customers;
        let delete = async |rest: VacationAttempt<'_>| {
            rest.tx.delete(customers, customer_key(customer)).await
        };
        self.rest(delete).await?;
        Ok([0, -1])
    }

    async fn update(&self, updates: &[(ResourceRow, Option<u32>)]) -> Result<Added, Error> {
        let mut units = 0;
        for (resource, price) in updates {
            let update = async |part: VacationAttempt<'_>| match price {
                Some(price) => part.add(*resource, *price).await,
                None => part.take(*resource).await,
            };
            units += self.part(update).await?;
        }
        Ok([units, 0])
    }

    /// More units of a resource, at another price; how many.
    async fn add(&self, resource: ResourceRow, price: u32) -> Result<i64, Error> {
        let (space, units) = (self.memory.resources, self.vacation.units);
        if self.price(resource).await?.is_some() {
            self.count(resource, [0, units, units]).await?;
        } else {
            let counts = Counts { used: 0, free: units, total: units };
            self.tx.put(space, resource.counts_key(), counts.encode()).await?;
        }
        self.tx.put(space, resource.price_key(), encode_price(price)).await?;
        Ok(units)
    }

    /// Fewer units of a car or room, if so many are free; a flight that nobody uses, whole. By how
    /// many their number has changed.
    async fn take(&self, resource: ResourceRow) -> Result<i64, Error> {
        let (space, units) = (self.memory.resources, self.vacation.units);
        if self.price(resource).await?.is_none() {
            return Ok(0);
        }
        let counts = self.counts(resource).await?;
        let left = if resource.table == FLIGHTS {
            if counts.used > 0 {
                return Ok(0);
            }
            Counts::default()
        } else {
            if counts.free < units {
                return Ok(0);
            }
            counts.plus([0, -units, -units])
        };
        if left.total > 0 {
            self.tx.put(space, resource.counts_key(), left.encode()).await?;
        } else {
            self.tx.delete(space, resource.counts_key()).await?;
            self.tx.delete(space, resource.price_key()).await?;
        }
        Ok(left.total - counts.total)
    }
}
