//! The checks hold after a load and after runs, and each notices what it is there for.

use std::sync::Arc;
use std::time::Duration;

use muesli::blocking::block_on;
use muesli::{Db, Error, KeyRange, Options, Tx};

use super::ids::{CustomerOrder, DistrictId, ItemId, OrderId, PaymentId, StockId};
use super::tables::Tables;
use super::*;
use crate::embedded::{Embedded, Length};
use crate::tally::Tallies;
use crate::workload::AnyWorkload;

const CLIENTS: u32 = 4;
const PLACE: DistrictId = DistrictId { warehouse: 1, number: 1 };

fn tpcc(given: &str) -> Arc<Tpcc> {
    let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    let values = Values::read("tpcc", PARAMETERS, &given).unwrap();
    Arc::new(Tpcc::new(&values, CLIENTS).unwrap())
}

fn options(workload: &Tpcc, repositories: usize) -> Options {
    let options = Options { repositories, loops: 2, ..Options::default() };
    let spaces = AnyWorkload::spaces(workload, repositories);
    spaces.into_iter().fold(options, |options, (name, space)| options.space(name, space))
}

fn loaded(given: &str) -> (Db, Arc<Tpcc>) {
    let tpcc = tpcc(given);
    let db = Db::open(options(&tpcc, 3)).unwrap();
    let (loader, session) = (tpcc.clone(), db.independent());
    block_on(db.run_on(0, async move || AnyWorkload::load(&*loader, &session).await))
        .unwrap()
        .unwrap();
    (db, tpcc)
}

/// What does not hold.
fn broken(db: &Db, tpcc: &Arc<Tpcc>) -> Vec<Check> {
    let (tpcc, session) = (tpcc.clone(), db.independent());
    let checks = block_on(db.run_on(0, async move || AnyWorkload::check(&*tpcc, &session).await));
    let checks = checks.unwrap().unwrap();
    assert_eq!(checks.len(), 22, "{checks:?}");
    checks.into_iter().filter(|check| !check.ok).collect()
}

#[test]
fn everything_holds_after_loads_of_all_shapes() {
    for given in [
        "keys=10 warehouses=1 districts=1",
        "keys=40 customers=7 orders=20 pending=0",
        "keys=40 customers=9 orders=4 pending=100 item-copies=true warehouses=5",
        "keys=2500 customers=1100 districts=1 warehouses=1",
    ] {
        let (db, tpcc) = loaded(given);
        assert_eq!(broken(&db, &tpcc), [], "{given}");
        // Loading again changes nothing.
        let (loader, session) = (tpcc.clone(), db.independent());
        block_on(db.run_on(0, async move || AnyWorkload::load(&*loader, &session).await))
            .unwrap()
            .unwrap();
        assert_eq!(broken(&db, &tpcc), [], "{given}");
    }
}

/// Changes rows as no transaction of the workload does.
async fn sabotage(what: &str, tx: &Tx, tables: &Tables) -> Result<(), Error> {
    let order = |number| PLACE.order(number);
    let customer = PLACE.customer(2);
    match what {
        "W_YTD" => tables.warehouse_ytd.add(tx, &1, 1, false).await,
        "D_NEXT_O_ID" => tables.next_order.put(tx, &PLACE, &100).await,
        "a new-order" => tables.new_orders.delete(tx, &order(19)).await,
        "O_OL_CNT" => change(tx, tables.orders, &order(3), |row| row.lines += 1).await,
        "O_CARRIER_ID" => change(tx, tables.orders, &order(19), |row| row.carrier = Some(1)).await,
        "O_OL_CNT of two" => {
            change(tx, tables.orders, &order(3), |row| row.lines += 1).await?;
            change(tx, tables.orders, &order(4), |row| row.lines -= 1).await
        }
        "OL_DELIVERY_D" => {
            let id = super::ids::LineId { order: order(3), number: 1 };
            change(tx, tables.order_lines, &id, |row| row.delivered = None).await
        }
        "H_AMOUNT" => {
            let id = PaymentId { district: PLACE, writer: 0, sequence: 2 };
            change(tx, tables.history, &id, |row| row.amount += 1).await
        }
        "D_YTD of two" => {
            tables.district_ytd.add(tx, &PLACE, 1, false).await?;
            let other = DistrictId { number: 2, ..PLACE };
            tables.district_ytd.add(tx, &other, -1, false).await
        }
        "C_BALANCE and C_YTD_PAYMENT" => {
            let moved = |row: &mut rows::Customer| {
                row.balance += 1;
                row.ytd_payment -= 1;
            };
            change(tx, tables.customers, &customer, moved).await
        }
        "a delivery" => deliver(tx, tables, order(15)).await,
        "C_YTD_PAYMENT" => {
            change(tx, tables.customers, &customer, |row| row.ytd_payment += 1).await
        }
        "C_PAYMENT_CNT" => change(tx, tables.customers, &customer, |row| row.payments += 1).await,
        "C_LAST" => change(tx, tables.customers, &customer, |row| row.last.push('X')).await,
        "S_YTD" => {
            let id = StockId { warehouse: 2, item: 7 };
            change(tx, tables.stock, &id, |row| row.ytd += 91).await
        }
        "S_QUANTITY" => {
            let id = StockId { warehouse: 2, item: 7 };
            change(tx, tables.stock, &id, |row| row.quantity ^= 1).await
        }
        "I_PRICE" => {
            let id = ItemId { warehouse: 0, item: 7 };
            change(tx, tables.items, &id, |row| row.price += 1).await
        }
        "O_ALL_LOCAL" => change(tx, tables.orders, &order(3), |row| row.all_local = false).await,
        "an order by customer" => {
            let id = CustomerOrder { customer, order: 99 };
            tables.customer_orders.put(tx, &id, &()).await
        }
        other => unreachable!("no sabotage of {other}"),
    }
}

