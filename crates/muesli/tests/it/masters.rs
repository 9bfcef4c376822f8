//! Masters on loops and servers of their own, under Sinfonia.

use std::time::Duration;

use muesli::procedures::builtin::{self, Amount, Get, Keyed, number};
use muesli::{Connect, Db, Error, Options, Partitioning, SmallBytes, Space, SpaceOptions, Tx};
use muesli_cluster::lifecycle::visit;
use muesli_cluster::{Server, ServerOptions, StartError};
use muesli_core::{NodeId, Settings};

use super::cluster::start_with;

/// Two repositories: keys below `m`, and the others.
fn halves() -> SpaceOptions {
    SpaceOptions { partitioning: Partitioning::Range(vec!["m".into()]), ..SpaceOptions::default() }
}

fn add_to_both(db: &Db, space: Space) {
    let add = |key| Amount::of(space, key, 1);
    let call = db.call("add", 1).at(space.place("a"), &add("a")).at(space.place("z"), &add("z"));
    call.wait().unwrap();
}

fn read(db: &Db, space: Space, key: &'static str) -> Option<i64> {
    let keyed = Keyed { space, keys: vec![key.into()] };
    let found = db.read_only().blocking().execute::<Get>(space.place(key), &keyed).unwrap();
    found.into_iter().next().flatten().and_then(|it| number(&it.0))
}

const TIMES: i64 = 50;

/// What a thread's commit waits for comes from a loop without keys, while others leave it jobs.
#[test]
fn threads_that_block_hear_of_what_masters_decide() {
    let protocol = "sinfonia".to_owned();
    let options = Options { masters: 1, protocol, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let add = async move |tx: &Tx, number: u64| {
        let found = tx.get(space, "sum").await?;
        let sum = found.as_ref().and_then(number_of).unwrap_or(0);
        tx.put(space, "sum", SmallBytes::from((sum + number).to_be_bytes().as_slice())).await
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let blocking = db.session().blocking();
            scope.spawn(move || {
                for _ in 0..200 {
                    blocking.transact(async move |tx| add(tx, 1).await).unwrap();
                }
            });
        }
    });
    let sum = db.blocking().transact(async move |tx| tx.get(space, "sum").await).unwrap();
    assert_eq!(sum.as_ref().and_then(number_of), Some(800));
    db.close();
}

fn number_of(value: &SmallBytes) -> Option<u64> {
    Some(u64::from_be_bytes(value.as_slice().try_into().ok()?))
}

#[test]
fn a_loop_without_keys_decides_for_the_others() {
    for masters in [1, 2] {
        let protocol = "sinfonia".to_owned();
        let options =
            Options { repositories: 2, loops: 2, masters, protocol, ..Options::default() };
        let db = Db::open(options.space("s", halves())).unwrap();
        let space = db.space("s").unwrap();
        assert_eq!(db.loops(), 2);
        let clients: Vec<_> = (0..2).map(|_| db.session()).collect();
        std::thread::scope(|scope| {
            for client in &clients {
                scope.spawn(|| (0..TIMES).for_each(|_| add_to_both(client, space)));
            }
        });
        assert_eq!(["a", "z"].map(|key| read(&db, space, key)), [Some(2 * TIMES); 2]);
        let reports = db.close();
        assert_eq!(reports.len(), 2 + masters);
        // At least each request and each decision, for both; each loop's clients have their own.
        let message_count: u64 = reports[2..].iter().map(|report| report.messages).sum();
        assert!(message_count >= 4 * 2 * TIMES as u64, "{message_count} messages of masters");
    }
}

#[test]
fn masters_are_for_protocols_that_have_them() {
    let options = Options { masters: 1, ..Options::default() };
    let error = Db::open(options).expect_err("it is refused");
    let is_named =
        |text: &str| text.contains("`score` has no masters") && text.contains("sinfonia");
    assert!(matches!(&error, Error::Options(text) if is_named(text)), "{error}");
    let listen = "127.0.0.1:0".to_owned();
    let options = ServerOptions { listen, masters: vec![NodeId(3)], ..ServerOptions::default() };
    let error = Server::open(options.clone()).err().unwrap();
    assert!(matches!(error, StartError::Masters(_)), "{error}");
    let options = ServerOptions { protocol: "sinfonia".to_owned(), ..options };
    let error = Server::open(options).err().unwrap().to_string();
    assert!(error.contains("node 3 is to be a master"), "{error}");
}

#[test]
fn a_server_without_keys_decides_and_transactions_end_when_it_is_gone() {
    for group in [1, 2] {
        let servers = start_with(3, |_| {
            let (protocol, masters) = ("sinfonia".to_owned(), vec![NodeId(2)]);
            let settings = Settings { procedures: builtin::all(), ..Settings::default() };
            let options = ServerOptions { repositories: 2, group, ..ServerOptions::default() };
            ServerOptions { protocol, masters, settings, ..options }
        });
        let addresses = servers.addresses[..2].to_vec();
        let protocol = "sinfonia".to_owned();
        let db = Db::connect_with(Connect { addresses, protocol, ..Connect::default() }).unwrap();
        let space = db.create_space("s", halves()).unwrap();
        let message_count = || {
            let visited = visit::status(&servers.addresses[2], Duration::from_secs(5)).unwrap();
            visited.status_of("messages-sent").unwrap()
        };
        let before = message_count();
        (0..TIMES).for_each(|_| add_to_both(&db, space));
        let decided = message_count() - before;
        assert!(decided >= 4 * TIMES as u64, "{decided} messages of the master");
        servers.stop_one(2);
        (0..3).for_each(|_| add_to_both(&db, space));
        assert_eq!(["a", "z"].map(|key| read(&db, space, key)), [Some(TIMES + 3); 2]);
        db.close();
        servers.stop();
    }
}
