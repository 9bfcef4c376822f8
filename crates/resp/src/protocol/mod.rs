//! RESP, the protocol of Redis clients, without any I/O: requests from bytes, replies to bytes.

mod inline;
pub mod limits;
pub mod numbers;
pub mod reply;
pub mod request;
