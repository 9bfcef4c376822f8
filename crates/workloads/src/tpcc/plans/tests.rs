//! What is derived of the plans, and that dry runs touch no more.

use muesli::plans::{PlanExplanation, PlannedProcedure};
use muesli::procedures::DryRun;
use muesli::{Key, Stop};
use proptest::prelude::*;
use serde::Serialize;

use super::deliveries::{DeliveryOrder, PlannedDelivery};
use super::layout::COLUMNS;
use super::orders::PlannedOrder;
use super::payments::PlannedPayment;
use super::reading::{LevelQuestion, OrderQuestion, PlannedOrderStatus, PlannedStockLevel};
use crate::chance::Chance;
use crate::parameters::Values;
use crate::tpcc::delivery::DeliveryInput;
use crate::tpcc::ids::{CustomerName, CustomerOrder, DistrictId, ItemId, LineId, StockId};
use crate::tpcc::procedures::TpccProcedures;
use crate::tpcc::scale::Scale;
use crate::tpcc::{Tpcc, first, procedures};

fn derived<P: PlannedProcedure>() -> (&'static str, &'static str, bool, Vec<String>) {
    let of = PlanExplanation::of::<P>();
    assert_eq!(of.errors, [""; 0], "{of}");
    (of.class, of.refuses, of.read_only, of.units)
}

#[test]
fn each_profile_is_of_one_round_and_nobody_votes() {
    let supplied = "warehouse(lines[].supplier)".to_owned();
    let home = "warehouse(customer.district.warehouse)".to_owned();
    let (class, refuses, read_only, units) = derived::<PlannedOrder>();
    assert_eq!((class, refuses, read_only), ("single or independent", "alike", false));
    assert_eq!(units, [home, supplied]);
    let (class, refuses, read_only, units) = derived::<PlannedPayment>();
    assert_eq!((class, refuses, read_only), ("single or independent", "never", false));
    assert_eq!(units, ["warehouse(district.warehouse)", "warehouse(resident.warehouse)"]);
    let (class, refuses, read_only, _) = derived::<PlannedOrderStatus>();
    assert_eq!((class, refuses, read_only), ("single", "never", true));
    let (class, refuses, read_only, _) = derived::<PlannedDelivery>();
    assert_eq!((class, refuses, read_only), ("single", "never", false));
    let (class, refuses, read_only, _) = derived::<PlannedStockLevel>();
    assert_eq!((class, refuses, read_only), ("single", "never", true));
    assert!(super::procedures().is_ok());
}

const PLACE: DistrictId = DistrictId { warehouse: 1, number: 1 };

fn small() -> Tpcc {
    let given = ["keys=10", "customers=6", "districts=2", "rollbacks=20", "procedures=plans"];
    let given: Vec<_> = given.map(str::to_owned).into();
    let given: Vec<_> = given.into_iter().chain(["remote-items=30".to_owned()]).collect();
    let values = Values::read("tpcc-procedures", procedures::PARAMETERS, &given).unwrap();
    TpccProcedures::new(&values, 1).unwrap().tpcc
}

/// All that is there at first.
fn loaded(scale: &Scale) -> DryRun {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
    let mut rows = DryRun::new(&names);
    for item in 1..=scale.items {
        put(&mut rows, "item", &ItemId { warehouse: 0, item }, &first::item(item));
    }
    for number in scale.all_warehouses() {
        put(&mut rows, "warehouse", &number, &first::warehouse(number));
        put(&mut rows, "warehouse-ytd", &number, &[0_u8; 8]);
        for id in (1..=scale.items).map(|item| StockId { warehouse: number, item }) {
            put(&mut rows, "stock", &id, &first::stock(id).count());
            put(&mut rows, "stock-info", &id, &first::stock(id).info());
        }
        scale.districts_of(number).for_each(|id| put_district(&mut rows, scale, id));
    }
    rows
}

