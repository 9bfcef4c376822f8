//! What a member keeps of a run: much, and growing while it is measured.

/// So many values are kept in one piece of memory.
const CHUNK: usize = 1 << 14;

/// Values in the order in which they came. What is kept is never moved, as a vector of a hundred
/// megabytes would be whenever it is full: its member would stand still for that long.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks { chunks: Vec::new() }
    }
}

impl<T> Chunks<T> {
    pub fn push(&mut self, value: T) {
        match self.chunks.last_mut().filter(|last| last.len() < CHUNK) {
            Some(last) => last.push(value),
            None => {
                let mut next = Vec::with_capacity(CHUNK);
                next.push(value);
                self.chunks.push(next);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> IntoIterator for Chunks<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_their_order() {
        let mut chunks = Chunks::default();
        let all = 0..3 * CHUNK + 5;
        all.clone().for_each(|value| chunks.push(value));
        assert!(chunks.iter().copied().eq(all.clone()));
        assert!(chunks.into_iter().eq(all));
    }
}
