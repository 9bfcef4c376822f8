//! What tasks of asyncio await.

pub mod operation;
pub mod transaction;
pub mod wakers;
