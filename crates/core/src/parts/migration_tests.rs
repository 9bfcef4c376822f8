use super::*;
use crate::parts::versions::Handle;
use crate::wire::Wire;
use crate::{Catalog, NodeId};

const NOW: Nanos = Nanos(3);

fn source() -> MigrationSource {
    let mut source = MigrationSource::new(RepositoryId(1), Timestamp(1), Timestamp(2), NOW);
    source.note(Timestamp(4), vec![(SpaceId(0), "key".into(), None)]);
    source.assert_invariants();
    source
}

fn filled(catalog: &Catalog, keys: u64, bytes: usize) -> Spaces {
    let mut spaces = Spaces::new(0);
    for key in 0..keys {
        let store = spaces.get_or_make(SpaceId(0), catalog);
        let handle = store.find_or_create(Handle::NONE, &key.to_be_bytes().as_slice().into());
        store.install(handle, Some(vec![7; bytes].into()), Timestamp(key + 1));
    }
    spaces
}

/// All of it arrives, a piece at a time, changes too, though each answer is lost once, comes twice
/// and comes again later.
#[test]
fn a_partition_is_copied_while_it_changes() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let spaces = filled(&catalog, 1_000, 1_000);
    let mut source = MigrationSource::new(RepositoryId(1), Timestamp(1), Timestamp(2), NOW);
    let mut destination = MigrationDestination::new(RepositoryId(0), Timestamp(1), NOW);
    let names = (Timestamp(1), Timestamp(2));
    let (mut all, mut rounds, mut earlier) = (Vec::new(), 0, None);
    loop {
        rounds += 1;
        let at = Timestamp(10_000 + rounds);
        if rounds <= 20 {
            source.note(at, vec![(SpaceId(0), "changed".into(), Some("later".into()))]);
        }
        let has = destination.has();
        assert!(source.is_for(RepositoryId(1), has));
        let wanted = |_, _: &SmallBytes| true;
        let lost = source.next_load(&spaces, wanted, has, NOW).expect("it can be");
        let load = source.next_load(&spaces, wanted, has, NOW).expect("it can be");
        assert_eq!(lost, load, "what was lost is sent again");
        if let Some(earlier) = earlier.replace(load.clone()).filter(|it| *it != load) {
            assert_eq!(destination.load(RepositoryId(0), names, earlier), Loaded::Late);
        }
        match destination.load(RepositoryId(0), names, load) {
            Loaded::Next { keys, whole } => {
                all.extend(keys);
                if whole && rounds > 20 {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
        source.assert_invariants();
    }
    assert_eq!(all.len(), 1_020);
    assert!(rounds > 15, "{rounds}");
    let order =
        |has| Move { partition: 0, from: RepositoryId(0), to: RepositoryId(1), epoch: 1, has };
    let has = destination.has();
    assert!(source.is_whole(has) && destination.has_all_of(&order(has)));
    source.note(Timestamp(20_000), vec![(SpaceId(0), "changed".into(), None)]);
    assert!(!source.is_whole(has), "it changed once more");
    assert!(!destination.has_all_of(&order(Fetched { changes: 0, ..has })));
}

/// The most that a copy of a partition took at any time, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MostKept {
    /// What is sent.
    message: usize,
    /// The piece that is kept to be sent again.
    piece: usize,
    /// The changes that are kept until the destination has them.
    changes: usize,
}

impl MostKept {
    fn look(&mut self, source: &MigrationSource, message: usize) {
        let value = |value: &Option<SmallBytes>| value.as_ref().map_or(0, SmallBytes::len);
        let piece = source.last.iter().map(|(_, key, _, it)| key.len() + value(it)).sum();
        self.message = self.message.max(message);
        self.piece = self.piece.max(piece);
        self.changes = self.changes.max(source.bytes);
    }
}

/// Copies a partition of so many keys, while so many changes of a kilobyte are made: one before
/// each question, so that of many some come when all pieces are there.
fn copied(spaces: &Spaces, keys: u64, changes: u64) -> MostKept {
    let mut source = MigrationSource::new(RepositoryId(1), Timestamp(1), Timestamp(2), NOW);
    let mut destination = MigrationDestination::new(RepositoryId(0), Timestamp(1), NOW);
    let (mut longest, mut arrived, mut noted) = (MostKept::default(), 0, 0);
    loop {
        if noted < changes {
            let key = noted.to_be_bytes().as_slice().into();
            let write = (SpaceId(0), key, Some(vec![8; 1_000].into()));
            source.note(Timestamp(keys + 1 + noted), vec![write]);
            noted += 1;
        }
        let load = source.next_load(spaces, |_, _| true, destination.has(), NOW).unwrap();
        let mut message = Vec::new();
        load.encode(&mut message);
        longest.look(&source, message.len());
        assert!(source.is_wanted(NOW, Nanos(1)), "too much is kept: {longest:?}");
        let names = (Timestamp(1), Timestamp(2));
        match destination.load(RepositoryId(0), names, load) {
            Loaded::Next { keys, whole } => {
                arrived += keys.len() as u64;
                if whole && noted == changes {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    source.assert_invariants();
    assert!(source.is_whole(destination.has()) && arrived == keys + changes, "{arrived}");
    longest
}

/// A partition of 100 MB takes no longer pieces than one of 1 MB, messages are as long as a piece,
/// and what is kept of changes is at most what was changed.
#[test]
fn nothing_of_a_copy_grows_with_the_data() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let (few, many) = (filled(&catalog, 1_000, 1_000), filled(&catalog, 100_000, 1_000));
    for changes in [20, 2_000] {
        let (small, large) = (copied(&few, 1_000, changes), copied(&many, 100_000, changes));
        assert_eq!(large.piece, small.piece, "{changes} changes");
        let change = KEY_BYTES + size_of::<u64>() + 1_000;
        for copy in [small, large] {
            // As long as a piece, with the key that ends it, and what is said of each key.
            assert!(copy.message <= PIECE_BYTES + 2_000, "{copy:?}");
            assert!(copy.changes <= changes as usize * change, "{copy:?}");
        }
    }
}

/// Whoever asks for another copy, under another name, or says that it has what was never sent,
/// gets nothing.
#[test]
fn what_is_of_another_attempt_is_refused() {
    let mut source = source();
    let has = Fetched { stream: Timestamp(1), ..Fetched::default() };
    assert!(source.is_for(RepositoryId(1), has) && !source.is_for(RepositoryId(2), has));
    assert!(!source.is_for(RepositoryId(1), Fetched { stream: Timestamp(2), ..has }));
    assert!(!source.is_for(RepositoryId(1), Fetched { pieces: 1, ..has }), "under no name");
    let wanted = |_, _: &SmallBytes| true;
    let impossible = Fetched { pieces: 4, source: Timestamp(2), ..has };
    assert_eq!(source.next_load(&Spaces::new(0), wanted, impossible, NOW), None);
    let impossible = Fetched { changes: 2, source: Timestamp(2), ..has };
    assert_eq!(source.next_load(&Spaces::new(0), wanted, impossible, NOW), None);
    let (newer, patience) = (Timestamp(2), Nanos(10));
    assert!(source.gives_way((RepositoryId(1), newer), NOW, patience));
    assert!(!source.gives_way((RepositoryId(2), newer), NOW, patience));
    assert!(source.gives_way((RepositoryId(2), newer), NOW + patience, patience));
    let mut destination = MigrationDestination::new(RepositoryId(0), Timestamp(1), NOW);
    let names = (Timestamp(1), Timestamp(2));
    let first = || Load::Piece { number: 1, keys: Vec::new() };
    assert_eq!(destination.load(RepositoryId(2), names, first()), Loaded::Late);
    assert_eq!(destination.load(RepositoryId(0), (newer, newer), first()), Loaded::Late);
    let next = Loaded::Next { keys: Vec::new(), whole: false };
    assert_eq!(destination.load(RepositoryId(0), names, first()), next);
    let second = Load::Piece { number: 2, keys: Vec::new() };
    let renamed = (Timestamp(1), Timestamp(9));
    assert_eq!(destination.load(RepositoryId(0), renamed, second), Loaded::Late, "begun twice");
    assert_eq!(destination.load(RepositoryId(0), names, Load::Unknown), Loaded::Unknown);
}

#[test]
fn a_partition_is_held_still_longer_each_time_and_not_for_ever() {
    let mut source = source();
    let times: Vec<u64> = (0..8).map(|_| source.hold_still(Nanos(5)).0).collect();
    assert_eq!(times, [5, 10, 20, 40, 80, 160, 320, 320]);
    assert!(source.is_wanted(NOW, Nanos(1)) && !source.is_wanted(Nanos(4), Nanos(1)));
}

#[test]
#[should_panic(expected = "bytes of changes for RepositoryId(1)")]
fn bytes_of_changes_that_are_not_there_are_noticed() {
    MigrationSource { bytes: 5, ..source() }.assert_invariants();
}

#[test]
#[should_panic(expected = "a change of nothing")]
fn a_change_of_nothing_is_noticed() {
    let mut source = source();
    source.changes.push_back((Timestamp(5), Vec::new()));
    source.assert_invariants();
}

#[test]
#[should_panic(expected = "a change that was not counted")]
fn a_change_that_was_not_counted_is_noticed() {
    MigrationSource { bytes: 0, ..source() }.acknowledge(1);
}

#[test]
#[should_panic(expected = "a piece after the last one")]
fn a_piece_after_the_last_one_is_noticed() {
    let last = vec![(SpaceId(0), "key".into(), Timestamp(1), None)];
    MigrationSource { cursor: None, last, ..source() }.assert_invariants();
}
