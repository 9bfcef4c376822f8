//! Keys and values as people and programs read them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Bytes for people: text where it is that, and else hexadecimal.
pub fn shown(bytes: &[u8]) -> String {
    match text(bytes) {
        Some(text) => text.to_owned(),
        None => format!("0x{}", hexadecimal(bytes)),
    }
}

/// A value for people: JSON objects and lists on several lines, other text as it is, and what is no
/// text in hexadecimal.
pub fn shown_value(bytes: &[u8]) -> String {
    match text(bytes) {
        Some(text) if is_json(text) => on_lines(text),
        _ => shown(bytes),
    }
}

/// Text that a terminal shows as it is.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let shows = |letter: char| !letter.is_control() || letter == '\n' || letter == '\t';
    Some(text).filter(|text| text.chars().all(shows))
}

/// Whether it is JSON that is more than a word or a number.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// JSON with a line for each member and each element: its own digits, its own order.
fn on_lines(json: &str) -> String {
    let (mut lines, mut depth) = (String::with_capacity(2 * json.len()), 0_usize);
    let line = |lines: &mut String, depth: usize| {
        lines.push('\n');
        lines.extend(std::iter::repeat_n("  ", depth));
    };
    let mut whole = json.chars();
    while let Some(letter) = whole.next() {
        match letter {
            '"' => {
                lines.push('"');
                copy_string(&mut whole, &mut lines);
            }
            '{' | '[' => {
                lines.push(letter);
                let rest = whole.as_str().trim_start();
                if !rest.starts_with(['}', ']']) {
                    depth += 1;
                    line(&mut lines, depth);
                }
            }
            '}' | ']' => {
                if !lines.ends_with(['{', '[']) {
                    depth -= 1;
                    line(&mut lines, depth);
                }
                lines.push(letter);
            }
            ',' => {
                lines.push(',');
                line(&mut lines, depth);
            }
            ':' => lines.push_str(": "),
            other if other.is_ascii_whitespace() => {}
            other => lines.push(other),
        }
    }
    lines
}

/// What is left of a string, with the quotation mark at its end.
fn copy_string(letters: &mut std::str::Chars<'_>, to: &mut String) {
    while let Some(letter) = letters.next() {
        to.push(letter);
        match letter {
            '"' => return,
            '\\' => to.extend(letters.next()),
            _ => {}
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts bytes into an object for programs: as text under `name`, or in base 64 under `name64`.
pub fn put(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}64"), STANDARD.encode(bytes).into()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_what_they_are() {
        assert_eq!(shown_value(b"two words"), "two words");
        assert_eq!(shown_value("ä\n".as_bytes()), "ä\n");
        assert_eq!(shown_value(b"{\"a\":[1]}"), "{\n  \"a\": [\n    1\n  ]\n}");
        let whole = "{\"b\":123456789012345678901,\"a\":0.10,\"a\":[],\"c\":\"{\\\",\"}";
        let lines = "{\n  \"b\": 123456789012345678901,\n  \"a\": 0.10,\n  \"a\": [],";
        assert_eq!(shown_value(whole.as_bytes()), format!("{lines}\n  \"c\": \"{{\\\",\"\n}}"));
        assert_eq!(shown_value(b"{\"a\":\"\xc2\x9b\"}"), "0x7b2261223a22c29b227d");
        assert_eq!(shown_value(b"{no json"), "{no json");
        assert_eq!(shown_value(b"17"), "17");
        assert_eq!(shown_value(&[0xff, 0]), "0xff00");
        assert_eq!(shown_value(b"\x1b[31m"), "0x1b5b33316d", "a terminal would act on it");
        assert_eq!(shown_value(b""), "");
    }

    #[test]
    fn programs_get_text_or_base_64() {
        let mut object = Map::new();
        put(&mut object, "key", b"a");
        put(&mut object, "value", &[0xff]);
        let both = serde_json::to_string(&object).unwrap();
        assert_eq!(both, r#"{"key":"a","value64":"/w=="}"#);
    }
}
