//! Each check, and a mistake that it has to find.

use super::*;
use crate::tally::Ended;
use crate::tpcw::ledger::{TpcwUpdate, UpdateAnswer};
use crate::tpcw::plans::admin::NewDetails;
use crate::tpcw::tables::{CardCharge, ItemOrder, ItemOrderLine};

const FIRST: FirstData = FirstData { items: 20, customers: 4 };

/// What is loaded, at two repositories.
fn loaded() -> ShopRows {
    let (none, mut rows) = (TpcwLedger::default(), ShopRows::default());
    let copy = ShopAudit::new(FIRST, &rows, &none).reference();
    rows.copies = vec![copy.clone(), copy];
    rows.stocks = (1..=FIRST.items).map(|item| ((item,), FirstData::stock(item))).collect();
    for of in (1..=FIRST.customers).map(|number| FIRST.customer(number)) {
        rows.addresses.insert((of.customer, of.shopper.address), of.address);
        rows.customers.insert((of.customer,), of.shopper);
        rows.carts.insert((of.customer,), 0);
        for loaded in of.order {
            rows.orders.insert((of.customer, 1), loaded.order);
            rows.charges.insert((of.customer, 1), loaded.charge);
            let lines = (1..).zip(loaded.lines);
            rows.lines.extend(lines.map(|(place, line)| ((of.customer, 1, place), line)));
        }
    }
    rows
}

/// One customer buys three of an item, comes back, and fills its cart anew; and an item is changed.
fn after_an_order() -> (ShopRows, TpcwLedger) {
    let (mut rows, mut known) = (loaded(), TpcwLedger::default());
    let number = rows.customers[&(2,)].orders + 1;
    let sums = OrderSums::of(3 * 1_000, 3, 10);
    let home = rows.customers[&(2,)].address;
    let order = ItemOrder {
        date: 1,
        sums,
        ship_type: 0,
        status: 2,
        billed_to: home,
        shipped_to: home,
        discount: 10,
    };
    let line = ItemOrderLine { item: 7, quantity: 3, cost: 1_000, comments: String::new() };
    let charge = CardCharge { kind: 0, number: 1, amount: sums.total, country: 1 };
    rows.orders.insert((2, number), order);
    rows.lines.insert((2, number, 1), line);
    rows.charges.insert((2, number), charge);
    let stock = rows.stocks.remove(&(7,)).unwrap();
    rows.stocks.insert((7,), stock.take(3, [].into_iter()));
    let customer = rows.customers.get_mut(&(2,)).unwrap();
    (customer.orders, customer.logins) = (number, 1);
    let order = Some((number, sums.total));
    let bought = UpdateAnswer { number: Some(1), contents: None, order };
    let in_cart = [CartLine { item: 4, quantity: 2 }];
    let filled = UpdateAnswer { number: Some(2), contents: Some(digest(&in_cart)), order: None };
    rows.cart_lines.insert((2, 4), 2);
    rows.carts.insert((2,), 2);
    let new = NewDetails { item: 5, cost: 9, picture: 8, published: 7, related: [1, 2, 3, 4, 6] };
    for copy in &mut rows.copies {
        let row = copy.details.get_mut(&(5,)).unwrap();
        (row.cost, row.picture, row.thumbnail, row.published) = (9, 8, 8, 7);
        (row.related, row.updates) = (new.related, 1);
        copy.best.get_mut(&(2,)).unwrap().items = vec![(7, 3)];
    }
    let back = UpdateAnswer { number: Some(1), ..UpdateAnswer::default() };
    for (update, answer) in [
        (TpcwUpdate::Cart(2), filled),
        (TpcwUpdate::Order(2), bought),
        (TpcwUpdate::LogIn(2), back),
        (TpcwUpdate::Details(new), UpdateAnswer::default()),
        (TpcwUpdate::Best(2, vec![(7, 3)]), UpdateAnswer::default()),
    ] {
        known.set_out(update);
        known.settle(&Ended::Committed, answer);
    }
    (rows, known)
}

