//! The rows: resources, and customers with what they have reserved.
//!
//! A resource is two rows, its price and its counts, so that who asks for prices is not in the way
//! of who reserves. Counts are three numbers as actions add to them.

use muesli::{Error, SmallBytes};

/// Cars, flights, rooms.
pub(super) const TABLES: u8 = 3;
/// The table whose resources are removed whole.
pub(super) const FLIGHTS: u8 = 1;
/// Prices are this plus up to four times [`PRICE_STEP`].
pub(super) const PRICE_LEAST: u32 = 50;
pub(super) const PRICE_STEP: u32 = 10;

/// Whether a resource can have this price.
pub(super) fn is_price(price: u32) -> bool {
    (0..5).any(|step| price == PRICE_LEAST + PRICE_STEP * step)
}

/// A resource: a table and a number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ResourceRow {
    pub table: u8,
    pub id: u32,
}

/// How many units of a resource there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub used: i64,
    pub free: i64,
    pub total: i64,
}

/// Something that a customer has reserved, at the price of then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReservedEntry {
    pub resource: ResourceRow,
    pub price: u32,
}

impl ResourceRow {
    fn key(self, part: u8) -> SmallBytes {
        let mut key = vec![self.table, part];
        key.extend_from_slice(&self.id.to_be_bytes());
        key.into()
    }

    pub fn price_key(self) -> SmallBytes {
        self.key(b'p')
    }

    pub fn counts_key(self) -> SmallBytes {
        self.key(b'c')
    }
}

pub(super) fn customer_key(id: u32) -> SmallBytes {
    id.to_be_bytes().to_vec().into()
}

pub(super) fn encode_price(price: u32) -> SmallBytes {
    price.to_le_bytes().to_vec().into()
}

pub(super) fn decode_price(value: &SmallBytes) -> Result<u32, Error> {
    value.as_slice().try_into().map(u32::from_le_bytes).map_err(|_| broken("price", value))
}

impl Counts {
    pub fn encode(&self) -> SmallBytes {
        let numbers = [self.used, self.free, self.total];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    pub fn decode(value: &SmallBytes) -> Result<Counts, Error> {
        let (numbers, rest) = value.as_slice().as_chunks::<8>();
        match numbers {
            [used, free, total] if rest.is_empty() => Ok(Counts {
                used: i64::from_le_bytes(*used),
                free: i64::from_le_bytes(*free),
                total: i64::from_le_bytes(*total),
            }),
            _ => Err(broken("counts", value)),
        }
    }

    /// These after so many units more in use, free, and in all.
    pub fn plus(self, by: [i64; 3]) -> Counts {
        let Counts { used, free, total } = self;
        Counts { used: used + by[0], free: free + by[1], total: total + by[2] }
    }
}

const ENTRY_BYTES: usize = 9;

pub(super) fn encode_entries(entries: &[ReservedEntry]) -> SmallBytes {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        bytes.push(entry.resource.table);
        bytes.extend_from_slice(&entry.resource.id.to_le_bytes());
        bytes.extend_from_slice(&entry.price.to_le_bytes());
    }
    bytes.into()
}

pub(super) fn decode_entries(value: &SmallBytes) -> Result<Vec<ReservedEntry>, Error> {
    let (entries, rest) = value.as_slice().as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() {
        return Err(broken("entries", value));
    }
    let decode = |&[table, a, b, c, d, e, f, g, h]: &[u8; ENTRY_BYTES]| ReservedEntry {
        resource: ResourceRow { table, id: u32::from_le_bytes([a, b, c, d]) },
        price: u32::from_le_bytes([e, f, g, h]),
    };
    Ok(entries.iter().map(decode).collect())
}

fn broken(what: &str, value: &SmallBytes) -> Error {
    Error::Codec(format!("{what} of {} bytes", value.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_back(
            numbers: [i32; 3],
            price: u32,
            entries in prop::collection::vec((0u8..3, any::<u32>()), 0..9),
        ) {
            let [used, free, total] = numbers.map(i64::from);
            let counts = Counts { used, free, total };
            prop_assert_eq!(Counts::decode(&counts.encode()), Ok(counts));
            prop_assert_eq!(decode_price(&encode_price(price)), Ok(price));
            let entry = |(table, id)| ReservedEntry { resource: ResourceRow { table, id }, price };
            let entries: Vec<_> = entries.into_iter().map(entry).collect();
            prop_assert_eq!(decode_entries(&encode_entries(&entries)), Ok(entries));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            let bytes = SmallBytes::from(bytes);
            let _ = (Counts::decode(&bytes), decode_price(&bytes), decode_entries(&bytes));
        }
    }
}
