//! Golden files of checkpoints: all pieces of a repository in one fixed state, for each family of
//! protocols. What is under way, waits for its turn, is remembered, was deleted and was collected
//! is in it, and a chain of versions that is longer than a piece.
//!
//! Where bytes differ, the layout of checkpoints has changed: see the top of `golden`.

use std::fs;
use std::sync::Arc;

use muesli_core::Effects;
use muesli_core::Protocol;
use muesli_core::Settings;

use super::samples::{folder, hex, unhex};

/// A piece is this long, or longer by a version.
pub const PIECE_BYTES: usize = 64;
/// What the head of a checkpoint begins with: a clock that a start moves on, as whatever was served
/// since the last record may lie anywhere up to the upper bound.
pub const CLOCK: u8 = 0;
/// What further versions of a key begin with, where a chain is cut.
pub const REST: u8 = 7;

pub type Pieces = Vec<Vec<u8>>;

pub fn settings() -> Arc<Settings> {
    Arc::new(Settings { logging: true, record_collected: true, ..Settings::default() })
}

/// All pieces of a checkpoint.
pub fn pieces<P: Protocol>(node: &muesli_core::Node<P>, bytes: usize) -> Pieces {
    let effects = Effects::default();
    let mut checkpoint = node.begin_checkpoint(&effects).expect("it has checkpoints");
    let (mut pieces, mut piece) = (Pieces::new(), Vec::new());
    while node.checkpoint_piece(&mut checkpoint, bytes, &mut piece) {
        pieces.push(std::mem::take(&mut piece));
    }
    pieces
}

/// A node that was restored from these pieces.
pub fn from<P: Protocol>(
    pieces: &Pieces,
    new: fn() -> muesli_core::Node<P>,
) -> muesli_core::Node<P> {
    let (mut node, mut effects) = (new(), Effects::default());
    for piece in pieces {
        node.restore(piece, &mut effects).expect("a piece of its family");
    }
    node
}

/// What a checkpoint holds, in an order of its own: keys come by the slots that they are in, which
/// nobody else knows of. Every version is a piece by itself.
pub fn held<P: Protocol>(node: &muesli_core::Node<P>, clock: bool) -> Pieces {
    let mut pieces = pieces(node, 1);
    pieces.retain(|piece| clock || kind_of(piece) != CLOCK);
    pieces.sort();
    pieces
}

/// The repository comes first, in two bytes.
pub fn kind_of(piece: &[u8]) -> u8 {
    piece[2]
}

/// The kinds of pieces that a family reads.
pub fn kinds<P: Protocol>(new: fn() -> muesli_core::Node<P>) -> Vec<u8> {
    let is_read = |kind: &u8| {
        let refused = new().restore(&[0, 0, *kind], &mut Effects::default()).err();
        refused.is_none_or(|error| !error.to_string().contains("piece of a checkpoint"))
    };
    (0..=u8::MAX).filter(is_read).collect()
}

/// Looks whether the pieces of a node are those of its golden file, which give the same state; with
/// the kinds of pieces that there are.
pub fn looked_at<P: Protocol>(
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

/// The kinds of pieces that a family's golden file has.
pub fn kinds_of_page(family: &str) -> Vec<u8> {
    let path = folder().join(format!("{family}-checkpoint.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let pieces = text.lines().map(|line| unhex(line.strip_prefix("piece ").expect("a piece")));
    pieces.map(|piece| kind_of(&piece)).collect()
}
