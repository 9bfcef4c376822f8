//! The tables as plans name them, and the spaces that those need.

use std::sync::Arc;

use muesli::plans::{PlanTable, TableUnit};
use muesli::{Db, Error, Index, SpaceOptions, TypedSpace, UnitMap};

use crate::tpcc::ids::StockId;
use crate::tpcc::layout::STOCK_INFOS;
use crate::tpcc::rows::{
    Customer, District, Item, Order, OrderLine, Payment, StockCount, StockInfo, Warehouse,
};
use crate::tpcc::tables;

/// What the units are.
const WAREHOUSE: &str = "warehouse";

/// A sum of money, as [`Sums`](tables::Sums) stores it.
pub(in crate::tpcc) type StoredSum = [u8; 8];

pub(in crate::tpcc) const WAREHOUSES: PlanTable<(u32,), Warehouse> =
    PlanTable::by_unit(tables::WAREHOUSES, WAREHOUSE, 1);
pub(in crate::tpcc) const WAREHOUSE_YTD: PlanTable<(u32,), StoredSum> =
    PlanTable::by_unit(tables::WAREHOUSE_YTD, WAREHOUSE, 1);
/// By warehouse and number, as all of a district.
pub(in crate::tpcc) const DISTRICTS: PlanTable<(u32, u8), District> =
    PlanTable::by_unit(tables::DISTRICTS, WAREHOUSE, 1);
pub(in crate::tpcc) const DISTRICT_YTD: PlanTable<(u32, u8), StoredSum> =
    PlanTable::by_unit(tables::DISTRICT_YTD, WAREHOUSE, 1);
pub(in crate::tpcc) const NEXT_ORDER: PlanTable<(u32, u8), u32> =
    PlanTable::by_unit(tables::NEXT_ORDER, WAREHOUSE, 1);
pub(in crate::tpcc) const CUSTOMERS: PlanTable<(u32, u8, u32), Customer> =
    PlanTable::by_unit(tables::CUSTOMERS, WAREHOUSE, 1);
/// By the district that was paid, the writer, and the number that it gave.
pub(in crate::tpcc) const HISTORY: PlanTable<(u32, u8, u32, u64), Payment> =
    PlanTable::by_unit(tables::HISTORY, WAREHOUSE, 1);
pub(in crate::tpcc) const ORDERS: PlanTable<(u32, u8, u32), Order> =
    PlanTable::by_unit(tables::ORDERS, WAREHOUSE, 1);
/// By customer and order.
pub(in crate::tpcc) const CUSTOMER_ORDERS: PlanTable<(u32, u8, u32, u32), ()> =
    PlanTable::by_unit(tables::CUSTOMER_ORDERS, WAREHOUSE, 1);
pub(in crate::tpcc) const NEW_ORDERS: PlanTable<(u32, u8, u32), ()> =
    PlanTable::by_unit(tables::NEW_ORDERS, WAREHOUSE, 1);
/// By order and place in it.
pub(in crate::tpcc) const ORDER_LINES: PlanTable<(u32, u8, u32, u8), OrderLine> =
    PlanTable::by_unit(tables::ORDER_LINES, WAREHOUSE, 1);
pub(in crate::tpcc) const STOCK: PlanTable<(u32, u32), StockCount> =
    PlanTable::by_unit(tables::STOCK, WAREHOUSE, 1);
/// By district, last name, first name and number.
pub(in crate::tpcc) const CUSTOMER_NAMES: PlanTable<(u32, u8, String, String, u32), ()> =
    PlanTable::everywhere(tables::CUSTOMER_NAMES);
/// What never changes of stock.
pub(in crate::tpcc) const STOCK_HALVES: PlanTable<(u32, u32), StockInfo> =
    PlanTable::everywhere(STOCK_INFOS);
/// By the number of the copy, of which there is one, and the item.
pub(in crate::tpcc) const ITEMS: PlanTable<(u32, u32), Item> = PlanTable::everywhere(tables::ITEMS);

/// The tables: by what their rows are placed, what the values of their keys' columns are, and how
/// many of these are named by all that touches them.
pub const COLUMNS: &[(&str, TableUnit, &[&str], u16)] = &[
    (WAREHOUSES.name, WAREHOUSES.unit, &["warehouse"], 1),
    (WAREHOUSE_YTD.name, WAREHOUSE_YTD.unit, &["warehouse"], 1),
    (DISTRICTS.name, DISTRICTS.unit, &["warehouse", "district"], 2),
    (DISTRICT_YTD.name, DISTRICT_YTD.unit, &["warehouse", "district"], 2),
    (NEXT_ORDER.name, NEXT_ORDER.unit, &["warehouse", "district"], 2),
    (CUSTOMERS.name, CUSTOMERS.unit, &["warehouse", "district", "customer"], 3),
    (HISTORY.name, HISTORY.unit, &["warehouse", "district", "writer", "payment"], 4),
    (ORDERS.name, ORDERS.unit, &["warehouse", "district", "order"], 3),
    (
        CUSTOMER_ORDERS.name,
        CUSTOMER_ORDERS.unit,
        &["warehouse", "district", "customer", "order"],
        3,
    ),
    (NEW_ORDERS.name, NEW_ORDERS.unit, &["warehouse", "district", "order"], 2),
    (ORDER_LINES.name, ORDER_LINES.unit, &["warehouse", "district", "order", "line"], 2),
    (STOCK.name, STOCK.unit, &["warehouse", "item"], 2),
    (
        CUSTOMER_NAMES.name,
        CUSTOMER_NAMES.unit,
        &["warehouse", "district", "last", "first", "customer"],
        3,
    ),
    (STOCK_HALVES.name, STOCK_HALVES.unit, &["warehouse", "item"], 2),
    (ITEMS.name, ITEMS.unit, &["copy", "item"], 2),
];

/// All spaces by name, where a map says which warehouses are in which partition.
pub(in crate::tpcc) fn spaces(map: &Arc<UnitMap>) -> Vec<(&'static str, SpaceOptions)> {
    let index = Index::Ordered;
    vec![
        WAREHOUSES.space(Index::Hash, map),
        WAREHOUSE_YTD.space(Index::Hash, map),
        DISTRICTS.space(Index::Hash, map),
        DISTRICT_YTD.space(Index::Hash, map),
        NEXT_ORDER.space(Index::Hash, map),
        CUSTOMERS.space(index, map),
        HISTORY.space(index, map),
        ORDERS.space(index, map),
        CUSTOMER_ORDERS.space(index, map),
        NEW_ORDERS.space(index, map),
        ORDER_LINES.space(index, map),
        STOCK.space(index, map),
        CUSTOMER_NAMES.space(index, map),
        STOCK_HALVES.space(index, map),
        ITEMS.space(index, map),
    ]
}

/// What never changes of stock, in a database that has it everywhere.
///
/// # Errors
/// It does not have the space.
pub(in crate::tpcc) fn stock_halves(db: &Db) -> Result<TypedSpace<StockId, StockInfo>, Error> {
    Ok(db.space(STOCK_INFOS)?.typed())
}
