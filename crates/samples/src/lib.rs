//! Protocols written outside of Muesli's own crates, from its public contract alone.
//!
//! * [`central`]: the smallest that one would start from; `docs` has a page that walks through it.
//!
//! Each is registered by its tests (`muesli_registry::register`), and judged by the same searches as
//! the protocols of the product.

pub mod central;
pub mod client;
