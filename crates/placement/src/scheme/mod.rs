//! By which column of its key each table is placed.

mod search;
mod shares;

use std::collections::BTreeMap;

pub use search::{SearchTerms, search};
pub(crate) use shares::{AccessPlace, ShareCounter};
pub use shares::{ByHash, PlacementShares, RowPlaces, shares};

use crate::trace::{AccessTrace, TracedAccess};

/// By what the rows of a table are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TablePlacement {
    /// By a column of the key, whose value is the row's unit.
    Column(usize),
    /// Every repository has all of them.
    Everywhere,
}

/// A rule for each table of a trace, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// By the number of the table.
    pub tables: Vec<TablePlacement>,
}

/// What is placed as a whole: a value of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacedUnit {
    /// The domain, by its number.
    pub domain: u16,
    /// The value.
    pub value: u64,
}

impl Scheme {
    /// The unit that a row belongs to; `None`: it is everywhere.
    pub fn unit(&self, trace: &AccessTrace, access: &TracedAccess) -> Option<PlacedUnit> {
        let table = usize::from(access.table);
        match self.tables[table] {
            TablePlacement::Everywhere => None,
            TablePlacement::Column(column) => {
                let domain = trace.tables[table].columns[column];
                Some(PlacedUnit { domain, value: access.key[column] })
            }
        }
    }

    /// As people read it: each table's rule by the names of a trace, with the place of a column
    /// where others of the table are of the same domain.
    pub fn described(&self, trace: &AccessTrace) -> BTreeMap<String, String> {
        let placed_by = |(number, table): (usize, &crate::trace::TracedTable)| {
            let text = match self.tables[number] {
                TablePlacement::Everywhere => "everywhere".to_owned(),
                TablePlacement::Column(column) => {
                    let domain = table.columns[column];
                    let alike = table.columns.iter().filter(|it| **it == domain).count();
                    let name = &trace.domains[usize::from(domain)];
                    if alike > 1 { format!("{name}, column {}", column + 1) } else { name.clone() }
                }
            };
            (table.name.clone(), text)
        };
        trace.tables.iter().enumerate().map(placed_by).collect()
    }
}
