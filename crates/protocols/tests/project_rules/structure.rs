//! The modules of each crate are in order: of the files and folders beside each other none uses
//! another one that uses it, directly or through others; a module uses types of those that it is
//! inside of, and none of their functions; and no folder holds more files than can be overlooked.
//!
//! What a source refers to is read from its text: its `use` declarations, and the paths in its
//! code that begin with `crate`, `super` or `self`. A method is called without a path: that a child
//! calls a method that its parent defines is not seen here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::circles::{circles, shortest};
use super::modules::{Line, Modules, Uses};

/// Most `.rs` files in a folder.
const FOLDER_FILES_MAX: usize = 12;
/// So many lines are shown of each use in a circle.
const LINES_SHOWN: usize = 3;

/// What is out of order in a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Disorder {
    /// Groups of siblings that use each other in circles.
    circles: usize,
    /// How often one sibling uses another one of such a group.
    in_circles: usize,
    /// Lines by which a module uses a function of one that it is inside of.
    functions: usize,
    /// Folders of more than [`FOLDER_FILES_MAX`] files.
    folders: usize,
}

/// What is out of order in a crate, in words.
#[derive(Default)]
struct Findings {
    circles: Vec<String>,
    in_circles: usize,
    functions: BTreeSet<Line>,
    folders: Vec<String>,
}

impl Findings {
    fn count(&self) -> Disorder {
        Disorder {
            circles: self.circles.len(),
            in_circles: self.in_circles,
            functions: self.functions.len(),
            folders: self.folders.len(),
        }
    }

    fn explain(&self) -> String {
        let mut text = self.circles.concat();
        for Line { file, line, path } in &self.functions {
            writeln!(text, "  src/{file}:{line} uses a function from above: {path}").unwrap();
        }
        text + &self.folders.concat()
    }
}

/// The sources of each crate, by their path from its `src`.
fn sources_by_crate() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (file, text) in super::files(&["rs"]) {
        let Some((name, within)) = file.split_once("/src/") else { continue };
        if !name.contains('/') {
            found.entry(name.to_owned()).or_default().insert(within.to_owned(), text);
        }
    }
    found
}

/// All that is out of order in a crate.
fn inspect(sources: &BTreeMap<String, String>) -> Findings {
    let modules = Modules::new(sources);
    let mut findings =
        Findings { functions: modules.functions_from_above(), ..Findings::default() };
    for (parent, uses) in &modules.uses_between_siblings() {
        for group in circles(uses) {
            let within = |(user, used): &&(String, String)| {
                group.contains(&**user) && group.contains(&**used)
            };
            findings.in_circles += uses.keys().filter(within).count();
            findings.circles.push(circle_text(parent, uses, &group));
        }
    }
    let mut by_folder: BTreeMap<&str, usize> = BTreeMap::new();
    for file in sources.keys() {
        *by_folder.entry(file.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    for (folder, count) in by_folder.into_iter().filter(|(_, count)| *count > FOLDER_FILES_MAX) {
        let text =
            format!("  src/{folder} has {count} files, at most {FOLDER_FILES_MAX} are allowed\n");
        findings.folders.push(text);
    }
    findings
}

/// A group that uses each other, and the shortest circle in it with the lines that make it.
fn circle_text(parent: &[String], uses: &Uses, group: &BTreeSet<&str>) -> String {
    let names: Vec<_> = group.iter().copied().collect();
    let parent = ["crate"].into_iter().chain(parent.iter().map(|it| &**it)).collect::<Vec<_>>();
    let mut text = format!("  circle in {}: {}\n", parent.join("::"), names.join(", "));
    for (user, used) in shortest(uses, group) {
        let lines = &uses[&(user.to_owned(), used.to_owned())];
        writeln!(text, "    {user} uses {used}, by {} lines", lines.len()).unwrap();
        for Line { file, line, path } in lines.iter().take(LINES_SHOWN) {
            writeln!(text, "      src/{file}:{line} {path}").unwrap();
        }
    }
    text
}

#[test]
fn modules_are_in_order() {
    let mut offences = Vec::new();
    for (name, sources) in sources_by_crate() {
        let findings = inspect(&sources);
        if findings.count() != Disorder::default() {
            offences.push(format!("{name}:\n{}", findings.explain()));
        }
    }
    super::none(&offences);
}

#[test]
fn a_circle_is_shown_with_the_lines_that_make_it() {
    let sources = [
        ("lib.rs", "mod a;\nmod b;\nfn low() {}"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "\nuse super::a::A;\nfn f() { crate::low() }"),
    ];
    let owned = |(file, text): (&str, &str)| (file.to_owned(), text.to_owned());
    let findings = inspect(&sources.into_iter().map(owned).collect());
    let expected = "  circle in crate: a, b\n    \
                    a uses b, by 1 lines\n      src/a.rs:1 crate::b::B\n    \
                    b uses a, by 1 lines\n      src/b.rs:2 super::a::A\n";
    assert_eq!(findings.circles, [expected]);
    let count = Disorder { circles: 1, in_circles: 2, functions: 1, folders: 0 };
    assert_eq!(findings.count(), count);
}

#[test]
fn a_crowded_folder_is_found() {
    let sources = (0..=FOLDER_FILES_MAX).map(|it| (format!("a/b{it}.rs"), String::new()));
    let findings = inspect(&sources.chain([("lib.rs".to_owned(), String::new())]).collect());
    assert_eq!(findings.folders, ["  src/a has 13 files, at most 12 are allowed\n"]);
}
