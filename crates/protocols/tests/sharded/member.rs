//! A member by itself: its invariants.

use muesli_core::{Participant as _, RepositoryId, Settings, StateMachine as _};
use muesli_protocols::sharded::{ShardMember, Switches};

#[test]
fn a_new_member_keeps_its_invariants() {
    let member = ShardMember::new(RepositoryId(0), &Settings::default(), &Switches::default());
    member.assert_invariants();
    assert_eq!((member.clock(), member.remembered(), member.unfinished()), (0, 0, 0));
}
