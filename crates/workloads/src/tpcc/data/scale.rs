//! How large the database is, and where its pieces are.

use muesli::{Key, Partitioning, UnitMap};

use crate::parameters::{ParameterError, Values};
use crate::tpcc::ids::DistrictId;
use crate::tpcc::{Settings, draws};

/// What customers have paid at first, each once.
pub(in crate::tpcc) const FIRST_PAYMENT: i64 = 1_000;

/// Rows of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tpcc) struct Scale {
    pub warehouses: u32,
    /// Of a warehouse.
    pub districts: u8,
    /// Of a district.
    pub customers: u32,
    /// And as many rows of stock in each warehouse.
    pub items: u32,
    /// Of a district, at first.
    pub orders: u32,
    /// Those of them that are not delivered.
    pub pending: u32,
    /// Whether each warehouse has items of its own.
    pub item_copies: bool,
    /// Whether what customers have paid and owe is apart from their rows.
    pub balance_apart: bool,
    /// Different last names in a district, as asked for; 0: as many as customers.
    names: u32,
}

impl Scale {
    /// The sizes that the parameters ask for.
    ///
    /// # Errors
    /// Sizes that do not go together.
    pub fn new(values: &Values, settings: Settings) -> Result<Scale, ParameterError> {
        let Settings { item_copies, balance_apart, names, .. } = settings;
        let count = |name| values.count(name) as u32;
        let items = count("keys");
        let or = |given: u32, otherwise: u32| if given == 0 { otherwise } else { given };
        let customers = or(count("customers"), (items / 100 * 3).max(5));
        let orders = or(count("orders"), customers);
        let pending = (f64::from(orders) * values.number("pending") / 100.0).round() as u32;
        Ok(Scale {
            warehouses: count("warehouses"),
            districts: count("districts") as u8,
            customers,
            items,
            orders,
            pending,
            item_copies,
            balance_apart,
            names,
        })
    }

    /// D_YTD at first: every customer has paid once.
    pub fn first_ytd(&self) -> i64 {
        i64::from(self.customers) * FIRST_PAYMENT
    }

    /// So many different last names: each has a customer in every district.
    pub fn names(&self) -> u32 {
        let asked = if self.names == 0 { draws::NAMES } else { self.names };
        self.customers.min(asked)
    }

    /// The number of the first order that is not delivered at first.
    pub fn first_pending(&self) -> u32 {
        self.orders - self.pending + 1
    }

    /// All warehouses.
    pub fn all_warehouses(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.warehouses
    }

    /// The districts of a warehouse.
    pub fn districts_of(&self, warehouse: u32) -> impl Iterator<Item = DistrictId> + use<> {
        (1..=self.districts).map(move |number| DistrictId { warehouse, number })
    }

    /// Where warehouses are dealt to so many repositories by ranges: as evenly as can be.
    pub fn by_ranges(&self, repositories: usize) -> Partitioning {
        let parts = (repositories as u64).min(self.warehouses.into());
        let first = |part: u64| (part * u64::from(self.warehouses)).div_ceil(parts) as u32 + 1;
        Partitioning::Range((1..parts).map(|part| first(part).encoded()).collect())
    }

    /// The same as a map of units.
    pub fn by_units(&self, repositories: usize) -> UnitMap {
        let parts = (repositories as u64).min(self.warehouses.into());
        let part_of =
            |warehouse: u32| (u64::from(warehouse - 1) * parts) / u64::from(self.warehouses);
        let units = self.all_warehouses().map(|it| (it.encoded(), part_of(it) as u16));
        UnitMap::of_units(0, units)
    }

    /// Deals whole districts to repositories, as evenly as it goes.
    pub fn by_districts(&self, repositories: usize) -> Partitioning {
        let all: Vec<_> =
            self.all_warehouses().flat_map(|warehouse| self.districts_of(warehouse)).collect();
        let parts = repositories.min(all.len());
        Partitioning::Range(
            (1..parts).map(|part| all[part * all.len() / parts].encoded()).collect(),
        )
    }
}
