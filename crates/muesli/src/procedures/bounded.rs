//! Encoding with a bound: what a procedure answers may hold what it read many times over, and is
//! refused as it becomes too long, not when it is there.

use muesli_core::Stop;
use muesli_core::exceeded::Limit;
use postcard::ser_flavors::Flavor;
use serde::Serialize;

/// Bytes that become no more than so many.
struct BoundedBytes {
    bytes: Vec<u8>,
    most: usize,
}

impl Flavor for BoundedBytes {
    type Output = Vec<u8>;

    #[inline]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        if data.len() > self.most - self.bytes.len() {
            return Err(postcard::Error::SerializeBufferFull);
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.try_extend(&[data])
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.bytes)
    }
}

/// Encodes a value into `bytes`, which are empty, and which become at most `most`.
///
/// # Errors
/// It is longer, or cannot be serialized.
#[inline]
pub(super) fn encode<V: Serialize + ?Sized>(
    value: &V,
    bytes: Vec<u8>,
    most: usize,
) -> Result<Vec<u8>, Stop> {
    let encoded = postcard::serialize_with_flavor(value, BoundedBytes { bytes, most });
    encoded.map_err(|error| match error {
        postcard::Error::SerializeBufferFull => {
            let key = Limit::Result.key();
            Stop::Faulty(format!("a value or a result is over the limit of {most} bytes (`{key}`)"))
        }
        error => Stop::Faulty(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_refused_as_it_is_made() {
        let fits = encode(&vec![7_u8; 9], Vec::new(), 10).unwrap();
        assert_eq!(fits, postcard::to_stdvec(&vec![7_u8; 9]).unwrap());
        let many: Vec<&[u8]> = vec![&[7; 1_000]; 1_000];
        let Err(Stop::Faulty(text)) = encode(&many, Vec::new(), 10) else { panic!("too long") };
        assert!(text.contains("10 bytes (`value_bytes_max`)"), "{text}");
    }
}
