//! One-round transactions through the library: embedded, from tasks and from threads, and on a
//! cluster.

use std::time::Duration;

use muesli::procedures::builtin::{
    self, Amount, CompareAndSet, Comparison, Get, Keyed, Put, Rows, Transfer, number,
};
use muesli::procedures::{Bytes, Keys, StoredProcedure, fragment, with};
use muesli::{
    Call, Class, Connect, Db, Error, Options, Partitioning, Place, Procedures, Refuses,
    RepositoryId, Space, SpaceOptions, Stop,
};
use muesli_cluster::ServerOptions;
use muesli_core::{NodeId, Settings};

use super::cluster::start_with;

/// Does what its argument says.
struct Misbehaves;

impl StoredProcedure for Misbehaves {
    const NAME: &'static str = "misbehaves";
    const VERSION: u32 = 3;
    type Arguments = String;
    type Answer = String;

    fn run(keys: &mut Keys<'_>, how: String) -> Result<String, Stop> {
        let space = keys.space("s")?;
        match &*how {
            "panics" => panic!("as it was asked to"),
            "loops" => loop {
                keys.get(space, &"a".into())?;
            },
            "refuses" => Err(Stop::Refused("no".into())),
            "leaves" => keys.put(space, "z", "").map(|()| how),
            _ => keys.put(space, "a", "done").map(|()| how),
        }
    }
}

/// Two repositories: keys below `m`, and the others.
fn halves() -> SpaceOptions {
    SpaceOptions { partitioning: Partitioning::Range(vec!["m".into()]), ..SpaceOptions::default() }
}

fn open() -> (Db, Space) {
    open_under("granola")
}

fn open_under(protocol: &str) -> (Db, Space) {
    let protocol = protocol.to_owned();
    let options = Options { repositories: 2, loops: 2, protocol, ..Options::default() };
    let mut options = options.space("s", halves()).procedure::<Misbehaves>();
    options.limits.procedure_steps = 10_000;
    let db = Db::open(options).unwrap();
    let space = db.space("s").unwrap();
    (db, space)
}

fn value(db: &Db, space: Space, key: &'static str) -> Option<Bytes> {
    let keyed = Keyed { space, keys: vec![key.into()] };
    let found = db.read_only().blocking().execute::<Get>(space.place(key), &keyed).unwrap();
    found.into_iter().next().flatten()
}

fn adds(db: &Db, space: Space) -> muesli::procedures::CallBuilder {
    let add = |key| Amount::of(space, key, 5);
    db.call("add", 1).at(space.place("a"), &add("a")).at(space.place("z"), &add("z"))
}

#[test]
fn fragments_take_effect_together_from_threads_and_from_tasks() {
    let (db, space) = open();
    let answers = adds(&db, space).wait().unwrap();
    assert_eq!((answers.of::<i64>(0), answers.of::<i64>(1)), (Ok(5), Ok(5)));
    assert!(matches!(answers.of::<i64>(2), Err(Error::Codec(_))));
    let session = db.session();
    let task = async move || adds(&session, space).await;
    let answers = muesli::blocking::block_on(db.run_on(1, task)).unwrap().unwrap();
    assert_eq!((answers.of::<i64>(0), answers.of::<i64>(1)), (Ok(10), Ok(10)));
    let threads: Vec<_> = (0..4).map(|_| db.session()).collect();
    let run = |db: Db| std::thread::spawn(move || (0..50).all(|_| adds(&db, space).wait().is_ok()));
    let threads: Vec<_> = threads.into_iter().map(run).collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    for key in ["a", "z"] {
        assert_eq!(value(&db, space, key).and_then(|it| number(&it.0)), Some(1_010));
    }
    db.close();
}

