//! The file format and the command: what is accepted, what is refused and with which words.

use std::path::PathBuf;

use muesli_check::command::{BROKEN, CheckCommand, HOLDS, UNREADABLE, run};
use muesli_check::{
    BuildError, History, HistoryBuilder, HistoryHeader, Kind, Level, Options, TxnId, Value,
};
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    History::read(text.as_bytes()).map(|history| history.transactions()).unwrap_err().to_string()
}

#[test]
fn errors_name_the_line_and_the_reason() {
    let good = r#"{"id":"a","b":1,"e":2,"st":"c","ops":[]}"#;
    let with = |ops: &str| format!(r#"{{"id":"a","b":1,"e":2,"st":"c","ops":[{ops}]}}"#);
    let cases = [
        ("nonsense".to_owned(), "line 1: expected"),
        (format!("{good}\n\n{{"), "line 3: EOF"),
        (format!("{good}\n{good}"), "line 2: transaction id `a` stands for two"),
        (r#"{"t":"other"}"#.to_owned(), "allowed are meta, txn and order"),
        (format!("{good}\n{{\"t\":\"meta\"}}"), "line 2: a meta line may only be the first"),
        (r#"{"t":"meta","kind":"x"}"#.to_owned(), "kind is \"x\""),
        (good.replace("\"id\":\"a\",", ""), "needs a text `id`"),
        (good.replace("\"b\":1,", ""), "needs `b`"),
        (good.replace("\"b\":1,", "\"b\":-1,"), "line 1: "),
        (good.replace("\"c\"", "\"x\""), "allowed are c, a, u and r"),
        (good.replace("\"e\":2", "\"e\":0"), "lies before the begin"),
        (good.replace(",\"ops\":[]", ""), "needs `ops`"),
        (with(r#"["x","k",1]"#), "allowed are r, w, d, s and a"),
        (with("5"), "an operation"),
        (with("[]"), "lacks the name"),
        (with(r#"["r","k"]"#), "lacks its version"),
        (with(r#"["r","k",null]"#), "needs the version it saw"),
        (with(r#"["r","k","mine"]"#), "own"),
        (with(r#"["r","k",-1]"#), "a version"),
        (with(r#"["r","k",[]]"#), "must not be empty"),
        (with(r#"["w","k","own"]"#), "a write names its version"),
        (with(r#"["w","k",0]"#), "version 0 is the initial version"),
        (with(r#"["r","k",1,2,3]"#), "too many elements"),
        (with(r#"["r","\\xzz",1]"#), "hex digits"),
        (with(r#"["s","a","b"]"#), "lacks the rows"),
        (with(r#"["a","k",1]"#), "does not belong in a history of kind \"version\""),
        (r#"{"t":"order","vs":[1]}"#.to_owned(), "needs `k`"),
        (r#"{"t":"order","k":"x"}"#.to_owned(), "needs `vs`"),
    ];
    for (text, part) in cases {
        let error = refusal(&text);
        assert!(error.starts_with("line ") && error.contains(part), "{text}: {error}");
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let deep = "[".repeat(100_000);
    for text in [
        deep.clone(),
        format!(r#"{{"id":"a","b":1,"e":2,"st":"c","ops":{deep}"#),
        format!(r#"{{"id":"a","b":1,"e":2,"st":"c","ops":[["r","k",1,{deep}"#),
        format!(
            r#"{{"id":"a","b":1,"e":2,"st":"c","ops":[["r","k",1,{deep}{}]]}}"#,
            "]".repeat(100_000)
        ),
        format!(r#"{{"t":"meta","x":{deep}{}}}"#, "]".repeat(100_000)),
    ] {
        assert!(refusal(&text).starts_with("line 1"));
    }
}

/// Everything the format can say, in the form in which it is written.
const EVERYTHING: &str = include_str!("../format_data/everything.jsonl");

#[test]
fn everything_is_written_as_it_was_read() {
    let history = History::read(EVERYTHING.as_bytes()).unwrap();
    let mut written = Vec::new();
    history.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), EVERYTHING);
    let append = include_str!("../format_data/lists.jsonl");
    let history = History::read(append.as_bytes()).unwrap();
    let mut written = Vec::new();
    history.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), append);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_or_checker_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        place in 0..EVERYTHING.len(),
        cut in 0_usize..40,
    ) {
        let _ = History::read(bytes.as_slice()).is_ok();
        let mut spoiled = EVERYTHING.as_bytes().to_vec();
        let end = (place + cut).min(spoiled.len());
        spoiled.splice(place..end, bytes.iter().copied().take(cut % 4));
        if let Ok(history) = History::read(spoiled.as_slice()) {
            for level in Level::ALL {
                let verdict = muesli_check::check(&history, level, &Options::default());
                prop_assert!(verdict.to_string().starts_with(level.name()));
            }
        }
    }
}

#[test]
fn the_builder_refuses_what_the_format_refuses() {
    let mut builder = HistoryBuilder::new(Kind::Version);
    let id = TxnId::Text("n1-1");
    builder.transaction(HistoryHeader::committed(id, 1, 1, 2)).unwrap();
    let same = TxnId::Numbered { node: 1, sequence: 1 };
    let error = builder.transaction(HistoryHeader::committed(same, 1, 1, 2)).unwrap_err();
    assert_eq!(error, BuildError::DuplicateId("n1-1".to_owned()));
    let other = TxnId::Text("n1-2");
    assert!(builder.transaction(HistoryHeader::committed(other, 1, 2, 1)).is_err());
    let mut txn = builder.transaction(HistoryHeader::committed(other, 1, 1, 2)).unwrap();
    assert!(txn.append(b"k", Value::Int(1)).is_err());
    assert!(txn.write(b"k", Some(0.into()), Value::Null).is_err());
    assert!(txn.read(b"k", 0, Value::Null).is_ok());
    assert_eq!((builder.finish().transactions()), 2);
}

fn command(name: &str, text: &str, level: Level) -> (u8, String, PathBuf) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (file, dot) = (folder.join(format!("{name}.jsonl")), folder.join(format!("{name}.dot")));
    std::fs::write(&file, text).unwrap();
    let options = Options::default();
    let command = CheckCommand { file, level, append: false, options, dot: Some(dot.clone()) };
    let mut out = Vec::new();
    let code = run(&command, &mut out).unwrap();
    (code, String::from_utf8(out).unwrap(), dot)
}

#[test]
fn the_command_reports_by_exit_code_and_words() {
    let skew = include_str!("../format_data/skew.jsonl");
    let (code, out, dot) = command("skew", skew, Level::Serializable);
    assert_eq!(code, BROKEN);
    assert!(out.starts_with("serializable: broken"), "{out}");
    assert!(std::fs::read_to_string(dot).unwrap().contains("digraph"));
    let (code, out, _) = command("skew-rr", skew, Level::Rr);
    assert_eq!(code, HOLDS);
    assert!(out.starts_with("rr: holds"), "{out}");
    let (code, out, _) = command("empty", "", Level::Rr);
    assert_eq!(code, UNREADABLE);
    assert!(out.contains("without transactions"), "{out}");
    let (code, out, _) = command("garbage", "{}\n", Level::Rr);
    assert_eq!(code, UNREADABLE);
    assert!(out.contains("line 1: a transaction needs") && out.lines().count() == 1, "{out}");
}
