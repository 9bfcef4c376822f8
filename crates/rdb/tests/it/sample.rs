//! Keys that files are made of.

/// What a key has.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleValue {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(Vec<Vec<u8>>),
    Sorted(Vec<(Vec<u8>, f64)>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
}

/// A key of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleKey {
    pub database: u64,
    pub key: Vec<u8>,
    pub expires: Option<u64>,
    pub value: SampleValue,
}
