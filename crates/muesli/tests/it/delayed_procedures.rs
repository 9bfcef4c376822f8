//! Delayed procedures and what delayed actions leave, through the library: under protocols that
//! delay, and under those that do it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use muesli::procedures::{Keys, Spaces, StoredProcedure, TouchesFn};
use muesli::{
    Action, Actions, Db, DeferredAnswer, Error, Footprint, Options, Range, Refuses, SmallBytes,
    Space, SpaceOptions, Stop, Touched, Tx,
};

const PROTOCOLS: [&str; 7] =
    ["bumper", "bumper-da", "bumper-reconciled", "bumper-tw", "score", "gmu", "2pc"];

fn open(protocol: &str) -> Db {
    let options = Options {
        repositories: 2,
        loops: 2,
        protocol: protocol.to_owned(),
        actions: Actions::default().with("burst", |_, _| panic!("on purpose")),
        ..Options::default()
    };
    let options = options.procedure::<Append>().procedure::<Move>().procedure::<Number>();
    Db::open(options.space("s", SpaceOptions::default())).unwrap()
}

fn written(spaces: &Spaces<'_>, keys: &[&String]) -> Result<Footprint, Stop> {
    let space = spaces.space("s")?.id();
    let writes = keys.iter().map(|key| Touched::Key(space, key.as_str().into())).collect();
    Ok(Footprint { reads: vec![], writes })
}

/// Appends a word to keys; what they are then.
struct Append;

impl StoredProcedure for Append {
    const NAME: &'static str = "append-to-all";
    const REFUSES: Refuses = Refuses::Never;
    const STEADY: bool = true;
    const TOUCHES: Option<TouchesFn<Self::Arguments>> =
        Some(|spaces: &Spaces<'_>, (keys, _)| written(spaces, &keys.iter().collect::<Vec<_>>()));
    type Arguments = (Vec<String>, String);
    type Answer = Vec<String>;

    fn run(keys: &mut Keys<'_>, (all, word): Self::Arguments) -> Result<Vec<String>, Stop> {
        let space = keys.space("s")?;
        let mut left = Vec::new();
        for key in all {
            let key = SmallBytes::from(key.as_str());
            let old = keys.get(space, &key)?.unwrap_or(SmallBytes::EMPTY);
            let new = String::from_utf8_lossy(old.as_slice()).into_owned() + &word;
            keys.put(space, key, new.as_str())?;
            left.push(new);
        }
        Ok(left)
    }
}

/// Moves the value of a key to the key that it names; declared for two keys alone.
struct Move;

impl StoredProcedure for Move {
    const NAME: &'static str = "move";
    const TOUCHES: Option<TouchesFn<Self::Arguments>> =
        Some(|spaces: &Spaces<'_>, (from, perhaps)| written(spaces, &[from, perhaps]));
    type Arguments = (String, String);
    type Answer = String;

    fn run(keys: &mut Keys<'_>, (from, _): Self::Arguments) -> Result<String, Stop> {
        let space = keys.space("s")?;
        let Some(named) = keys.get(space, &from.as_str().into())? else {
            return Err(Stop::Refused("nothing is there".into()));
        };
        keys.put(space, named.clone(), from.as_str())?;
        Ok(String::from_utf8_lossy(named.as_slice()).into_owned())
    }
}

/// Writes a key behind all others of its prefix, by their number: a key that is not known before.
struct Number;

impl StoredProcedure for Number {
    const NAME: &'static str = "number";
    type Arguments = String;
    type Answer = usize;

