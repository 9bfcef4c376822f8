//! The nine tables: [`tables`] and their [`layout`], [`rows`] and [`ids`], how much there is
//! ([`scale`]), what is there at first ([`first`], [`load`]) and how it is drawn ([`draws`]).

pub(in crate::tpcc) mod draws;
pub(in crate::tpcc) mod first;
pub(in crate::tpcc) mod ids;
pub(in crate::tpcc) mod layout;
pub(in crate::tpcc) mod load;
pub(in crate::tpcc) mod rows;
pub(in crate::tpcc) mod scale;
pub(in crate::tpcc) mod tables;
