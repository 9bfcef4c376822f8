//! Reads the whole database by procedures, page after page, once no client runs any more, and shows
//! it to those who check [the other workload](crate::tpcc).

use muesli::procedures::Bytes;
use muesli::procedures::builtin::{Get, Keyed, Ranged, Scan};
use muesli::{Db, Error, Key, SmallBytes, Space, TypedSpace};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hot::{DistrictRow, WarehouseRow};
use crate::check::{Check, Complaints};
use crate::tpcc::checks::Audit;
use crate::tpcc::ids::{CustomerName, DistrictId, StockId};
use crate::tpcc::layout::Layout;
use crate::tpcc::ledger::Books;
use crate::tpcc::rows::Stock;
use crate::tpcc::scale::Scale;
use crate::tpcc::survey::{DistrictRows, PAGE, Rows, Surveyor, WarehouseRows};
use crate::tpcc::tables::Sums;
use crate::tpcc::terminal::there;
use crate::tpcc::{Tpcc, first};

pub(super) async fn check(tpcc: &Tpcc, db: &Db, rows: bool) -> Result<Vec<Check>, Error> {
    let (scale, books) = (&tpcc.scale, &Books::closed(&tpcc.ledgers));
    let reader = SurveyReader { db: db.read_only(), layout: Layout::of(db, rows)? };
    let (mut audit, mut wrong_copies) = (Audit::new(scale, books), Complaints::default());
    for warehouse in scale.all_warehouses() {
        for id in scale.districts_of(warehouse) {
            audit.district(&reader.district(id).await?);
        }
    }
    let mut items = Rows::new();
    for warehouse in scale.all_warehouses() {
        audit.warehouse(&reader.warehouse(warehouse).await?);
        items.extend(reader.all(reader.layout.tables.items, &warehouse.encoded()).await?);
        reader.copies(scale, warehouse, &mut wrong_copies).await?;
    }
    audit.items(&items);
    let mut checks = audit.checks();
    let details = format!("of {} warehouses at each", scale.warehouses);
    checks.push(Check::none_wrong("copies are as they were", &wrong_copies, details));
    Ok(checks)
}

struct SurveyReader {
    db: Db,
    layout: Layout,
}

impl SurveyReader {
    async fn raw(&self, space: Space, key: SmallBytes) -> Result<Option<SmallBytes>, Error> {
        let place = space.place(key.clone());
        let keyed = Keyed { space, keys: vec![Bytes(key)] };
        let found = self.db.execute::<Get>(place, &keyed).await?;
        Ok(found.into_iter().next().flatten().map(|value| value.0))
    }

    async fn sum<K: Key>(&self, sums: Sums<K>, key: &K) -> Result<i64, Error> {
        let found = self.raw(sums.raw(), key.encoded()).await?;
        there(found.as_ref().and_then(Sums::<K>::decode), "a sum")
    }

    async fn one<K: Key, V: Serialize + DeserializeOwned>(
        &self,
        space: TypedSpace<K, V>,
        key: &K,
        what: &str,
    ) -> Result<V, Error> {
        let found = self.raw(space.raw(), key.encoded()).await?;
        decode(&there(found, what)?)
    }

    /// All rows whose keys begin like this, which live at one repository.
    async fn all<K: Key, V: Serialize + DeserializeOwned>(
        &self,
        space: TypedSpace<K, V>,
        prefix: &SmallBytes,
    ) -> Result<Rows<K, V>, Error> {
        let (mut rows, mut from) = (Vec::new(), prefix.clone());
        loop {
            let (lo, hi) = (Bytes(from), prefix.prefix_end().map(Bytes));
            let (space, limit) = (space.raw(), PAGE as u64);
            let ranged = Ranged { space, lo, hi, reverse: false, limit };
            let page = self.db.execute::<Scan>(space.place(prefix.clone()), &ranged).await?;
            for (key, value) in &page {
                rows.push((K::decoded(key.0.as_slice())?, decode(&value.0)?));
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => from = last.0.successor(),
                _ => return Ok(rows),
            }
        }
    }

    /// A district with D_YTD and D_NEXT_O_ID.
    async fn district_row(&self, id: DistrictId) -> Result<DistrictRow, Error> {
        let tables = &self.layout.tables;
        if self.layout.rows {
            return self.one(self.layout.district_rows(), &id, "a district").await;
        }
        let next = self.one(tables.next_order, &id, "D_NEXT_O_ID").await?;
        let ytd = self.sum(tables.district_ytd, &id).await?;
        Ok(((ytd, next), self.one(tables.districts, &id, "a district").await?))
    }

