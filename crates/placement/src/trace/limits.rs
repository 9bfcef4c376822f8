//! What a trace may have. It is read whole, so these bound the memory that it takes: some hundreds
//! of megabytes at most, whatever a file says.

/// The most bytes of a file.
pub const BYTES_MAX: u64 = 128 << 20;
/// The most transactions.
pub const TRANSACTIONS_MAX: usize = 2_000_000;
/// The most rows that all transactions touch.
pub const ACCESSES_MAX: usize = 4_000_000;
/// The most columns of a key.
pub const COLUMNS_MAX: usize = 16;
/// The most columns of all tables: each is a candidate in the search.
pub const ALL_COLUMNS_MAX: usize = 4_000;
/// The most domains, and the most procedures.
pub const NAMES_MAX: usize = 4_000;
/// The fewest transactions that something is suggested for: of fewer no part would be left to
/// choose by and to report.
pub const TRANSACTIONS_MIN: usize = 10;
