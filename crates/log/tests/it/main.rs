//! What is found in a log after crashes, damage and failing disks.
//!
//! One program: each further one would be linked with all of it again.

mod background;
mod crash;
mod damage;
mod every_call;
mod golden;
mod marks;
mod reading;
mod shared;
