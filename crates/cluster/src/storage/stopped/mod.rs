//! Folders that no process writes to: [what is in them](stored), whether [all of it is as it was
//! written](verify), and what to do about a log that is [damaged](repair).

pub mod repair;
pub mod stored;
pub mod verify;
