//! A client stops after each of its transactions, those that end a scope among them, and another
//! one finishes what it has left: each handler takes effect once, and nothing stays.

use std::collections::BTreeMap;

use super::*;

/// What the client runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    /// Open children, and then it gives up.
    Aborts,
    /// The same, and a commit.
    Commits,
    /// It writes nothing itself, so that another transaction commits it.
    Sealed,
    /// A closed child gives up within it.
    Undoes,
    /// An open child has open children itself, and a closed child that gives up; and then it
    /// commits.
    Deeper,
    /// The same, and it gives up within the open child.
    AbortsWithin,
}

const SCRIPTS: [Script; 6] = [
    Script::Aborts,
    Script::Commits,
    Script::Sealed,
    Script::Undoes,
    Script::Deeper,
    Script::AbortsWithin,
];

/// An open child that notes that it ran.
async fn does(tx: &OpenTx, numbers: Space, key: &str) -> Result<(), Error> {
    tx.open_atomic((key, &LockMode::write()), async |child| {
        add(child, numbers, key, 1).await?;
        note(child, numbers, &format!("did {key}")).await
    })
    .on_abort("undo", &(key, 1))
    .on_commit("done", key)
    .await
}

async fn gives_up_after(tx: &OpenTx, numbers: Space, keys: [&str; 2]) -> Result<(), Error> {
    let part = tx.nested(async |part| {
        for key in keys {
            does(part, numbers, key).await?;
        }
        Err::<(), _>(Error::rollback("not this"))
    });
    match part.await {
        Err(Error::Rollback(_)) => Ok(()),
        other => other,
    }
}

/// An open child with all that there can be in one.
async fn deeper(tx: &OpenTx, numbers: Space, gives_up: bool) -> Result<(), Error> {
    tx.open_atomic(("x", &LockMode::write()), async |child| {
        does(child, numbers, "y").await?;
        gives_up_after(child, numbers, ["u", "v"]).await?;
        does(child, numbers, "z").await?;
        match gives_up {
            true => Err(Error::rollback("not this either")),
            false => {
                add(child, numbers, "x", 1).await?;
                let list = numbers.typed::<String, Vec<String>>();
                list.put(child, "log of x", &vec!["did x".to_owned()]).await
            }
        }
    })
    .on_abort("undo", &("x", 1))
    .on_commit("done", "x")
    .await
}

async fn run(script: Script, tx: &OpenTx, numbers: Space) -> Result<(), Error> {
    does(tx, numbers, "a").await?;
    match script {
        Script::Aborts | Script::Commits | Script::Sealed => does(tx, numbers, "b").await?,
        Script::Undoes => gives_up_after(tx, numbers, ["u", "v"]).await?,
        Script::Deeper => deeper(tx, numbers, false).await?,
        Script::AbortsWithin => match deeper(tx, numbers, true).await {
            Err(Error::Rollback(_)) => {}
            other => return other,
        },
    }
    does(tx, numbers, "c").await?;
    match script {
        Script::Aborts => Err(Error::rollback("enough")),
        Script::Sealed => Ok(()),
        _ => add(tx, numbers, "own", 1).await.map(drop),
    }
}

/// How often a text is in the log.
fn counted(log: &[String]) -> BTreeMap<&str, usize> {
    let mut counted = BTreeMap::new();
    log.iter().for_each(|text| *counted.entry(&**text).or_default() += 1);
    counted
}

/// Runs a script whose client stops after so many transactions, and finishes it by another one;
/// whether it was done before that, and whether it committed.
fn stopped_after(protocol: &str, script: Script, transactions: u64) -> (bool, bool) {
    let case = format!("{protocol} {script:?} stopped after {transactions}");
    let options = Options { protocol: protocol.to_owned(), repositories: 2, ..Options::default() };
    let bench = Bench::with(options);
    let (numbers, stopping) = (bench.numbers, bench.nesting.clone().stopping_after(transactions));
    let body = async move |tx: &OpenTx| run(script, tx, numbers).await;
    let ended = block_on(bench.db.transact_nested(&stopping, body));
    let is_done = !stopping.has_stopped();
    if is_done {
        bench.assert_nothing_is_left();
    }
    let other = bench.db.session();
    let finish = bench.nesting.finish_abandoned(&other, Duration::ZERO);
    block_on(finish).unwrap_or_else(|error| panic!("{case}: {error}"));
    block_on(bench.nesting.forget_ends(&other)).unwrap();
    assert_eq!(bench.rows(), NestingRows::default(), "{case}: {ended:?}");
    let log = bench.log();
    let all = counted(&log);
    let of = |what: &str, key: &str| all.get(&*format!("{what} {key}")).copied().unwrap_or(0);
    let committed = of("done", "a") > 0;
    for key in ["a", "b", "c", "x", "y", "z", "u", "v"] {
        let (undone, done, number) =
            (of("undo", key) + of("undo", &format!("{key} 1")), of("done", key), bench.number(key));
        let did = if key == "x" { bench.did_x() } else { of("did", key) };
        assert!(did <= 1, "{case}: {key} {log:?}");
        assert_eq!(undone + done, did, "{case}: each has one handler that ran: {key} {log:?}");
        assert_eq!(number, done as i64, "{case}: {key} {log:?}");
        match key {
            "u" | "v" => assert_eq!(done, 0, "{case}: {log:?}"),
            // Where the open child that they are of has committed, they have.
            "y" | "z" => assert!(done == 0 || bench.did_x() == 1, "{case}: {log:?}"),
            _ => assert!(did == 0 || (done == 1) == committed, "{case}: {key} {log:?}"),
        }
    }
    if script != Script::Sealed && script != Script::Aborts {
        assert_eq!(bench.number("own"), i64::from(committed), "{case}: {log:?}");
    }
    if ended.is_ok() {
        assert!(committed, "{case}: {log:?}");
    }
    // Newest first, whoever did it.
    let undone: Vec<_> = log.iter().filter(|text| text.starts_with("undo")).collect();
    if script == Script::Aborts {
        let wanted: Vec<_> =
            log.iter().filter_map(|text| text.strip_prefix("did ")).rev().collect();
        let wanted: Vec<_> = wanted.iter().map(|key| format!("undo {key} 1")).collect();
        assert_eq!(undone, wanted.iter().collect::<Vec<_>>(), "{case}");
    }
    (is_done, committed)
}

impl Bench {
    /// Whether the child that has children has committed.
    fn did_x(&self) -> usize {
        let list = self.numbers.typed::<String, Vec<String>>();
        let read = async move |tx: &Tx| list.get(tx, "log of x").await;
        self.db.blocking().transact(read).unwrap().unwrap_or_default().len()
    }
}

#[test]
fn a_client_that_stops_after_any_transaction_has_its_handlers_run_once() {
    for protocol in ["score", "tfa"] {
        for script in SCRIPTS {
            let mut committed = Vec::new();
            for transactions in 0.. {
                let (is_done, has_committed) = stopped_after(protocol, script, transactions);
                committed.push(has_committed);
                if is_done {
                    break;
                }
            }
            println!("{protocol} {script:?}: {committed:?}");
            assert!(committed.len() > 5, "{protocol} {script:?}: it stopped at each step");
            assert!(committed.is_sorted(), "once it has committed it has: {committed:?}");
            assert_eq!(committed.last(), Some(&(script != Script::Aborts)));
        }
    }
}
