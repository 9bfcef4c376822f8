//! The spaces of the tables, and of the orders in which rows are looked for.

use muesli::{Action, Db, Error, Index, Key, Partitioning, Space, SpaceOptions, TypedSpace};
use muesli_core::SmallBytes;
use serde::{Deserialize, Serialize};

use crate::tpcc::ids::{
    CustomerId, CustomerName, CustomerOrder, DistrictId, ItemId, LineId, OrderId, PaymentId,
    StockId,
};
use crate::tpcc::rows::{Customer, District, Item, Order, OrderLine, Payment, Stock, Warehouse};

/// All spaces of the database.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::tpcc) struct Tables {
    pub warehouses: TypedSpace<u32, Warehouse>,
    pub warehouse_ytd: Sums<u32>,
    pub districts: TypedSpace<DistrictId, District>,
    pub district_ytd: Sums<DistrictId>,
    /// D_NEXT_O_ID.
    pub next_order: TypedSpace<DistrictId, u32>,
    pub customers: TypedSpace<CustomerId, Customer>,
    /// Customers by last name; never changes after the load.
    pub customer_names: TypedSpace<CustomerName, ()>,
    pub history: TypedSpace<PaymentId, Payment>,
    pub orders: TypedSpace<OrderId, Order>,
    /// Orders by their customers, the newest one last.
    pub customer_orders: TypedSpace<CustomerOrder, ()>,
    pub new_orders: TypedSpace<OrderId, ()>,
    pub order_lines: TypedSpace<LineId, OrderLine>,
    pub stock: TypedSpace<StockId, Stock>,
    pub items: TypedSpace<ItemId, Item>,
}

pub(in crate::tpcc) const WAREHOUSES: &str = "warehouse";
pub(in crate::tpcc) const WAREHOUSE_YTD: &str = "warehouse-ytd";
pub(in crate::tpcc) const DISTRICTS: &str = "district";
pub(in crate::tpcc) const DISTRICT_YTD: &str = "district-ytd";
pub(in crate::tpcc) const NEXT_ORDER: &str = "district-next-order";
pub(in crate::tpcc) const CUSTOMERS: &str = "customer";
pub(in crate::tpcc) const CUSTOMER_NAMES: &str = "customer-name";
pub(in crate::tpcc) const HISTORY: &str = "history";
pub(in crate::tpcc) const ORDERS: &str = "order";
pub(in crate::tpcc) const CUSTOMER_ORDERS: &str = "customer-order";
pub(in crate::tpcc) const NEW_ORDERS: &str = "new-order";
pub(in crate::tpcc) const ORDER_LINES: &str = "order-line";
pub(in crate::tpcc) const STOCK: &str = "stock";
pub(in crate::tpcc) const ITEMS: &str = "item";

const ACCOUNTS: &str = "customer-account";

/// All spaces by name; `rows` is the rule of those whose keys begin with a warehouse, `of_scanned`
/// of those whose keys begin with a district and that transactions scan; and `items_by_warehouse`
/// says whether items are among the first.
pub(in crate::tpcc) fn spaces(
    rows: &Partitioning,
    of_scanned: &Partitioning,
    items_by_warehouse: bool,
) -> Vec<(&'static str, SpaceOptions)> {
    let space = |name, index, partitioning: &Partitioning| {
        (name, SpaceOptions { index, partitioning: partitioning.clone() })
    };
    let looked_up = [WAREHOUSES, WAREHOUSE_YTD, DISTRICTS, DISTRICT_YTD, NEXT_ORDER];
    let scanned = [CUSTOMER_NAMES, CUSTOMER_ORDERS, NEW_ORDERS, ORDER_LINES];
    // What is only scanned by the checks is in order, too: they read page after page.
    let checked = [CUSTOMERS, HISTORY, ORDERS, STOCK];
    let of_items = if items_by_warehouse { rows } else { &Partitioning::Hash };
    let looked_up = looked_up.into_iter().map(|name| space(name, Index::Hash, rows));
    let scanned = scanned.into_iter().map(|name| space(name, Index::Ordered, of_scanned));
    let checked = checked.into_iter().map(|name| space(name, Index::Ordered, rows));
    let items = [space(ITEMS, Index::Ordered, of_items)];
    looked_up.chain(scanned).chain(checked).chain(items).collect()
}

impl Tables {
    /// Those of a database that has the spaces.
    ///
    /// # Errors
    /// It does not have them.
    pub fn of(db: &Db) -> Result<Tables, Error> {
        Ok(Tables {
            warehouses: db.space(WAREHOUSES)?.typed(),
            warehouse_ytd: Sums::new(db.space(WAREHOUSE_YTD)?),
            districts: db.space(DISTRICTS)?.typed(),
            district_ytd: Sums::new(db.space(DISTRICT_YTD)?),
            next_order: db.space(NEXT_ORDER)?.typed(),
            customers: db.space(CUSTOMERS)?.typed(),
            customer_names: db.space(CUSTOMER_NAMES)?.typed(),
            history: db.space(HISTORY)?.typed(),
            orders: db.space(ORDERS)?.typed(),
            customer_orders: db.space(CUSTOMER_ORDERS)?.typed(),
            new_orders: db.space(NEW_ORDERS)?.typed(),
            order_lines: db.space(ORDER_LINES)?.typed(),
            stock: db.space(STOCK)?.typed(),
            items: db.space(ITEMS)?.typed(),
        })
    }
}

