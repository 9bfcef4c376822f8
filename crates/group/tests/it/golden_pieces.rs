//! Golden bytes of the pieces of a member's checkpoint, of a state that is always the same.
//!
//! If this fails, the layout of checkpoints has changed under the same version: raise `DATA` in
//! `muesli_core::formats`, say so in `docs/running/compatibility.md`, and write the new version's
//! file with `UPDATE_GOLDENFILES=1 cargo test -p muesli-group --test it golden`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use muesli_core::wire::{Wire, WireError};
use muesli_core::{
    Address, Catalog, Context, Effects, LoggedRole as _, NodeId, Participant, Protocol,
    RepositoryId, Settings, SmallBytes, SpaceId, SpaceOptions, Timestamp, TxnId, formats,
};
use muesli_group::agreement::ballot::Ballot;
use muesli_group::agreement::configuration::Configuration;
use muesli_group::agreement::entry::Entry;
use muesli_group::agreement::ledger::{Change, ReplicaState};
use muesli_group::agreement::summary::Formed;
use muesli_group::agreement::summary::Summary;
use muesli_group::protocol::Record;
use muesli_group::replica::Replica;
use muesli_group::{GroupSettings, Grouped, layout};
use muesli_protocols::score::message::Prepare;
use muesli_protocols::score::{self, Score};

const ME: RepositoryId = RepositoryId(1);
const HERE: NodeId = NodeId(1);
const SPACE: SpaceId = SpaceId(0);
/// So small that the participant's state takes several pieces.
const PIECE_BYTES: usize = 20;
/// How many entries are decided, of one more.
const DECIDED: u64 = 3;

/// A member on its own.
struct Member {
    replica: Replica<Score>,
    catalog: Catalog,
    settings: Settings,
    effects: Effects<Grouped<Score>>,
}

impl Member {
    fn new() -> Member {
        let nodes: Vec<_> = (0..3).map(NodeId).collect();
        let homes = layout::homes(1, 3, 3).unwrap();
        let catalog = Catalog::new(&homes, 1, &nodes).unwrap();
        let catalog = catalog.with_space("s", SpaceOptions::default()).unwrap();
        let settings = Settings::default();
        let replica = Replica::new(ME, &settings, &GroupSettings::default());
        Member { replica, catalog, settings, effects: Effects::default() }
    }

    fn with<T>(
        &mut self,
        run: impl FnOnce(&mut Replica<Score>, &mut Context<'_, Grouped<Score>>) -> T,
    ) -> T {
        let Member { replica, catalog, settings, effects } = self;
        let me = Address::repository(HERE, ME);
        run(replica, &mut Context { me, catalog, settings, effects })
    }

    fn replay(&mut self, changes: Vec<Change>) {
        self.with(|replica, cx| replica.replay(Record::Changes(changes), cx));
    }

    fn restore(&mut self, piece: &[u8]) -> Result<(), WireError> {
        self.with(|replica, cx| replica.restore(piece, cx))
    }

    /// The pieces of its checkpoint.
    fn pieces(&self) -> Vec<Vec<u8>> {
        let mut cursor = self.replica.begin_checkpoint().expect("it has its state");
        let (mut pieces, mut piece) = (Vec::new(), Vec::new());
        while self.replica.checkpoint_piece(&mut cursor, PIECE_BYTES, &mut piece) {
            pieces.push(std::mem::take(&mut piece));
        }
        pieces
    }
}

fn committed(sequence: u64, key: &'static str) -> score::Record {
    let at = Timestamp::new(sequence, RepositoryId(0));
    score::Record::Committed { at, writes: vec![(SPACE, key.into(), Some("value".into()))] }
}

fn prepared(key: &'static str) -> score::Record {
    let prepare = Prepare {
        txn: TxnId { node: NodeId(2), incarnation: 3, sequence: 4 },
        settled_below: 1,
        participants: [RepositoryId(0)].into_iter().collect(),
        snapshot: Timestamp::ZERO,
        reader: (),
        strict: false,
        reads: Default::default(),
        writes: [(SPACE, SmallBytes::from(key), None)].into_iter().collect(),
        scans: Vec::new(),
        delayed: Vec::new(),
        extra: None,
        leaving: Default::default(),
        arriving: Default::default(),
    };
    let at = Timestamp::new(9, RepositoryId(0));
    score::Record::Prepared { prepare: Arc::new(prepare), at }
}

/// A member that knows of four entries, of which three are decided and replayed.
fn fixed() -> Member {
    let (promise, accepted) = (2, 1);
    let ballot = |number| Ballot { configuration: 1, number, member: 3 };
    let known = Summary {
        formed: Formed::Begun,
        since: 0,
        configuration: Configuration::first(vec![0, 1, 2]),
        promise: ballot(promise),
        accepted: ballot(accepted),
        fetched: false,
        decided: 0,
        length: 0,
        next: None,
    };
    let records = [committed(5, "a"), committed(6, "b"), prepared("c"), committed(7, "d")];
    let entry = |record: &<Score as Protocol>::Record| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        Entry::from(bytes)
    };
    let entries = records.iter().map(entry).collect();
    let mut member = Member::new();
    member.replay(vec![
        Change::Adopted(Box::new(known)),
        Change::Entries(0, entries),
        Change::Decided(DECIDED),
    ]);
    member
}

fn golden() -> PathBuf {
    let name = format!("pieces-data-{}.txt", formats::DATA);
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name)
}

/// The pieces of the golden file.
fn kept() -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(golden()).expect("the golden file");
    let byte = |line: &str, at| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal");
    let piece = |line: &str| (0..line.len()).step_by(2).map(|at| byte(line, at)).collect();
    text.lines().map(piece).collect()
}

#[test]
fn pieces_of_this_version_are_what_they_were() {
    let line = |piece: &Vec<u8>| piece.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let now: String = fixed().pieces().iter().map(|piece| line(piece) + "\n").collect();
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::create_dir_all(golden().parent().expect("a folder")).expect("a folder");
        std::fs::write(golden(), &now).expect("a page");
    }
    let was = std::fs::read_to_string(golden()).unwrap_or_default();
    assert_eq!(was, now, "pieces have changed: see the top of this file");
}

#[test]
fn who_restores_the_pieces_knows_what_their_member_knew() {
    let (mut before, mut after) = (fixed(), Member::new());
    kept().iter().for_each(|piece| after.restore(piece).expect("a piece"));
    assert_eq!(
        before.replica.look(ReplicaState::summary),
        after.replica.look(ReplicaState::summary)
    );
    let entries = |member: &Member| {
        let range =
            |it: &ReplicaState| it.log.range(DECIDED, it.length()).cloned().collect::<Vec<_>>();
        member.replica.look(range)
    };
    assert_eq!(entries(&before), entries(&after));
    assert_eq!(after.pieces(), kept(), "nothing is lost on the way");
    // Both go on alike.
    for member in [&mut before, &mut after] {
        member.replay(vec![Change::Decided(DECIDED + 1)]);
    }
    assert_eq!(before.pieces(), after.pieces());
    assert_ne!(after.pieces(), kept(), "one more entry was replayed");
}

#[test]
fn every_kind_of_piece_has_its_sample() {
    let there: BTreeSet<u8> = kept().iter().map(|piece| piece[0]).collect();
    let is_known = |kind: &u8| {
        let read = Member::new().restore(&[*kind]).err();
        !matches!(read, Some(WireError::Variant { what: "piece of a member", at: 0, .. }))
    };
    let known: BTreeSet<u8> = (0..=u8::MAX).filter(is_known).collect();
    assert_eq!(there, known);
}
