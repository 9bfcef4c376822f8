//! The page of who sends which message to whom, `docs/inside/messages.md`, is made from what nodes
//! send in searches: `UPDATE_GOLDENFILES=1 cargo test -p muesli-workloads --test it routes` writes
//! it anew. Rare messages may be missed by the seeds of a day, so a row of the page need not be
//! sent; but what is sent has its row.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use muesli_sim::world::Route;

use crate::strangers::{Searched, searched};

const HEAD: &str = "\
# Who sends which message to whom

What nodes send to each other, by the kinds of the sender's and the receiver's role, as seen in
searches under faults (`crates/workloads/tests/it/routes.rs`, which fails where something is sent
that is not here). What each message says is written on it in the code. A coordinator that is sent
a request is a master; one that is sent a bound gathers bounds; one that is sent news keeps a copy.
A participant of a group is a member.
";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/inside/messages.md")
}

/// The rows of a family: each message with a sender, and its receivers.
fn table(family: &Searched) -> String {
    let mut rows: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let own = family.routes.iter().filter(|(name, ..)| family.names.contains(name));
    for (name, from, to) in own {
        rows.entry((name, from)).or_default().push(to);
    }
    let mut text = format!(
        "\n## {}\n\nIn `{}`.\n\n| message | from | to |\n| --- | --- | --- |\n",
        family.title, family.source
    );
    for ((name, from), to) in &rows {
        writeln!(text, "| `{name}` | {from} | {} |", to.join(", ")).expect("to a text");
    }
    let unsent = family.names.iter().filter(|name| rows.keys().all(|(sent, _)| sent != *name));
    let unsent: Vec<_> = unsent.map(|name| format!("`{name}`")).collect();
    if !unsent.is_empty() {
        let unsent = unsent.join(", ");
        writeln!(text, "\nNo node sends to another one in these searches: {unsent}.")
            .expect("to a text");
    }
    text
}

/// The routes of a page, by the title of their family.
fn routes_of(text: &str) -> BTreeSet<(String, String, String, String)> {
    let (mut all, mut family) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut family);
        }
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, name, from, to, _] = cells[..] else { continue };
        for to in to.split(", ") {
            all.insert((family.clone(), name.to_owned(), from.to_owned(), to.to_owned()));
        }
    }
    all
}

#[test]
fn the_page_of_messages_has_all_that_are_sent() {
    let made: String = searched().iter().map(table).collect();
    if env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(page(), format!("{HEAD}{made}")).expect("a writable page");
    }
    let written = routes_of(&fs::read_to_string(page()).expect("a page"));
    let missing: Vec<_> = routes_of(&made).difference(&written).cloned().collect();
    assert!(missing.is_empty(), "sent, and not on the page of messages: {missing:?}");
    for family in searched() {
        let kinds = family.routes.iter().filter(|route: &Route| family.names.contains(route.0));
        assert!(kinds.count() > 10, "{}: {:?}", family.title, family.routes);
        let of = written.iter().filter(|(title, ..)| *title == family.title);
        let gone = of.map(|(_, name, ..)| name.as_str()).find(|it| !family.names.contains(it));
        let is_head = |name: &str| name == "message" || name.starts_with("---");
        assert!(gone.is_none_or(is_head), "there is no message {gone:?} any more");
    }
}
