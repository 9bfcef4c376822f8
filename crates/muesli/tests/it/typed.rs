//! Typed spaces: keys by the forms that borrow, ranges by typed bounds, rows that change.

use muesli::{Db, Error, Key, KeyRange, Options, SpaceOptions, StartsWith, Tx, derive_key};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

fn open() -> Db {
    let options = Options { repositories: 3, ..Options::default() };
    Db::open(options.space("people", SpaceOptions::default())).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Town(u16);
derive_key!(Town(u16));

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    town: Town,
    street: String,
    address: [u8; 2],
}
derive_key!(Place { town, street, address });

#[test]
fn keys_are_asked_for_by_whatever_names_them() {
    let db = open();
    let people = db.space("people").unwrap();
    let (names, pairs) = (people.typed::<String, u32>(), people.typed::<(u32, Vec<u8>), u32>());
    let places = people.typed::<Place, u32>();
    let place = Place { town: Town(3), street: "Main".to_owned(), address: [1, 2] };
    let found = db.blocking().transact(async move |tx| {
        names.put(tx, "ann", &1).await?;
        pairs.put(tx, &(7, b"x".as_slice()), &2).await?;
        places.put(tx, &place, &3).await?;
        names.delete(tx, &"bob".to_owned()).await?;
        let pair = pairs.get(tx, &(7, b"x".to_vec())).await?;
        let many = names.get_many(tx, &["ann", "bob"]).await?;
        Ok::<_, Error>((
            names.get(tx, &"ann".to_owned()).await?,
            pair,
            many,
            places.get(tx, &place).await?,
        ))
    });
    assert_eq!(found, Ok((Some(1), Some(2), vec![Some(1), None], Some(3))));
}

/// What `Range::prefix` of an encoded string cannot: that string has an end of its own.
#[test]
fn a_prefix_is_one() {
    let db = open();
    let space = db.space("people").unwrap();
    let (names, ordered) = (space.typed::<String, u8>(), space.typed::<(u32, String), u8>());
    let found = db.blocking().transact(async move |tx| {
        for name in ["an", "ann", "ann\0", "anna", "anne", "bob"] {
            names.put(tx, name, &0).await?;
            ordered.put(tx, &(1, name), &0).await?;
            ordered.put(tx, &(2, name), &0).await?;
        }
        let by_name = names.range(tx, KeyRange::prefix("ann").limit(3)).await?;
        let all = ordered.range(tx, KeyRange::prefix(&(1,))).await?;
        let some = KeyRange::prefix(&(2, StartsWith("ann"))).reverse();
        Ok::<_, Error>((by_name, all, ordered.range(tx, some).await?))
    });
    let (by_name, all, some) = found.unwrap();
    let by_name: Vec<_> = by_name.into_iter().map(|(name, _)| name).collect();
    assert_eq!(by_name, ["ann", "ann\0", "anna"]);
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|((number, _), _)| *number == 1));
    let some: Vec<_> = some.into_iter().map(|((_, name), _)| name).collect();
    assert_eq!(some, ["anne", "anna", "ann\0", "ann"]);
}

/// Reads a range by a stream and at once; both are what a sorted list has.
fn compare(db: &Db, (lo, hi): (i32, i32), limit: usize, reverse: bool) {
    let numbers = db.space("people").unwrap().typed::<i32, u8>();
    let range = KeyRange::of(lo..=hi).limit(limit);
    let range = if reverse { range.reverse() } else { range };
    let read = async move |tx: &Tx| {
        let mut rows = numbers.rows(tx, range.clone());
        let mut streamed = Vec::new();
        while let Some((key, _)) = rows.next().await? {
            streamed.push(key);
        }
        let at_once = numbers.range(tx, range.clone()).await?;
        Ok::<_, Error>((streamed, at_once.into_iter().map(|(key, _)| key).collect::<Vec<_>>()))
    };
    let (streamed, at_once) = db.read_only().blocking().transact(read).unwrap();
    let mut expected: Vec<i32> = (-400..400).filter(|key| (lo..=hi).contains(key)).collect();
    if reverse {
        expected.reverse();
    }
    expected.truncate(limit);
    assert_eq!((&streamed, &at_once), (&expected, &expected), "{lo}..={hi} {limit} {reverse}");
}

