//! The structures against the standard library's, and under many clients at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use muesli::structures::{
    Counter, HashTable, Inspected, KeyedMap, LinkedList, OrderedMap, SearchTree, SkipList,
};
use muesli::{Db, Error, Options, Space, SpaceOptions, Tx};
use proptest::prelude::*;

/// One of the structures, so that all go through the same tests.
#[derive(Clone, Debug)]
enum Any {
    Skip(SkipList<u8, u32>),
    List(LinkedList<u8, u32>),
    Tree(SearchTree<u8, u32>),
    Table(HashTable<u8, u32>),
}

macro_rules! each {
    ($any:expr, $map:ident => $does:expr) => {
        match $any {
            Any::Skip($map) => $does,
            Any::List($map) => $does,
            Any::Tree($map) => $does,
            Any::Table($map) => $does,
        }
    };
}

impl Any {
    fn all(space: Space) -> [Any; 4] {
        [
            Any::Skip(SkipList::with_levels(space, "skip", 4)),
            Any::List(LinkedList::new(space, "list")),
            Any::Tree(SearchTree::new(space, "tree")),
            // Its buckets have several keys each.
            Any::Table(HashTable::new(space, "table", 5)),
        ]
    }

    async fn inspect(&self, tx: &Tx) -> Result<Inspected<u8, u32>, Error> {
        each!(self, map => map.inspect(tx).await)
    }

    async fn entries(&self, tx: &Tx) -> Result<Vec<(u8, u32)>, Error> {
        each!(self, map => map.entries(tx).await)
    }

    async fn does(&self, tx: &Tx, step: Step) -> Result<Answer, Error> {
        Ok(match step {
            Step::Insert(key, value) => {
                Answer::Old(each!(self, map => map.insert(tx, &key, &value).await?))
            }
            Step::Add(key, value) => {
                Answer::Added(each!(self, map => map.add(tx, &key, &value).await?))
            }
            Step::Remove(key) => Answer::Old(each!(self, map => map.remove(tx, &key).await?)),
            Step::Get(key) => Answer::Old(each!(self, map => map.get(tx, &key).await?)),
            Step::AtOrAfter(key) => Answer::Next(match self {
                Any::Skip(map) => map.at_or_after(tx, &key).await?,
                Any::List(map) => map.at_or_after(tx, &key).await?,
                Any::Tree(map) => map.at_or_after(tx, &key).await?,
                // It has no order.
                Any::Table(map) => {
                    map.entries(tx).await?.into_iter().filter(|(own, _)| *own >= key).min()
                }
            }),
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u8, u32),
    Add(u8, u32),
    Remove(u8),
    Get(u8),
    AtOrAfter(u8),
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Old(Option<u32>),
    Added(bool),
    Next(Option<(u8, u32)>),
}

fn modelled(model: &mut BTreeMap<u8, u32>, step: Step) -> Answer {
    match step {
        Step::Insert(key, value) => Answer::Old(model.insert(key, value)),
        Step::Add(key, value) => {
            let absent = !model.contains_key(&key);
            model.entry(key).or_insert(value);
            Answer::Added(absent)
        }
        Step::Remove(key) => Answer::Old(model.remove(&key)),
        Step::Get(key) => Answer::Old(model.get(&key).copied()),
        Step::AtOrAfter(key) => Answer::Next(model.range(key..).next().map(|(k, v)| (*k, *v))),
    }
}

fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let key = || 0..24_u8;
    let step = prop_oneof![
        2 => (key(), 0..100_u32).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => (key(), 0..100_u32).prop_map(|(key, value)| Step::Add(key, value)),
        3 => key().prop_map(Step::Remove),
        1 => key().prop_map(Step::Get),
        1 => key().prop_map(Step::AtOrAfter),
    ];
    prop::collection::vec(prop::collection::vec(step, 1..6), 0..25)
}

fn open() -> (Db, Space) {
    let options = Options { repositories: 2, replicas: 1, loops: 1, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).expect("it can be opened");
    let space = db.space("s").expect("it was just made");
    (db, space)
}

fn run<T: Send + 'static>(
    db: &Db,
    body: impl AsyncFn(&Tx) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    db.blocking().transact(body)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is done in transactions of several steps, some of which are rolled back: answers
    /// and contents are those of a sorted map, and the rows are as they must be.
    #[test]
    fn structures_are_maps(
        transactions in steps(),
        rolled_back in prop::collection::vec(any::<bool>(), 25),
    ) {
        let (db, space) = open();
        for map in Any::all(space) {
            let mut model = BTreeMap::new();
            for (steps, rolled_back) in transactions.iter().zip(&rolled_back) {
                let mut after = model.clone();
                let expected: Vec<_> = steps.iter().map(|it| modelled(&mut after, *it)).collect();
                let (changed, steps, rolls_back) = (map.clone(), steps.clone(), *rolled_back);
                let answers = run(&db, async move |tx| {
                    let mut answers = Vec::new();
                    for step in &steps {
                        answers.push(changed.does(tx, *step).await?);
                    }
                    if rolls_back { Err(Error::rollback("drawn")) } else { Ok(answers) }
                });
                if rolls_back {
                    prop_assert_eq!(answers, Err(Error::rollback("drawn")));
                } else {
                    prop_assert_eq!(answers.expect("nobody is in the way"), expected);
                    model = after;
                }
            }
            let looked = map.clone();
            let (inspected, mut entries) = run(&db, async move |tx| {
                Ok((looked.inspect(tx).await?, looked.entries(tx).await?))
            }).expect("nobody is in the way");
            prop_assert_eq!(&inspected.wrong, &Vec::<String>::new());
            let mut found = inspected.entries;
            if matches!(map, Any::Table(_)) {
                found.sort_unstable();
                entries.sort_unstable();
            }
            let expected: Vec<_> = model.into_iter().collect();
            prop_assert_eq!(&found, &expected, "{:?}", map);
            prop_assert_eq!(&entries, &expected, "{:?}", map);
        }
        db.close();
    }
}

