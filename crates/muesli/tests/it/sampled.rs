//! Histories of a share of the transactions.

use muesli::{Db, Options, Sampling, SpaceOptions};

/// How many transactions are recorded of 400, of which half only read, and how many of them whole.
fn recorded(sampling: Sampling) -> (usize, usize) {
    let options = Options { history: true, sampling, ..Options::default() };
    let db = Db::open(options.space("s", SpaceOptions::default())).unwrap();
    let space = db.space("s").unwrap().typed::<u64, u64>();
    for key in 0..200 {
        let write = async move |tx: &muesli::Tx| {
            let before = space.get(tx, &(key % 7)).await?.unwrap_or(0);
            space.put(tx, &(key % 7), &(before + 1)).await
        };
        db.blocking().transact(write).unwrap();
        let read = async move |tx: &muesli::Tx| space.get(tx, &(key % 7)).await;
        assert!(db.read_only().blocking().transact(read).unwrap().is_some());
    }
    let reports = db.close();
    let recorder = &reports[0].recorder;
    assert_eq!(recorder.share(), sampling);
    (recorder.len(), recorder.transactions().filter(|(it, _)| sampling.keeps(it.id)).count())
}

#[test]
fn of_transactions_that_are_not_sampled_only_those_that_write_are_kept() {
    assert_eq!(recorded(Sampling::ALL), (400, 400));
    let (all, whole) = recorded(Sampling::one_in(8));
    assert!((25..=80).contains(&whole), "{whole}");
    assert!((200..=200 + whole).contains(&all), "{all}");
}