#[test]
fn ranges_are_read_at_once_and_as_streams() {
    let db = open();
    let numbers = db.space("people").unwrap().typed::<i32, u8>();
    let fill = async move |tx: &Tx| {
        for key in -400..400 {
            numbers.put(tx, &key, &0).await?;
        }
        Ok::<_, Error>(())
    };
    db.blocking().transact(fill).unwrap();
    // Pages of 256 rows: ranges that end with one, and limits within and beyond.
    for range in [(-400, 399), (0, 255), (-300, 211), (5, 4), (399, 1_000)] {
        for limit in [0, 1, 255, 256, 257, 512, usize::MAX] {
            compare(&db, range, limit, false);
            compare(&db, range, limit, true);
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Person {
    name: String,
    age: u32,
}

/// A field more, which stands first, one less, and one that has another name.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PersonNow {
    #[serde(default)]
    towns: Vec<String>,
    #[serde(alias = "age")]
    years: u32,
}

#[test]
fn rows_with_named_fields_outlive_a_change_of_their_type() {
    let db = open();
    let space = db.space("people").unwrap();
    let (before, now) = (space.named::<u32, Person>(), space.named::<u32, PersonNow>());
    let done = db.blocking().transact(async move |tx| {
        before.put(tx, &1, &Person { name: "ann".to_owned(), age: 30 }).await?;
        now.get(tx, &1).await
    });
    assert_eq!(done, Ok(Some(PersonNow { towns: Vec::new(), years: 30 })));
}

#[test]
fn what_cannot_be_read_is_told_with_its_space_its_key_and_its_type() {
    let db = open();
    let space = db.space("people").unwrap();
    let (before, now) = (space.typed::<String, u8>(), space.typed::<String, PersonNow>());
    let read = db.blocking().transact(async move |tx| {
        before.put(tx, "ann", &200).await?;
        now.get(tx, "ann").await
    });
    let Err(Error::Codec(text)) = read else { panic!("it was read: {read:?}") };
    let all = ["space `people`", "key `ann", "PersonNow`", "postcard"];
    assert!(all.iter().all(|part| text.contains(part)), "{text}");
    let numbers = space.typed::<u8, u8>();
    let rows = db.blocking().transact(async move |tx| {
        before.put(tx, "ann", &200).await?;
        numbers.range(tx, KeyRange::all()).await
    });
    let Err(Error::Codec(text)) = rows else { panic!("it was read: {rows:?}") };
    assert!(text.contains("space `people`") && text.contains("`u8`"), "{text}");
}

proptest! {
    #[test]
    fn derived_keys_keep_their_order(
        a: (u16, String, [u8; 2]), b: (u16, String, [u8; 2]), same: bool,
    ) {
        let of = |(town, street, address): &(u16, String, [u8; 2])| {
            Place { town: Town(*town), street: street.clone(), address: *address }
        };
        let (x, mut y) = (of(&a), of(&b));
        if same {
            y.town = x.town;
        }
        prop_assert_eq!(x.encoded().cmp(&y.encoded()), x.cmp(&y));
        prop_assert_eq!(Place::decoded(x.encoded().as_slice()), Ok(x));
    }
}

#[test]
fn rows_are_a_stream() {
    use futures_util::{Stream, StreamExt, TryStreamExt};
    let db = open();
    let space = db.space("people").unwrap();
    let numbers = space.typed::<u32, u32>();
    let body = async move |tx: &Tx| {
        for key in 0..700 {
            numbers.put(tx, &key, &(key * 2)).await?;
        }
        let all: Vec<_> = numbers.rows(tx, KeyRange::all()).try_collect().await?;
        let mut rows = numbers.rows(tx, KeyRange::of(10..650).reverse());
        assert_eq!(rows.size_hint(), (0, None));
        let second = StreamExt::next(&mut rows).await.transpose()?.zip(rows.next().await?);
        let odd = numbers.rows(tx, KeyRange::all().limit(300));
        let odd = odd.try_filter(|(key, _)| std::future::ready(key % 2 == 1)).count().await;
        Ok::<_, Error>((all, second, odd))
    };
    let (all, second, odd) = db.blocking().transact(body).unwrap();
    assert_eq!(all, (0..700).map(|key| (key, key * 2)).collect::<Vec<_>>());
    assert_eq!(second, Some(((649, 1_298), (648, 1_296))));
    assert_eq!(odd, 150);
}

#[test]
fn an_error_is_the_last_item_of_a_stream_of_rows() {
    use futures_util::StreamExt;
    let db = open();
    let space = db.space("people").unwrap();
    let (written, read) = (space.typed::<u32, u32>(), space.typed::<u32, String>());
    let body = async move |tx: &Tx| {
        written.put(tx, &1, &300).await?;
        written.put(tx, &2, &300).await?;
        Ok::<_, Error>(read.rows(tx, KeyRange::all()).collect::<Vec<_>>().await)
    };
    let rows = db.blocking().transact(body).unwrap();
    assert!(matches!(&rows[..], [Err(Error::Codec(_))]), "{rows:?}");
}
