//! The bytes of a packed string, as its entries are read.

/// A packed string, and where in it the next entry is.
pub(super) struct PackedBytes {
    bytes: Vec<u8>,
    at: usize,
}

/// What is wrong with packed entries.
pub(super) type Damage = &'static str;

pub(super) const ENDED: Damage = "it ends within an entry";
pub(super) const LENGTH: Damage = "it is not as long as it says";
pub(super) const COUNT: Damage = "it does not have as many entries as it says";
pub(super) const AFTER_END: Damage = "further bytes come after its end";

impl PackedBytes {
    pub fn new(bytes: Vec<u8>) -> PackedBytes {
        PackedBytes { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn take(&mut self, count: usize) -> Result<&[u8], Damage> {
        let end = self.at.checked_add(count).ok_or(ENDED)?;
        let taken = self.bytes.get(self.at..end).ok_or(ENDED)?;
        self.at = end;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        Ok(*self.take(N)?.first_chunk().expect("so many were taken"))
    }

    pub fn byte(&mut self) -> Result<u8, Damage> {
        Ok(self.array::<1>()?[0])
    }

    /// A signed number of three bytes.
    pub fn three_bytes(&mut self) -> Result<i64, Damage> {
        let [low, middle, high] = self.array()?;
        Ok(i64::from(i32::from_le_bytes([0, low, middle, high]) >> 8))
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// The text of a number, as which it stands for an element.
pub(super) fn text(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}
