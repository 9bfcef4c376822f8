//! What a user chooses: intervals or locks, who decides, and whether as printed.

use crate::two_phase::policy::{TreeChoice, UserChoice};

/// What a user chooses. The default is intervals, decided by a tree, as it should be.
pub type Switches = UserChoice<TreeChoice>;
