//! Writes the rows that are there at first, several pieces of the database side by side.

use futures_util::stream::{self, TryStreamExt};
use muesli::{Db, Error, Key, SmallBytes, Space, TypedSpace};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::loading::{SIDE_BY_SIDE, put_missing, write_missing};
use crate::tpcc::first;
use crate::tpcc::ids::{
    CustomerId, CustomerName, CustomerOrder, DistrictId, ItemId, LineId, OrderId, PaymentId,
    StockId,
};
use crate::tpcc::layout::Layout;
use crate::tpcc::rows::{Order, StockInfo};
use crate::tpcc::scale::Scale;
use crate::tpcc::tables::{Accounts, Sums, Tables};

/// Items, or rows of stock, of a piece.
const ITEMS_A_PIECE: u32 = 2_000;

/// A part of the database that is written in one go.
#[derive(Clone, Copy, Debug)]
enum LoadPiece {
    Warehouse(u32),
    District(DistrictId),
    /// Rows of stock of a warehouse, from this item on.
    Stock(u32, u32),
    /// Items of a warehouse's copy, or of the shared one (0), from this one on.
    Items(u32, u32),
}

/// Writes all rows that are missing.
///
/// # Errors
/// What the database says.
pub(in crate::tpcc) async fn load(db: &Db, scale: &Scale) -> Result<(), Error> {
    let tables = Tables::of(db)?;
    let loader = &Loader { db, scale, tables, copies: ConstantRows::None };
    let pieces = stream::iter(pieces(scale).into_iter().map(Ok));
    pieces.try_for_each_concurrent(SIDE_BY_SIDE, |piece| loader.write(piece)).await
}

/// Where what never changes is, that is needed at other warehouses.
#[derive(Clone, Copy, Debug)]
pub(in crate::tpcc) enum ConstantRows {
    /// Where the rest of its rows is; rows are written by transactions, else by procedures.
    None,
    /// Each warehouse has a copy.
    OfEach(Layout),
    /// Everywhere; this is the half of stock that never changes.
    Everywhere(TypedSpace<StockId, StockInfo>),
}

impl ConstantRows {
    fn of_each(self) -> Option<Layout> {
        match self {
            ConstantRows::OfEach(layout) => Some(layout),
            ConstantRows::None | ConstantRows::Everywhere(_) => None,
        }
    }
}

/// The same by procedures, with what each warehouse needs of the others.
///
/// # Errors
/// What the database says.
pub(in crate::tpcc) async fn load_with_copies(
    db: &Db,
    scale: &Scale,
    copies: ConstantRows,
) -> Result<(), Error> {
    let loader = &Loader { db, scale, tables: Tables::of(db)?, copies };
    let pieces = stream::iter(pieces(scale).into_iter().map(Ok));
    pieces.try_for_each_concurrent(SIDE_BY_SIDE, |piece| loader.write(piece)).await
}

fn pieces(scale: &Scale) -> Vec<LoadPiece> {
    let runs = || (1..=scale.items).step_by(ITEMS_A_PIECE as usize);
    let mut pieces = Vec::new();
    if !scale.item_copies {
        pieces.extend(runs().map(|from| LoadPiece::Items(0, from)));
    }
    for warehouse in scale.all_warehouses() {
        pieces.push(LoadPiece::Warehouse(warehouse));
        if scale.item_copies {
            pieces.extend(runs().map(|from| LoadPiece::Items(warehouse, from)));
        }
        pieces.extend(runs().map(|from| LoadPiece::Stock(warehouse, from)));
        pieces.extend(scale.districts_of(warehouse).map(LoadPiece::District));
    }
    pieces
}

struct Loader<'a> {
    db: &'a Db,
    scale: &'a Scale,
    tables: Tables,
    copies: ConstantRows,
}

/// A row as it is stored.
type Stored = (SmallBytes, SmallBytes);

fn stored<K: Key, V: Serialize + DeserializeOwned>(
    _: TypedSpace<K, V>,
    key: &K,
    value: &V,
) -> Stored {
    (key.encoded(), TypedSpace::<K, V>::encode(value).expect("rows can be serialized"))
}

