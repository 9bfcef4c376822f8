//! The samples, judged by the searches of the product.

mod central;
mod migrating;
mod ordered;
mod searches;
mod without_checkpoints;
