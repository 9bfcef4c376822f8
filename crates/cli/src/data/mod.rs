//! What is done with the data of a database, whichever it is: one in a folder that nobody has open,
//! or one of servers that run.

mod chosen;
pub mod compact;
pub mod export;
pub mod folders;
pub mod import;
pub mod progress;
mod redis;
