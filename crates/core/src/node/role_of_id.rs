//! Roles of a kind, by their ids.

/// The role of this id in a list, to be looked at.
pub(super) fn find<I: PartialEq, R>(roles: &[(I, R)], wanted: I) -> Option<&R> {
    roles.iter().find(|(id, _)| *id == wanted).map(|(_, found)| found)
}

/// The role of this id in a list, to be changed.
pub(super) fn find_mut<I: PartialEq, R>(roles: &mut [(I, R)], wanted: I) -> Option<&mut R> {
    roles.iter_mut().find(|(id, _)| *id == wanted).map(|(_, found)| found)
}
