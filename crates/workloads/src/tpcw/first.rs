//! What is there at first: a function of the parameters alone.

use super::plans::loads::{LoadedCustomer, LoadedItem, LoadedOrder};
use super::tables::{
    Author, BY_AUTHOR, BY_SUBJECT, BY_TITLE, CardCharge, Country, ItemDetails, ItemFacts,
    ItemOrder, ItemOrderLine, ItemStock, OrderSums, PostalAddress, Shopper,
};
use crate::chance::Chance;
use crate::distribution::fnv_hash;

/// How many countries there are, and subjects.
pub(super) const COUNTRIES: u8 = 92;
pub(super) const SUBJECTS: u8 = 24;

/// Streams of chance, apart from those of clients.
const OF_ITEMS: u64 = 3 << 40;
const OF_CUSTOMERS: u64 = 4 << 40;

const SYLLABLES: [&str; 10] = ["BA", "OG", "AL", "RI", "RE", "SE", "AT", "UL", "IN", "NG"];

/// A number in syllables, two letters for each of its digits, of which there are so many at least.
pub(super) fn syllables(number: u64, digits: usize) -> String {
    let digit = |letter: u8| SYLLABLES[usize::from(letter - b'0')];
    format!("{number:0digits$}").bytes().map(digit).collect()
}

/// The data of a shop: all that is not drawn by clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstData {
    pub items: u32,
    pub customers: u64,
}

impl FirstData {
    pub fn authors(&self) -> u32 {
        (self.items / 4).max(1)
    }

    pub fn country(number: u8) -> Country {
        Country { name: syllables(number.into(), 2), exchange: 500 + 25 * u32::from(number) }
    }

    /// What authors and titles are searched by: a number of so many.
    pub fn searched_authors(&self) -> u64 {
        u64::from(self.items / 10) + 1
    }

    pub fn searched_titles(&self) -> u64 {
        u64::from(self.items / 5) + 1
    }

    pub fn author(&self, number: u32) -> Author {
        let hash = fnv_hash(u64::from(number) << 8);
        Author {
            first: syllables(hash % 100_000, 5),
            last: syllables(hash % self.searched_authors(), 7),
            biography: format!("{hash:064x}"),
        }
    }

    /// The constant of the specification's NURand for customers, which goes by how many there are.
    pub fn drawn_with_customer(&self) -> u64 {
        match self.customers {
            0..10_000 => 1_023,
            10_000..40_000 => 4_095,
            40_000..160_000 => 16_383,
            160_000..640_000 => 65_535,
            _ => 262_143,
        }
    }

    fn item_chance(item: u32) -> Chance {
        Chance::new(OF_ITEMS | u64::from(item), 0, 0)
    }

    pub fn item(&self, item: u32) -> LoadedItem {
        let mut chance = FirstData::item_chance(item);
        let author = if item <= self.authors() { item } else { self.any_author(&mut chance) };
        let title = chance.below(self.searched_titles());
        let retail_price = chance.between(100, 99_999) as i64;
        let facts = ItemFacts {
            title: syllables(title, 7),
            author,
            publisher: syllables(chance.below(1_000_000), 7),
            subject: chance.below(SUBJECTS.into()) as u8,
            description: format!("{:0200x}", fnv_hash(item.into())),
            retail_price,
            pages: chance.between(20, 9_999) as u16,
            backing: chance.below(5) as u8,
        };
        let details = ItemDetails {
            cost: retail_price * (100 - chance.below(51) as i64) / 100,
            picture: item,
            thumbnail: item,
            published: chance.below(25_000) as u32,
            related: self.five_from(chance.below(self.items.into()) as u32),
            updates: 0,
        };
        LoadedItem { item, facts, details }
    }

    fn any_author(&self, chance: &mut Chance) -> u32 {
        chance.between(1, self.authors().into()) as u32
    }

    /// Five items, one after the other.
    pub fn five_from(&self, first: u32) -> [u32; 5] {
        [0, 1, 2, 3, 4].map(|number| 1 + (first + number) % self.items)
    }

