//! What a transaction has read and is validated when it commits.

use std::fmt::Debug;

/// How a protocol validates.
pub trait Validation: Copy + Debug + 'static {
    /// Whether what was read is validated when an update commits.
    const READS: bool;
    /// Whether a transaction that wrote nothing is validated like an update.
    const READERS: bool;
    /// Whether the rows that a scan saw are validated as reads.
    const ROWS: bool;
}

/// The reads of updates are validated; whoever writes nothing is not.
#[derive(Clone, Copy, Debug)]
pub enum Updates {}

impl Validation for Updates {
    const READS: bool = true;
    const READERS: bool = false;
    const ROWS: bool = false;
}

/// The reads of updates are validated, and the rows that their scans saw.
#[derive(Clone, Copy, Debug)]
pub enum UpdatesAndRows {}

impl Validation for UpdatesAndRows {
    const READS: bool = true;
    const READERS: bool = false;
    const ROWS: bool = true;
}

/// Every transaction is validated, whether it writes or not.
#[derive(Clone, Copy, Debug)]
pub enum EveryTransaction {}

impl Validation for EveryTransaction {
    const READS: bool = true;
    const READERS: bool = true;
    const ROWS: bool = false;
}

/// No transaction is validated.
#[derive(Clone, Copy, Debug)]
pub enum NoTransaction {}

impl Validation for NoTransaction {
    const READS: bool = false;
    const READERS: bool = false;
    const ROWS: bool = false;
}
