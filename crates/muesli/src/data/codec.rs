//! How rows are stored: codecs for the values of typed spaces.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// How the values of a [`TypedSpace`](crate::TypedSpace) are stored. A space is written and read
/// with one and the same.
pub trait RowCodec: 'static {
    /// Its name, for errors.
    const NAME: &'static str;

    /// A value as it is stored.
    ///
    /// # Errors
    /// It cannot be serialized, for this reason.
    fn encode<V: Serialize + ?Sized>(value: &V) -> Result<Vec<u8>, String>;

    /// A value from how it is stored.
    ///
    /// # Errors
    /// The bytes are no such value, for this reason.
    fn decode<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, String>;
}

/// The postcard format: short and fast. Fields are told apart by their order, so the type of a row
/// must stay as it is: a field that is added, moved or taken away makes stored rows unreadable, or
/// reads them as something else.
#[derive(Clone, Copy, Debug)]
pub struct Postcard;

impl RowCodec for Postcard {
    const NAME: &'static str = "postcard";

    #[inline]
    fn encode<V: Serialize + ?Sized>(value: &V) -> Result<Vec<u8>, String> {
        postcard::to_stdvec(value).map_err(|error| error.to_string())
    }

    #[inline]
    fn decode<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, String> {
        postcard::from_bytes(bytes).map_err(|error| error.to_string())
    }
}

/// Rows that carry the names of their fields, as JSON: the type of a row may change. A field that
/// is added needs `#[serde(default)]`, and has that value in rows written before; one that is not
/// known is passed over, so that older programs read newer rows; one that is renamed keeps its old
/// name by `#[serde(alias = "..")]`. A row takes a few times the bytes of [`Postcard`], and as much
/// longer to read. Floats without a number (infinite, NaN) are written as `null`, which is none.
#[derive(Clone, Copy, Debug)]
pub struct Named;

impl RowCodec for Named {
    const NAME: &'static str = "named fields";

    fn encode<V: Serialize + ?Sized>(value: &V) -> Result<Vec<u8>, String> {
        serde_json::to_vec(value).map_err(|error| error.to_string())
    }

    fn decode<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}
