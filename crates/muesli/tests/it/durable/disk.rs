//! A disk that fails.

use super::*;

#[test]
fn what_a_failed_disk_has_not_taken_is_told_to_nobody() {
    for loops in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let (path, trouble) = (dir.path().join("data"), dir.path().join("trouble"));
        let durable = Durable { trouble: Some(trouble.clone()), ..Durable::at(&path) };
        let options = Options { durable: Some(durable), ..options(&path, "score", loops) };
        let db = Db::open(options.clone()).unwrap();
        add(&db, 1, 1).unwrap();
        std::fs::write(&trouble, "fail").unwrap();
        let failed = add(&db, 1, 10).unwrap_err();
        assert!(matches!(&failed, Error::Storage(why) if why.contains("made to fail")), "{failed}");
        assert_eq!(add(&db, 1, 10), Err(failed.clone()), "it is closed");
        let space = db.create_space("more", SpaceOptions::default());
        assert_eq!(space.map(drop), Err(failed));
        db.close();
        std::fs::remove_file(&trouble).unwrap();
        let db = Db::open(options).unwrap();
        let found = read_all(&db)[1];
        assert!(found == Some(1) || found == Some(11), "{found:?}: what was answered is there");
        add(&db, 1, 100).unwrap();
    }
}

/// Nobody waits for the disk, and so nobody is told by an answer.
#[test]
fn a_disk_that_fails_behind_answered_commits_is_told_to_whoever_comes_next() {
    let dir = tempfile::tempdir().unwrap();
    let (path, trouble) = (dir.path().join("data"), dir.path().join("trouble"));
    let sync = SyncPolicy::Every(Duration::from_millis(1));
    let durable = Durable { sync, trouble: Some(trouble.clone()), ..Durable::at(&path) };
    let options = Options { durable: Some(durable), ..options(&path, "score", 1) };
    let db = Db::open(options.clone()).unwrap();
    add(&db, 1, 1).unwrap();
    std::fs::write(&trouble, "fail").unwrap();
    // Answered before it is synced, unless the one before it was not yet.
    let _ = add(&db, 1, 10);
    let mut names = (0..).map(|number| format!("space {number}"));
    let refused = names.find_map(|name| {
        std::thread::sleep(Duration::from_millis(1));
        db.create_space(&name, SpaceOptions::default()).err()
    });
    let refused = refused.expect("there are more names");
    assert!(matches!(&refused, Error::Storage(why) if why.contains("made to fail")), "{refused}");
    db.close();
    std::fs::remove_file(&trouble).unwrap();
    let found = read_all(&Db::open(options).unwrap())[1];
    assert!([None, Some(1), Some(11)].contains(&found), "{found:?}");
}
