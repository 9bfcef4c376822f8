//! Reads the whole database by procedures, page after page, once no client runs any more, and shows
//! it to those who check [the other workload](crate::tpcc).

use muesli::procedures::Bytes;
use muesli::procedures::builtin::{Get, Keyed};
use muesli::{Db, Error, Key, Place, RepositoryId, SmallBytes, Space, TypedSpace};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hot::{DistrictRow, WarehouseRow};
use crate::check::{Check, Complaints};
use crate::reading::rows_at;
use crate::tpcc::checks::Audit;
use crate::tpcc::ids::{CustomerName, DistrictId, ItemId, StockId};
use crate::tpcc::layout::Layout;
use crate::tpcc::ledger::Books;
use crate::tpcc::rows::{Stock, StockInfo};
use crate::tpcc::scale::Scale;
use crate::tpcc::survey::{DistrictRows, Rows, Surveyor, WarehouseRows};
use crate::tpcc::tables::{Sums, Tables};
use crate::tpcc::terminal::there;
use crate::tpcc::{Tpcc, first, plans};

pub(super) async fn check(tpcc: &Tpcc, db: &Db, rows: bool) -> Result<Vec<Check>, Error> {
    let (scale, books) = (&tpcc.scale, &Books::closed(&tpcc.ledgers));
    let layout = Layout::of(db, rows)?;
    let (tables, of_rows) = (layout.tables, Some(layout).filter(|layout| layout.rows));
    let reader = SurveyReader { db: db.read_only(), tables, rows: of_rows };
    let (mut audit, mut wrong_copies) = (Audit::new(scale, books), Complaints::default());
    for warehouse in scale.all_warehouses() {
        for id in scale.districts_of(warehouse) {
            audit.district(&reader.district(id).await?);
        }
    }
    let mut items = Rows::new();
    for warehouse in scale.all_warehouses() {
        let infos = reader.all(layout.stock_infos, &(warehouse, warehouse).encoded()).await?;
        let infos = infos.into_iter().map(|((_, id), info)| (id, info)).collect();
        audit.warehouse(&reader.warehouse(warehouse, infos).await?);
        items.extend(reader.all(tables.items, &warehouse.encoded()).await?);
        reader.copies(scale, (&layout, warehouse), &mut wrong_copies).await?;
    }
    audit.items(&items);
    let mut checks = audit.checks();
    let details = format!("of {} warehouses at each", scale.warehouses);
    checks.push(Check::none_wrong("copies are as they were", &wrong_copies, details));
    Ok(checks)
}

/// The same where what never changes is everywhere, which is then looked for at each repository.
pub(super) async fn check_planned(tpcc: &Tpcc, db: &Db) -> Result<Vec<Check>, Error> {
    let (scale, books) = (&tpcc.scale, &Books::closed(&tpcc.ledgers));
    let (tables, halves) = (Tables::of(db)?, plans::layout::stock_halves(db)?);
    let reader = SurveyReader { db: db.read_only(), tables, rows: None };
    let mut audit = Audit::new(scale, books);
    for id in scale.all_warehouses().flat_map(|warehouse| scale.districts_of(warehouse)) {
        audit.district(&reader.district(id).await?);
    }
    for id in scale.all_warehouses() {
        let infos = reader.all(halves, &id.encoded()).await?;
        audit.warehouse(&reader.warehouse(id, infos).await?);
    }
    audit.items(&reader.all(tables.items, &SmallBytes::EMPTY).await?);
    let mut wrong = Complaints::default();
    let repositories = db.catalog_of_keys().repositories();
    for at in (0..repositories as u16).map(|number| Place::Repository(RepositoryId(number))) {
        reader.everywhere(scale, halves, &at, &mut wrong).await?;
    }
    let mut checks = audit.checks();
    let details = format!("at each of {repositories} repositories");
    checks.push(Check::none_wrong("copies are as they were", &wrong, details));
    Ok(checks)
}

struct SurveyReader {
    db: Db,
    tables: Tables,
    /// Where warehouses and districts have W_YTD, D_YTD and D_NEXT_O_ID in their rows.
    rows: Option<Layout>,
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

    /// All rows whose keys begin like this, which live at one repository, or everywhere.
    async fn all<K: Key, V: Serialize + DeserializeOwned>(
        &self,
        space: TypedSpace<K, V>,
        prefix: &SmallBytes,
    ) -> Result<Rows<K, V>, Error> {
        self.all_at(space, &space.raw().place(prefix.clone()), prefix).await
    }

