//! The samples, judged by the searches of the product.

mod central;
mod searches;
