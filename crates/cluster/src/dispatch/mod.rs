//! The loop: what has come is taken to who handles it, and what that leads to leaves.

pub(crate) mod turn;