    /// The same, of those that are at this place.
    async fn all_at<K: Key, V: Serialize + DeserializeOwned>(
        &self,
        space: TypedSpace<K, V>,
        at: &Place,
        prefix: &SmallBytes,
    ) -> Result<Rows<K, V>, Error> {
        rows_at(&self.db, space, at, prefix).await
    }

    /// A district with D_YTD and D_NEXT_O_ID.
    async fn district_row(&self, id: DistrictId) -> Result<DistrictRow, Error> {
        let tables = &self.tables;
        if let Some(layout) = self.rows {
            return self.one(layout.district_rows(), &id, "a district").await;
        }
        let next = self.one(tables.next_order, &id, "D_NEXT_O_ID").await?;
        let ytd = self.sum(tables.district_ytd, &id).await?;
        Ok(((ytd, next), self.one(tables.districts, &id, "a district").await?))
    }

    /// A warehouse with W_YTD.
    async fn warehouse_row(&self, id: u32) -> Result<WarehouseRow, Error> {
        let tables = &self.tables;
        if let Some(layout) = self.rows {
            return self.one(layout.warehouse_rows(), &id, "a warehouse").await;
        }
        let ytd = self.sum(tables.warehouse_ytd, &id).await?;
        Ok((ytd, self.one(tables.warehouses, &id, "a warehouse").await?))
    }

    async fn district(&self, id: DistrictId) -> Result<DistrictRows, Error> {
        let ((ytd, next_order), row) = self.district_row(id).await?;
        let (tables, prefix) = (&self.tables, &id.encoded());
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

    /// A warehouse, with what never changes of its stock.
    async fn warehouse(
        &self,
        id: u32,
        infos: Rows<StockId, StockInfo>,
    ) -> Result<WarehouseRows, Error> {
        let counts = self.all(self.tables.stock.raw().typed(), &id.encoded()).await?;
        let infos: std::collections::BTreeMap<_, _> = infos.into_iter().collect();
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
        (layout, holder): (&Layout, u32),
        wrong: &mut Complaints,
    ) -> Result<(), Error> {
        let infos = self.all(layout.stock_infos, &holder.encoded()).await?;
        let all = scale.all_warehouses();
        let all = all.flat_map(|warehouse| {
            (1..=scale.items).map(move |item| (holder, StockId { warehouse, item }))
        });
        let as_loaded = |id: (u32, StockId)| (id, first::stock(id.1).info());
        if !infos.into_iter().eq(all.map(as_loaded)) {
            wrong.add(|| format!("stock of others at {holder}"));
        }
        let names = self.all(layout.name_copies, &holder.encoded()).await?;
        let others = scale.all_warehouses().filter(|warehouse| *warehouse != holder);
        let districts = others.flat_map(|warehouse| scale.districts_of(warehouse));
        let mut loaded: Vec<_> = districts.flat_map(|district| names_of(scale, district)).collect();
        loaded.sort_unstable();
        if !names.into_iter().map(|((_, name), ())| name).eq(loaded) {
            wrong.add(|| format!("names of others at {holder}"));
        }
        Ok(())
    }

    /// What a repository has of that which is everywhere is what was loaded.
    async fn everywhere(
        &self,
        scale: &Scale,
        halves: TypedSpace<StockId, StockInfo>,
        at: &Place,
        wrong: &mut Complaints,
    ) -> Result<(), Error> {
        let (tables, all) = (&self.tables, &SmallBytes::EMPTY);
        let items = self.all_at(tables.items, at, all).await?;
        let item = |item| (ItemId { warehouse: 0, item }, first::item(item));
        if !items.into_iter().eq((1..=scale.items).map(item)) {
            wrong.add(|| format!("items at {at:?}"));
        }
        let infos = self.all_at(halves, at, all).await?;
        let stock = |warehouse| (1..=scale.items).map(move |item| StockId { warehouse, item });
        let loaded = scale.all_warehouses().flat_map(stock);
        if !infos.into_iter().eq(loaded.map(|id| (id, first::stock(id).info()))) {
            wrong.add(|| format!("stock at {at:?}"));
        }
        let names = self.all_at(tables.customer_names, at, all).await?;
        let districts = scale.all_warehouses().flat_map(|warehouse| scale.districts_of(warehouse));
        let mut loaded: Vec<_> = districts.flat_map(|district| names_of(scale, district)).collect();
        loaded.sort_unstable();
        if !names.into_iter().map(|(name, ())| name).eq(loaded) {
            wrong.add(|| format!("names at {at:?}"));
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
