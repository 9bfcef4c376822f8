//! What a user chooses: who decides, and whether as printed.

use crate::two_phase::policy::{TreeChoice, UserChoice};

/// What a user chooses. The default is the protocol as it should be, decided by a tree.
pub type Switches = UserChoice<TreeChoice>;
