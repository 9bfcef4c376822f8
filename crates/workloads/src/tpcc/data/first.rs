//! The rows that are there at first: each a function of its key alone, so that whoever checks the
//! database knows what it began with.

use crate::chance::Chance;
use crate::tpcc::draws::{self, When, data, digits, text};
use crate::tpcc::ids::{CustomerId, DistrictId, LineId, StockId};
use crate::tpcc::rows::{
    AddressColumns, Credit, Customer, DISTRICT_INFO, District, Item, Order, OrderLine, Payment,
    Stock, Warehouse,
};
use crate::tpcc::scale::{FIRST_PAYMENT, Scale};

/// C_BALANCE, C_YTD_PAYMENT and C_PAYMENT_CNT at first.
pub(in crate::tpcc) const ACCOUNT: [i64; 3] = [-FIRST_PAYMENT, FIRST_PAYMENT, 1];

/// The dearest line of an order that is there at first.
const FIRST_AMOUNT_MAX: u64 = 999_999;

/// The tables, to draw rows of different ones from different streams.
#[derive(Clone, Copy)]
enum FirstTable {
    Warehouse = 1,
    District,
    Customer,
    History,
    Order,
    OrderLine,
    Stock,
    Item,
    OrdersOfDistrict,
}

/// The chance of a row.
fn chance(table: FirstTable, place: u64, number: u32, part: u32) -> Chance {
    Chance::new(place << 8 | table as u64, number, part)
}

fn of_district(district: DistrictId) -> u64 {
    u64::from(district.warehouse) << 8 | u64::from(district.number)
}

fn address(chance: &mut Chance) -> AddressColumns {
    AddressColumns {
        street_1: text(10, 20, chance),
        street_2: text(10, 20, chance),
        city: text(10, 20, chance),
        state: text(2, 2, chance),
        zip: digits(4, chance) + "11111",
    }
}

pub(in crate::tpcc) fn warehouse(number: u32) -> Warehouse {
    let chance = &mut chance(FirstTable::Warehouse, number.into(), 0, 0);
    let (name, address) = (text(6, 10, chance), address(chance));
    Warehouse { name, address, tax: chance.between(0, 2000) as u16 }
}

pub(in crate::tpcc) fn district(id: DistrictId) -> District {
    let chance = &mut chance(FirstTable::District, of_district(id), 0, 0);
    let (name, address) = (text(6, 10, chance), address(chance));
    District { name, address, tax: chance.between(0, 2000) as u16 }
}

pub(in crate::tpcc) fn customer(scale: &Scale, id: CustomerId) -> Customer {
    let chance = &mut chance(FirstTable::Customer, of_district(id.district), id.number, 0);
    let names = scale.names();
    let name = match id.number {
        first if first <= names => first - 1,
        _ => draws::name(names, When::Load, chance),
    };
    Customer {
        first: text(8, 16, chance),
        middle: "OE".to_owned(),
        last: draws::last_name(name),
        address: address(chance),
        phone: digits(16, chance),
        since: 0,
        credit: if chance.percent(10.0) { Credit::Bad } else { Credit::Good },
        credit_limit: 5_000_000,
        discount: chance.between(0, 5000) as u16,
        balance: -FIRST_PAYMENT,
        ytd_payment: FIRST_PAYMENT,
        payments: 1,
        deliveries: 0,
        data: text(300, 500, chance),
    }
}

pub(in crate::tpcc) fn payment(customer: CustomerId) -> Payment {
    let chance =
        &mut chance(FirstTable::History, of_district(customer.district), customer.number, 0);
    Payment { customer, date: 0, amount: FIRST_PAYMENT, data: text(12, 24, chance) }
}

/// The customers of a district's orders, the first one's first: all of them before one comes
/// twice.
pub(in crate::tpcc) fn customers_of_orders(scale: &Scale, district: DistrictId) -> Vec<u32> {
    let chance = &mut chance(FirstTable::OrdersOfDistrict, of_district(district), 0, 0);
    let mut all: Vec<u32> = (1..=scale.customers).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, chance.below(at as u64 + 1) as usize);
    }
    all.into_iter().cycle().take(scale.orders as usize).collect()
}

pub(in crate::tpcc) fn order(
    scale: &Scale,
    district: DistrictId,
    number: u32,
    customer: u32,
) -> Order {
    let chance = &mut chance(FirstTable::Order, of_district(district), number, 0);
    let delivered = number < scale.first_pending();
    Order {
        customer,
        entered: 0,
        carrier: delivered.then(|| chance.between(1, 10) as u8),
        lines: chance.between(5, 15) as u8,
        all_local: true,
    }
}

pub(in crate::tpcc) fn order_line(scale: &Scale, id: LineId) -> OrderLine {
    let district = id.order.district;
    let number = id.number.into();
    let chance = &mut chance(FirstTable::OrderLine, of_district(district), id.order.number, number);
    let delivered = id.order.number < scale.first_pending();
    OrderLine {
        item: chance.between(1, scale.items.into()) as u32,
        supplier: district.warehouse,
        delivered: delivered.then_some(0),
        quantity: 5,
        amount: if delivered { 0 } else { chance.between(1, FIRST_AMOUNT_MAX) as i64 },
        district_info: text(DISTRICT_INFO, DISTRICT_INFO, chance),
    }
}

pub(in crate::tpcc) fn stock(id: StockId) -> Stock {
    let chance = &mut chance(FirstTable::Stock, id.warehouse.into(), id.item, 0);
    Stock {
        quantity: chance.between(10, 100) as u8,
        ytd: 0,
        orders: 0,
        remote: 0,
        district_infos: text(10 * DISTRICT_INFO, 10 * DISTRICT_INFO, chance),
        data: data(chance),
    }
}

/// Copies of an item are alike.
pub(in crate::tpcc) fn item(number: u32) -> Item {
    let chance = &mut chance(FirstTable::Item, 0, number, 0);
    Item {
        image: chance.between(1, 10_000) as u32,
        name: text(14, 24, chance),
        price: chance.between(100, 10_000) as i64,
        data: data(chance),
    }
}
