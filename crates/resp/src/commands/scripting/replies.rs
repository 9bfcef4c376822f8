//! Replies of commands as values for scripts, and back.

use muesli::SmallBytes;
use muesli_scripts::ScriptValue;

use crate::protocol::reply::RespReply;

/// The reply of a command.
pub(super) fn to_script(reply: RespReply) -> ScriptValue {
    let all = |all: Vec<RespReply>| all.into_iter().map(to_script).collect();
    match reply {
        RespReply::Simple(word) => ScriptValue::Status(word.as_bytes().to_vec()),
        RespReply::Status(word) => ScriptValue::Status(word),
        RespReply::Error(why) => ScriptValue::error(why),
        RespReply::Integer(value) => ScriptValue::Integer(value),
        RespReply::Bulk(bytes) => ScriptValue::Bytes(bytes.as_slice().to_vec()),
        RespReply::Verbatim(text) => ScriptValue::Verbatim(b"txt".to_vec(), text.into_bytes()),
        RespReply::Formatted(format, text) => ScriptValue::Verbatim(format.to_vec(), text),
        RespReply::Null | RespReply::NullArray => ScriptValue::Null,
        RespReply::Array(values) | RespReply::Push(values) | RespReply::Several(values) => {
            ScriptValue::Array(all(values))
        }
        RespReply::Set(values) => ScriptValue::Set(all(values)),
        RespReply::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(key, value)| (to_script(key), to_script(value)));
            ScriptValue::Map(pairs.collect())
        }
        RespReply::Double(value) => ScriptValue::Double(value),
        RespReply::Bool(yes) => ScriptValue::Bool(yes),
        RespReply::BigNumber(digits) => ScriptValue::BigNumber(digits),
    }
}

/// What a script has answered.
pub(super) fn of_script(value: ScriptValue) -> RespReply {
    let all = |all: Vec<ScriptValue>| all.into_iter().map(of_script).collect();
    match value {
        ScriptValue::Status(word) => RespReply::Status(word),
        ScriptValue::Error(why) => RespReply::Error(String::from_utf8_lossy(&why).into_owned()),
        ScriptValue::Integer(value) => RespReply::Integer(value),
        ScriptValue::Bytes(bytes) => RespReply::Bulk(SmallBytes::from(bytes)),
        ScriptValue::Null => RespReply::Null,
        ScriptValue::Array(values) => RespReply::Array(all(values)),
        ScriptValue::Set(values) => RespReply::Set(all(values)),
        ScriptValue::Map(pairs) => {
            let pairs = pairs.into_iter().map(|(key, value)| (of_script(key), of_script(value)));
            RespReply::Map(pairs.collect())
        }
        ScriptValue::Double(value) => RespReply::Double(value),
        ScriptValue::Bool(yes) => RespReply::Bool(yes),
        ScriptValue::BigNumber(digits) => RespReply::BigNumber(digits),
        ScriptValue::Verbatim(format, text) => {
            let mut letters = [b' '; 3];
            format.iter().zip(&mut letters).for_each(|(from, to)| *to = *from);
            RespReply::Formatted(letters, text)
        }
    }
}
