//! Pieces of checkpoints, and stores that go back.

use super::*;
use crate::parts::versions::Handle;
use crate::wire::{Reader, WireError};
use crate::{NodeId, SpaceOptions};

#[test]
fn wanted_keys_come_piece_by_piece_and_others_can_be_removed() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let mut spaces = Spaces::new(0);
    for number in 0..100_u8 {
        let store = spaces.get_or_make(SpaceId(u16::from(number % 2) * 2), &catalog);
        let handle = store.find_or_create(Handle::NONE, &SmallBytes::new(&[number]));
        store.install(handle, Some("value".into()), Timestamp(u64::from(number) + 1));
    }
    let third = |_: SpaceId, key: &SmallBytes| key.as_slice()[0].is_multiple_of(3);
    let (mut cursor, mut pieces, mut all) = (Cursor::default(), 0, Vec::new());
    while let Some(piece) = spaces.next_newest(&mut cursor, 60, third) {
        pieces += 1;
        all.extend(piece.into_iter().map(|(_, key, at, _)| (key.as_slice()[0], at.0)));
    }
    all.sort_unstable();
    let wanted = (0..100).step_by(3).map(|number| (number, u64::from(number) + 1));
    assert_eq!(all, wanted.collect::<Vec<_>>());
    assert!(pieces > 10, "{pieces}");
    let (mut cursor, mut steps) = (Cursor::default(), 1);
    while spaces.remove_some(&mut cursor, 30, third) {
        steps += 1;
    }
    assert_eq!(steps, 4);
    assert_eq!(spaces.iter().map(|(_, store)| store.len()).sum::<usize>(), 66);
}

#[test]
fn rows_are_counted_step_by_step_from_any_cursor() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let mut spaces = Spaces::new(0);
    for number in 0..10_000_u32 {
        let store = spaces.get_or_make(SpaceId((number % 2) as u16 * 3), &catalog);
        let handle = store.find_or_create(Handle::NONE, &SmallBytes::new(&number.to_be_bytes()));
        // One in ten is deleted, and is no row.
        let value = (number % 10 != 0).then(|| "value".into());
        store.install(handle, value, Timestamp(u64::from(number) + 1));
    }
    let partition = |_: SpaceId, key: &SmallBytes| Some(u16::from(key.as_slice()[3] % 4));
    let (mut cursor, mut sizes, mut steps) = (SizeCursor::default(), PartitionSizes::default(), 1);
    while spaces.add_sizes(&mut cursor, &mut sizes, partition) {
        steps += 1;
    }
    assert_eq!(steps, 10_000_u32.div_ceil(SIZE_STEP_SLOTS));
    let all = sizes.into_list();
    assert_eq!(all.iter().map(|it| it.partition).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(all.iter().map(|it| it.rows).sum::<u64>(), 9_000);
    assert_eq!(all.iter().map(|it| it.bytes).sum::<u64>(), 9_000 * 9);
    for (space, slot) in [(0, u32::MAX), (3, 7), (4, 0), (u16::MAX, u32::MAX)] {
        let mut cursor = SizeCursor { space, slot, ..SizeCursor::default() };
        let mut sizes = PartitionSizes::default();
        while spaces.add_sizes(&mut cursor, &mut sizes, |_, _| Some(0)) {}
        let rows = sizes.into_list().first().map_or(0, |it| it.rows);
        assert!(rows < 9_000, "{space}, {slot}: {rows}");
    }
}

const KINDS: ChainKinds = ChainKinds { chains: 3, rest: 6, cuts: true };

/// Two keys, one of them with so many versions of a kilobyte.
fn long_chain(catalog: &Catalog, versions: u64) -> Spaces {
    let mut spaces = Spaces::new(0);
    let store = spaces.get_or_make(SpaceId(0), catalog);
    for at in 1..=versions {
        let handle = store.find_or_create(Handle::NONE, &"long".into());
        store.install(handle, Some(vec![at as u8; 1_000].into()), Timestamp(at));
    }
    let handle = store.find_or_create(Handle::NONE, &"other".into());
    store.install(handle, Some("x".into()), Timestamp(versions + 1));
    spaces
}

