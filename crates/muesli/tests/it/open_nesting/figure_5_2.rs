//! Figure 5.2 of Turcu's dissertation: an insert into a binary search tree as an open child, with
//! an abstract lock on the key, and handlers that open the tree by themselves.
//!
//! "They cannot rely on the copy opened by the original transaction, as this copy may be
//! out-of-date by the time the handler executes." Here it is: between the child's commit and the
//! parent's abort another transaction takes away the node above, so that the tree is linked in
//! another way.

use std::sync::{Arc, Mutex};

use muesli::structures::{KeyedMap, SearchTree};

use super::*;

/// What happened, a line for each step.
type Log = Arc<Mutex<Vec<String>>>;

/// The tree of the figure, its transactions, and what they did.
struct TreeFigure {
    bench: Bench,
    tree: SearchTree<u64, u64>,
    log: Log,
}

fn log_line(log: &Log, text: String) {
    log.lock().unwrap().push(text);
}

impl TreeFigure {
    /// A tree with 3, 5 and 9, of which 5 is the root.
    fn new() -> TreeFigure {
        let mut bench = Bench::new();
        let tree = SearchTree::<u64, u64>::new(bench.numbers, "tree-1");
        let log = Log::default();
        let (opened, shared_log) = (tree.clone(), log.clone());
        bench.nesting = bench.nesting.handler("onAbort", move |tx, key: u64| {
            let (tree, log) = (opened.clone(), shared_log.clone());
            Box::pin(async move {
                let found = keys(&tree, tx).await?;
                let removed = tree.remove(tx, &key).await?.is_some();
                log_line(
                    &log,
                    format!("onAbort opens the tree, {found:?}; deletes {key}: {removed}"),
                );
                Ok(())
            })
        });
        let (opened, shared_log) = (tree.clone(), log.clone());
        bench.nesting = bench.nesting.handler("onCommit", move |tx, key: u64| {
            let (tree, log) = (opened.clone(), shared_log.clone());
            Box::pin(async move {
                let found = keys(&tree, tx).await?;
                log_line(&log, format!("onCommit for {key} opens the tree, {found:?}"));
                Ok(())
            })
        });
        let figure = TreeFigure { bench, tree, log };
        for key in [5, 3, 9] {
            figure.insert(key, true);
        }
        figure.log.lock().unwrap().clear();
        figure
    }

    /// Runs the transaction of the figure, which ends well or not.
    fn insert(&self, key: u64, commits: bool) {
        self.insert_and(key, commits, async |_: &Db| Ok(()));
    }

    /// The same, with something that others do between its child and its end.
    fn insert_and(
        &self,
        key: u64,
        commits: bool,
        meanwhile: impl AsyncFn(&Db) -> Result<(), Error> + Send + 'static,
    ) {
        let (tree, log, db) = (self.tree.clone(), self.log.clone(), self.bench.db.clone());
        let ended = self.bench.run(async move |tx| {
            let atomically = async |child: &OpenTx| {
                let inserted = tree.add(child, &key, &key).await?;
                child.acquire_lock(key.to_be_bytes(), &LockMode::write()).await?;
                if inserted {
                    child.on_abort("onAbort", &key)?;
                }
                child.on_commit("onCommit", &key)?;
                let now = keys(&tree, child).await?;
                log_line(&log, format!("the child inserts {key}: {inserted}, {now:?}"));
                Ok::<_, Error>(())
            };
            tx.open_atomic((), atomically).await?;
            meanwhile(&db).await?;
            match commits {
                true => Ok(()),
                false => {
                    log_line(&log, "the parent is aborted".to_owned());
                    Err(Error::rollback("enough"))
                }
            }
        });
        assert_eq!(ended.is_ok(), commits, "{ended:?}");
        self.bench.assert_nothing_is_left();
    }

    /// Another transaction deletes a key, by an open child of its own, and commits.
    fn deletes(&self, key: u64) -> impl AsyncFn(&Db) -> Result<(), Error> + Send + 'static {
        let (tree, log) = (self.tree.clone(), self.log.clone());
        let nesting = self.bench.nesting.clone();
        async move |db: &Db| {
            let other = async |tx: &OpenTx| {
                let lock = (key.to_be_bytes(), &LockMode::write());
                let delete = async |child: &OpenTx| {
                    let removed = tree.remove(child, &key).await?.is_some();
                    let now = keys(&tree, child).await?;
                    log_line(&log, format!("another one deletes {key}: {removed}, {now:?}"));
                    Ok::<_, Error>(())
                };
                tx.open_atomic(lock, delete).without_compensation().await
            };
            db.session().transact_nested_here(&nesting, other).await
        }
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// What is in the tree, which is sound.
    fn contents(&self) -> Vec<u64> {
        let tree = self.tree.clone();
        let inspect = async move |tx: &Tx| tree.inspect(tx).await;
        let inspected = self.bench.db.blocking().transact(inspect).unwrap();
        assert_eq!(inspected.wrong, Vec::<String>::new());
        inspected.entries.iter().map(|(key, _)| *key).collect()
    }
}

async fn keys(tree: &SearchTree<u64, u64>, tx: &Tx) -> Result<Vec<u64>, Error> {
    Ok(tree.entries(tx).await?.iter().map(|(key, _)| *key).collect())
}

#[test]
fn on_abort_works_on_the_tree_as_it_is_then() {
    let figure = TreeFigure::new();
    figure.insert_and(7, false, figure.deletes(9));
    assert_eq!(
        figure.log(),
        [
            "the child inserts 7: true, [3, 5, 7, 9]",
            "another one deletes 9: true, [3, 5, 7]",
            "the parent is aborted",
            "onAbort opens the tree, [3, 5, 7]; deletes 7: true",
        ]
    );
    assert_eq!(figure.contents(), [3, 5]);
}

#[test]
fn on_commit_works_on_the_tree_as_it_is_then() {
    let figure = TreeFigure::new();
    figure.insert_and(7, true, figure.deletes(5));
    assert_eq!(
        figure.log(),
        [
            "the child inserts 7: true, [3, 5, 7, 9]",
            "another one deletes 5: true, [3, 7, 9]",
            "onCommit for 7 opens the tree, [3, 7, 9]",
        ]
    );
    assert_eq!(figure.contents(), [3, 7, 9]);
}

#[test]
fn what_was_there_before_is_not_deleted() {
    let figure = TreeFigure::new();
    figure.insert_and(9, false, figure.deletes(5));
    assert_eq!(
        figure.log(),
        [
            "the child inserts 9: false, [3, 5, 9]",
            "another one deletes 5: true, [3, 9]",
            "the parent is aborted",
        ]
    );
    assert_eq!(figure.contents(), [3, 9]);
}