fn put_district(rows: &mut DryRun, scale: &Scale, id: DistrictId) {
    put(rows, "district", &id, &first::district(id));
    put(rows, "district-ytd", &id, &[0_u8; 8]);
    put(rows, "district-next-order", &id, &(scale.orders + 1));
    for number in 1..=scale.customers {
        let row = first::customer(scale, id.customer(number));
        put(rows, "customer", &id.customer(number), &row);
        let (last, first) = (row.last, row.first);
        let name = CustomerName { district: id, last, first, customer: number };
        put(rows, "customer-name", &name, &());
    }
    for (number, customer) in (1..).zip(first::customers_of_orders(scale, id)) {
        let (order, row) = (id.order(number), first::order(scale, id, number, customer));
        put(rows, "order", &order, &row);
        let by_customer = CustomerOrder { customer: id.customer(customer), order: number };
        put(rows, "customer-order", &by_customer, &());
        if number >= scale.first_pending() {
            put(rows, "new-order", &order, &());
        }
        for line in (1..=row.lines).map(|number| LineId { order, number }) {
            put(rows, "order-line", &line, &first::order_line(scale, line));
        }
    }
}

fn put<K: Key, V: Serialize>(rows: &mut DryRun, space: &str, key: &K, value: &V) {
    let value = postcard::to_stdvec(value).expect("rows can be serialized");
    rows.put(rows.space(space), key.encoded(), value);
}

/// How many rows a table has.
fn count(rows: &DryRun, space: &str) -> usize {
    rows.rows(rows.space(space)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// A dry run is held to the footprint that is derived, and stops where it touches more.
    #[test]
    fn footprints_contain_what_dry_runs_of_all_profiles_touch(seed: u64) {
        let tpcc = small();
        let (mut rows, mut chance) = (loaded(&tpcc.scale), Chance::new(seed, 0, 0));
        for time in 0..12 {
            let (home, orders) = (1 + time % 2, count(&rows, "order"));
            let input = tpcc.draw_order(home, 7, &mut chance);
            let (unused, lines) = (input.unused, count(&rows, "order-line") + input.lines.len());
            match rows.run_plan::<PlannedOrder>(&input) {
                Ok(total) => {
                    prop_assert!(!unused && total > 0, "{input:?}");
                    prop_assert_eq!(count(&rows, "order-line"), lines);
                }
                Err(stop) => {
                    prop_assert!(unused && matches!(stop, Stop::Refused(_)), "{stop:?}");
                    prop_assert_eq!(count(&rows, "order"), orders);
                }
            }
            let input = tpcc.draw_payment(home, (1, time.into()), 7, &mut chance);
            let paid = rows.run_plan::<PlannedPayment>(&input);
            prop_assert!(matches!(paid, Ok(Some(_))), "{paid:?}");
            let (district, who) = (input.resident, tpcc.draw_customer(&mut chance));
            let status = rows.run_plan::<PlannedOrderStatus>(&OrderQuestion { district, who });
            prop_assert!(status.is_ok(), "{status:?}");
            let threshold = chance.between(10, 20) as u8;
            let question = LevelQuestion { district, threshold };
            let level = rows.run_plan::<PlannedStockLevel>(&question);
            prop_assert!(level.as_ref().is_ok_and(|it| it.lines >= 30), "{level:?}");
            let input = DeliveryInput { carrier: 3, date: 9 };
            let delivery = DeliveryOrder { warehouse: home, districts: vec![1, 2], input };
            let pending = count(&rows, "new-order");
            let delivered = rows.run_plan::<PlannedDelivery>(&delivery);
            let delivered = delivered.map(|districts| districts.len());
            prop_assert_eq!(delivered, Ok(pending - count(&rows, "new-order")));
        }
        prop_assert_eq!(count(&rows, "history"), 12);
        let next = first::customers_of_orders(&tpcc.scale, PLACE).len() as u32 + 1;
        let stored = rows.get(rows.space("district-next-order"), PLACE.encoded());
        let stored = stored.map(|it| postcard::from_bytes::<u32>(it.as_slice()).unwrap());
        prop_assert!(stored.is_some_and(|it| it >= next), "{stored:?}");
    }
}
