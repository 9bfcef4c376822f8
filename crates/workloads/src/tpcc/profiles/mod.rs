//! The five transactions, a file each, and who asks for them: a [`terminal`] draws one from the
//! [`mix`], and notes down in its [`ledger`] what has committed.

pub(in crate::tpcc) mod delivery;
pub(in crate::tpcc) mod ledger;
pub(in crate::tpcc) mod mix;
pub(in crate::tpcc) mod new_order;
pub(in crate::tpcc) mod order_status;
pub(in crate::tpcc) mod payment;
pub(in crate::tpcc) mod stock_level;
pub(in crate::tpcc) mod terminal;
