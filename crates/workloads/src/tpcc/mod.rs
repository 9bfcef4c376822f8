//! TPC-C: a wholesale supplier, its nine tables, its five transactions, and
//! the conditions that they keep.
//!
//! Warehouses have districts, districts have customers, and customers order items that warehouses
//! have in stock. [`tables`] is the layout, [`first`] what is there at first, and each profile has
//! a file: [`new_order`], [`payment`], [`order_status`](profiles::order_status), [`delivery`],
//! [`stock_level`]. Whatever clients ask for is read side by side where nothing is known between;
//! inputs are drawn once, before the first attempt.
//!
//! Afterwards [`survey`] reads the whole database in one snapshot, and [`conditions`] and
//! [`accounts`] say what does not hold: the standard's twelve consistency conditions, and what the
//! clients' books ([`ledger`]) know of the committed transactions.
//!
//! What is here runs on the interactive API; [`procedures`] is the same in one round. With
//! `nesting` profiles have parts, one after the other: the head, the number and each line of a
//! New-Order, the customer, the district and the warehouse of a Payment, each district of a
//! Delivery, each read of the others that needs the one before.
//!
//! Source: the TPC's benchmark C, standard specification, revision 5.11; clauses are cited.

mod accounts;
mod checks;
mod conditions;
mod data;
pub(crate) mod plans;
pub mod procedures;
mod profiles;
mod survey;
#[cfg(test)]
mod tests;

use ledger::{Ledgers, TpccLedger};
use mix::{MIXES, Mix, Profile};
use muesli::{Db, Error, Partitioning, SpaceOptions};
use scale::Scale;
use tables::{Accounts, Tables};

use crate::check::Check;
use crate::nesting::{NestingPlan, PATIENCE};
use crate::parameters::{Parameter, ParameterError, ParameterKind, Values};
use crate::parted::NESTING_BY_ROWS;
use crate::tally::Ended;
use crate::workload::{Seat, Workload};
use data::{draws, first, ids, layout, load, rows, scale, tables};
use profiles::{delivery, ledger, mix, new_order, order_status, payment, stock_level, terminal};
pub use terminal::Terminal;

/// What TPC-C takes, on either API.
const PARAMETERS_OF_BOTH: [Parameter; 18] = [
    Parameter::new(
        "warehouses",
        "2",
        ParameterKind::Count(1, 100_000),
        "How many warehouses there are.",
    ),
    Parameter::new(
        "keys",
        "1000",
        ParameterKind::Count(10, 1_000_000),
        "Items, and as many rows of stock in each warehouse; the standard has 100000.",
    ),
    Parameter::new("districts", "10", ParameterKind::Count(1, 10), "Districts of a warehouse."),
    Parameter::new(
        "customers",
        "0",
        ParameterKind::Count(0, 1_000_000),
        "Customers of a district; 0: three for every hundred items, and five at least.",
    ),
    Parameter::new(
        "orders",
        "0",
        ParameterKind::Count(0, 1_000_000),
        "Orders that a district has at first; 0: as many as customers.",
    ),
    Parameter::new(
        "pending",
        "30",
        ParameterKind::Percent,
        "Share of those that are not delivered.",
    ),
    Parameter::new(
        "mix",
        "standard",
        ParameterKind::Choice(MIXES),
        "Which profiles run: standard (45 New-Order, 43 Payment, 4 each of the others), gmu (90 \
         Order-Status, 5 New-Order, 5 Payment), bumper (50 Payment, 50 Order-Status).",
    ),
    Parameter::new(
        "new-order",
        "0",
        ParameterKind::Count(0, 1_000_000),
        "Weight of New-Order; where any profile has one, weights count and the mix does not.",
    ),
    Parameter::new("payment", "0", ParameterKind::Count(0, 1_000_000), "Weight of Payment."),
    Parameter::new(
        "order-status",
        "0",
        ParameterKind::Count(0, 1_000_000),
        "Weight of Order-Status.",
    ),
    Parameter::new("delivery", "0", ParameterKind::Count(0, 1_000_000), "Weight of Delivery."),
    Parameter::new(
        "stock-level",
        "0",
        ParameterKind::Count(0, 1_000_000),
        "Weight of Stock-Level.",
    ),
    Parameter::new(
        "rollbacks",
        "1",
        ParameterKind::Percent,
        "Share of New-Orders that ask for an item that there is not, and roll back.",
    ),
    Parameter::new(
        "remote-items",
        "1",
        ParameterKind::Percent,
        "Share of order lines that another warehouse supplies.",
    ),
    Parameter::new(
        "remote-payments",
        "15",
        ParameterKind::Percent,
        "Share of Payments by a customer of another warehouse.",
    ),
    Parameter::new(
        "by-name",
        "60",
        ParameterKind::Percent,
        "Share of customers that are looked for by their last name.",
    ),
    Parameter::new(
        "home",
        "client",
        ParameterKind::Choice(&["client", "node", "any"]),
        "A client's warehouse: by its number, one that its node holds, or any, drawn anew each \
         time.",
    ),
    Parameter::new(
        "think",
        "0",
        ParameterKind::Number(0.0, 1e3),
        "Terminals wait so many times the standard's keying and think times.",
    ),
];

