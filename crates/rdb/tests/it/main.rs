//! Files are read as they were written, and any bytes are read or refused.

mod damaged;
mod reading;
mod real;
mod sample;
mod whole;
mod writer;
