//! Golden bytes of what members of groups say and keep, with what they mean.
//!
//! If this fails, bytes have changed under the same version: raise `WIRE` (messages) or `DATA`
//! (records, the placement's row) in `muesli_core::formats`, say so in
//! `docs/running/compatibility.md`, and write the new version's file with `UPDATE_GOLDENFILES=1
//! cargo test -p muesli-group golden`.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use muesli_core::wire::WireError;
use muesli_core::{Address, NodeId, RepositoryId, Role, SmallBytes, Wire, formats};

use muesli_group::agreement::ballot::Ballot;
use muesli_group::agreement::configuration::Configuration;
use muesli_group::agreement::entry::Entry;
use muesli_group::agreement::ledger::Change;
use muesli_group::agreement::summary::Formed;
use muesli_group::agreement::summary::Summary;
use muesli_group::agreement::transfer::{Base, EntryBatch, Fetch, FetchState, StatePiece};
use muesli_group::placement::PlacementRow;
use muesli_group::protocol::{Message, Record};

const BALLOT: Ballot = Ballot { configuration: 1, number: 2, member: 3 };

fn configuration() -> Configuration {
    Configuration::first(vec![0, 1, 2]).next(4, vec![1, 2, 5])
}

fn summary() -> Summary {
    Summary {
        formed: Formed::Ready,
        since: 1,
        configuration: Configuration::first(vec![0, 1, 2]),
        promise: BALLOT,
        accepted: Ballot { number: 4, ..BALLOT },
        fetched: true,
        decided: 5,
        length: 6,
        next: Some(configuration()),
    }
}

fn entry() -> Entry {
    Entry::from(b"entry".to_vec())
}

/// One of each.
fn messages() -> Vec<Message<u64>> {
    let from = Address { node: NodeId(1), role: Role::Coordinator };
    let batch = EntryBatch {
        summary: summary(),
        base: Some(Base { upto: 7, bytes: 8 }),
        from: 9,
        entries: vec![entry()],
    };
    let piece = StatePiece {
        transfer: 1,
        covers: 2,
        number: 3,
        percent: 4,
        piece: Some(entry()),
        needs: 5,
    };
    vec![
        Message::Inside { from, hops: 2, message: 3 },
        Message::Consensus(4, SmallBytes::new(b"consensus")),
        Message::Confirm { ballot: BALLOT, round: 5 },
        Message::Confirmed { ballot: BALLOT, round: 6 },
        Message::Leads { group: 7, member: 8, ballot: BALLOT, epoch: 9 },
        Message::Ask,
        Message::Knows(Box::new(summary())),
        Message::Resync(BALLOT),
        Message::AskPlacement,
        Message::Placement {
            epoch: 10,
            homes: vec![(NodeId(11), 12)],
            leaving: vec![RepositoryId(13)],
        },
        Message::Stable(14),
        Message::At(15),
        Message::AskBegun(16),
        Message::Begun(true),
        Message::Behind(17),
        Message::Reached { decided: 18, bytes: 19 },
        Message::Fetch(Fetch {
            after: 20,
            whole: true,
            again: false,
            accepted: BALLOT,
            length: 21,
        }),
        Message::Entries(Box::new(batch)),
        Message::FetchState(FetchState { have: Some((21, 22)), again: true }),
        Message::State(Box::new(piece)),
        Message::NoState,
        Message::Long(23),
    ]
}

/// One of each.
fn changes() -> Vec<Change> {
    let configuration = configuration();
    vec![
        Change::Entries(1, vec![entry()]),
        Change::Promise(BALLOT),
        Change::Accepted(BALLOT),
        Change::Decided(2),
        Change::Configured(3, configuration.clone()),
        Change::Adopted(Box::new(summary())),
        Change::Rebased { upto: 4, bytes: 5, configuration },
        Change::Install(6),
        Change::Piece(7, entry()),
        Change::Installed(8),
        Change::Restored { upto: 9, bytes: 10 },
        Change::Fetched(11, vec![entry()]),
    ]
}

fn row() -> PlacementRow {
    PlacementRow {
        epoch: 1,
        homes: vec![(NodeId(2), 3)],
        joined: vec![(NodeId(4), "a:5".to_owned())],
        left: vec![NodeId(6)],
        leaving: vec![RepositoryId(7)],
    }
}

fn bytes(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn lines<T: Wire + Debug>(kind: &str, all: &[T]) -> String {
    let line = |value: &T| {
        let hex: String = bytes(value).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{kind} {hex}\n  {value:?}\n")
    };
    all.iter().map(line).collect()
}

#[test]
fn bytes_of_this_version_are_what_they_were() {
    let now = lines("message", &messages())
        + &lines("record", &[Record::<u64>::Changes(changes())])
        + &lines("change", &changes())
        + &lines("row of the placement", &[row()]);
    let name = format!("wire-{}-data-{}.txt", formats::WIRE, formats::DATA);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &now).expect("a page");
    }
    let was = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(was, now, "bytes have changed: see the top of this file");
}

/// The variants that can be read and have no sample.
fn missing<T: Wire>(samples: &[T]) -> Vec<u8> {
    let there: BTreeSet<u8> = samples.iter().map(|sample| bytes(sample)[0]).collect();
    let known = |number: &u8| {
        let read = T::decode_all(&[*number]).err();
        !matches!(read, Some(WireError::Variant { at: 0, .. }))
    };
    (0..=u8::MAX).filter(known).filter(|number| !there.contains(number)).collect()
}

#[test]
fn every_variant_has_its_sample() {
    assert_eq!(missing(&messages()), Vec::<u8>::new());
    assert_eq!(missing(&changes()), Vec::<u8>::new());
}
