//! The commands of the shell, as they are listed and completed.

use crate::names;

/// Each command with what it takes, and what it does.
const COMMANDS: [(&str, &str, &str); 19] = [
    ("spaces", "", "the spaces of the database"),
    ("use", "SPACE", "what follows is about this space"),
    ("create", "SPACE [ordered|hash]", "makes a space, and uses it"),
    ("in", "SPACE COMMAND", "carries a command out in another space"),
    ("get", "KEY ..", "reads keys"),
    ("put", "KEY VALUE ..", "writes keys"),
    ("delete", "KEY ..", "deletes keys"),
    ("scan", "[FROM [TO]] [prefix TEXT] [reverse] [limit N]", "reads a range of keys"),
    ("count", "[FROM [TO]] [prefix TEXT]", "counts the keys of a range"),
    ("watch", "KEY .. [times N] [within SECONDS]", "shows keys, and each as it changes"),
    ("begin", "[read-only|strict]", "begins a transaction"),
    ("commit", "", "commits it"),
    ("abort", "", "gives it up"),
    ("call", "NAME[/VERSION] KEY [ARGUMENT ..] [as TYPE]", "runs a procedure where KEY lives"),
    ("explain", "KEY", "where a key lives, and who looks after it"),
    (".histories", "", "whether what transactions do is recorded, and where"),
    ("help", "", "this"),
    ("quit", "", "ends the shell; what is not committed is given up"),
    ("exit", "", "the same"),
];

/// The names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| *name)
}

/// All commands.
pub fn text() -> String {
    let mut lines: Vec<_> = COMMANDS
        .iter()
        .map(|(name, takes, does)| format!("{:<64} {does}", format!("{name} {takes}")))
        .collect();
    lines.push(String::new());
    lines.push(
        "Keys and values are text, in quotes where they have spaces, or bytes as 0x00ff. Commands \
         stand on a line each, or with `;` between."
            .to_owned(),
    );
    lines.join("\n")
}

/// Which command was meant, if one was.
pub fn meant(name: &str) -> String {
    match names::nearest(name, self::names()) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => "; `help` lists those that there are".to_owned(),
    }
}
