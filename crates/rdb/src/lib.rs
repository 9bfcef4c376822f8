//! Redis's RDB files (`dump.rdb`), read as a stream: of a value of any length there is one element
//! in memory at a time, or one packed block of them.
//!
//! [`RdbReader`] gives [`RdbEvent`]s. It reads the versions [`VERSIONS`], all encodings of strings,
//! lists, sets, sorted sets and hashes, and the checksum at the end. Streams, values of modules and
//! hashes whose fields expire are refused by name ([`RdbErrorKind::Unsupported`]). Any bytes are
//! read, or refused with their offset. [`copy_live`] gets such a file from a Redis that runs.

mod address;
mod error;
mod input;
mod live;
mod live_error;
mod lzf;
mod modules;
mod packed;
mod reader;
mod strings;
mod values;

pub use address::RedisAddress;
pub use error::{RdbError, RdbErrorKind};
pub use live::copy_live;
pub use live_error::RedisLiveError;
pub use reader::{RdbElement, RdbEvent, RdbKey, RdbReader, VERSIONS};
pub use strings::STRING_BYTES_MAX;
pub use values::RdbKind;
