//! Single operations on objects, each a transaction of its own.

use muesli::blocking::block_on;
use muesli::objects::{Object, Objects};
use muesli::{Db, Error, Options, SpaceOptions};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Object, Serialize, Deserialize)]
struct Stock {
    count: u32,
}

#[test]
fn an_object_is_made_changed_read_and_deleted_by_single_operations() {
    for protocol in ["score", "tfa", "gmu", "repeatable-read", "granola", "alvin"] {
        let options = Options { protocol: protocol.to_owned(), ..Options::default() };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let stocks: Objects<u32, Stock> = Objects::new(db.space("s").unwrap(), "stocks");
        block_on(async {
            stocks.remove(&db, &1).await?; // There is none.
            stocks.insert(&db, &1, Stock { count: 3 }).await?;
            let twice = stocks.insert(&db, &1, Stock { count: 9 }).await;
            assert!(matches!(twice, Err(Error::ObjectExists { .. })), "{protocol}: {twice:?}");
            assert_eq!(stocks.modify(&db, &1, |it| it.count).await?, 3, "{protocol}");
            stocks.remove(&db, &1).await?;
            assert_eq!(stocks.read(&db, &1).await?, None, "{protocol}");
            stocks.insert(&db, &1, Stock { count: 4 }).await?;
            assert_eq!(stocks.read(&db, &1).await?, Some(Stock { count: 4 }), "{protocol}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