const CLIENTS: u32 = 4;
const ROUNDS: u32 = 60;

/// Many clients insert and remove the same few keys; a key's balance of both is what is there.
#[test]
fn clients_share_structures() {
    let options = Options { repositories: 2, loops: 2, ..Options::default() };
    for protocol in ["score", "bumper"] {
        let options = Options { protocol: protocol.to_owned(), ..options.clone() };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let space = db.space("s").unwrap();
        for map in Any::all(space) {
            let balances: Arc<[AtomicI64; 16]> = Arc::default();
            std::thread::scope(|scope| {
                for client in 0..CLIENTS {
                    let (db, map, balances) = (db.session(), map.clone(), balances.clone());
                    scope.spawn(move || change(&db, &map, client, &balances));
                }
            });
            let looked = map.clone();
            let inspected =
                db.strict().blocking().transact(async move |tx| looked.inspect(tx).await);
            let inspected = inspected.unwrap();
            assert_eq!(inspected.wrong, Vec::<String>::new(), "{protocol}: {map:?}");
            let there = |key: u8| inspected.entries.iter().filter(|(own, _)| *own == key).count();
            for (key, balance) in balances.iter().enumerate() {
                let balance = balance.load(Ordering::Relaxed);
                assert_eq!(there(key as u8) as i64, balance, "{protocol}: {map:?}: key {key}");
            }
        }
        db.close();
    }
}

fn change(db: &Db, map: &Any, client: u32, balances: &[AtomicI64; 16]) {
    for round in 0..ROUNDS {
        let drawn = fastrand::Rng::with_seed(u64::from(client * ROUNDS + round)).u64(..);
        let (key, inserts) = ((drawn % 16) as u8, drawn & 16 == 0);
        let step = if inserts { Step::Insert(key, round) } else { Step::Remove(key) };
        let changed = map.clone();
        let answer = run(db, async move |tx| changed.does(tx, step).await);
        let Answer::Old(old) = answer.expect("it is tried often enough") else { unreachable!() };
        let balance = if inserts { i64::from(old.is_none()) } else { -i64::from(old.is_some()) };
        balances[usize::from(key)].fetch_add(balance, Ordering::Relaxed);
    }
}

