//! Reads the whole database in one snapshot, page after page, and hands it on in pieces.

use muesli::{Db, Error, Key, KeyRange, Range, SmallBytes, Tx, TypedSpace};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ids::{
    CustomerId, CustomerName, CustomerOrder, DistrictId, ItemId, LineId, OrderId, PaymentId,
    StockId,
};
use super::rows::{Customer, District, Item, Order, OrderLine, Payment, Stock, Warehouse};
use super::scale::Scale;
use super::tables::{Accounts, Tables};
use super::terminal::there;

/// Rows of a table, by their keys.
pub(super) type Rows<K, V> = Vec<(K, V)>;

/// A district with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DistrictRows {
    pub id: DistrictId,
    pub row: District,
    pub ytd: i64,
    pub next_order: u32,
    pub customers: Rows<CustomerId, Customer>,
    pub customer_names: Vec<CustomerName>,
    pub history: Rows<PaymentId, Payment>,
    pub orders: Rows<OrderId, Order>,
    pub customer_orders: Vec<CustomerOrder>,
    pub new_orders: Vec<OrderId>,
    pub order_lines: Rows<LineId, OrderLine>,
}

/// A warehouse, without its districts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WarehouseRows {
    pub id: u32,
    pub row: Warehouse,
    pub ytd: i64,
    pub stock: Rows<StockId, Stock>,
}

/// Who looks at the pieces: all districts come before the first warehouse.
pub(super) trait Surveyor {
    fn district(&mut self, rows: &DistrictRows);
    fn warehouse(&mut self, rows: &WarehouseRows);
    /// Items of a copy, as many as the table has.
    fn items(&mut self, rows: &Rows<ItemId, Item>);
}

/// Shows everything to surveyors made by `begin`, one for each attempt; the last one.
///
/// # Errors
/// What the database says.
pub(super) async fn survey<S: Surveyor>(
    db: &Db,
    scale: &Scale,
    begin: impl Fn() -> S,
) -> Result<S, Error> {
    let (tables, strict) = (&Tables::of(db)?, db.strict().read_only());
    let accounts = scale.balance_apart.then(|| Accounts::of(db)).transpose()?;
    let begin = &begin;
    let show = async |tx: &Tx| {
        let mut surveyor = begin();
        for warehouse in scale.all_warehouses() {
            for id in scale.districts_of(warehouse) {
                let mut rows = read_district(tx, tables, id).await?;
                if let Some(accounts) = accounts {
                    join_accounts(tx, accounts, &mut rows.customers).await?;
                }
                surveyor.district(&rows);
            }
        }
        for warehouse in scale.all_warehouses() {
            surveyor.warehouse(&read_warehouse(tx, tables, warehouse).await?);
        }
        surveyor.items(&read_all(tx, tables.items, &SmallBytes::EMPTY).await?);
        Ok(surveyor)
    };
    strict.transact_here(show).await
}

pub(super) async fn read_district(
    tx: &Tx,
    tables: &Tables,
    id: DistrictId,
) -> Result<DistrictRows, Error> {
    let prefix = &id.encoded();
    let names = read_all(tx, tables.customer_names, prefix).await?;
    let customer_orders = read_all(tx, tables.customer_orders, prefix).await?;
    let new_orders = read_all(tx, tables.new_orders, prefix).await?;
    Ok(DistrictRows {
        id,
        row: there(tables.districts.get(tx, &id).await?, "a district")?,
        ytd: tables.district_ytd.get(tx, &id).await?,
        next_order: there(tables.next_order.get(tx, &id).await?, "D_NEXT_O_ID")?,
        customers: read_all(tx, tables.customers, prefix).await?,
        customer_names: names.into_iter().map(|(name, ())| name).collect(),
        history: read_all(tx, tables.history, prefix).await?,
        orders: read_all(tx, tables.orders, prefix).await?,
        customer_orders: customer_orders.into_iter().map(|(id, ())| id).collect(),
        new_orders: new_orders.into_iter().map(|(id, ())| id).collect(),
        order_lines: read_all(tx, tables.order_lines, prefix).await?,
    })
}

/// Shows customers with what they have paid and owe, which lies apart.
async fn join_accounts(
    tx: &Tx,
    accounts: Accounts,
    customers: &mut Rows<CustomerId, Customer>,
) -> Result<(), Error> {
    let ids: Vec<CustomerId> = customers.iter().map(|(id, _)| *id).collect();
    let found = accounts.get_many(tx, &ids).await?;
    for ((_, row), [balance, ytd_payment, payments]) in customers.iter_mut().zip(found) {
        (row.balance, row.ytd_payment, row.payments) = (balance, ytd_payment, payments as u32);
    }
    Ok(())
}

async fn read_warehouse(tx: &Tx, tables: &Tables, id: u32) -> Result<WarehouseRows, Error> {
    Ok(WarehouseRows {
        id,
        row: there(tables.warehouses.get(tx, &id).await?, "a warehouse")?,
        ytd: tables.warehouse_ytd.get(tx, &id).await?,
        stock: read_all(tx, tables.stock, &id.encoded()).await?,
    })
}

/// All rows whose keys begin like this.
async fn read_all<K: Key, V: Serialize + DeserializeOwned>(
    tx: &Tx,
    space: TypedSpace<K, V>,
    prefix: &SmallBytes,
) -> Result<Rows<K, V>, Error> {
    let mut found = space.rows(tx, KeyRange::encoded(Range::prefix(prefix)));
    let mut rows: Rows<K, V> = Vec::new();
    while let Some(row) = found.next().await? {
        rows.push(row);
    }
    Ok(rows)
}
