//! What commands answer a script, and what a script answers its client.

/// A value as replies have it, in no version of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptValue {
    /// A word, such as `OK`.
    Status(Vec<u8>),
    /// An error, its code first.
    Error(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Nothing.
    Null,
    /// Values in order.
    Array(Vec<ScriptValue>),
    /// Keys and values.
    Map(Vec<(ScriptValue, ScriptValue)>),
    /// Values in no order.
    Set(Vec<ScriptValue>),
    /// A number.
    Double(f64),
    /// Yes or no.
    Bool(bool),
    /// A whole number of any length, in decimal.
    BigNumber(Vec<u8>),
    /// Text, and the three letters of its format.
    Verbatim(Vec<u8>, Vec<u8>),
}

impl ScriptValue {
    /// An error of this text.
    pub fn error(text: impl Into<String>) -> ScriptValue {
        ScriptValue::Error(text.into().into_bytes())
    }
}