#[test]
fn counters_count_at_once_and_later() {
    for protocol in ["score", "bumper"] {
        let options = Options { loops: 2, repositories: 2, ..Options::default() };
        let options = Options { protocol: protocol.to_owned(), ..options };
        let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
        let counter = Counter::new(db.space("s").unwrap(), "visits");
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (db, counter) = (db.session(), counter.clone());
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let counter = counter.clone();
                        let added = run(&db, async move |tx| match (client + round) % 2 {
                            0 => counter.add(tx, 2).await.map(|_| ()),
                            _ => counter.add_deferred(tx, 2).await,
                        });
                        added.expect("it is tried often enough");
                    }
                });
            }
        });
        let shows = db.strict().blocking().transact(async move |tx| {
            Ok::<_, Error>((
                counter.get(tx).await?,
                Counter::get_many(tx, std::slice::from_ref(&counter)).await?,
            ))
        });
        let all = i64::from(CLIENTS * ROUNDS * 2);
        assert_eq!(shows.unwrap(), (all, vec![all]), "{protocol}");
        db.close();
    }
}

#[test]
fn structures_of_one_space_do_not_mix_and_mistakes_are_told() {
    let (db, space) = open();
    let mistake = run(&db, async move |tx| {
        let (list, longer) = (LinkedList::<u8, u32>::new(space, "a"), SearchTree::new(space, "ab"));
        list.insert(tx, &1, &10).await?;
        longer.insert(tx, &2_u8, &20_u32).await?;
        assert_eq!(list.entries(tx).await?, [(1, 10)]);
        assert_eq!(longer.inspect(tx).await?.entries, [(2, 20)]);
        let other = SkipList::<u8, u32>::with_levels(space, "a", 3);
        let levels = other.at_or_after(tx, &0).await.unwrap_err();
        let counter = Counter::new(space, "a").get(tx).await.unwrap_err();
        Ok([levels.to_string(), counter.to_string()])
    });
    let [levels, counter] = mistake.unwrap();
    assert!(levels.contains("`a`") && levels.contains("levels"), "{levels}");
    assert!(counter.contains("no counter"), "{counter}");
    db.close();
}

/// A hash table of 32 buckets found 44 of the 100 keys of one of 64, and hid the others.
#[test]
fn a_structure_of_another_shape_is_told() {
    let db = Db::open(Options::default().space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap();
    let table = |buckets| HashTable::<u32, u32>::new(space, "table", buckets);
    let list = |levels| SkipList::<u32, u32>::with_levels(space, "list", levels);
    let (filled, filled_list) = (table(64), list(12));
    let fill = async move |tx: &Tx| {
        for key in 0..100 {
            filled.insert(tx, &key, &key).await?;
            filled_list.insert(tx, &key, &key).await?;
        }
        Ok::<_, Error>(())
    };
    db.blocking().transact(fill).unwrap();
    let mistake = |other: HashTable<u32, u32>| {
        let mut found = 0;
        for key in 0..200 {
            let (there, also) = (other.clone(), other.clone());
            let got = db.blocking().transact(async move |tx| there.get(tx, &key).await);
            let put = db.blocking().transact(async move |tx| also.insert(tx, &key, &0).await);
            let of_another =
                |error: Error| error.to_string().contains("a hash table of 64 buckets");
            found += u32::from(!(got.is_err_and(of_another) && put.is_err_and(of_another)));
        }
        let entries = db.blocking().transact(async move |tx| other.entries(tx).await);
        assert!(entries.is_err());
        found
    };
    assert_eq!((mistake(table(32)), mistake(table(128)), mistake(table(1_000_000))), (0, 0, 0));
    let (all, fewer) = (table(64), list(5));
    let all = db.blocking().transact(async move |tx| all.entries(tx).await).unwrap();
    assert_eq!(all.len(), 100);
    let got = db.blocking().transact(async move |tx| fewer.get(tx, &7).await);
    assert!(got.unwrap_err().to_string().contains("a skip list of 12 levels"));
    let tree = SearchTree::<u32, u32>::new(space, "list");
    let got = db.blocking().transact(async move |tx| tree.insert(tx, &700, &7).await);
    assert!(got.unwrap_err().to_string().contains("was opened as a search tree"));
}
