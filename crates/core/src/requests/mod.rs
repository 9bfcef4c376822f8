//! What clients ask for and how it ends: actions and procedures, done at once or deferred, their
//! limits, and outcomes.

pub mod actions;
pub mod delay;
pub mod exceeded;
pub mod issuance;
pub mod limits;
pub mod moving;
pub mod outcome;
pub mod procedure;
