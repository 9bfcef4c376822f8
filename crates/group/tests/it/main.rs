//! Groups whose members move, come and go, in the simulator.

mod amnesia;
mod bank;
mod golden;
mod golden_pieces;
mod mistakes;
mod moves;
mod network;
mod passed_on;
mod sizes;
mod stateless;
mod transfer;
