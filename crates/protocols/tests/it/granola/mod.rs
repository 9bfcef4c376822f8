//! Granola in simulated worlds: every class of transaction, under every kind of fault.

mod absent;
mod bounded;
mod checkpoints;
mod clients;
mod counted;
mod external;
mod moves;
mod moving;
mod nearby;
mod pages;
mod passing;
mod procedures;
mod sabotage;
mod seeds;
mod sinfonia;
mod steps;
mod strangers;
mod telling;
mod together;
mod worlds;
