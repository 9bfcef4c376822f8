//! Something for each client, which outlives the client and can be looked at while it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One `T` per client.
#[derive(Debug)]
pub struct PerClient<T>(Vec<Mutex<T>>);

impl<T> PerClient<T> {
    /// Made by `one` from each client's number, for so many clients.
    pub fn new(clients: u32, one: impl FnMut(u32) -> T) -> PerClient<T> {
        PerClient((0..clients).map(one).map(Mutex::new).collect())
    }

    /// How many clients there are.
    pub fn clients(&self) -> u32 {
        self.0.len() as u32
    }

    /// That of a client.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn of(&self, client: u32) -> MutexGuard<'_, T> {
        self.0[client as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of all clients, by number.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        (0..self.clients()).map(|client| self.of(client))
    }
}
