//! What the layouts hold, and that no bytes break their readers.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::outcome::{Abort, Decision};
use crate::ranges::KeyRange;
use crate::roles::Role;

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Encodes, decodes, and looks at the claim about the fewest bytes.
fn comes_back<T: Wire + PartialEq + std::fmt::Debug>(value: &T) -> Result<(), TestCaseError> {
    let bytes = encoded(value);
    prop_assert!(bytes.len() >= T::LEAST_BYTES);
    prop_assert_eq!(&T::decode_all(&bytes), &Ok(T::decode(&mut Reader::new(&bytes)).unwrap()));
    prop_assert_eq!(&T::decode_all(&bytes).unwrap(), value);
    Ok(())
}

fn small_bytes() -> impl Strategy<Value = SmallBytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(SmallBytes::from)
}

fn range() -> impl Strategy<Value = KeyRange> {
    (any::<u16>(), small_bytes(), prop::option::of(small_bytes()))
        .prop_map(|(space, lo, hi)| KeyRange { space: SpaceId(space), lo, hi })
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        any::<u64>().prop_map(|at| Decision::Commit(Timestamp(at))),
        prop::sample::select(&Abort::ALL[..]).prop_map(Decision::Abort),
    ]
}

type Everything = (Vec<(u16, String, Option<u64>)>, Vec<SmallBytes>, Vec<KeyRange>);

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        numbers: Vec<(u16, String, Option<u64>)>,
        keys in prop::collection::vec(small_bytes(), 0..5),
        ranges in prop::collection::vec(range(), 0..5),
        decisions in prop::collection::vec(decision(), 0..5),
        (node, incarnation, sequence) in any::<(u32, u32, u64)>(),
        truths: Vec<bool>,
    ) {
        comes_back(&(numbers, keys, ranges))?;
        comes_back(&decisions)?;
        comes_back(&truths)?;
        comes_back(&TxnId { node: NodeId(node), incarnation, sequence })?;
        let shared: Arc<[RepositoryId]> = [RepositoryId(node as u16)].into();
        comes_back(&(Arc::new(OpId(sequence)), shared))?;
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes: Vec<u8>) {
        if let Ok(value) = Everything::decode_all(&bytes) {
            prop_assert_eq!(encoded(&value), bytes.clone());
        }
        if let Ok(value) = Vec::<Decision>::decode_all(&bytes) {
            prop_assert_eq!(encoded(&value), bytes.clone());
        }
        if let Ok(value) = <(Role, TxnId, bool)>::decode_all(&bytes) {
            prop_assert_eq!(encoded(&value), bytes);
        }
    }

    #[test]
    fn every_part_of_an_encoding_is_too_short(
        keys in prop::collection::vec(small_bytes(), 1..4), cut: prop::sample::Index,
    ) {
        let bytes = encoded(&keys);
        let short = &bytes[..cut.index(bytes.len())];
        prop_assert!(Vec::<SmallBytes>::decode_all(short).is_err());
    }
}

#[test]
fn a_list_is_believed_only_as_far_as_its_bytes_go() {
    let error = Vec::<u64>::decode_all(&[255, 255, 255, 255, 0, 0]).unwrap_err();
    assert_eq!(error, WireError::List { at: 4, count: u32::MAX as usize, left: 2 });
    let error = SmallBytes::decode_all(&[9, 0, 0, 0, 1]).unwrap_err();
    assert_eq!(error, WireError::Short { at: 4, wanted: 9, left: 1 });
}

#[test]
fn what_is_left_over_and_what_names_nothing_is_refused() {
    assert_eq!(u16::decode_all(&[1, 0, 7]), Err(WireError::Long { at: 2, left: 1 }));
    assert_eq!(bool::decode_all(&[2]), Err(WireError::no_variant("truth value", 0, 2)));
    assert_eq!(String::decode_all(&[1, 0, 0, 0, 255]), Err(WireError::Text { at: 5 }));
    assert_eq!(Role::decode_all(&[255, 255]), Ok(Role::Coordinator));
}