    /// A warehouse with W_YTD.
    async fn warehouse_row(&self, id: u32) -> Result<WarehouseRow, Error> {
        let tables = &self.layout.tables;
        if self.layout.rows {
            return self.one(self.layout.warehouse_rows(), &id, "a warehouse").await;
        }
        let ytd = self.sum(tables.warehouse_ytd, &id).await?;
        Ok((ytd, self.one(tables.warehouses, &id, "a warehouse").await?))
    }

    async fn district(&self, id: DistrictId) -> Result<DistrictRows, Error> {
        let ((ytd, next_order), row) = self.district_row(id).await?;
        let (tables, prefix) = (&self.layout.tables, &id.encoded());
        let names = self.all(tables.customer_names, prefix).await?;
        let customer_orders = self.all(tables.customer_orders, prefix).await?;
        let new_orders = self.all(tables.new_orders, prefix).await?;
        Ok(DistrictRows {
            id,
            row,
            ytd,
            next_order,
            customers: self.all(tables.customers, prefix).await?,
            customer_names: names.into_iter().map(|(name, ())| name).collect(),
            history: self.all(tables.history, prefix).await?,
            orders: self.all(tables.orders, prefix).await?,
            customer_orders: customer_orders.into_iter().map(|(id, ())| id).collect(),
            new_orders: new_orders.into_iter().map(|(id, ())| id).collect(),
            order_lines: self.all(tables.order_lines, prefix).await?,
        })
    }

    async fn warehouse(&self, id: u32) -> Result<WarehouseRows, Error> {
        let (layout, prefix) = (&self.layout, &id.encoded());
        let counts = self.all(layout.stock(), prefix).await?;
        let infos = self.all(layout.stock_infos, &(id, id).encoded()).await?;
        let infos = infos.into_iter().map(|((_, id), info)| (id, info));
        let infos: std::collections::BTreeMap<_, _> = infos.collect();
        let whole = |(id, count): (StockId, _)| {
            let info = there(infos.get(&id).cloned(), "a copy of stock")?;
            Ok((id, Stock::of(count, info)))
        };
        let (ytd, row) = self.warehouse_row(id).await?;
        Ok(WarehouseRows {
            id,
            row,
            ytd,
            stock: counts.into_iter().map(whole).collect::<Result<_, Error>>()?,
        })
    }

    /// What a warehouse has of the others is what was loaded.
    async fn copies(
        &self,
        scale: &Scale,
        holder: u32,
        wrong: &mut Complaints,
    ) -> Result<(), Error> {
        let infos = self.all(self.layout.stock_infos, &holder.encoded()).await?;
        let all = scale.all_warehouses();
        let all = all.flat_map(|warehouse| {
            (1..=scale.items).map(move |item| (holder, StockId { warehouse, item }))
        });
        let as_loaded = |id: (u32, StockId)| (id, first::stock(id.1).info());
        if !infos.into_iter().eq(all.map(as_loaded)) {
            wrong.add(|| format!("stock of others at {holder}"));
        }
        let names = self.all(self.layout.name_copies, &holder.encoded()).await?;
        let others = scale.all_warehouses().filter(|warehouse| *warehouse != holder);
        let districts = others.flat_map(|warehouse| scale.districts_of(warehouse));
        let mut loaded: Vec<_> = districts.flat_map(|district| names_of(scale, district)).collect();
        loaded.sort_unstable();
        if !names.into_iter().map(|((_, name), ())| name).eq(loaded) {
            wrong.add(|| format!("names of others at {holder}"));
        }
        Ok(())
    }
}

fn names_of(scale: &Scale, district: DistrictId) -> impl Iterator<Item = CustomerName> {
    (1..=scale.customers).map(move |number| {
        let row = first::customer(scale, district.customer(number));
        CustomerName { district, last: row.last, first: row.first, customer: number }
    })
}

fn decode<V: Serialize + DeserializeOwned>(value: &SmallBytes) -> Result<V, Error> {
    postcard::from_bytes(value.as_slice()).map_err(|error| Error::Codec(error.to_string()))
}
