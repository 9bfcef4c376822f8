//! `cjson.decode`.

use std::rc::Rc;

use mlua::{Lua, String as LuaString, Table, Value};

use crate::natives::{Native, Natives, fail, fine};

/// Arrays and objects may be so deep within each other, whatever a script asks for.
const DEPTH_MAX: usize = 1000;

/// Adds it.
pub(super) fn register(lua: &Lua, native: &Table, natives: &Rc<Natives>) -> mlua::Result<()> {
    let own = natives.clone();
    let decode = move |lua: &Lua, (text, depth_max, invalid): (LuaString, f64, bool)| -> Native {
        let text = text.as_bytes();
        own.charge_bytes(lua, text.len())?;
        if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
            return fail(lua, "JSON parser does not support UTF-16 or UTF-32");
        }
        let depth_max = (depth_max as usize).min(DEPTH_MAX);
        let mut reader = JsonReader { lua, natives: &own, text: &text, at: 0, depth_max, invalid };
        let found = reader.value(0).and_then(|value| match reader.token()? {
            JsonToken::End => Ok(value),
            other => Err(reader.expected("the end", &other)),
        });
        match found {
            Ok(value) => fine(value),
            Err(JsonError::Wrong(why)) => fail(lua, &why),
            Err(JsonError::Lua(error)) => Err(error),
        }
    };
    native.raw_set("json_decode", lua.create_function(decode)?)
}

/// Why a text is no value.
enum JsonError {
    Wrong(String),
    Lua(mlua::Error),
}

impl From<mlua::Error> for JsonError {
    fn from(error: mlua::Error) -> JsonError {
        JsonError::Lua(error)
    }
}

/// A piece of JSON.
enum JsonToken {
    /// A bracket, brace, colon or comma.
    Sign(u8),
    Text(Vec<u8>),
    Number(f64),
    Bool(bool),
    Null,
    End,
    /// Something else, and what that is.
    Other(&'static str),
}

impl JsonToken {
    fn name(&self) -> &'static str {
        match self {
            JsonToken::Sign(b'{') => "T_OBJ_BEGIN",
            JsonToken::Sign(b'}') => "T_OBJ_END",
            JsonToken::Sign(b'[') => "T_ARR_BEGIN",
            JsonToken::Sign(b']') => "T_ARR_END",
            JsonToken::Sign(b':') => "T_COLON",
            JsonToken::Sign(_) => "T_COMMA",
            JsonToken::Text(_) => "T_STRING",
            JsonToken::Number(_) => "T_NUMBER",
            JsonToken::Bool(_) => "T_BOOLEAN",
            JsonToken::Null => "T_NULL",
            JsonToken::End => "T_END",
            JsonToken::Other(what) => what,
        }
    }
}

/// JSON that is being read.
struct JsonReader<'a> {
    lua: &'a Lua,
    natives: &'a Natives,
    text: &'a [u8],
    at: usize,
    depth_max: usize,
    /// Numbers that JSON does not have are taken.
    invalid: bool,
}

