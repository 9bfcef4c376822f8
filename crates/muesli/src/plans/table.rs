//! Tables: spaces as plans name them, with the types of their rows and the rule of their keys.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use muesli_core::{Index, Partitioning, SpaceOptions, UnitMap, UnitPart, Units};

/// A part of a key of which it is known where it ends.
pub trait KeyColumn: crate::Key + Clone + Send + Sync + 'static {
    /// Its shape.
    const PART: UnitPart;
}

macro_rules! columns {
    ($($number:ty)+) => {$(
        impl KeyColumn for $number {
            const PART: UnitPart = UnitPart::Fixed(size_of::<$number>() as u8);
        }
    )+};
}

columns! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 bool }

impl KeyColumn for String {
    const PART: UnitPart = UnitPart::Text;
}

impl KeyColumn for Vec<u8> {
    const PART: UnitPart = UnitPart::Text;
}

/// The columns of a key: a tuple, whose encoding is theirs one after the other.
pub trait KeyColumns: crate::Key + 'static {
    /// Their shapes.
    const PARTS: &'static [UnitPart];
}

macro_rules! tuples {
    ($($($column:ident)+;)+) => {$(
        impl<$($column: KeyColumn),+> KeyColumns for ($($column,)+) {
            const PARTS: &'static [UnitPart] = &[$($column::PART),+];
        }
    )+};
}

tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// By what the rows of a table are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableUnit {
    /// Each by its whole key, by hash or by ranges.
    Key,
    /// By the unit of a domain: so many leading columns of the key.
    Unit {
        /// The domain.
        domain: &'static str,
        /// How many columns.
        columns: usize,
    },
    /// Every repository has all of them.
    Everywhere,
}

/// A space as plans name it. Its values are stored in the postcard format, as those of a
/// [`TypedSpace`](crate::TypedSpace) are.
pub struct PlanTable<K, V> {
    /// Its name.
    pub name: &'static str,
    /// By what its rows are placed.
    pub unit: TableUnit,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for PlanTable<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for PlanTable<K, V> {}

impl<K, V> fmt::Debug for PlanTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name).field("unit", &self.unit).finish()
    }
}

impl<K, V> PlanTable<K, V> {
    /// One whose rows are placed each by its whole key.
    pub const fn by_key(name: &'static str) -> PlanTable<K, V> {
        PlanTable { name, unit: TableUnit::Key, types: PhantomData }
    }

    /// One whose rows belong to the units of a domain, by so many leading columns of their keys.
    pub const fn by_unit(
        name: &'static str,
        domain: &'static str,
        columns: usize,
    ) -> PlanTable<K, V> {
        PlanTable { name, unit: TableUnit::Unit { domain, columns }, types: PhantomData }
    }

    /// One that every repository has all of.
    pub const fn everywhere(name: &'static str) -> PlanTable<K, V> {
        PlanTable { name, unit: TableUnit::Everywhere, types: PhantomData }
    }
}

impl<K: KeyColumns, V> PlanTable<K, V> {
    /// The space that it needs, for a database's options; a map places the units of its domain,
    /// and those that it does not name are dealt by a hash.
    pub fn space(self, index: Index, map: &Arc<UnitMap>) -> (&'static str, SpaceOptions) {
        let partitioning = match self.unit {
            TableUnit::Key => Partitioning::Hash,
            TableUnit::Everywhere => Partitioning::Everywhere,
            TableUnit::Unit { domain, columns } => {
                let parts = &K::PARTS[..columns.min(K::PARTS.len())];
                Partitioning::Unit(Units::new(domain, parts).placed(Arc::clone(map)))
            }
        };
        (self.name, SpaceOptions { index, partitioning })
    }
}

impl TableUnit {
    /// What is wrong with a space that is dealt so, as the table of this unit and shape.
    pub(super) fn differs(self, parts: &[UnitPart], partitioning: &Partitioning) -> Option<String> {
        let fits = match (self, partitioning) {
            (TableUnit::Key, Partitioning::Hash | Partitioning::Range(_))
            | (TableUnit::Everywhere, Partitioning::Everywhere) => true,
            (TableUnit::Unit { domain, columns }, Partitioning::Unit(units)) => {
                units.domain == domain && parts.get(..columns) == Some(&*units.parts)
            }
            _ => false,
        };
        let is = match partitioning {
            Partitioning::Hash => "by a hash of each key".to_owned(),
            Partitioning::Range(_) => "by ranges of keys".to_owned(),
            Partitioning::Unit(units) => units.to_string(),
            Partitioning::Everywhere => "to all repositories".to_owned(),
        };
        (!fits).then(|| format!("is dealt {is}, and the plan is for {self}"))
    }
}

impl fmt::Display for TableUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableUnit::Key => write!(f, "rows placed by their whole keys"),
            TableUnit::Unit { domain, columns } => {
                write!(f, "units `{domain}` of {columns} columns")
            }
            TableUnit::Everywhere => write!(f, "rows that are everywhere"),
        }
    }
}