async fn change<K, V>(
    tx: &Tx,
    space: muesli::TypedSpace<K, V>,
    key: &K,
    change: impl FnOnce(&mut V),
) -> Result<(), Error>
where
    K: muesli::Key,
    V: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut row = space.get(tx, key).await?.expect("it was loaded");
    change(&mut row);
    space.put(tx, key, &row).await
}

/// A delivery as it should be, that no client knows of.
async fn deliver(tx: &Tx, tables: &Tables, id: OrderId) -> Result<(), Error> {
    tables.new_orders.delete(tx, &id).await?;
    let customer = tables.orders.get(tx, &id).await?.expect("it was loaded").customer;
    change(tx, tables.orders, &id, |row| row.carrier = Some(1)).await?;
    let mut sum = 0;
    for (id, mut line) in tables.order_lines.range(tx, KeyRange::prefix(&id)).await? {
        (line.delivered, sum) = (Some(1), sum + line.amount);
        tables.order_lines.put(tx, &id, &line).await?;
    }
    let paid = |row: &mut rows::Customer| {
        row.balance += sum;
        row.deliveries += 1;
    };
    change(tx, tables.customers, &PLACE.customer(customer), paid).await
}

#[test]
fn each_condition_notices_what_it_is_there_for() {
    const LOADED: &str = "loaded fields are as they were";
    let cases: [(&str, &[usize], &[&str]); 19] = [
        ("W_YTD", &[1, 8], &[]),
        ("D_NEXT_O_ID", &[2], &[]),
        ("a new-order", &[3, 5, 11], &[]),
        ("O_OL_CNT", &[4, 6], &[LOADED]),
        ("O_CARRIER_ID", &[5, 7, 10, 12], &["customers count payments and deliveries"]),
        ("O_OL_CNT of two", &[6], &[LOADED]),
        ("OL_DELIVERY_D", &[7], &[LOADED]),
        ("H_AMOUNT", &[8, 9, 10], &[LOADED]),
        ("D_YTD of two", &[9], &[]),
        ("C_BALANCE and C_YTD_PAYMENT", &[10], &[]),
        ("a delivery", &[11], &[]),
        ("C_YTD_PAYMENT", &[12], &[]),
        ("C_PAYMENT_CNT", &[], &["customers count payments and deliveries"]),
        ("C_LAST", &[], &["customers and orders are found", LOADED]),
        ("S_YTD", &[], &["stock is what order lines left"]),
        ("S_QUANTITY", &[], &["stock is what order lines left"]),
        ("I_PRICE", &[], &[LOADED]),
        ("O_ALL_LOCAL", &[], &["order lines have prices and places", LOADED]),
        ("an order by customer", &[], &["customers and orders are found"]),
    ];
    for (what, numbers, others) in cases {
        let (db, tpcc) = loaded("keys=30 customers=20 districts=2");
        let session = db.independent();
        let done = async move || {
            let tables = &Tables::of(&session)?;
            session.transact_here(async |tx| sabotage(what, tx, tables).await).await
        };
        block_on(db.run_on(0, done)).unwrap().unwrap();
        let broken = broken(&db, &tpcc);
        let (conditions, more): (Vec<_>, Vec<_>) =
            broken.iter().map(|check| check.name).partition(|name| name.starts_with("condition"));
        let number = |name: &&str| name["condition ".len()..].split(':').next().unwrap().parse();
        let found: Vec<usize> = conditions.iter().map(|name| number(name).unwrap()).collect();
        assert_eq!(found, numbers, "{what}: {broken:?}");
        assert_eq!(more, others, "{what}: {broken:?}");
    }
}

#[test]
fn what_clients_know_is_looked_for() {
    let tpcc = tpcc("keys=30 districts=2 rollbacks=10");
    let workload: Arc<dyn AnyWorkload> = tpcc.clone();
    let db = Db::open(options(&tpcc, 2)).unwrap();
    let tallies = Arc::new(Tallies::new(CLIENTS));
    let plan = Embedded {
        options: Options::default(),
        warm_up: Duration::ZERO,
        length: Length::Transactions(400),
        seed: 3,
        strict: false,
    };
    let outcome = crate::embedded::run_connected(&[db], &workload, &plan, &tallies).unwrap();
    assert!(outcome.checks.iter().all(|check| check.ok), "{:?}", outcome.checks);
    assert!(outcome.tally.rolled_back > 5, "{:?}", outcome.tally);
    // The books of one run on the data of another: everything that was counted is missed.
    let (db, _) = loaded("keys=30 districts=2");
    let broken: Vec<_> = broken(&db, &tpcc).into_iter().map(|check| check.name).collect();
    let expected = [
        "condition 11: orders less new-orders are those delivered",
        "orders are the committed New-Orders",
        "history rows are the committed Payments",
    ];
    assert_eq!(broken, expected);
}
