//! Golden files of checkpoints: all pieces of a repository in one fixed state, for each family of
//! protocols. What is under way, waits for its turn, is remembered, was deleted and was collected
//! is in it, and a chain of versions that is longer than a piece.
//!
//! Where bytes differ, the layout of checkpoints has changed: see the top of `golden`.

use std::fs;

use muesli_core::checkpoint::piece;
use muesli_core::ranges::KeyRange;
use muesli_core::{Gave, ProcedureId, Protocol};
use muesli_protocols::granola::Granola;
use muesli_protocols::granola::message as calls;
use muesli_protocols::granola::message::{Holding, Owners};
use muesli_protocols::two_phase::message::Answers;

use super::*;
use crate::golden::{folder, hex, unhex};

/// A piece is this long, or longer by a version.
const PIECE_BYTES: usize = 64;
/// What the head of a checkpoint begins with: a clock that a start moves on, as whatever was served
/// since the last record may lie anywhere up to the ceiling.
const CLOCK: u8 = 0;
/// What further versions of a key begin with, where a chain is cut.
const REST: u8 = 7;

type Pieces = Vec<Vec<u8>>;

fn settings() -> Arc<Settings> {
    Arc::new(Settings { logging: true, record_collected: true, ..Settings::default() })
}

/// All pieces of a checkpoint.
fn pieces<P: Protocol>(node: &muesli_core::Node<P>, bytes: usize) -> Pieces {
    let effects = Effects::default();
    let mut checkpoint = node.begin_checkpoint(&effects).expect("it has checkpoints");
    let (mut pieces, mut piece) = (Pieces::new(), Vec::new());
    while node.checkpoint_piece(&mut checkpoint, bytes, &mut piece) {
        pieces.push(std::mem::take(&mut piece));
    }
    pieces
}

/// A node that was restored from these pieces.
fn from<P: Protocol>(pieces: &Pieces, new: fn() -> muesli_core::Node<P>) -> muesli_core::Node<P> {
    let (mut node, mut effects) = (new(), Effects::default());
    for piece in pieces {
        node.restore(piece, &mut effects).expect("a piece of its family");
    }
    node
}

/// What a checkpoint holds, in an order of its own: keys come by the slots that they are in, which
/// nobody else knows of. Every version is a piece by itself.
fn held<P: Protocol>(node: &muesli_core::Node<P>, clock: bool) -> Pieces {
    let mut pieces = pieces(node, 1);
    pieces.retain(|piece| clock || kind_of(piece) != CLOCK);
    pieces.sort();
    pieces
}

/// The repository comes first, in two bytes.
fn kind_of(piece: &[u8]) -> u8 {
    piece[2]
}

/// The kinds of pieces that a family reads.
fn kinds<P: Protocol>(new: fn() -> muesli_core::Node<P>) -> Vec<u8> {
    let is_read = |kind: &u8| {
        let refused = new().restore(&[0, 0, *kind], &mut Effects::default()).err();
        refused.is_none_or(|error| !error.to_string().contains("piece of a checkpoint"))
    };
    (0..=u8::MAX).filter(is_read).collect()
}

