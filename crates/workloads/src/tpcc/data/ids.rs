//! The keys of TPC-C's rows, in the order in which their spaces are scanned.
//!
//! Every key but an item's begins with a warehouse, so that a database that deals keys by ranges
//! can keep a warehouse together.

use muesli::{AsKey, KeyPrefix, derive_key};
use serde::{Deserialize, Serialize};

/// A district of a warehouse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::tpcc) struct DistrictId {
    /// From 1.
    pub warehouse: u32,
    /// From 1, to 10 at most.
    pub number: u8,
}

/// A customer of a district.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::tpcc) struct CustomerId {
    pub district: DistrictId,
    /// From 1.
    pub number: u32,
}

/// An order of a district, and its NEW-ORDER row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::tpcc) struct OrderId {
    pub district: DistrictId,
    /// From 1, without gaps.
    pub number: u32,
}

/// A line of an order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tpcc) struct LineId {
    pub order: OrderId,
    /// From 1.
    pub number: u8,
}

/// An order as its customer finds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tpcc) struct CustomerOrder {
    pub customer: CustomerId,
    /// The order's number.
    pub order: u32,
}

/// A customer as its name finds it: those of one name by their first names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tpcc) struct CustomerName {
    pub district: DistrictId,
    pub last: String,
    pub first: String,
    /// The customer's number.
    pub customer: u32,
}

/// A row of the history, which has no key in the standard: the district that was paid, and who
/// wrote the row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::tpcc) struct PaymentId {
    pub district: DistrictId,
    /// 0 for the loader, else one above the client's number.
    pub writer: u32,
    /// Different for each payment of a writer.
    pub sequence: u64,
}

/// What a warehouse has of an item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tpcc) struct StockId {
    pub warehouse: u32,
    pub item: u32,
}

/// An item, and whose copy of it this is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tpcc) struct ItemId {
    /// 0 where all warehouses share one copy.
    pub warehouse: u32,
    /// From 1.
    pub item: u32,
}

derive_key!(DistrictId { warehouse, number });
derive_key!(CustomerId { district, number });
derive_key!(OrderId { district, number });
derive_key!(LineId { order, number });
derive_key!(CustomerOrder { customer, order });
derive_key!(CustomerName { district, last, first, customer });
derive_key!(PaymentId { district, writer, sequence });
derive_key!(StockId { warehouse, item });
derive_key!(ItemId { warehouse, item });

macro_rules! scanned_by {
    ($($key:ident, $first:ident;)+) => {$(
        /// All keys that begin with this part.
        impl KeyPrefix<$key> for $first {
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                self.encode_key(out);
            }
        }
    )+};
}

scanned_by! {
    OrderId, DistrictId;
    LineId, OrderId;
    CustomerOrder, CustomerId;
}

/// Those of a last name in a district.
impl KeyPrefix<CustomerName> for (DistrictId, &str) {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        self.0.encode_key(out);
        self.1.encode_key(out);
    }
}

macro_rules! derive_ids {
    ($($id:ident ($it:ident) $format:literal, $($part:expr),+;)+) => {$(
        /// Its numbers, as complaints name it.
        impl std::fmt::Debug for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                write!(f, $format, $($part),+)
            }
        }
    )+};
}

derive_ids! {
    DistrictId (it) "{}.{}", it.warehouse, it.number;
    CustomerId (it) "{:?}.c{}", it.district, it.number;
    OrderId (it) "{:?}.o{}", it.district, it.number;
    LineId (it) "{:?}.{}", it.order, it.number;
    CustomerOrder (it) "{:?}.o{}", it.customer, it.order;
    CustomerName (it) "{:?}.{}.{}.c{}", it.district, it.last, it.first, it.customer;
    PaymentId (it) "{:?}.h{}.{}", it.district, it.writer, it.sequence;
    StockId (it) "{}.s{}", it.warehouse, it.item;
    ItemId (it) "{}.i{}", it.warehouse, it.item;
}

impl DistrictId {
    /// A customer of this district.
    pub fn customer(self, number: u32) -> CustomerId {
        CustomerId { district: self, number }
    }

    /// An order of this district.
    pub fn order(self, number: u32) -> OrderId {
        OrderId { district: self, number }
    }
}

#[cfg(test)]
mod tests {
    use muesli::Key;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_come_back_and_sort_as_they_are_scanned(
            a: (u32, u8, u32, u64), b: (u32, u8, u32, u64), names: [String; 4],
        ) {
            let district = |it: (u32, u8, u32, u64)| {
                DistrictId { warehouse: it.0 % 3, number: it.1 % 3 }
            };
            let payment = |it: (u32, u8, u32, u64)| {
                PaymentId { district: district(it), writer: it.2, sequence: it.3 }
            };
            let (x, y) = (payment(a), payment(b));
            prop_assert_eq!(x.cmp(&y), x.encoded().cmp(&y.encoded()));
            prop_assert_eq!(PaymentId::decoded(x.encoded().as_slice()), Ok(x));
            let [l, m, n, o] = names;
            let x = CustomerName { district: district(a), last: l, first: m, customer: a.2 };
            let y = CustomerName { district: district(b), last: n, first: o, customer: b.2 };
            prop_assert_eq!(x.cmp(&y), x.encoded().cmp(&y.encoded()));
            prop_assert_eq!(CustomerName::decoded(x.encoded().as_slice()), Ok(x));
            let line = LineId { order: district(a).order(a.2), number: b.1 };
            prop_assert_eq!(LineId::decoded(line.encoded().as_slice()), Ok(line));
        }
    }
}
