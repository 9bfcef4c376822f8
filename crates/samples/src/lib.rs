//! Protocols written outside of Muesli's own crates, from its public contract alone.
//!
//! * [`central`]: the smallest that one would start from; a page of the docs walks through it.
//! * [`migrating`]: single objects that move, with a directory of owners.
//! * [`ordered`]: data kept whole at several sites, by a broadcast and a certification of choice.
//!
//! Each is registered by its tests (`muesli_registry::register`), and judged by the same searches
//! as the protocols of the product.

pub mod central;
pub mod migrating;
pub mod ordered;
