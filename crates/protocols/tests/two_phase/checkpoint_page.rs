//! The checkpoint of a repository at work, in one fixed state.

use muesli_core::checkpoint::piece;
use muesli_core::{Gave, NodeId, TxnId};
use muesli_protocols::two_phase::message::Answers;

use super::checkpoint::{Happening, Harness, Node, Tested, node};
use crate::harness::checkpoint_samples::{looked_at, settings};

pub fn two_phase<V: Tested>() -> Node<V> {
    node(&V::Switches::default(), settings())
}

/// The pieces of a repository at work under a protocol with two phases.
pub fn of_two_phases<V: Tested>() -> Vec<u8> {
    let mut live = Harness::<V> { node: two_phase(), ..Harness::new(V::Switches::default()) };
    // A client that was forgotten, and one that came again after that; an answer that was given.
    let mut seed = |piece: Vec<u8>| {
        let piece = [vec![0, 0], piece].concat();
        live.node.restore(&piece, &mut live.effects).expect("a piece of its family");
    };
    seed(piece(8, &vec![(NodeId(7), 3_u64)]));
    if V::NAME == "tfa" {
        // The pages of others are older than this piece: up to where a client was refused.
        seed(piece(12, &vec![(NodeId(7), 3_u64)]));
    }
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
