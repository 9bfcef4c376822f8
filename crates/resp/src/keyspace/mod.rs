//! Redis's keys and values in a space of the database, by transactions.

pub(crate) mod events;
pub(crate) mod header;
pub(crate) mod lists;
pub(crate) mod members;
pub(crate) mod rows;
pub(crate) mod scope;
pub(crate) mod sorted;
pub(crate) mod stop;
pub(crate) mod strings;
pub(crate) mod sweep;
pub(crate) mod watching;
