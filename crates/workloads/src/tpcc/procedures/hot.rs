//! W_YTD, D_YTD and D_NEXT_O_ID, the columns that most transactions write.
//!
//! They lie apart, each in a space of its own, or with `columns=rows` before the other columns of
//! their rows. In a row, whoever reads a tax or a name meets whoever writes one of these: under a
//! protocol that locks, a New-Order and a Payment of a district do.

use muesli::procedures::Keys;
use muesli::{Key, SmallBytes, Space, Stop, TypedSpace};
use serde::Deserialize;

use super::lookup::{missing, needed};
use crate::tpcc::ids::DistrictId;
use crate::tpcc::layout::Layout;
use crate::tpcc::rows::{District, Warehouse};
use crate::tpcc::tables::Sums;

/// A row of a warehouse with W_YTD.
pub(in crate::tpcc) type WarehouseRow = (i64, Warehouse);
/// A row of a district with D_YTD and D_NEXT_O_ID.
pub(in crate::tpcc) type DistrictRow = ((i64, u32), District);

impl Layout {
    /// Warehouses with W_YTD.
    pub fn warehouse_rows(&self) -> TypedSpace<u32, WarehouseRow> {
        self.tables.warehouses.raw().typed()
    }

    /// Districts with D_YTD and D_NEXT_O_ID.
    pub fn district_rows(&self) -> TypedSpace<DistrictId, DistrictRow> {
        self.tables.districts.raw().typed()
    }
}

/// Adds a payment to W_YTD and D_YTD.
pub(super) fn add_up(
    keys: &mut Keys<'_>,
    layout: &Layout,
    district: DistrictId,
    amount: i64,
) -> Result<(), Stop> {
    let tables = &layout.tables;
    if layout.rows {
        add_first(keys, tables.warehouses.raw(), &district.warehouse, amount)?;
        return add_first(keys, tables.districts.raw(), &district, amount);
    }
    add(keys, tables.warehouse_ytd, &district.warehouse, amount)?;
    add(keys, tables.district_ytd, &district, amount)
}

fn add<K: Key>(keys: &mut Keys<'_>, sums: Sums<K>, key: &K, amount: i64) -> Result<(), Stop> {
    let key = keys.encoded(key);
    let found = keys.get(sums.raw(), &key)?;
    let sum = found.as_ref().and_then(Sums::<K>::decode).ok_or_else(|| missing("a sum"))?;
    keys.put(sums.raw(), key, Sums::<K>::encode(sum + amount))
}

/// Adds to the first column of a row.
fn add_first<K: Key>(keys: &mut Keys<'_>, space: Space, key: &K, amount: i64) -> Result<(), Stop> {
    let key = keys.encoded(key);
    let row = needed(keys, space, &key, "a row")?;
    let (sum, rest): (i64, _) = Keys::decode_first(&row)?;
    let value = keys.encode_before(&(sum + amount), rest)?;
    keys.put(space, key, value)
}

/// D_NEXT_O_ID.
pub(super) fn next_number(
    keys: &mut Keys<'_>,
    layout: &Layout,
    district: DistrictId,
) -> Result<u32, Stop> {
    if !layout.rows {
        let next = keys.read(layout.tables.next_order, &district)?;
        return next.ok_or_else(|| missing("D_NEXT_O_ID"));
    }
    let key = keys.encoded(&district);
    let row = needed(keys, layout.tables.districts.raw(), &key, "a district")?;
    Keys::decode::<(i64, u32)>(&row).map(|(_, next)| next)
}

/// Takes the district's next order number.
pub(super) fn take_number(
    keys: &mut Keys<'_>,
    layout: &Layout,
    district: DistrictId,
) -> Result<u32, Stop> {
    if !layout.rows {
        let number = next_number(keys, layout, district)?;
        keys.write(layout.tables.next_order, &district, &(number + 1))?;
        return Ok(number);
    }
    let (space, key) = (layout.tables.districts.raw(), keys.encoded(&district));
    let row = needed(keys, space, &key, "a district")?;
    let ((ytd, number), rest): ((i64, u32), _) = Keys::decode_first(&row)?;
    let value = keys.encode_before(&(ytd, number + 1), rest)?;
    keys.put(space, key, value)?;
    Ok(number)
}

/// The rows of a district's warehouse and of the district, for [`warehouse`] and [`district`].
pub(super) fn rows_of(
    keys: &mut Keys<'_>,
    layout: &Layout,
    district: DistrictId,
) -> Result<(SmallBytes, SmallBytes), Stop> {
    let tables = &layout.tables;
    let key = keys.encoded(&district.warehouse);
    let warehouse = needed(keys, tables.warehouses.raw(), &key, "a warehouse")?;
    let key = keys.encoded(&district);
    Ok((warehouse, needed(keys, tables.districts.raw(), &key, "a district")?))
}

/// The first of a warehouse's columns behind W_YTD.
pub(super) fn warehouse<'b, T: Deserialize<'b>>(
    layout: &Layout,
    row: &'b SmallBytes,
) -> Result<T, Stop> {
    match layout.rows {
        true => Keys::decode::<(i64, T)>(row).map(|(_, columns)| columns),
        false => Keys::decode(row),
    }
}

/// The first of a district's columns behind D_YTD and D_NEXT_O_ID.
pub(super) fn district<'b, T: Deserialize<'b>>(
    layout: &Layout,
    row: &'b SmallBytes,
) -> Result<T, Stop> {
    match layout.rows {
        true => Keys::decode::<(i64, u32, T)>(row).map(|(_, _, columns)| columns),
        false => Keys::decode(row),
    }
}
