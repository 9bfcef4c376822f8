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