    /// Under what an item is found.
    pub fn searches(&self, item: &LoadedItem) -> [(u8, String); 3] {
        [
            (BY_AUTHOR, self.author(item.facts.author).last),
            (BY_TITLE, item.facts.title.clone()),
            (BY_SUBJECT, item.facts.subject.to_string()),
        ]
    }

    pub fn stock(item: u32) -> ItemStock {
        let left = 10 + (fnv_hash(!u64::from(item)) % 21) as i64;
        ItemStock { left, ..ItemStock::default() }
    }

    /// A customer that is registered with this address.
    pub fn shopper(customer: u64, discount: u8, address: &PostalAddress) -> Shopper {
        let name = syllables(customer, 1);
        Shopper {
            password: name.to_lowercase(),
            name,
            address: FirstData::address_number(address),
            discount,
            since: (fnv_hash(customer) % 730) as u32,
            login: 0,
            expiration: 0,
            logins: 0,
            orders: 0,
        }
    }

    pub fn address(drawn: u64) -> PostalAddress {
        PostalAddress {
            street: format!("{:020x}", fnv_hash(drawn)),
            city: syllables(drawn % 10_000, 4),
            zip: format!("{:05}", drawn % 99_991),
            country: 1 + (drawn % u64::from(COUNTRIES)) as u8,
        }
    }

    /// The number of an address: it follows from all of it.
    pub fn address_number(address: &PostalAddress) -> u64 {
        let PostalAddress { street, city, zip, country } = address;
        let text = format!("{street} {city} {zip} {country}");
        text.bytes().fold(7, |hash, byte| fnv_hash(hash ^ u64::from(byte)))
    }

    pub fn customer(&self, customer: u64) -> LoadedCustomer {
        let mut chance = Chance::new(OF_CUSTOMERS | customer, 0, 0);
        let address = FirstData::address(chance.below(1 << 30));
        let discount = chance.below(51) as u8;
        let mut shopper = FirstData::shopper(customer, discount, &address);
        let number = FirstData::address_number(&address);
        // Nine of ten have an order.
        let has_order = chance.percent(90.0);
        shopper.orders = u32::from(has_order);
        let order = has_order.then(|| self.order(number, &mut chance));
        LoadedCustomer { customer, shopper, address, order: order.into_iter().collect() }
    }

    fn order(&self, address: u64, chance: &mut Chance) -> LoadedOrder {
        let line = |chance: &mut Chance| ItemOrderLine {
            item: chance.between(1, self.items.into()) as u32,
            quantity: chance.between(1, 300) as u32,
            cost: 0,
            comments: syllables(chance.below(1_000_000_000), 10),
        };
        let lines: Vec<_> = (0..chance.between(1, 5)).map(|_| line(chance)).collect();
        // What loaded orders come to is not the sum of their lines.
        let goods = chance.between(1_000, 999_999) as i64;
        let tax = goods * 825 / 10_000;
        let sums = OrderSums { goods, tax, total: goods + tax + 300 + 100 * lines.len() as i64 };
        let order = ItemOrder {
            date: 0,
            sums,
            ship_type: chance.below(6) as u8,
            status: chance.below(4) as u8,
            billed_to: address,
            shipped_to: address,
            discount: 0,
        };
        let country = chance.between(1, COUNTRIES.into()) as u8;
        let (kind, number) = (chance.below(5) as u8, chance.below(1 << 50));
        let charge = CardCharge { kind, number, amount: sums.total, country };
        LoadedOrder { order, lines, charge }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn customers_are_drawn_by_how_many_there_are() {
        let of = |customers| FirstData { items: 10, customers }.drawn_with_customer();
        let sizes = [2_880, 9_999, 10_000, 40_000, 160_000, 639_999, 640_000, 1_000_000];
        let most = [1_023, 1_023, 4_095, 16_383, 65_535, 65_535, 262_143, 262_143];
        assert_eq!(sizes.map(of), most);
    }
}