/// Sums of money that many add to and few look at, as eight bytes that [`Action::add`] knows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(in crate::tpcc) struct Sums<K> {
    space: Space,
    keys: std::marker::PhantomData<fn(K)>,
}

impl<K> Clone for Sums<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Sums<K> {}

impl<K: Key> Sums<K> {
    fn new(space: Space) -> Sums<K> {
        Sums { space, keys: std::marker::PhantomData }
    }

    /// The space.
    pub fn raw(self) -> Space {
        self.space
    }

    /// A sum as it is stored.
    pub fn encode(sum: i64) -> SmallBytes {
        SmallBytes::new(&sum.to_le_bytes())
    }

    /// A sum from how it is stored.
    pub fn decode(value: &SmallBytes) -> Option<i64> {
        value.as_slice().try_into().ok().map(i64::from_le_bytes)
    }

    /// Reads a sum.
    ///
    /// # Errors
    /// As [`muesli::Tx::get`]; [`Error::Codec`] where there is none.
    pub async fn get(self, tx: &muesli::Tx, key: &K) -> Result<i64, Error> {
        let value = tx.get(self.space, key.encoded()).await?;
        let missing = || Error::Codec("a sum is missing".to_owned());
        value.as_ref().and_then(Self::decode).ok_or_else(missing)
    }

    /// Adds to a sum: unread, as the transaction commits, or by reading and writing it.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`muesli::Tx::put`].
    pub async fn add(
        self,
        tx: &muesli::Tx,
        key: &K,
        amount: i64,
        delayed: bool,
    ) -> Result<(), Error> {
        if delayed {
            return tx.defer(self.space, key.encoded(), Action::add(amount)).await;
        }
        let sum = self.get(tx, key).await? + amount;
        tx.put(self.space, key.encoded(), Self::encode(sum)).await
    }
}

/// What customers have paid and owe, where that is apart from their rows: C_BALANCE,
/// C_YTD_PAYMENT and C_PAYMENT_CNT, as three numbers that [`Action::add_all`] knows.
#[derive(Clone, Copy, Debug)]
pub(in crate::tpcc) struct Accounts(Space);

impl Accounts {
    /// The space, by the rule of rows whose keys begin with a warehouse.
    pub fn space(rows: &Partitioning) -> (&'static str, SpaceOptions) {
        (ACCOUNTS, SpaceOptions { index: Index::Hash, partitioning: rows.clone() })
    }

    /// Those of a database that has the space.
    ///
    /// # Errors
    /// It has not.
    pub fn of(db: &Db) -> Result<Accounts, Error> {
        Ok(Accounts(db.space(ACCOUNTS)?))
    }

    /// The space.
    pub fn raw(self) -> Space {
        self.0
    }

    /// An account as it is stored.
    pub fn encode(account: [i64; 3]) -> SmallBytes {
        account.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    /// Reads accounts.
    ///
    /// # Errors
    /// As [`muesli::Tx::get_many`]; [`Error::Codec`] where there is none.
    pub async fn get_many(
        self,
        tx: &muesli::Tx,
        ids: &[CustomerId],
    ) -> Result<Vec<[i64; 3]>, Error> {
        let values = tx.get_many(self.0, ids.iter().map(Key::encoded)).await?;
        let account = |(id, value): (&CustomerId, &Option<SmallBytes>)| {
            let numbers = value.as_ref().map(|value| value.as_slice().as_chunks::<8>().0);
            let numbers: Option<&[_; 3]> = numbers.and_then(|numbers| numbers.try_into().ok());
            let missing = || Error::Codec(format!("{id:?} has no account"));
            Ok(numbers.ok_or_else(missing)?.map(i64::from_le_bytes))
        };
        ids.iter().zip(&values).map(account).collect()
    }

    /// Adds to an account: unread, as the transaction commits, or by reading and writing it.
    ///
    /// # Errors
    /// As [`get_many`](Self::get_many) and [`muesli::Tx::put`].
    pub async fn add(
        self,
        tx: &muesli::Tx,
        id: &CustomerId,
        by: [i64; 3],
        delayed: bool,
    ) -> Result<(), Error> {
        if delayed {
            return tx.defer(self.0, id.encoded(), Action::add_all(&by)).await;
        }
        let mut account = self.get_many(tx, &[*id]).await?[0];
        account.iter_mut().zip(by).for_each(|(number, by)| *number += by);
        tx.put(self.0, id.encoded(), Self::encode(account)).await
    }
}
