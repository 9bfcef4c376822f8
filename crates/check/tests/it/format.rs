//! The file format and the command: what is accepted, what is refused and with which words.

use std::path::PathBuf;

use muesli_check::command::{BROKEN, CheckCommand, HOLDS, UNDECIDED, UNREADABLE, run};
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
        (r#"{"t":"other"}"#.to_owned(), "allowed are meta, txn, root, start and order"),
        (format!("{good}\n{{\"t\":\"meta\"}}"), "line 2: a meta line may only be the first"),
        (r#"{"t":"meta","kind":"x"}"#.to_owned(), "kind is \"x\""),
        (good.replace("\"id\":\"a\",", ""), "needs a text `id`"),
        (good.replace("\"b\":1,", ""), "needs `b`"),
        (good.replace("\"b\":1,", "\"b\":-1,"), "line 1: "),
        (good.replace("\"c\"", "\"x\""), "allowed are c, a, u and r"),
        (good.replace("\"e\":2", "\"e\":0"), "lies before the begin"),
        (good.replace("\"e\":2", "\"e\":2,\"of\":2"), "ended before 2, after its begin at 1"),
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
    for text in [include_str!("../format_data/lists.jsonl"), ROOTS] {
        let history = History::read(text.as_bytes()).unwrap();
        let mut written = Vec::new();
        history.write(&mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
    }
}

/// All that the format says of roots.
const ROOTS: &str = include_str!("../format_data/roots.jsonl");

#[test]
fn errors_about_roots_name_what_is_allowed() {
    let txn = |part: &str| format!(r#"{{"id":"a","b":1,"e":2,"st":"c",{part}"ops":[]}}"#);
    let root = |ops: &str| format!(r#"{{"t":"root","id":"r","b":1,"e":2,"st":"c","ops":[{ops}]}}"#);
    let start = |ops: &str| format!(r#"{{"t":"start","ops":[{ops}]}}"#);
    let cases = [
        (txn(r#""root":"r","#), "needs `as`: own, child, compensation or handler"),
        (txn(r#""as":"own","#), "needs `root`"),
        (txn(r#""root":"r","as":"leaf","#), "as is \"leaf\"; allowed are own, child"),
        (root("").replace(r#""id":"r","#, ""), "a root needs a text `id`"),
        (root("").replace(r#","ops":[]"#, ""), "a root needs `ops`"),
        (root("").replace(r#""e":2"#, r#""e":0"#), "lies before the begin"),
        (format!("{}\n{}", root(""), root("")), "line 2: root id `r` stands for two roots"),
        (root(r#"["r","k",1]"#), "operation \"r\" of a root; allowed are +, -, ?, += and ="),
        (root(r#"["+","s","k"]"#), "lacks its answer"),
        (root(r#"["+","s"]"#), "lacks its key"),
        (root(r#"["+","s","k",1]"#), "a boolean"),
        (root(r#"["+=","c"]"#), "lacks the amount"),
        (root(r#"["=","c",true]"#), "i64"),
        (root(r#"["=","c",1,2]"#), "too many elements"),
        (root("[]"), "lacks the name"),
        (start(r#"["-","s","k",true]"#), "a start line has additions with effect only"),
        (start(r#"["+","s","k",false]"#), "a start line has additions with effect only"),
        (r#"{"t":"start"}"#.to_owned(), "a start line needs `ops`"),
    ];
    for (text, part) in cases {
        let error = refusal(&text);
        assert!(error.starts_with("line ") && error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_or_checker_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        place in 0..EVERYTHING.len() + ROOTS.len(),
        cut in 0_usize..40,
    ) {
        let _ = History::read(bytes.as_slice()).is_ok();
        let (text, place) = match place.checked_sub(EVERYTHING.len()) {
            None => (EVERYTHING, place),
            Some(place) => (ROOTS, place),
        };
        let mut spoiled = text.as_bytes().to_vec();
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

/// Roots that raise and lower a counter by powers of three, and one that reads what no sum of them
/// is: each subset of them is another state of the search.
fn too_many_roots() -> String {
    let root = |id: usize, ops: &str| {
        format!(r#"{{"t":"root","id":"r{id}","b":1,"e":9,"st":"c","ops":[{ops}]}}"#)
    };
    let change = |at: usize| {
        let by = 3_i64.pow(at as u32 / 2 + 1) * if at.is_multiple_of(2) { 1 } else { -2 };
        root(at, &format!(r#"["+=","c",{by}]"#))
    };
    let mut lines: Vec<String> = (0..40).map(change).collect();
    lines.push(root(99, r#"["=","c",1]"#));
    lines.push(r#"{"id":"a","b":1,"e":2,"st":"c","ops":[]}"#.to_owned());
    lines.join("\n")
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
    let (code, out, _) = command("roots", ROOTS, Level::StrictSerializable);
    assert_eq!(code, HOLDS);
    assert!(out.contains("1 roots judged by their operations"), "{out}");
    let (code, out, _) = command("undecided", &too_many_roots(), Level::Serializable);
    assert_eq!(code, UNDECIDED);
    assert!(out.starts_with("serializable: not decided") && out.contains("not judged"), "{out}");
    let (code, out, _) = command("empty", "", Level::Rr);
    assert_eq!(code, UNREADABLE);
    assert!(out.contains("without transactions"), "{out}");
    let (code, out, _) = command("garbage", "{}\n", Level::Rr);
    assert_eq!(code, UNREADABLE);
    assert!(out.contains("line 1: a transaction needs") && out.lines().count() == 1, "{out}");
}