#[test]
fn a_long_chain_goes_in_several_pieces_all_of_one_moment() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    let mut spaces = long_chain(&catalog, 100);
    let before: Vec<_> = spaces.get(SpaceId(0)).unwrap().chain_in(0).into_iter().collect();
    let before = format!("{before:?}");
    let (mut restored, mut cursor, mut count) = (Spaces::new(0), Cursor::default(), 0);
    loop {
        let mut piece = Vec::new();
        if !spaces.next_chains(KINDS, &mut cursor, 5_000, &mut piece) {
            break;
        }
        assert!(piece.len() < 5_000 + 1_100, "{}", piece.len());
        let mut input = Reader::new(&piece[1..]);
        match piece[0] {
            3 => restored.restore_chains(&mut input, &catalog).unwrap(),
            _ => restored.restore_rest(&mut input, &catalog).unwrap(),
        }
        count += 1;
        // The key goes, all of its versions with it, in the middle of that.
        let store = spaces.get_or_make(SpaceId(0), &catalog);
        store.remove_in(0, |key| count == 3 && *key == "long".into());
    }
    assert!(count > 20, "{count}");
    let after: Vec<_> = restored.get(SpaceId(0)).unwrap().chain_in(0).into_iter().collect();
    assert_eq!(format!("{after:?}"), before);
    assert_eq!(restored.get(SpaceId(0)).unwrap().len(), 2);
}

#[test]
fn the_rest_of_a_chain_that_did_not_begin_is_refused() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    let spaces = long_chain(&catalog, 2);
    let (mut cursor, mut first, mut rest) = (Cursor::default(), Vec::new(), Vec::new());
    assert!(spaces.next_chains(KINDS, &mut cursor, 1, &mut first));
    assert!(spaces.next_chains(KINDS, &mut cursor, 1, &mut rest));
    assert_eq!((first[0], rest[0]), (KINDS.chains, KINDS.rest));
    let refused = Spaces::new(0).restore_rest(&mut Reader::new(&rest[1..]), &catalog);
    assert!(matches!(refused, Err(WireError::Variant { .. })), "{refused:?}");
}

#[test]
fn collected_deletions_go_in_several_pieces() {
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
    let empty = || Spaces::new(0).recording_collected(true);
    let (mut spaces, mut restored) = (empty(), empty());
    let store = spaces.get_or_make(SpaceId(0), &catalog);
    for at in 1..=5_000 {
        store.add_collected(&SmallBytes::new(&[((at - 1) / 2_500) as u8]), Timestamp(at));
    }
    let (mut cursor, mut count) = (Cursor::default(), 0);
    loop {
        let mut piece = Vec::new();
        if !spaces.next_chains(KINDS, &mut cursor, 100, &mut piece) {
            break;
        }
        assert!(piece.len() < 16 << 10, "{}", piece.len());
        restored.restore_chains(&mut Reader::new(&piece[1..]), &catalog).unwrap();
        count += 1;
    }
    assert_eq!(count, 6);
    let all = |spaces: &Spaces| {
        let store = spaces.get(SpaceId(0)).unwrap();
        store.all_collected().map(|(key, all)| (key.clone(), all.to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(all(&restored), all(&spaces));
}

#[test]
fn stores_are_made_as_their_spaces_are_defined() {
    let hash = SpaceOptions { index: Index::Hash, ..SpaceOptions::default() };
    let catalog = Catalog::new(&[NodeId(0)], 1, &[NodeId(0)]).unwrap();
    let catalog = catalog.with_space("a", SpaceOptions::default()).unwrap();
    let catalog = catalog.with_space("b", hash).unwrap();
    let mut spaces = Spaces::new(0);
    assert!(spaces.is_empty() && spaces.get(SpaceId(1)).is_none());
    assert!(!spaces.get_or_make(SpaceId(1), &catalog).is_ordered());
    assert!(spaces.get(SpaceId(0)).is_none() && spaces.get(SpaceId(1)).is_some());
    assert!(spaces.get_or_make(SpaceId(0), &catalog).is_ordered());
    let all: Vec<_> = spaces.iter().map(|(space, _)| space).collect();
    assert_eq!(
        (all, spaces.len(), spaces.all_mut().count()),
        (vec![SpaceId(0), SpaceId(1)], 2, 2,)
    );
}
