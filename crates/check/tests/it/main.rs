//! The checker against published anomalies, an exhaustive search, and another checker.
//!
//! One program: each further one would be linked with all of it again.

mod anomalies;
mod append;
mod format;
mod oracle;
mod random;
mod roots;
mod verdicts;
