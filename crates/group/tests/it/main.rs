//! Groups whose members move, come and go, in the simulator.

mod bank;
mod moves;
mod sizes;
