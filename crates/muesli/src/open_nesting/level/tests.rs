//! What levels may do beside each other, and what is said of what they may not.

use super::*;

const SPACE: SpaceId = SpaceId(3);

fn key(name: &str) -> SmallBytes {
    name.into()
}

fn read(level: &NestingLevel, name: &str) -> Result<(), Error> {
    level.note(Access::Read(SPACE, &key(name)))
}

fn write(level: &NestingLevel, name: &str) -> Result<(), Error> {
    level.note(Access::Write(SPACE, &key(name), Some(&key("1"))))
}

fn scan(level: &NestingLevel, lo: &str, hi: &str) -> Result<(), Error> {
    let (lo, hi) = (key(lo), Some(key(hi)));
    level.note(Access::Scan(&Scan { space: SPACE, lo, hi, reverse: false, limit: 9 }))
}

fn two() -> (Arc<NestingLevel>, NestingLevel) {
    let root = Arc::new(NestingLevel::new(SpaceId(9), None));
    let first = root.next_child();
    let child = root.open(root.next_child());
    assert_eq!((first, child.number), (1, 2));
    (root, child)
}

/// What an ancestor did, what a child does, and whether it may.
#[test]
fn a_child_keeps_away_from_what_its_ancestors_have_in_hand() {
    type Does = fn(&NestingLevel) -> Result<(), Error>;
    let (reads, writes): (Does, Does) = (|it| read(it, "b"), |it| write(it, "b"));
    let (scans, beside): (Does, Does) = (|it| scan(it, "a", "c"), |it| scan(it, "c", "d"));
    for (above, below, may) in [
        (reads, reads, true),
        (scans, reads, true),
        (scans, scans, true),
        (reads, writes, false),
        (scans, writes, false),
        (beside, writes, true),
        (writes, writes, false),
        (writes, reads, false),
        (writes, scans, false),
        (writes, beside, true),
    ] {
        let (root, child) = two();
        above(&root).unwrap();
        let did = below(&child);
        assert_eq!(did.is_ok(), may, "{did:?}");
        assert_eq!(root.fault().is_some(), !may);
    }
}

#[test]
fn an_ancestor_keeps_away_from_what_its_children_committed() {
    for committed in [true, false] {
        let (root, child) = two();
        write(&child, "b").unwrap();
        root.take_below(&child, committed);
        let sibling = NestingLevel::new(SpaceId(9), Some(&root));
        assert!(read(&sibling, "b").is_ok(), "a sibling may");
        for did in [read(&root, "b"), write(&root, "b"), scan(&root, "a", "c")] {
            assert_eq!(did.is_err(), committed, "{did:?}");
        }
        assert!(read(&root, "a").is_ok());
    }
}

/// What a closed child did, how it ended, and whether an open child of its parent may write
/// the same then.
#[test]
fn an_undone_closed_child_leaves_to_its_parent_what_stays_in_hand() {
    type Does = fn(&NestingLevel) -> Result<(), Error>;
    let (reads, writes): (Does, Does) = (|it| read(it, "b"), |it| write(it, "b"));
    let scans: Does = |it| scan(it, "a", "c");
    for (does, end, may) in [
        (reads, ClosedEnd::Merged, false),
        (scans, ClosedEnd::Merged, false),
        (writes, ClosedEnd::Merged, false),
        (reads, ClosedEnd::GaveUp, false),
        (scans, ClosedEnd::GaveUp, false),
        (writes, ClosedEnd::GaveUp, true),
        (reads, ClosedEnd::RunsAgain, true),
        (scans, ClosedEnd::RunsAgain, true),
        (writes, ClosedEnd::RunsAgain, true),
    ] {
        let (root, open) = two();
        let closed = NestingLevel::closed(&root);
        does(&closed).unwrap();
        assert!(root.is_untouched(), "before its end it is its own");
        root.take_closed(&closed, end);
        assert_eq!(write(&open, "b").is_ok(), may, "{end:?}");
    }
}

/// Levels of one transaction are in nobody's way, and what an open child within any of them
/// committed is newer than what all of them have seen, also when it has been undone.
#[test]
fn a_closed_child_is_of_its_parents_transaction() {
    let within_root = || {
        let root = Arc::new(NestingLevel::new(SpaceId(9), None));
        write(&root, "a").unwrap();
        let closed = Arc::new(NestingLevel::closed(&root));
        read(&closed, "a").unwrap();
        write(&closed, "a").unwrap();
        closed
    };
    let closed = within_root();
    closed.take_below(&open_that_wrote("b"), true);
    assert!(read(&NestingLevel::closed(&closed), "b").is_err());
    for end in [ClosedEnd::Merged, ClosedEnd::GaveUp, ClosedEnd::RunsAgain] {
        let (root, _) = two();
        let closed = NestingLevel::closed(&root);
        closed.take_below(&open_that_wrote("b"), true);
        root.take_closed(&closed, end);
        assert!(read(&root, "b").is_err(), "{end:?}");
    }
    for does in [read, write] {
        let open = NestingLevel::new(SpaceId(9), Some(&within_root()));
        let error = does(&open, "a").unwrap_err().to_string();
        assert!(error.contains("level 2,") && error.contains("at level 1 has"), "{error}");
    }
}

fn open_that_wrote(name: &str) -> NestingLevel {
    let open = NestingLevel::new(SpaceId(9), None);
    write(&open, name).unwrap();
    open
}

#[test]
fn errors_name_both_accesses_their_levels_and_the_child() {
    let (root, child) = two();
    read(&root, "b").unwrap();
    let text = write(&child, "b").unwrap_err().to_string();
    for part in ["child number 2, at level 1, writes", "level 0 has read", "`b`", "number 3"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (name, does, by) in [
        ("b", "transaction at level 0 reads key `b`", "which open child number 2 has"),
        ("c", "level 0 reads", "open child number 1 of open child number 2 has"),
    ] {
        let (root, child) = two();
        write(&child, "b").unwrap();
        let child = Arc::new(child);
        let within = child.open(child.next_child());
        write(&within, "c").unwrap();
        child.take_below(&within, true);
        root.take_below(&child, true);
        let text = read(&root, name).unwrap_err().to_string();
        assert!(text.contains(does) && text.contains(by), "{text}");
    }
}

#[test]
fn the_layers_space_is_its_own() {
    let (root, _) = two();
    assert!(root.note(Access::Read(SpaceId(9), &key("b"))).is_err());
}
