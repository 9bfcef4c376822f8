//! Scripts and libraries in interpreters, with commands that the test answers.

mod counted;
mod harness;
mod libraries;
mod limits;
mod modules;
mod sandbox;
mod scripts;