    fn run(keys: &mut Keys<'_>, prefix: String) -> Result<usize, Stop> {
        let space = keys.space("s")?;
        let count = keys.scan(space, Range::prefix(&prefix))?.len();
        keys.put(space, format!("{prefix}{count}").as_str(), "new")?;
        Ok(count)
    }
}

fn read(db: &Db, key: &'static str) -> Option<SmallBytes> {
    let space = db.space("s").unwrap();
    let strict = db.strict().blocking();
    strict.transact(async move |tx| tx.get(space, key).await).unwrap()
}

/// Keys that live at one repository, whichever that is.
fn neighbours(db: &Db, space: Space) -> Vec<String> {
    let catalog = db.catalog();
    let home = |name: &String| catalog.partition(space.id(), &name.as_str().into());
    let all: Vec<_> = (0..64).map(|number| format!("k{number}")).collect();
    let first = home(&all[0]);
    all.into_iter().filter(|name| home(name) == first).collect()
}

#[test]
fn what_actions_leave_is_told_and_reduced() {
    for protocol in PROTOCOLS {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        for round in 1..=3 {
            let body = async move |tx: &Tx| {
                let mut all: Vec<DeferredAnswer<Option<SmallBytes>>> = Vec::new();
                for key in ["a", "b", "c"] {
                    all.push(tx.defer_returning(space, key, Action::append("x")).await?);
                }
                tx.defer(space, "d", Action::append("y")).await?;
                Ok::<_, Error>(all)
            };
            let (all, results) = db.blocking().transact_answering(body).unwrap();
            let length = |value: Option<SmallBytes>| value.map_or(0, |value| value.len());
            let sum = results.reduce(&all, 0, |sum, value| sum + length(value)).unwrap();
            assert_eq!(sum, 3 * round, "{protocol}");
        }
        assert_eq!(read(&db, "d"), Some("yyy".into()), "{protocol}");
        db.close();
    }
}

#[test]
fn explicit_transactions_get_results_too() {
    let db = open("bumper");
    let space = db.space("s").unwrap();
    let answer = muesli::blocking::block_on(async {
        let transaction = db.begin().await?;
        let left = transaction.defer_returning(space, "a", Action::append("x")).await?;
        let results = transaction.commit_answering().await?;
        results.of(&left)
    });
    assert_eq!(answer, Ok(Some("x".into())));
    db.close();
}

#[test]
fn procedures_run_over_several_keys_under_every_protocol() {
    for protocol in PROTOCOLS {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let keys: Vec<_> = neighbours(&db, space).into_iter().take(3).collect();
        for word in ["x", "y"] {
            let place = space.place(keys[0].as_str());
            let arguments = (keys.clone(), word.to_owned());
            let body = async move |tx: &Tx| {
                tx.defer_run_returning::<Append>(place.clone(), &arguments).await
            };
            let (left, results) = db.blocking().transact_answering(body).unwrap();
            let expected = if word == "x" { "x" } else { "xy" };
            assert_eq!(results.of(&left).unwrap(), vec![expected.to_owned(); 3], "{protocol}");
        }
        assert_eq!(db.footprint_violation(), None, "{protocol}");
        db.close();
    }
}

#[test]
fn who_leaves_its_footprint_is_told_of_the_key_and_run_again_at_once() {
    for protocol in ["bumper", "score"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let keys = neighbours(&db, space);
        let (from, perhaps, other) = (keys[0].clone(), keys[1].clone(), keys[2].clone());
        let runs = Arc::new(AtomicU32::new(0));
        let put = {
            let (from, other) = (from.clone(), other.clone());
            async move |tx: &Tx| tx.put(space, from.as_str(), other.as_str()).await
        };
        db.blocking().transact(put).unwrap();
        let counted = runs.clone();
        let (place, arguments) = (space.place(from.as_str()), (from.clone(), perhaps));
        let body = async move |tx: &Tx| {
            counted.fetch_add(1, Ordering::Relaxed);
            tx.defer_run_returning::<Move>(place.clone(), &arguments).await
        };
        let (named, results) = db.blocking().transact_answering(body).unwrap();
        assert_eq!(results.of(&named).unwrap(), other, "{protocol}");
        let refuses = protocol == "bumper";
        assert_eq!(runs.load(Ordering::Relaxed), 1 + u32::from(refuses), "{protocol}");
        let why = db.footprint_violation().unwrap_or_default();
        let named = why.contains(&format!("key `{other}` is written")) && why.contains("move v1");
        assert_eq!(named, refuses, "{protocol}: {why}");
        db.close();
    }
}

#[test]
fn procedures_done_at_once_reach_for_any_key_and_may_refuse() {
    for protocol in ["bumper", "2pc"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        for count in 0..3 {
            let body = async move |tx: &Tx| {
                let place = space.place("n");
                tx.defer_run_returning::<Number>(place, &"row".to_owned()).await
            };
            let (number, results) = db.blocking().transact_answering(body).unwrap();
            assert_eq!(results.of(&number), Ok(count), "{protocol}: nothing is declared of it");
        }
        let refused = db.blocking().transact(async move |tx| {
            let arguments = ("nowhere".to_owned(), "b".to_owned());
            tx.defer_run::<Move>(space.place("nowhere"), &arguments).await
        });
        assert_eq!(refused, Err(Error::Refused("nothing is there".to_owned())), "{protocol}");
        db.close();
    }
}

#[test]
fn an_action_that_panics_ends_its_transaction_and_no_node() {
    for protocol in ["bumper", "score"] {
        let db = open(protocol);
        let space = db.space("s").unwrap();
        let body = async move |tx: &Tx| {
            tx.defer(space, "b", Action::append("x")).await?;
            tx.defer(space, "a", Action::named("burst", "")).await
        };
        let error = db.blocking().transact(body).unwrap_err();
        assert_eq!(error, Error::Procedure("action `burst` panicked".to_owned()), "{protocol}");
        assert_eq!(read(&db, "b"), None, "{protocol}: the node still serves");
        db.close();
    }
}
