//! What the users of TFA choose.

use crate::two_phase::policy::UserChoice;

/// Where an object is after a commit that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// With whoever committed.
    #[default]
    Moves,
    /// Where it was.
    Stays,
}

/// What its users choose: where objects are after a commit.
pub type Switches = UserChoice<Placement>;

impl Switches {
    /// OwnedObjects stay where they are.
    pub fn staying() -> Switches {
        Switches { choice: Placement::Stays, ..Switches::default() }
    }
}