#[test]
fn money_is_moved_between_repositories_or_not_at_all() {
    for protocol in ["granola", "granola-locking", "sinfonia"] {
        let (db, space) = open_under(protocol);
        let at = |key: &str, amount| (space.place(key), Amount::of(space, key, amount));
        let (place, amount) = at("a", 100);
        db.call("deposit", 1).at(place, &amount).wait().unwrap();
        let transfer = |db: &Db, much| {
            let ((from, out), (to, into)) = (at("a", much), at("z", much));
            db.call("withdraw", 1).at(from, &out).then("deposit", 1).at(to, &into).wait()
        };
        let clients: Vec<_> = (0..4).map(|_| db.session()).collect();
        let moved: usize = std::thread::scope(|scope| {
            let run = |db: Db| (0..30).filter(|_| transfer(&db, 1).is_ok()).count();
            let all: Vec<_> = clients.into_iter().map(|db| scope.spawn(move || run(db))).collect();
            all.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(moved, 100, "{protocol}");
        assert_eq!(transfer(&db, 1), Err(Error::Refused("there is not enough".to_owned())));
        let left = ["a", "z"].map(|key| value(&db, space, key).and_then(|it| number(&it.0)));
        assert_eq!(left, [Some(0), Some(100)], "{protocol}");
        db.close();
    }
}

#[test]
fn both_repositories_of_a_transfer_decide_alike() {
    for protocol in ["granola-passing", "granola", "sinfonia"] {
        let (db, space) = open_under(protocol);
        let amount = Amount::of(space, "a", 50);
        db.call("deposit", 1).at(space.place("a"), &amount).wait().unwrap();
        let transfer = |db: &Db, from: &str, to: &str| {
            let it = Transfer::of(space, from, to, 1);
            let call = db.call("pay", 1).at(space.place(from), &it);
            call.then("receive", 1).at(space.place(to), &it).wait()
        };
        let clients: Vec<_> = (0..4).map(|_| db.session()).collect();
        let moved: usize = std::thread::scope(|scope| {
            let run = |db: Db| (0..20).filter(|_| transfer(&db, "a", "z").is_ok()).count();
            let all: Vec<_> = clients.into_iter().map(|db| scope.spawn(move || run(db))).collect();
            all.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(moved, 50, "{protocol}");
        let not_enough = Error::Refused("there is not enough".to_owned());
        assert_eq!(transfer(&db, "a", "z"), Err(not_enough.clone()), "{protocol}");
        assert!(transfer(&db, "z", "z").is_ok(), "{protocol}: at one place");
        assert_eq!(transfer(&db, "a", "a"), Err(not_enough), "{protocol}");
        let left = ["a", "z"].map(|key| value(&db, space, key).and_then(|it| number(&it.0)));
        assert_eq!(left, [Some(0), Some(50)], "{protocol}");
        db.close();
    }
}

#[test]
fn different_procedures_run_in_one_call_and_in_its_order_at_a_place() {
    let (db, space) = open();
    let row = |value: &str| Rows { space, rows: vec![("a".into(), Some(value.into()))] };
    let compare = |expected: &str, new: &str| {
        let (expected, new) = (Some(expected.into()), Some(new.into()));
        Comparison { space, key: "a".into(), expected, new }
    };
    let at = || space.place("a");
    let call = db.call("put", 1).at(at(), &row("x"));
    let call = call.with::<CompareAndSet>(at(), &compare("x", "y"));
    call.then("append", 1)
        .at(at(), &builtin::Appended { space, key: "a".into(), bytes: "!".into() })
        .wait()
        .unwrap();
    assert_eq!(value(&db, space, "a"), Some("y!".into()));
    let refused = db.call("compare-and-set", 1).at(at(), &compare("x", "z")).wait().unwrap_err();
    assert_eq!(refused, Error::Refused("the value is another one".to_owned()));
    // What came before the refusal in the same call has no effect either.
    let call = db.call("put", 1).at(at(), &row("lost"));
    let refused = call.with::<CompareAndSet>(at(), &compare("x", "z")).wait();
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert_eq!(value(&db, space, "a"), Some("y!".into()));
    db.close();
}

#[test]
fn what_cannot_be_called_is_told_with_what_can() {
    let (db, space) = open();
    let panic_text = |call: muesli::procedures::CallBuilder| match call.wait() {
        Err(Error::Procedure(text)) => text,
        other => panic!("{other:?}"),
    };
    let text = panic_text(db.call("misbehaves", 2).at(space.place("a"), ""));
    assert!(text.contains("misbehaves v2") && text.contains("misbehaves v3"), "{text}");
    panic_text(db.call("add", 1));
    panic_text(db.call("add", 1).at(Place::Repository(RepositoryId(7)), ""));
    let both = adds(&db, space).class(Class::Single);
    assert!(panic_text(both).contains("one repository"));
    let text = panic_text(db.call("add", 1).at(space.place("a"), ""));
    assert!(text.contains("arguments"), "{text}");
    let writes = Rows { space, rows: Vec::new() };
    let refused = db.read_only().blocking().execute::<Put>(space.place("a"), &writes);
    assert_eq!(refused, Err(Error::ReadOnly));
    db.close();
}

#[test]
fn a_procedure_that_misbehaves_ends_its_own_transaction_alone() {
    let (db, space) = open();
    let run = |how: &str| db.call("misbehaves", 3).at(space.place("a"), how).wait();
    for (how, why) in [("panics", "panicked"), ("loops", "10000 steps"), ("leaves", "lives in")] {
        let error = run(how).unwrap_err();
        assert!(matches!(&error, Error::Procedure(text) if text.contains(why)), "{error}");
    }
    assert_eq!(run("refuses").unwrap_err(), Error::Refused("no".to_owned()));
    assert_eq!(value(&db, space, "a"), None);
    assert_eq!(run("works").unwrap().of::<String>(0), Ok("works".to_owned()));
    assert_eq!(value(&db, space, "a"), Some("done".into()));
    db.close();
}

#[test]
fn a_protocol_without_procedures_says_which_ones_have_them() {
    let db = Db::open(Options::default().space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let error = db.call("get", 1).at(space.place("a"), "").wait().unwrap_err();
    assert!(matches!(&error, Error::Procedure(text) if text.contains("granola")), "{error}");
    db.close();
}

#[test]
fn answers_of_a_session_follow_each_other() {
    let (db, space) = open();
    let mut last = None;
    for round in 0..100 {
        let key = if round % 3 == 0 { "z" } else { "a" };
        let add = Amount::of(space, key, 1);
        let at = db.call("add", 1).at(space.place(key), &add).wait().unwrap().at();
        assert!(last.is_none_or(|last| last < at), "{last:?} {at}");
        last = Some(at);
    }
    db.close();
}

fn serve(lacking: Option<NodeId>) -> super::cluster::Servers {
    start_with(2, |node| {
        let procedures = match lacking == Some(node) {
            true => Procedures::default(),
            false => with::<Misbehaves>(builtin::all()),
        };
        let settings = Settings { procedures, ..Settings::default() };
        let options = ServerOptions { repositories: 2, settings, ..ServerOptions::default() };
        ServerOptions { protocol: "granola".to_owned(), procedure_threads: 2, ..options }
    })
}

fn connection(addresses: &[String]) -> Connect {
    let addresses = addresses.to_vec();
    Connect { addresses, protocol: "granola".to_owned(), ..Connect::default() }
}

fn connect(addresses: &[String]) -> Db {
    Db::connect_with(connection(addresses).procedure::<Misbehaves>()).unwrap()
}

#[test]
fn clients_of_a_cluster_call_procedures_of_its_nodes() {
    let servers = serve(None);
    let db = connect(&servers.addresses);
    let space = db.create_space("s", halves()).unwrap();
    let answers = adds(&db, space).wait().unwrap();
    assert_eq!((answers.of::<i64>(0), answers.of::<i64>(1)), (Ok(5), Ok(5)));
    let session = db.session();
    let two = async move || {
        let one = fragment::<Get>(space.place("a"), &Keyed { space, keys: vec!["a".into()] });
        session.invoke_here(Call { class: Class::Auto, fragments: vec![one.unwrap()] }).await
    };
    let (done, attempts) = muesli::blocking::block_on(db.run_on(0, two)).unwrap();
    assert_eq!((done.unwrap().results.len(), attempts), (1, 1));
    let panics = db.call("misbehaves", 3).at(space.place("a"), "panics").wait().unwrap_err();
    assert!(matches!(&panics, Error::Procedure(text) if text.contains("panicked")), "{panics}");
    assert_eq!(value(&db, space, "z").and_then(|it| number(&it.0)), Some(5));
    db.close();
    servers.stop();
}

#[test]
fn a_node_that_lacks_a_procedure_says_so_and_goes_on() {
    let servers = serve(Some(NodeId(1)));
    let db = connect(&servers.addresses);
    let space = db.create_space("s", halves()).unwrap();
    let add = |key: &str| db.call("add", 1).at(space.place(key), &Amount::of(space, key, 5)).wait();
    assert_eq!(add("a").unwrap().of::<i64>(0), Ok(5));
    for _ in 0..2 {
        let error = add("z").unwrap_err();
        assert!(matches!(&error, Error::Procedure(text) if text.contains("add v1")), "{error}");
    }
    // Who takes part with such a node has no effect either.
    let error = adds(&db, space).wait().unwrap_err();
    assert!(matches!(&error, Error::Procedure(text) if text.contains("add v1")), "{error}");
    assert_eq!(add("a").unwrap().of::<i64>(0), Ok(10));
    db.close();
    servers.stop();
}

/// Never refuses, whatever it is told.
struct Swallows;

impl StoredProcedure for Swallows {
    const NAME: &'static str = "swallows";
    const REFUSES: Refuses = Refuses::Never;
    type Arguments = Space;
    type Answer = ();

    fn run(keys: &mut Keys<'_>, space: Space) -> Result<(), Stop> {
        let _ = keys.put(space, "z", "elsewhere");
        keys.put(space, "a", "here").or(Ok(()))
    }
}

#[test]
fn a_mistake_that_is_swallowed_is_one_nevertheless() {
    let protocol = "granola".to_owned();
    let options = Options { repositories: 2, loops: 1, protocol, ..Options::default() };
    let db = Db::open(options.space("s", halves()).procedure::<Swallows>()).unwrap();
    let space = db.space("s").unwrap();
    let error = db.blocking().execute::<Swallows>(space.place("a"), &space).unwrap_err();
    assert!(matches!(&error, Error::Procedure(text) if text.contains("lives in")), "{error}");
    assert_eq!(value(&db, space, "a"), None);
    db.close();
}

#[test]
fn a_process_with_caches_answers_its_readers_without_a_server() {
    let servers = serve(None);
    let connect = Connect { caches: true, ..connection(&servers.addresses) };
    let db = Db::connect_with(connect).unwrap();
    let space = db.create_space("s", halves()).unwrap();
    adds(&db, space).wait().unwrap();
    let followers = db.follower_reads();
    let read = || {
        let keyed = Keyed { space, keys: vec!["a".into()] };
        let answers = followers.call("get", 1).at(space.place("a"), &keyed).wait().unwrap();
        let found: Vec<Option<Bytes>> = answers.of(0).unwrap();
        (answers.at(), found[0].as_ref().and_then(|value| number(&value.0)))
    };
    // A server gives each reader a timestamp of its own; a copy stays where it is.
    let mut last = read();
    for _ in 0..2_000 {
        std::thread::sleep(Duration::from_millis(2));
        let next = read();
        if next.0 == last.0 {
            break;
        }
        last = next;
    }
    servers.stop();
    assert_eq!(read(), last);
    assert_eq!(last.1, Some(5));
    db.close();
}

/// Bytes of one type are often bytes of another one, too: 1 as a number is a text of one byte.
#[test]
fn an_answer_of_another_type_is_told() {
    let (db, space) = open();
    let add = Amount::of(space, "a", 1);
    let call = db.call("add", 1).with::<builtin::Add>(space.place("a"), &add);
    let answers = call.wait().unwrap();
    assert_eq!(answers.of::<i64>(0), Ok(1));
    let panic_text = answers.of::<u8>(0).unwrap_err();
    assert_eq!(panic_text, Error::Codec("fragment 0 answers with `i64`, and not `u8`".to_owned()));
    assert!(answers.of::<String>(0).is_err());
}
