//! How much a client may ask for at once.

/// The limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Longest argument, in bytes (`proto-max-bulk-len`).
    pub bulk_bytes: usize,
    /// Most arguments of a command.
    pub arguments: usize,
    /// Longest inline command, and longest line of a number.
    pub inline_bytes: usize,
    /// So many bytes of one client may wait to be run (`client-query-buffer-limit`).
    pub buffer_bytes: usize,
}

impl RequestLimits {
    /// The limits of clients that have yet to say who they are: enough for that.
    pub fn of_strangers() -> RequestLimits {
        RequestLimits {
            bulk_bytes: 16 << 10,
            arguments: 10,
            inline_bytes: 16 << 10,
            buffer_bytes: 256 << 10,
        }
    }
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            bulk_bytes: 512 << 20,
            arguments: 1 << 20,
            inline_bytes: 64 << 10,
            buffer_bytes: 1 << 30,
        }
    }
}