impl Loader<'_> {
    async fn write(&self, piece: LoadPiece) -> Result<(), Error> {
        match piece {
            LoadPiece::Warehouse(number) => self.warehouse(number).await,
            LoadPiece::District(id) => self.district(id).await,
            LoadPiece::Stock(warehouse, from) => self.stock(warehouse, from).await,
            LoadPiece::Items(warehouse, from) => {
                let row = |item| {
                    stored(self.tables.items, &ItemId { warehouse, item }, &first::item(item))
                };
                self.rows(self.tables.items.raw(), self.run(from).map(row)).await
            }
        }
    }

    fn run(&self, from: u32) -> std::ops::RangeInclusive<u32> {
        from..=self.scale.items.min(from + ITEMS_A_PIECE - 1)
    }

    async fn rows(&self, space: Space, rows: impl Iterator<Item = Stored>) -> Result<(), Error> {
        match self.copies {
            ConstantRows::None => write_missing(self.db, space, rows).await,
            ConstantRows::OfEach(_) | ConstantRows::Everywhere(_) => {
                put_missing(self.db, space, rows).await
            }
        }
    }

    async fn stock(&self, warehouse: u32, from: u32) -> Result<(), Error> {
        let id = |item| StockId { warehouse, item };
        if let ConstantRows::None = self.copies {
            let row = |item| stored(self.tables.stock, &id(item), &first::stock(id(item)));
            return self.rows(self.tables.stock.raw(), self.run(from).map(row)).await;
        }
        let stock = self.tables.stock.raw().typed();
        let row = |item| stored(stock, &id(item), &first::stock(id(item)).count());
        self.rows(stock.raw(), self.run(from).map(row)).await?;
        if let ConstantRows::Everywhere(halves) = self.copies {
            let row = |item| stored(halves, &id(item), &first::stock(id(item)).info());
            return self.rows(halves.raw(), self.run(from).map(row)).await;
        }
        let Some(layout) = self.copies.of_each() else { return Ok(()) };
        for holder in self.scale.all_warehouses() {
            let infos = layout.stock_infos;
            let row = |item| stored(infos, &(holder, id(item)), &first::stock(id(item)).info());
            self.rows(infos.raw(), self.run(from).map(row)).await?;
        }
        Ok(())
    }

    async fn warehouse(&self, number: u32) -> Result<(), Error> {
        let Loader { tables, scale, .. } = self;
        let (row, ytd) = (first::warehouse(number), scale.first_ytd() * i64::from(scale.districts));
        if let Some(layout) = self.copies.of_each().filter(|layout| layout.rows) {
            let row = stored(layout.warehouse_rows(), &number, &(ytd, row));
            return self.rows(tables.warehouses.raw(), [row].into_iter()).await;
        }
        let row = stored(tables.warehouses, &number, &row);
        self.rows(tables.warehouses.raw(), [row].into_iter()).await?;
        let ytd = (number.encoded(), Sums::<u32>::encode(ytd));
        self.rows(tables.warehouse_ytd.raw(), [ytd].into_iter()).await
    }

    async fn district(&self, id: DistrictId) -> Result<(), Error> {
        self.district_row(id).await?;
        self.customers(id).await?;
        self.orders(id).await
    }

    async fn district_row(&self, id: DistrictId) -> Result<(), Error> {
        let Loader { tables, scale, .. } = self;
        let (row, ytd, next) = (first::district(id), scale.first_ytd(), scale.orders + 1);
        if let Some(layout) = self.copies.of_each().filter(|layout| layout.rows) {
            let row = stored(layout.district_rows(), &id, &((ytd, next), row));
            return self.rows(tables.districts.raw(), [row].into_iter()).await;
        }
        let row = stored(tables.districts, &id, &row);
        self.rows(tables.districts.raw(), [row].into_iter()).await?;
        let ytd = (id.encoded(), Sums::<DistrictId>::encode(ytd));
        self.rows(tables.district_ytd.raw(), [ytd].into_iter()).await?;
        let next = stored(tables.next_order, &id, &next);
        self.rows(tables.next_order.raw(), [next].into_iter()).await
    }

    async fn customers(&self, district: DistrictId) -> Result<(), Error> {
        let Loader { tables, scale, .. } = self;
        let customers = || (1..=scale.customers).map(|number| district.customer(number));
        let row = |id| stored(tables.customers, &id, &first::customer(scale, id));
        self.rows(tables.customers.raw(), customers().map(row)).await?;
        if scale.balance_apart {
            let account = |id: CustomerId| (id.encoded(), Accounts::encode(first::ACCOUNT));
            let accounts = Accounts::of(self.db)?.raw();
            self.rows(accounts, customers().map(account)).await?;
        }
        let name = |id| {
            let row = first::customer(scale, id);
            let (last, first, customer) = (row.last, row.first, id.number);
            stored(tables.customer_names, &CustomerName { district, last, first, customer }, &())
        };
        self.rows(tables.customer_names.raw(), customers().map(name)).await?;
        if let Some(layout) = self.copies.of_each() {
            self.name_copies(layout, district).await?;
        }
        let payment = |id| {
            let (payment, sequence) = (first::payment(id), id.number.into());
            stored(tables.history, &PaymentId { district, writer: 0, sequence }, &payment)
        };
        self.rows(tables.history.raw(), customers().map(payment)).await
    }

    /// Every other warehouse finds the district's customers by their names, too.
    async fn name_copies(&self, layout: Layout, district: DistrictId) -> Result<(), Error> {
        let copies = layout.name_copies;
        for holder in self.scale.all_warehouses().filter(|it| *it != district.warehouse) {
            let name = |number| {
                let row = first::customer(self.scale, district.customer(number));
                let (last, first) = (row.last, row.first);
                let name = CustomerName { district, last, first, customer: number };
                stored(copies, &(holder, name), &())
            };
            self.rows(copies.raw(), (1..=self.scale.customers).map(name)).await?;
        }
        Ok(())
    }

    async fn orders(&self, district: DistrictId) -> Result<(), Error> {
        let Loader { tables, scale, .. } = self;
        let customers = first::customers_of_orders(scale, district);
        let orders = || {
            let number_and_customer = (1..=scale.orders).zip(&customers);
            number_and_customer.map(|(number, customer)| {
                (district.order(number), first::order(scale, district, number, *customer))
            })
        };
        let row = |(id, order)| stored(tables.orders, &id, &order);
        self.rows(tables.orders.raw(), orders().map(row)).await?;
        let by_customer = |(id, order): (OrderId, Order)| {
            let customer = district.customer(order.customer);
            let id = CustomerOrder { customer, order: id.number };
            stored(tables.customer_orders, &id, &())
        };
        self.rows(tables.customer_orders.raw(), orders().map(by_customer)).await?;
        let pending = (scale.first_pending()..=scale.orders).map(|number| district.order(number));
        let row = |id| stored(tables.new_orders, &id, &());
        self.rows(tables.new_orders.raw(), pending.map(row)).await?;
        let lines = orders()
            .flat_map(|(order, row)| (1..=row.lines).map(move |number| LineId { order, number }));
        let row = |id| stored(tables.order_lines, &id, &first::order_line(scale, id));
        self.rows(tables.order_lines.raw(), lines.map(row)).await
    }
}
