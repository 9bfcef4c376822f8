//! What is done with a database from the command line: exports and imports, the shell, and what
//! looks after folders.

use std::io::{BufRead as _, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::cluster::{Cluster, muesli, output_text};

/// The output of a command that is given this, and ends with this status.
fn given(input: &[u8], status: i32, arguments: &[&str]) -> Output {
    let mut command = muesli(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input); // It may not want all of it.
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", output_text(&output));
    output
}

fn printed(arguments: &[&str]) -> String {
    let output = given(b"", 0, arguments);
    String::from_utf8(output.stdout).unwrap()
}

fn complaint(input: &[u8], arguments: &[&str]) -> String {
    String::from_utf8(given(input, 2, arguments).stderr).unwrap()
}

/// A folder with a database of two spaces.
fn filled(folder: &str) {
    let commands = "create notes; put a '{\"b\": [1]}' 'two words' \"x\\xff\"; create seen hash";
    let put = (0..300).map(|number| format!("put key{number} value{number}\n"));
    let lines = put.collect::<String>();
    printed(&["shell", "--open", folder, "-c", commands]);
    given(lines.as_bytes(), 0, &["shell", "--open", folder, "--space", "seen"]);
}

fn folder(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn the_shell_reads_writes_and_counts_in_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let data = folder(dir.path(), "data");
    filled(&data);
    let open = |commands: &str| printed(&["shell", "--open", &data, "-c", commands]);
    assert_eq!(open("spaces"), "notes (ordered)\nseen (hash)\n");
    assert_eq!(open("use notes; get a"), "ok\n{\n  \"b\": [\n    1\n  ]\n}\n");
    assert_eq!(open("in notes get 'two words' none"), "two words\t0x78ff\nnone\t(absent)\n");
    assert_eq!(open("in seen count; in seen count prefix key29"), "300\n11\n");
    assert_eq!(open("in seen scan key297 key299"), "key297\tvalue297\nkey298\tvalue298\n");
    let more = "... and more; `limit N` shows other than 1 rows";
    assert_eq!(open("in seen scan reverse limit 1"), format!("key99\tvalue99\n{more}\n"));
}

#[test]
fn transactions_of_the_shell_commit_or_are_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let data = folder(dir.path(), "data");
    filled(&data);
    let shell = ["shell", "--open", &*data, "--space", "notes"];
    let with = |commands: &str| printed(&[&shell[..], &["-c", commands]].concat());
    assert_eq!(with("begin; put a 1; get a; abort; get b"), "ok\nok\n1\nok\n(absent)\n");
    assert_eq!(with("begin; put b 2 c 3; commit; get b"), "ok\nok\nok\n2\n");
    let output = given(b"", 0, &[&shell[..], &["-c", "begin; put b 9"]].concat());
    assert!(output_text(&output).contains("what was not committed was given up"));
    assert_eq!(with("get b"), "2\n");
    let error = complaint(b"begin read-only\nput b 4\n", &shell);
    assert!(error.contains("line 2: this transaction is read-only"), "{error}");
    let error = complaint(b"", &[&shell[..], &["-c", "begin; begin"]].concat());
    assert!(error.contains("a transaction is open: commit or abort it first"), "{error}");
    let error = complaint(b"", &[&shell[..], &["-c", "begin; call add n @space @key 5"]].concat());
    assert!(error.contains("a procedure is a transaction of its own"), "{error}");
    let too_long = format!("begin; put b 7 {} 8; commit", "k".repeat(70_000));
    let error = complaint(b"", &[&shell[..], &["-c", &too_long]].concat());
    assert!(error.contains("the transaction was aborted"), "{error}");
    assert_eq!(
        with("begin; put b 7; explain b; abort").lines().nth(3),
        Some("value         1 bytes")
    );
    assert_eq!(with("get b"), "2\n");
    let error = complaint(b"", &[&shell[..], &["-c", "comit"]].concat());
    assert!(error.contains("there is no command `comit`; did you mean `commit`?"), "{error}");
    let error = complaint(b"", &[&shell[..], &["-c", "put a 'b"]].concat());
    assert!(error.contains("a ' is not closed"), "{error}");
}

#[test]
fn a_watch_of_the_shell_is_over_in_time_and_says_what_it_takes() {
    let open = |commands: &str| printed(&["shell", "-c", commands]);
    assert_eq!(open("create notes; put a 1; watch a b within 0.05"), "ok\nok\na\t1\nb\t(absent)\n");
    for (commands, expected) in [
        ("watch", "`watch` takes keys"),
        ("watch a times 0", "`times` takes a number from 1"),
        ("watch a within -1", "`within` takes seconds, such as 2.5"),
        ("begin; watch a", "a transaction sees no changes of others"),
    ] {
        let error = complaint(b"", &["shell", "-c", &format!("create notes; {commands}")]);
        assert!(error.contains(expected), "{commands}: {error}");
    }
}

