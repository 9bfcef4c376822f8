//! Mistakes of a program, each an error of its own: a space of another database, an answer that is
//! read as another type, a number that is none.

use muesli::procedures::builtin::{Amount, number};
use muesli::server::{self, RunningServer, ServerOptions};
use muesli::{
    Action, Db, Error, ErrorKind, KeyRange, Options, SmallBytes, Space, SpaceOptions, Tx,
};

fn open(protocol: &str) -> Db {
    let options = Options { protocol: protocol.to_owned(), ..Options::default() };
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn is_foreign<T: std::fmt::Debug>(answer: &Result<T, Error>) -> bool {
    let error = answer.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    matches!(error, Error::OtherDatabase { space: 0 })
}

/// Every operation on the space, and how it went.
async fn all_operations(tx: &Tx, space: Space) -> Vec<Result<(), Error>> {
    let typed = space.typed::<u64, u64>();
    vec![
        tx.get(space, "k").await.map(drop),
        tx.get_many(space, ["k"]).await.map(drop),
        tx.put(space, "k", "v").await,
        tx.delete(space, "k").await,
        tx.scan(space, muesli::Range::all()).await.map(drop),
        tx.defer(space, "k", Action::add(1)).await,
        typed.get(tx, &1).await.map(drop),
        typed.rows(tx, KeyRange::all()).next().await.map(drop),
    ]
}

#[test]
fn a_space_of_another_database_is_refused() {
    let (one, other) = (open("score"), open("score"));
    let foreign = other.space("s").unwrap();
    let body = async move |tx: &Tx| Ok::<_, Error>(all_operations(tx, foreign).await);
    let results = one.blocking().transact(body).unwrap();
    assert!(results.iter().all(is_foreign), "{results:?}");
    assert_eq!(
        results[0].as_ref().unwrap_err().to_string(),
        "space number 0 is of another database; ask this one for it by `Db::space`"
    );
    // Its own database takes it, in any session.
    let own = other.session();
    let results = own.blocking().transact(body).unwrap();
    assert!(results[..5].iter().all(Result::is_ok), "{results:?}");
    // As do transactions that are ended by hand, from another thread.
    muesli::blocking::block_on(async {
        let tx = one.begin().await.unwrap();
        assert!(is_foreign(&tx.get(foreign, "k").await));
        tx.put(one.space("s").unwrap(), "k", "v").await.unwrap();
        tx.commit().await.unwrap();
    });
}

#[test]
fn closures_refuse_a_space_of_another_database() {
    let (one, other) = (open("score"), open("score"));
    let (own, foreign) = (one.space("s").unwrap(), other.space("s").unwrap());
    let db = one.clone();
    let there = async move || {
        let key = SmallBytes::from("k");
        let wrong = db.call_here(|tx| tx.get(foreign, &key)).await;
        let put = db.call_here(|tx| tx.put(foreign, key.clone(), "v")).await;
        let right: Result<(), Error> = db.call_here(|tx| tx.put(own, key.clone(), "v")).await;
        (wrong, put, right)
    };
    let (wrong, put, right) = muesli::blocking::block_on(one.run_on(0, there)).unwrap();
    assert!(is_foreign(&wrong) && is_foreign(&put));
    assert_eq!(right, Ok(()));
}

#[test]
fn connections_to_one_cluster_share_its_spaces() {
    let options = ServerOptions { listen: "127.0.0.1:0".to_owned(), ..server::options() };
    let server = RunningServer::start(options, 1).unwrap();
    let address = server.address().to_string();
    let (one, other) = (Db::connect([address.clone()]).unwrap(), Db::connect([address]).unwrap());
    let space = one.create_space("s", SpaceOptions::default()).unwrap();
    one.blocking().transact(async move |tx| tx.put(space, "k", "v").await).unwrap();
    let strict = other.strict().blocking();
    let found = strict.transact(async move |tx| tx.get(space, "k").await).unwrap();
    assert_eq!(found, Some("v".into()));
    let foreign = open("score").space("s").unwrap();
    assert!(is_foreign(&strict.transact(async move |tx| tx.get(foreign, "k").await)));
    drop((one, other, strict));
    server.stop().unwrap();
}

#[test]
fn an_answer_of_a_procedure_that_is_called_by_name_has_its_type() {
    let db = open("granola");
    let space = db.space("s").unwrap();
    let add = Amount::of(space, "k", 1);
    let answers = db.call("add", 1).at(space.place("k"), &add).wait().unwrap();
    assert_eq!(answers.of::<i64>(0), Ok(1));
    for wrong in [answers.of::<String>(0).map(drop), answers.of::<u64>(0).map(drop)] {
        assert!(matches!(&wrong, Err(Error::Codec(text)) if text.contains("`i64`")), "{wrong:?}");
    }
    // Under a name that nobody knows here there is nothing to tell it by.
    let error = db.call("add", 9).at(space.place("k"), &add).wait().unwrap_err();
    assert!(matches!(error, Error::Procedure(_)), "{error:?}");
}

#[test]
fn a_number_is_not_added_to_what_is_none() {
    for protocol in ["score", "bumper", "bumper-delaying"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let put = async move |tx: &Tx| tx.put(space, "text", "many").await;
        db.blocking().transact(put).unwrap();
        for action in [Action::add(1), Action::max(1), Action::min(1), Action::add_all(&[1, 2])] {
            let (done, name) = (action.clone(), action.name);
            let body = async move |tx: &Tx| {
                tx.defer(space, "number", Action::add(5)).await?;
                tx.defer(space, "text", done.clone()).await
            };
            let error = db.blocking().transact(body).unwrap_err();
            assert!(matches!(error, Error::Procedure(_)), "{protocol}, {name:?}: {error:?}");
        }
        let read = db.strict().blocking();
        let both = read.transact(async move |tx| tx.get_many(space, ["text", "number"]).await);
        assert_eq!(both, Ok(vec![Some("many".into()), None]), "{protocol}: nothing was changed");
        let add = async move |tx: &Tx| tx.defer(space, "number", Action::add(5)).await;
        db.blocking().transact(add).unwrap();
        let sum = read.transact(async move |tx| tx.get(space, "number").await).unwrap();
        assert_eq!(sum.as_ref().and_then(number), Some(5));
    }
}