fn are_right(rows: &ShopRows, known: &TpcwLedger) -> [bool; 6] {
    let audit = ShopAudit::new(FIRST, rows, known);
    let all = [
        audit.orders(),
        audit.committed_orders(),
        audit.stocks(),
        audit.customers(),
        audit.carts(),
        audit.copies(),
    ];
    all.map(|wrong| wrong == Complaints::default())
}

#[test]
fn what_is_loaded_and_what_was_committed_is_right() {
    assert_eq!(are_right(&loaded(), &TpcwLedger::default()), [true; 6]);
    let (rows, known) = after_an_order();
    assert_eq!(are_right(&rows, &known), [true; 6]);
}

#[test]
fn each_check_finds_what_it_is_for() {
    let (rows, known) = after_an_order();
    let number = rows.customers[&(2,)].orders;
    let spoilt = |check: usize, what: &str, spoil: &dyn Fn(&mut ShopRows)| {
        let mut spoilt = rows.clone();
        spoil(&mut spoilt);
        assert!(!are_right(&spoilt, &known)[check], "{what}");
    };
    spoilt(0, "no charge", &|it| _ = it.charges.remove(&(2, number)));
    spoilt(0, "a line of no order", &|it| {
        let line = it.lines[&(2, number, 1)].clone();
        it.lines.insert((2, 99, 1), line);
    });
    spoilt(0, "another total", &|it| {
        it.orders.get_mut(&(2, number)).unwrap().sums.total += 1;
    });
    spoilt(0, "another price", &|it| it.lines.get_mut(&(2, number, 1)).unwrap().cost += 1);
    spoilt(0, "no address", &|it| it.orders.get_mut(&(2, number)).unwrap().shipped_to = 9);
    spoilt(1, "an order that nobody made", &|it| {
        let order = it.orders[&(2, number)].clone();
        it.orders.insert((2, number + 1), order);
        it.customers.get_mut(&(2,)).unwrap().orders += 1;
    });
    spoilt(1, "an order that was lost", &|it| {
        it.orders.remove(&(2, number));
        it.customers.get_mut(&(2,)).unwrap().orders -= 1;
    });
    spoilt(1, "orders that are not counted", &|it| {
        it.customers.get_mut(&(2,)).unwrap().orders += 1;
    });
    spoilt(2, "what is left was not taken", &|it| {
        it.stocks.insert((7,), FirstData::stock(7));
    });
    spoilt(2, "it was taken twice", &|it| {
        let stock = it.stocks.remove(&(7,)).unwrap();
        it.stocks.insert((7,), stock.take(3, [].into_iter()));
    });
    spoilt(2, "one too much is left", &|it| it.stocks.get_mut(&(9,)).unwrap().left += 1);
    spoilt(3, "a customer went", &|it| _ = it.customers.remove(&(3,)));
    spoilt(3, "one came back once more", &|it| {
        it.customers.get_mut(&(2,)).unwrap().logins = 2;
    });
    spoilt(3, "another address", &|it| {
        let place = *it.addresses.keys().next().unwrap();
        it.addresses.get_mut(&place).unwrap().street.push('x');
    });
    spoilt(4, "a cart was not emptied", &|it| _ = it.cart_lines.insert((2, 7), 3));
    spoilt(4, "a change of a cart was lost", &|it| _ = it.carts.insert((2,), 1));
    spoilt(4, "a line without a cart", &|it| _ = it.cart_lines.insert((77, 7), 3));
    spoilt(5, "copies differ", &|it| {
        it.copies[1].details.get_mut(&(5,)).unwrap().cost = 1;
    });
    spoilt(5, "a change is missing everywhere", &|it| {
        for copy in &mut it.copies {
            copy.details.insert((5,), FIRST.item(5).details);
        }
    });
    spoilt(5, "a constant has changed", &|it| _ = it.copies[0].authors.remove(&(1,)));
    spoilt(5, "a count of best sellers was lost", &|it| {
        for copy in &mut it.copies {
            copy.best.get_mut(&(2,)).unwrap().items.clear();
        }
    });
    spoilt(5, "best sellers that nobody counted", &|it| {
        for copy in &mut it.copies {
            copy.best.get_mut(&(1,)).unwrap().items.push((1, 1));
        }
    });
}