/// Looks whether the pieces of a node are those of its golden file, which give the same state; with
/// the kinds of pieces that there are.
fn looked_at<P: Protocol>(
    node: &muesli_core::Node<P>,
    new: fn() -> muesli_core::Node<P>,
) -> Vec<u8> {
    let path = folder().join(format!("{}-checkpoint.txt", P::NAME));
    let pieces = pieces(node, PIECE_BYTES);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        let lines: Vec<_> = pieces.iter().map(|piece| format!("piece {}\n", hex(piece))).collect();
        fs::write(&path, lines.concat()).expect("a page");
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let golden = text.lines().map(|line| line.strip_prefix("piece ").expect("a piece"));
    let golden: Pieces = golden.map(unhex).collect();
    let differs = golden.iter().zip(&pieces).position(|(one, other)| one != other);
    assert!(
        golden == pieces,
        "{}: pieces of checkpoints have changed, the first one that differs is {:?}: raise the \
         version and write its files (see the top of `golden.rs`)\n{}",
        P::NAME,
        differs,
        pieces.iter().map(|piece| format!("piece {}\n", hex(piece))).collect::<String>()
    );
    let restored = from(&golden, new);
    assert_eq!(held(&restored, false), held(node, false), "{}", P::NAME);
    let again = from(&self::pieces(&restored, PIECE_BYTES), new);
    assert_eq!(held(&again, true), held(&restored, true), "{}", P::NAME);
    let mut kinds: Vec<_> = golden.iter().map(|piece| kind_of(piece)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn two_phase<V: Tested>() -> Node<V> {
    node(&V::Rules::default(), settings())
}

/// The pieces of a repository at work under a protocol with two phases.
fn of_two_phases<V: Tested>() -> Vec<u8> {
    let mut live = Stage::<V> { node: two_phase(), ..Stage::new(V::Rules::default()) };
    // A client that was forgotten, and one that came again after that; an answer that was given.
    let mut seed = |piece: Vec<u8>| {
        let piece = [vec![0, 0], piece].concat();
        live.node.restore(&piece, &mut live.effects).expect("a piece of its family");
    };
    seed(piece(8, &vec![(NodeId(7), 3_u64)]));
    seed(piece(9, &5_u64));
    let gave = vec![
        (0, Gave::Value(Some("left".into()))),
        (1, Gave::Nothing("refused".into())),
        (2, Gave::Unknown),
        (3, Gave::TooMuch { size: 9, limit: 8 }),
    ];
    let asked = TxnId { node: NodeId(6), incarnation: 2, sequence: 4 };
    let answers: Vec<(TxnId, Answers)> = vec![(asked, gave)];
    seed(piece(5, &answers));
    let script = [
        Happening::OneStep(vec![(1, true), (2, true), (3, true)]),
        Happening::OneStep(vec![(3, false)]),
        Happening::OneStep(vec![(4, true)]),
        Happening::Watermark,
        Happening::OneStep(vec![(5, true)]),
        Happening::OneStep(vec![(2, false)]),
    ];
    let long = (0..12).map(|_| Happening::OneStep(vec![(1, true)]));
    let end = [
        Happening::Ask(40),
        Happening::Prepare(vec![4], vec![(6, true)]),
        Happening::Prepare(vec![], vec![(7, true)]),
        Happening::Prepare(vec![], vec![(8, true), (4, false)]),
        Happening::Decide(1, Some(100)),
        Happening::Decide(2, None),
        Happening::Prepare(vec![5], vec![(9, true)]),
    ];
    script.into_iter().chain(long).chain(end).for_each(|it| live.happen(it));
    looked_at(&live.node, two_phase::<V>)
}

#[test]
fn checkpoints_of_protocols_with_two_phases_are_as_they_were() {
    let mut kinds = [
        of_two_phases::<Snapshots>(),
        of_two_phases::<TimeWarp>(),
        of_two_phases::<Vectors>(),
        of_two_phases::<TryLocks>(),
        of_two_phases::<NewestVersions>(),
        of_two_phases::<Everybody>(),
    ]
    .concat();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, self::kinds(two_phase::<Snapshots>), "each kind has its sample");
}

fn granola() -> muesli_core::Node<Granola> {
    let homes = [HERE, ELSEWHERE];
    let catalog = Catalog::new(&homes, 1, &homes).expect("two repositories");
    let catalog = catalog.with_space("keys", SpaceOptions::default()).expect("a space");
    muesli_core::Node::new(HERE, 1, Arc::new(catalog), settings(), &Default::default())
}

/// A transaction of two repositories.
fn request(sequence: u64, agreement: calls::Agreement, task: calls::Task) -> Arc<calls::Request> {
    let holders = [REPOSITORY].into_iter().collect();
    let owners = Some(Arc::new(Owners { epoch: 1, holders })).filter(|_| sequence == 3);
    let install = calls::Install::default();
    let other = calls::Task::Install(Box::new(install));
    let parts = [(0, owners, task), (1, None, other)];
    let part = |(partition, owners, task)| calls::Part { partition, owners, task };
    Arc::new(calls::Request {
        settled_below: 2,
        floor: Timestamp(7),
        agreement,
        ..calls::Request::new(
            TxnId { node: ELSEWHERE, incarnation: 1, sequence },
            [REPOSITORY, RepositoryId(1)].into_iter().collect(),
            parts.into_iter().map(part).collect(),
        )
    })
}

/// What a repository under Granola has logged.
fn records(keys: &[SmallBytes]) -> Vec<calls::Record> {
    let txn = |sequence| TxnId { node: ELSEWHERE, incarnation: 1, sequence };
    let write = |at: usize, value: Option<&str>| (SPACE, keys[at].clone(), value.map(Into::into));
    let (collected, value) = (Timestamp::ZERO, Some("old".into()));
    let found = calls::FoundVersion { version: Timestamp(64), value, collected };
    let call = calls::Task::Call {
        procedure: ProcedureId { name: "transfer".into(), version: 3 },
        arguments: "17".into(),
        tells: true,
        spaces: 1,
    };
    let range = KeyRange { space: SPACE, lo: keys[0].clone(), hi: None };
    let install = calls::Install {
        reads: vec![(SPACE, keys[0].clone(), Timestamp(64))],
        scans: vec![calls::SeenRange { range, at: Timestamp(65), live: 2 }],
        writes: vec![write(1, Some("new")), write(2, None)],
    };
    let answers = [
        calls::PartAnswer::Given("given".into()),
        calls::PartAnswer::Found(vec![found.clone()]),
        calls::PartAnswer::Rows(vec![(keys[0].clone(), found.clone())], Some(keys[1].clone())),
        calls::PartAnswer::Installed,
    ];
    let done = |sequence: u64, writes| calls::Record::Done {
        txn: txn(sequence),
        at: Timestamp(64 * sequence),
        writes,
        end: calls::ReplyOutcome::Done {
            at: Timestamp(64 * sequence),
            answers: (0..).zip(answers.clone()).collect(),
        },
    };
    let refusal = calls::Refusal::Refused("no money".into());
    let ballot = calls::TimestampVote::Abort(Timestamp(9), refusal.clone());
    let (independent, coordinated) = (calls::Agreement::Independent, calls::Agreement::Coordinated);
    let told = (1, vec![(SPACE, keys[0].clone(), found)]);
    let staged = (SPACE, keys[3].clone(), Timestamp(11), Some("staged".into()));
    let at = Timestamp(1 << 20);
    vec![
        done(2, vec![write(0, Some("first")), write(1, Some("second")), write(2, Some("third"))]),
        done(4, vec![write(0, None)]),
        calls::Record::Voted { request: request(3, independent, call), at: Timestamp(300) },
        calls::Record::Voted {
            request: request(5, coordinated, calls::Task::Install(Box::new(install))),
            at: Timestamp(364),
        },
        calls::Record::Against { txn: txn(6), ballot },
        calls::Record::Dropped {
            txn: txn(7),
            end: calls::ReplyOutcome::Refused { at: Timestamp(9), refusal },
        },
        calls::Record::Told { txn: txn(3), told: vec![told] },
        calls::Record::Staged { partition: 1, anew: true, keys: vec![staged] },
        calls::Record::Ceiling { at },
    ]
}

#[test]
fn checkpoints_of_granola_are_as_they_were() {
    let (mut node, mut effects) = (granola(), Effects::default());
    let partition = |key: &SmallBytes| node.catalog().partition(SPACE, key);
    let of = |wanted: u16| (0..).map(key).filter(move |key| partition(key) == wanted);
    let keys: Vec<_> = of(0).take(3).chain(of(1).take(1)).collect();
    let more: Vec<_> = of(0).skip(3).take(2).collect();
    let held = Holding { epoch: 1, holds: true, at: Timestamp(12) };
    let holders = [REPOSITORY].into_iter().collect();
    let moves = (vec![(1_u16, held)], vec![(1_u16, Owners { epoch: 1, holders })], vec![1_u16]);
    // Versions that begin with zero are those of collected deletions.
    let value = Some(SmallBytes::from(vec![7; 50]));
    let (some, gone) =
        (vec![(Timestamp(3), value)], vec![(Timestamp::ZERO, None), (Timestamp(5), None)]);
    let chains = (SPACE, vec![(more[0].clone(), some), (more[1].clone(), gone)]);
    let seeds = [
        piece(8, &vec![(NodeId(7), Timestamp(3))]),
        piece(9, &Timestamp(5)),
        piece(5, &moves),
        piece(3, &chains),
    ];
    for seed in seeds {
        let seed = [vec![0, 0], seed].concat();
        node.restore(&seed, &mut effects).expect("a piece of its family");
    }
    for record in records(&keys) {
        node.replay(REPOSITORY, record, &mut effects);
    }
    let mut found = looked_at(&node, granola);
    // A chain of one version, as there are no others, is never cut.
    found.push(REST);
    found.sort_unstable();
    assert_eq!(found, kinds(granola), "each kind has its sample");
}
