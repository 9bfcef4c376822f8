//! Updates of a home copy: resources are reserved and counted.

use muesli::{Action, Error, SmallBytes, Space, Tx};

use super::{
    CUSTOMER, FREE, HELD, HomeResource, HomeVacation, MANAGER, PRICE, RESERVED, RESOURCES, TABLES,
    TOTAL, USED,
};
use crate::home::ledger::WriterTag;
use crate::home::rows::{eight_bytes, key, number};
use crate::parted::PartsTx;

/// One attempt at an update.
pub(super) struct HomeAttempt<'a> {
    pub vacation: &'a HomeVacation,
    pub tx: PartsTx<'a>,
    pub space: Space,
    pub home: u32,
    pub client: u32,
}

impl HomeAttempt<'_> {
    async fn get(&self, kind: u8, row: u32) -> Result<Option<SmallBytes>, Error> {
        self.tx.get(self.space, key(self.home, kind, row)).await
    }

    async fn number(&self, kind: u8, row: u32) -> Result<i64, Error> {
        number(self.get(kind, row).await?.as_ref(), "a resource's number")
    }

    async fn put(&self, kind: u8, row: u32, value: SmallBytes) -> Result<(), Error> {
        self.tx.put(self.space, key(self.home, kind, row), value).await
    }

    pub async fn write_private(&self, private: &SmallBytes, number: u64) -> Result<(), Error> {
        let value = WriterTag { writer: self.client + 1, number }.value(0);
        self.tx.put(self.space, private.clone(), value).await
    }

    /// Does what is no part of it, unless all is.
    pub async fn rest<T>(
        &self,
        rest: impl AsyncFn(HomeAttempt<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let rest = async |tx: &Tx| rest(HomeAttempt { tx: tx.into(), ..*self }).await;
        self.vacation.nesting.rest(self.tx, rest).await
    }

    /// A customer comes into being where there is none.
    async fn add_customer(&self, customer: u32) -> Result<(), Error> {
        if self.get(CUSTOMER, customer).await?.is_none() {
            self.put(CUSTOMER, customer, eight_bytes(0)).await?;
            self.put(HELD, customer, encode_held([0; TABLES as usize])).await?;
        }
        Ok(())
    }

    pub async fn count(&self) -> Result<(), Error> {
        let manager = self.get(MANAGER, 0).await?;
        manager.ok_or_else(|| Error::Codec(format!("agency {} has no manager", self.home)))?;
        if self.vacation.delayed {
            return self.tx.defer(self.space, key(self.home, RESOURCES, 0), Action::add(1)).await;
        }
        let count = self.number(RESOURCES, 0).await?;
        self.put(RESOURCES, 0, eight_bytes(count + 1)).await
    }

    /// Reserves what was found for a customer, who comes into being where there is none.
    pub async fn reserve(
        &self,
        customer: u32,
        found: [Option<HomeResource>; TABLES as usize],
    ) -> Result<(), Error> {
        if found == [None; TABLES as usize] {
            return Ok(());
        }
        self.rest(async |rest| rest.add_customer(customer).await).await?;
        for resource in found.into_iter().flatten() {
            let part = async |tx: &Tx| {
                HomeAttempt { tx: tx.into(), ..*self }.reserve_one(customer, resource).await
            };
            if self.vacation.nesting.part(self.tx, part).await? {
                self.vacation.ledgers.of(self.client).add(RESERVED, 1);
            }
        }
        Ok(())
    }

    /// Reserves a resource; whether it was free.
    async fn reserve_one(&self, customer: u32, resource: HomeResource) -> Result<bool, Error> {
        let row = self.vacation.row(resource);
        let free = self.number(FREE, row).await?;
        if free < 1 {
            return Ok(false);
        }
        let used = self.number(USED, row).await?;
        self.put(USED, row, eight_bytes(used + 1)).await?;
        self.put(FREE, row, eight_bytes(free - 1)).await?;
        // The port checks the resource whenever it has changed it.
        let (total, price) = (self.number(TOTAL, row).await?, self.number(PRICE, row).await?);
        if used < 0 || price < 0 || used + free != total {
            let complain = || format!("{resource:?}: {used} used, {free} free of {total}");
            self.vacation.ledgers.of(self.client).wrong.add(complain);
        }
        let held = self.get(HELD, customer).await?;
        let mut held = decode_held(held.as_ref())?;
        held[resource.table as usize] += 1;
        self.put(HELD, customer, encode_held(held)).await?;
        Ok(true)
    }
}

pub(super) fn encode_held(held: [i64; TABLES as usize]) -> SmallBytes {
    held.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>().into()
}

pub(super) fn decode_held(value: Option<&SmallBytes>) -> Result<[i64; TABLES as usize], Error> {
    let broken = || Error::Codec(format!("a customer holds {value:?}"));
    let (numbers, rest) = value.ok_or_else(broken)?.as_slice().as_chunks::<8>();
    let numbers: Option<&[_; TABLES as usize]> =
        numbers.try_into().ok().filter(|_| rest.is_empty());
    Ok(numbers.ok_or_else(broken)?.map(i64::from_le_bytes))
}