/// What TPC-C takes.
pub const PARAMETERS: &[Parameter] = &{
    let more = [
        Parameter::new(
            "delayed",
            "true",
            ParameterKind::Flag,
            "Whether Payment adds to W_YTD and D_YTD by delayed actions, which bumper and \
             bumper-da do at the commit and other protocols at once.",
        ),
        Parameter::new(
            "placement",
            "warehouse",
            ParameterKind::Choice(&["warehouse", "hash", "district"]),
            "Whether a repository holds whole warehouses, or all rows are dealt by hash, or those \
             that are looked up are, while those that are scanned lie together by district.",
        ),
        Parameter::new(
            "item-copies",
            "false",
            ParameterKind::Flag,
            "Whether each warehouse has a copy of the items, placed with it; else one copy is \
             dealt by hash.",
        ),
        Parameter::new(
            "balance",
            "row",
            ParameterKind::Choice(&["row", "apart"]),
            "Whether C_BALANCE is part of the customer's row, or with what customers have paid a \
             row of its own, to which Payment adds as to W_YTD; it leaves the customer's alone.",
        ),
        Parameter::new(
            "names",
            "0",
            ParameterKind::Count(0, 1_000),
            "Different last names of a district's customers; 0: as many as customers.",
        ),
        Parameter::new(
            "lookups",
            "index",
            ParameterKind::Choice(&["index", "each"]),
            "Whether customers of a name and orders of a customer are found by an index, or all \
             customers of the name and all orders that a district has at first are read.",
        ),
        NESTING_BY_ROWS,
        PATIENCE,
    ];
    let mut all = [more[0]; PARAMETERS_OF_BOTH.len() + 8];
    let mut at = 0;
    while at < all.len() {
        let both = PARAMETERS_OF_BOTH.len();
        all[at] = if at < both { PARAMETERS_OF_BOTH[at] } else { more[at - both] };
        at += 1;
    }
    all
};

/// Which warehouse a client works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Client,
    Node,
    Any,
}

/// Where rows lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Warehouse,
    Hash,
    District,
}

/// What is a parameter on one API only.
#[derive(Clone, Copy, Debug)]
struct Settings {
    item_copies: bool,
    delayed: bool,
    placement: Placement,
    balance_apart: bool,
    names: u32,
    reads_each: bool,
}

/// TPC-C with its parameters.
#[derive(Debug)]
pub struct Tpcc {
    scale: Scale,
    mix: Mix,
    rollbacks: f64,
    remote_items: f64,
    remote_payments: f64,
    by_name: f64,
    delayed: bool,
    reads_each: bool,
    home: Home,
    placement: Placement,
    think: f64,
    nesting: NestingPlan,
    ledgers: Ledgers,
}

impl Tpcc {
    /// TPC-C with these parameters, for so many clients.
    ///
    /// # Errors
    /// Parameters that do not go together.
    pub fn new(values: &Values, clients: u32) -> Result<Tpcc, ParameterError> {
        let settings = Settings {
            item_copies: values.flag("item-copies"),
            delayed: values.flag("delayed"),
            placement: match values.word("placement") {
                "hash" => Placement::Hash,
                "district" => Placement::District,
                _ => Placement::Warehouse,
            },
            balance_apart: values.word("balance") == "apart",
            names: values.count("names") as u32,
            reads_each: values.word("lookups") == "each",
        };
        let nesting = NestingPlan::seldom_open(values);
        let settings = Settings { delayed: nesting.delays(settings.delayed), ..settings };
        Tpcc::with_settings(values, clients, settings, nesting)
    }

    fn with_settings(
        values: &Values,
        clients: u32,
        settings: Settings,
        nesting: NestingPlan,
    ) -> Result<Tpcc, ParameterError> {
        Ok(Tpcc {
            scale: Scale::new(values, settings)?,
            mix: Mix::new(values),
            rollbacks: values.number("rollbacks"),
            remote_items: values.number("remote-items"),
            remote_payments: values.number("remote-payments"),
            by_name: values.number("by-name"),
            delayed: settings.delayed,
            reads_each: settings.reads_each,
            home: match values.word("home") {
                "client" => Home::Client,
                "node" => Home::Node,
                _ => Home::Any,
            },
            placement: settings.placement,
            think: values.number("think"),
            nesting,
            ledgers: Ledgers::new(clients, |_| TpccLedger::default()),
        })
    }
}

impl Workload for Tpcc {
    type Memory = Terminal;

    fn spaces(&self, repositories: usize) -> Vec<(&'static str, SpaceOptions)> {
        let (rows, scanned) = match self.placement {
            Placement::Warehouse => {
                let by_warehouse = self.scale.by_ranges(repositories);
                (by_warehouse.clone(), by_warehouse)
            }
            Placement::Hash => (Partitioning::Hash, Partitioning::Hash),
            Placement::District => (Partitioning::Hash, self.scale.by_districts(repositories)),
        };
        let mut spaces = tables::spaces(&rows, &scanned, self.scale.item_copies);
        spaces.extend(self.scale.balance_apart.then(|| Accounts::space(&rows)));
        spaces
    }

    async fn load(&self, db: &Db) -> Result<(), Error> {
        load::load(db, &self.scale).await
    }

    fn begin(&self, seat: &mut Seat) -> Result<Terminal, Error> {
        self.ledgers.of(seat.client).begin_incarnation();
        Terminal::begin(self, seat, Tables::of(&seat.db)?)
    }

    async fn transact(&self, seat: &mut Seat, terminal: &mut Terminal) -> (Ended, u32) {
        let profile = terminal.next_profile(&self.mix, &mut seat.chance);
        let (ended, attempts) = match profile {
            Profile::NewOrder => self.new_order(seat, terminal).await,
            Profile::Payment => self.payment(seat, terminal).await,
            Profile::OrderStatus => self.order_status(seat, terminal).await,
            Profile::Delivery => self.delivery(seat, terminal).await,
            Profile::StockLevel => self.stock_level(seat, terminal).await,
        };
        self.ledgers.of(seat.client).settle(profile, &ended);
        (ended, attempts)
    }

    async fn check(&self, db: &Db) -> Result<Vec<Check>, Error> {
        checks::check(self, db).await
    }

    fn parted(&self) -> Option<&NestingPlan> {
        Some(&self.nesting)
    }
}
