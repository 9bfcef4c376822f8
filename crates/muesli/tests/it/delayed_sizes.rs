//! Sizes of what is left to a transaction's turn: what it leaves, and what it gives.

use muesli::{
    Action, Connect, Db, DeferredAnswer, Error, Limit, Limits, Options, SmallBytes, SpaceOptions,
};
use muesli_cluster::ServerOptions;
use muesli_core::Settings;

use super::cluster::start_with;

fn small() -> Limits {
    Limits { value_bytes: 1_000, transaction_bytes: 5_000, key_bytes: 64, ..Limits::default() }
}

fn open() -> Db {
    let options = Options { protocol: "bumper".to_owned(), limits: small(), ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn append(db: &Db, bytes: usize) -> Result<(), Error> {
    let space = db.space("s")?;
    db.blocking()
        .transact(async move |tx| tx.defer(space, "k", Action::append(vec![7; bytes])).await)
}

fn length(db: &Db) -> usize {
    let space = db.space("s").unwrap();
    let value = db.blocking().transact(async move |tx| tx.get(space, "k").await).unwrap();
    value.map_or(0, |value: SmallBytes| value.len())
}

#[test]
fn an_append_that_leaves_too_much_is_refused_as_any_value_is() {
    let db = open();
    append(&db, 600).unwrap();
    let refused = append(&db, 401).unwrap_err();
    assert!(
        matches!(refused, Error::TooLarge { what: Limit::Value, size: 1_001, limit: 1_000 }),
        "{refused}"
    );
    append(&db, 400).unwrap();
    assert_eq!(length(&db), 1_000);
}

#[test]
fn a_server_that_allows_less_than_its_client_judges_what_is_left() {
    let servers = start_with(1, |_| ServerOptions {
        protocol: "bumper".to_owned(),
        settings: Settings { limits: small(), ..Settings::default() },
        ..ServerOptions::default()
    });
    let connect = Connect {
        addresses: servers.addresses.clone(),
        protocol: "bumper".to_owned(),
        ..Connect::default()
    };
    let db = Db::connect_with(connect).unwrap();
    db.create_space("s", SpaceOptions::default()).unwrap();
    append(&db, 600).unwrap();
    assert_eq!(append(&db, 401), Err(Error::OverServerLimit(Limit::Value)));
    append(&db, 400).unwrap();
    assert_eq!(length(&db), 1_000);
    drop(db);
    servers.stop();
}

#[test]
fn answers_that_have_no_room_are_told_as_that_and_their_transaction_is_committed() {
    let db = open();
    append(&db, 1_000).unwrap();
    let space = db.space("s").unwrap();
    let (all, results) = db
        .blocking()
        .transact_answering(async move |tx| {
            let mut all: Vec<DeferredAnswer<Option<SmallBytes>>> = Vec::new();
            for _ in 0..9 {
                all.push(tx.defer_returning(space, "k", Action::put_if_absent("x")).await?);
            }
            Ok::<_, Error>(all)
        })
        .unwrap();
    let given: Vec<_> = all.iter().map(|one| results.of(one)).collect();
    let whole =
        |it: &Result<Option<SmallBytes>, Error>| matches!(it, Ok(Some(it)) if it.len() == 1_000);
    assert!(given[..4].iter().all(whole), "{:?}", given[..4].iter().map(whole).collect::<Vec<_>>());
    let error = given[4].clone().unwrap_err().to_string();
    let expected = "a list of what delayed actions gave of 5120 bytes is over the limit of \
                    5000 bytes (`transaction_bytes_max`)";
    assert_eq!(error, expected);
    assert!(given[5..].iter().all(Result::is_err));
}
