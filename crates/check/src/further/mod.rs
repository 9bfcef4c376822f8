//! What is judged beside the graph of transactions: sums that stay, and roots above transactions.

pub(crate) mod roots;
pub(crate) mod sums;
