//! `call`: procedures, with their arguments as they are typed.
//!
//! Arguments are encoded one after the other as postcard does it, which is how procedures of the
//! library take them. A whole number is an `i64`; `u:5` an unsigned one; `@space` is the space in
//! use, `@key` the key that the call is at; anything else is text or bytes.

use anyhow::{Context, bail};
use muesli::{Place, SmallBytes};
use serde_json::{Map, Value, json};

use super::session::ShellSession;
use super::tokens::ShellToken;
use super::values;

/// What an answer is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerForm {
    Bytes,
    Text,
    Signed,
    Unsigned,
    Nothing,
}

/// Runs a procedure.
pub fn call(session: &ShellSession, tokens: &[ShellToken]) -> anyhow::Result<String> {
    let (tokens, form) = match tokens {
        [rest @ .., last, form] if last.is("as") => (rest, form_of(form)?),
        all => (all, AnswerForm::Bytes),
    };
    let [name, key, arguments @ ..] = tokens else {
        bail!("`call` takes the name of a procedure, the key where it runs, and its arguments");
    };
    if session.is_in_transaction() {
        bail!("a procedure is a transaction of its own: commit or abort this one first");
    }
    let (_, space) = session.current()?;
    let name = name.text();
    let (name, version) = match name.split_once('/') {
        Some((name, version)) => {
            let version = version.parse().ok();
            (name, version.with_context(|| format!("the version of `{name}` is a number"))?)
        }
        None => (&*name, 1),
    };
    let mut encoded = Vec::new();
    for argument in arguments {
        encode(argument, (space.id().0, &key.bytes), &mut encoded)?;
    }
    let place = Place::Key(space.id(), SmallBytes::new(&key.bytes));
    let answers = session.db.call(name, version).at_raw(place, encoded).wait()?;
    let answer = answers.raw().first().map_or(&[][..], SmallBytes::as_slice);
    shown(answer, form, session.json)
}

fn form_of(token: &ShellToken) -> anyhow::Result<AnswerForm> {
    Ok(match &*token.text() {
        "bytes" => AnswerForm::Bytes,
        "text" => AnswerForm::Text,
        "i64" => AnswerForm::Signed,
        "u64" => AnswerForm::Unsigned,
        "nothing" => AnswerForm::Nothing,
        other => bail!("an answer is bytes, text, i64, u64 or nothing, and not `{other}`"),
    })
}

/// Appends an argument.
fn encode(token: &ShellToken, (space, key): (u16, &[u8]), out: &mut Vec<u8>) -> anyhow::Result<()> {
    let text = token.text();
    if token.is("@space") {
        out.extend(postcard::to_stdvec(&space)?);
    } else if token.is("@key") {
        put_bytes(key, out)?;
    } else if let Some(number) = text.parse::<i64>().ok().filter(|_| !token.quoted) {
        out.extend(postcard::to_stdvec(&number)?);
    } else if let Some(digits) = text.strip_prefix("u:").filter(|_| !token.quoted) {
        let number = digits.parse::<u64>().ok();
        let number = number.with_context(|| format!("`{text}` is no number"))?;
        out.extend(postcard::to_stdvec(&number)?);
    } else {
        put_bytes(&token.bytes, out)?;
    }
    Ok(())
}

/// A length, and so many bytes: as text, bytes and lists of bytes are encoded.
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> anyhow::Result<()> {
    out.extend(postcard::to_stdvec(bytes)?);
    Ok(())
}

fn shown(answer: &[u8], form: AnswerForm, is_json: bool) -> anyhow::Result<String> {
    let wrong = || format!("the answer is no such thing: it is {}", values::shown(answer));
    let number: Value = match form {
        AnswerForm::Signed => postcard::from_bytes::<i64>(answer).with_context(wrong)?.into(),
        AnswerForm::Unsigned => postcard::from_bytes::<u64>(answer).with_context(wrong)?.into(),
        AnswerForm::Text => postcard::from_bytes::<String>(answer).with_context(wrong)?.into(),
        AnswerForm::Nothing if answer.is_empty() => Value::Null,
        AnswerForm::Nothing => bail!(wrong()),
        AnswerForm::Bytes if is_json => {
            let mut object = Map::new();
            values::put(&mut object, "answer", answer);
            return Ok(Value::Object(object).to_string());
        }
        AnswerForm::Bytes => return Ok(values::shown_value(answer)),
    };
    Ok(match number {
        value if is_json => json!({ "answer": value }).to_string(),
        Value::Null => "ok".to_owned(),
        Value::String(text) => text,
        number => number.to_string(),
    })
}
