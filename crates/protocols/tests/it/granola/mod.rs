//! Granola in simulated worlds: every class of transaction, under every kind of fault.

mod clients;
mod procedures;
mod sabotage;
mod seeds;
mod sinfonia;
mod steps;
mod worlds;
