//! What must hold of resources and customers after a run.

use hashbrown::HashMap;
use muesli::{Db, Error};

use super::rows::{
    Counts, ReservedEntry, ResourceRow, TABLES, customer_key, decode_entries, decode_price,
    is_price,
};
use super::{CUSTOMERS, RESOURCES, Vacation};
use crate::check::{Check, Complaints};
use crate::reading::read_many;

/// Everything there is.
struct Everything {
    /// Price and counts of each resource, in order.
    resources: Vec<(ResourceRow, Option<u32>, Option<Counts>)>,
    customers: Vec<(u32, Vec<ReservedEntry>)>,
}

pub(super) async fn check(vacation: &Vacation, db: &Db) -> Result<Vec<Check>, Error> {
    let all = read_all(vacation, db).await?;
    let (sound, reservations) = (sound(vacation, &all), reservations(&all));
    let entries: usize = all.customers.iter().map(|(_, entries)| entries.len()).sum();
    let there = all.resources.iter().filter(|(_, price, _)| price.is_some()).count();
    let (mut least, mut most) = ([0_i64; 2], [0_i64; 2]);
    let (mut looks, mut wrong) = (0, Complaints::default());
    for mut ledger in vacation.ledgers.all() {
        ledger.begin_incarnation();
        looks += ledger.looks;
        wrong.extend(&ledger.wrong);
        for place in 0..2 {
            let open = || ledger.perhaps.iter().map(|added| added[place]);
            least[place] += ledger.sure[place] + open().map(|by| by.min(0)).sum::<i64>();
            most[place] += ledger.sure[place] + open().map(|by| by.max(0)).sum::<i64>();
        }
    }
    let first: i64 = vacation.first().map(|(_, counts, _)| counts.total).sum();
    let units: i64 = all.resources.iter().filter_map(|it| it.2).map(|counts| counts.total).sum();
    let customers = all.customers.len() as i64;
    let booked = |name, found: i64, first: i64, place: usize| {
        let bounds = first + least[place]..=first + most[place];
        Check { name, ok: bounds.contains(&found), details: format!("{found} of {bounds:?}") }
    };
    Ok(vec![
        Check::none_wrong("resources are sound", &sound, format!("{there} there")),
        Check::none_wrong("units in use are those reserved", &reservations, format!("{entries}")),
        booked("units are those that were added and taken", units, first, 0),
        booked("customers are those that came and went", customers, vacation.keys.into(), 1),
        Check::none_wrong("prices can be", &wrong, format!("{looks} looked at")),
    ])
}

/// Whether each resource is there as a whole, with units that add up.
fn sound(vacation: &Vacation, all: &Everything) -> Complaints {
    let mut wrong = Complaints::default();
    for (resource, price, counts) in &all.resources {
        let sound = match (price, counts) {
            (None, None) => true,
            (Some(price), Some(Counts { used, free, total })) => {
                let enough = *free >= 0 || vacation.delayed;
                is_price(*price) && *used >= 0 && enough && *total > 0 && used + free == *total
            }
            _ => false,
        };
        if !sound {
            wrong.add(|| format!("{resource:?} costs {price:?} and has {counts:?}"));
        }
    }
    wrong
}

/// Whether as many units of each resource are in use as customers hold, each once.
fn reservations(all: &Everything) -> Complaints {
    let mut wrong = Complaints::default();
    let mut held: HashMap<ResourceRow, i64> = HashMap::new();
    for (customer, entries) in &all.customers {
        for (place, entry) in entries.iter().enumerate() {
            *held.entry(entry.resource).or_default() += 1;
            let again = entries[..place].iter().any(|other| other.resource == entry.resource);
            if again || !is_price(entry.price) {
                wrong.add(|| format!("customer {customer} holds {entry:?}, once more: {again}"));
            }
        }
    }
    for (resource, _, counts) in &all.resources {
        let (used, held) = (counts.map_or(0, |counts| counts.used), held.remove(resource));
        if used != held.unwrap_or(0) {
            wrong.add(|| format!("{used} of {resource:?} are in use, {held:?} reserved"));
        }
    }
    if !held.is_empty() {
        wrong.add(|| format!("{} resources are reserved that cannot be", held.len()));
    }
    wrong
}

async fn read_all(vacation: &Vacation, db: &Db) -> Result<Everything, Error> {
    let (resources, customers) = (db.space(RESOURCES)?, db.space(CUSTOMERS)?);
    let all = (0..TABLES).flat_map(|table| (1..=vacation.keys).map(move |id| (table, id)));
    let all: Vec<_> = all.map(|(table, id)| ResourceRow { table, id }).collect();
    let prices =
        read_many(db, resources, &all.iter().map(|it| it.price_key()).collect::<Vec<_>>()).await?;
    let counts =
        read_many(db, resources, &all.iter().map(|it| it.counts_key()).collect::<Vec<_>>()).await?;
    let mut found = Vec::new();
    for ((resource, price), counts) in all.into_iter().zip(prices).zip(counts) {
        let price = price.map(|price| decode_price(&price)).transpose()?;
        found.push((resource, price, counts.map(|counts| Counts::decode(&counts)).transpose()?));
    }
    let rows = read_many(db, customers, &(1..=vacation.keys).map(customer_key).collect::<Vec<_>>())
        .await?;
    let mut customers = Vec::new();
    for (id, row) in (1..).zip(rows) {
        if let Some(row) = row {
            customers.push((id, decode_entries(&row)?));
        }
    }
    Ok(Everything { resources: found, customers })
}
