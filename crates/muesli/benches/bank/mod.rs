//! What the measurements share: accounts, their balances, and clients that run side by side.

#![allow(dead_code, reason = "each measurement uses a part")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use muesli::{Error, SmallBytes};

/// The key of an account: 16 bytes.
pub fn key(number: u64) -> SmallBytes {
    let mut bytes = *b"account/00000000";
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    SmallBytes::new(&bytes)
}

/// The balance that a value begins with.
pub fn amount(value: &SmallBytes) -> i64 {
    i64::from_le_bytes(value.as_slice()[..8].try_into().expect("eight bytes"))
}

/// A balance as a value of 8 bytes.
pub fn value(amount: i64) -> SmallBytes {
    SmallBytes::new(&amount.to_le_bytes())
}

/// A client at work.
pub type Running = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// Waits for all of them.
pub struct AllOf(pub Vec<Running>);

impl Future for AllOf {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.retain_mut(|running| running.as_mut().poll(cx).is_pending());
        if self.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}