#[test]
fn the_shell_answers_programs_with_json_and_explains_keys() {
    let dir = tempfile::tempdir().unwrap();
    let data = folder(dir.path(), "data");
    filled(&data);
    let shell = ["shell", "--open", &*data, "--space", "notes", "--json", "-c"];
    let with = |commands: &str| printed(&[&shell[..], &[commands]].concat());
    let lines = with("get 'two words' z; put z 0xff; get z; count");
    let expected = [
        r#"{"key":"two words","value64":"eP8="}"#,
        r#"{"key":"z","value":null}"#,
        r#"{"ok":true}"#,
        r#"{"key":"z","value64":"/w=="}"#,
        r#"{"count":3}"#,
    ];
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    let explained = with("explain z");
    for part in [r#""partition":"0 of 1""#, r#""protocol":"score""#, r#""value":"1 bytes""#] {
        assert!(explained.contains(part), "{explained}");
    }
    let calls = "call add n @space @key 5 as i64; call add n @space @key -2 as i64";
    let shell = ["shell", "--open", &*data, "--protocol", "granola", "--space", "seen", "-c"];
    let error = complaint(b"", &[&shell[..], &[calls]].concat());
    assert!(error.contains("procedure"), "{error}");
    let other = folder(dir.path(), "other");
    let shell = ["shell", "--open", &*other, "--protocol", "granola", "-c", "create n", "-c"];
    assert_eq!(printed(&[&shell[..], &[calls]].concat()), "ok\n5\n3\n");
}

#[test]
fn what_is_exported_is_imported_elsewhere_and_on_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let (data, other) = (folder(dir.path(), "data"), folder(dir.path(), "other"));
    filled(&data);
    for format in ["jsonl", "binary"] {
        let export = given(b"", 0, &["export", &data, "--format", format]);
        assert!(output_text(&export).contains("exported 302 rows of 2 spaces"));
        let other = format!("{other}-{format}");
        let import = ["import", &*other, "--repositories", "3", "--protocol", "granola"];
        let output = output_text(&given(&export.stdout, 0, &import));
        assert!(output.contains("made the spaces notes, seen"), "{output}");
        assert!(output.contains("imported 302 rows, of which 0 were there"), "{output}");
        let again = output_text(&given(&export.stdout, 0, &["import", &other]));
        assert!(again.contains("imported 302 rows, of which 302 were there"), "{again}");
        let back = given(b"", 0, &["export", &other, "--format", format]);
        assert_eq!(back.stdout, export.stdout);
        let cut = &export.stdout[..export.stdout.len() - 40];
        let error = complaint(cut, &["import", &format!("{other}-cut")]);
        assert!(error.contains("the export ends early"), "{error}");
        let twice = export.stdout.repeat(2);
        let error = complaint(&twice, &["import", &format!("{other}-twice")]);
        assert!(error.contains("more follows its end"), "{error}");
    }
    let export = given(b"", 0, &["export", &data, "--space", "seen"]);
    let cluster = Cluster::up(&["--servers", "2", "--repositories", "2"]);
    let addresses = cluster.addresses().join(",");
    given(&export.stdout, 0, &["import", "--connect", &addresses]);
    let back = given(b"", 0, &["export", "--connect", &addresses]);
    let rows = |text: &[u8]| {
        let text = String::from_utf8(text.to_vec()).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("{\"s\":"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rows(&back.stdout), rows(&export.stdout));
    let shell = ["shell", "--connect", &*addresses, "--space", "seen", "-c"];
    let shell = printed(&[&shell[..], &["count; explain key7"]].concat());
    assert!(shell.starts_with("300\n") && shell.contains("node "), "{shell}");
    the_shell_watches_keys_of_servers(&addresses);
}

fn the_shell_watches_keys_of_servers(addresses: &str) {
    let shell = ["shell", "--connect", addresses, "--space", "seen", "-c"];
    let with = |commands: &str| printed(&[&shell[..], &[commands]].concat());
    let watch = "watch key7 fresh times 2 within 60";
    let mut watching = muesli(&[&shell[..], &[watch]].concat());
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!([next(), next()], ["key7\tvalue7", "fresh\t(absent)"]);
    assert_eq!(with("put other 1 fresh 1"), "ok\n");
    assert_eq!(next(), "fresh\t1");
    assert_eq!(with("put fresh 1; put key7 2; delete fresh"), "ok\nok\nok\n");
    assert_eq!(next(), "key7\t2", "what is the same again is no change");
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn a_folder_is_verified_and_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let data = folder(dir.path(), "data");
    filled(&data);
    let verified = printed(&["log", "verify", &data]);
    assert!(verified.contains("score, 2 spaces") && verified.contains("from the first record"));
    let compacted = printed(&["compact", &data]);
    assert!(compacted.contains(" bytes before, ") && compacted.contains(" bytes after"));
    let verified = printed(&["log", "verify", &data]);
    assert!(verified.contains("from the checkpoint of the first"), "{verified}");
    let log = dir.path().join("data/log");
    let files = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = files.into_iter().find(|it| it.display().to_string().contains("checkpoint"));
    let checkpoint = checkpoint.unwrap();
    let mut bytes = std::fs::read(&checkpoint).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&checkpoint, bytes).unwrap();
    let damaged = output_text(&given(b"", 1, &["log", "verify", &data]));
    assert!(damaged.contains("DAMAGED: checkpoint-") && damaged.contains("at byte"), "{damaged}");
    for command in [&["export", "none"][..], &["compact", "none"], &["log", "verify", "none"]] {
        let error = complaint(b"", command);
        assert!(error.contains("there is no database in none"), "{error}");
    }
    let error = complaint(b"", &["export"]);
    assert!(error.contains("FOLDER") && error.contains("--connect"), "{error}");
}

#[test]
fn histories_of_the_shell_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (folder(dir.path(), "data"), folder(dir.path(), "h.jsonl"));
    let commands = "create a; put k 1; get k; begin; put k 2; commit; .histories";
    let shell = ["shell", "--open", &*data, "--histories", &*file, "-c", commands];
    let text = printed(&shell);
    assert!(text.contains(&format!("`muesli check {file}` judges it")), "{text}");
    assert!(printed(&["check", &file]).contains("serializable"));
}