impl JsonReader<'_> {
    fn expected(&self, what: &str, found: &JsonToken) -> JsonError {
        let (found, at) = (found.name(), self.at.min(self.text.len()).max(1));
        JsonError::Wrong(format!("Expected {what} but found {found} at character {at}"))
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        let token = self.token()?;
        self.value_of(token, depth)
    }

    fn value_of(&mut self, token: JsonToken, depth: usize) -> Result<Value, JsonError> {
        self.natives.charge_value(self.lua)?;
        match token {
            JsonToken::Text(text) => Ok(Value::String(self.lua.create_string(text)?)),
            JsonToken::Number(number) => Ok(Value::Number(number)),
            JsonToken::Bool(yes) => Ok(Value::Boolean(yes)),
            JsonToken::Null => Ok(Value::NULL),
            JsonToken::Sign(sign @ (b'{' | b'[')) => {
                let depth = depth + 1;
                if depth > self.depth_max {
                    let at = self.at;
                    return Err(JsonError::Wrong(format!(
                        "Found too many nested data structures ({depth}) at character {at}"
                    )));
                }
                if sign == b'{' { self.object(depth) } else { self.array(depth) }
            }
            other => Err(self.expected("value", &other)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token, JsonToken::Sign(b']')) {
            return Ok(Value::Table(table));
        }
        for at in 1.. {
            let value = self.value_of(token, depth)?;
            table.raw_set(at, value)?;
            match self.token()? {
                JsonToken::Sign(b']') => break,
                JsonToken::Sign(b',') => token = self.token()?,
                other => return Err(self.expected("comma or array end", &other)),
            }
        }
        Ok(Value::Table(table))
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token, JsonToken::Sign(b'}')) {
            return Ok(Value::Table(table));
        }
        loop {
            let key = match token {
                JsonToken::Text(text) => self.lua.create_string(text)?,
                other => return Err(self.expected("object key string", &other)),
            };
            match self.token()? {
                JsonToken::Sign(b':') => {}
                other => return Err(self.expected("colon", &other)),
            }
            let value = self.value(depth)?;
            table.raw_set(key, value)?;
            match self.token()? {
                JsonToken::Sign(b'}') => return Ok(Value::Table(table)),
                JsonToken::Sign(b',') => token = self.token()?,
                other => return Err(self.expected("comma or object end", &other)),
            }
        }
    }

    fn token(&mut self) -> Result<JsonToken, JsonError> {
        while self.text.get(self.at).is_some_and(|it| b" \t\r\n".contains(it)) {
            self.at += 1;
        }
        let rest = &self.text[self.at..];
        let Some(first) = rest.first() else { return Ok(JsonToken::End) };
        let words: [(&[u8], JsonToken); 3] = [
            (b"true", JsonToken::Bool(true)),
            (b"false", JsonToken::Bool(false)),
            (b"null", JsonToken::Null),
        ];
        match first {
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {
                self.at += 1;
                return Ok(JsonToken::Sign(*first));
            }
            b'"' => return Ok(self.string()),
            b'-' | b'0'..=b'9' => return Ok(self.number()),
            _ => {}
        }
        for (word, token) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(token);
            }
        }
        let lower: Vec<u8> = rest.iter().take(3).map(u8::to_ascii_lowercase).collect();
        if lower == b"nan" || lower == b"inf" || *first == b'+' {
            return Ok(self.number());
        }
        self.at += 1;
        Ok(JsonToken::Other("invalid token"))
    }

    /// A number as C reads it, if that is allowed, or as JSON has it.
    fn number(&mut self) -> JsonToken {
        let begin = self.at;
        let is_part = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.');
        let length = self.text[begin..].iter().take_while(|it| is_part(it)).count();
        let whole = &self.text[begin..begin + length];
        for end in (1..=whole.len().min(64)).rev() {
            let Ok(text) = std::str::from_utf8(&whole[..end]) else { continue };
            if let Some(number) = decimal(text, self.invalid) {
                self.at = begin + end;
                return JsonToken::Number(number);
            }
        }
        self.at = begin + 1;
        JsonToken::Other("invalid number")
    }

    fn string(&mut self) -> JsonToken {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let Some(letter) = self.text.get(self.at) else {
                return JsonToken::Other("unexpected end of string");
            };
            self.at += 1;
            match letter {
                b'"' => return JsonToken::Text(text),
                b'\\' => {
                    let Some(escaped) = self.text.get(self.at) else {
                        return JsonToken::Other("unexpected end of string");
                    };
                    self.at += 1;
                    match escaped {
                        b'"' | b'\\' | b'/' => text.push(*escaped),
                        b'b' => text.push(8),
                        b'f' => text.push(12),
                        b'n' => text.push(b'\n'),
                        b'r' => text.push(b'\r'),
                        b't' => text.push(b'\t'),
                        b'u' => match self.unicode() {
                            Some(letter) => {
                                text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                            }
                            None => return JsonToken::Other("invalid unicode escape code"),
                        },
                        _ => return JsonToken::Other("invalid escape code"),
                    }
                }
                other => text.push(*other),
            }
        }
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    /// What follows `\u`: four digits, or two times four for one letter.
    fn unicode(&mut self) -> Option<char> {
        let high = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if self.text.get(self.at..self.at + 2)? != b"\\u" {
            return None;
        }
        self.at += 2;
        let low = self.four_digits().filter(|it| (0xdc00..0xe000).contains(it))?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }
}

/// The number that a text is.
fn decimal(text: &str, invalid: bool) -> Option<f64> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' if invalid => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if unsigned.starts_with(|it: char| it.is_ascii_digit()) {
        let is_hexadecimal = unsigned.len() > 2 && unsigned[..2].eq_ignore_ascii_case("0x");
        if is_hexadecimal {
            let digits = u64::from_str_radix(&unsigned[2..], 16).ok().filter(|_| invalid)?;
            return Some(sign * digits as f64);
        }
        let leads_with_zero = unsigned.len() > 1
            && unsigned.starts_with('0')
            && unsigned.as_bytes()[1].is_ascii_digit();
        return unsigned
            .parse()
            .ok()
            .filter(|_| invalid || !leads_with_zero)
            .map(|it: f64| sign * it);
    }
    let lower = unsigned.to_ascii_lowercase();
    match &*lower {
        "inf" | "infinity" if invalid => Some(sign * f64::INFINITY),
        "nan" if invalid => Some(f64::NAN),
        _ => None,
    }
}
