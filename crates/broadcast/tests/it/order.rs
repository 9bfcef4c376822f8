//! What all members must agree on.

use std::collections::BTreeMap;
use std::fmt;

use muesli_broadcast::Command;

/// What each member has delivered, in its order.
pub type Orders<'a, I> = &'a [Vec<I>];

/// Two conflicting commands that two members have in different orders, or that one of them has
/// delivered without the other: the first has `earlier` before `delivered`, the second not.
pub struct Disorder<I> {
    members: [usize; 2],
    earlier: I,
    delivered: I,
}

impl<I: fmt::Display> fmt::Display for Disorder<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disorder { members: [one, other], earlier, delivered } = self;
        write!(f, "{one} has {earlier} before {delivered}, and {other} has not")
    }
}

/// Whether conflicting commands are in one order: whoever has delivered the second of two has
/// delivered the first before it.
pub fn disorder<I: Copy + Ord>(
    orders: Orders<'_, I>,
    commands: &BTreeMap<I, Command>,
) -> Option<Disorder<I>> {
    let conflict = |a: &I, b: &I| commands[a].conflicts_with(&commands[b]);
    for (one, order) in orders.iter().enumerate() {
        for (other, others) in orders.iter().enumerate().filter(|(other, _)| *other != one) {
            for (at, delivered) in others.iter().enumerate() {
                let Some(here) = order.iter().position(|id| id == delivered) else { continue };
                let before = order[..here].iter().filter(|id| conflict(id, delivered));
                let missing = before.into_iter().find(|id| !others[..at].contains(id));
                if let Some(earlier) = missing {
                    let members = [one, other];
                    return Some(Disorder { members, earlier: *earlier, delivered: *delivered });
                }
            }
        }
    }
    None
}
