//! Groups whose members move, come and go, in the simulator.

mod bank;
mod golden;
mod moves;
mod passed_on;
mod sizes;
