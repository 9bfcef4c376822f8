//! The modules of a crate, and which siblings among them use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::references::{Reference, references};
use super::tokens::{Code, code};

/// The names from the root of a crate to a module, or to an item in one.
pub(super) type Path = Vec<String>;

/// So many imports lead from a name to what it stands for, at most.
const IMPORTS_MAX: usize = 16;

/// A line of a source that refers to another module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub file: String,
    pub line: usize,
    pub path: String,
}

/// The children of one module, and which of them uses which, by which lines.
pub(super) type Uses = BTreeMap<(String, String), Vec<Line>>;

struct Source {
    file: String,
    code: Code,
    references: Vec<Reference>,
    /// What the names that it imports stand for, as it is written.
    imported: BTreeMap<String, Path>,
}

/// The modules of a crate that have a file, without those of tests.
pub(super) struct Modules {
    by_path: BTreeMap<Path, Source>,
}

impl Modules {
    /// From the files of a crate's `src`, by their path from there, with their text.
    pub fn new(files: &BTreeMap<String, String>) -> Modules {
        let mut by_path = BTreeMap::new();
        for (file, text) in files {
            let code = code(text);
            let references = references(&code.tokens);
            let own = references.iter().filter(|it| it.inside.is_empty());
            let imported = own.filter_map(|it| Some((it.name.clone()?, it.path.clone()))).collect();
            let source = Source { file: file.clone(), code, references, imported };
            by_path.insert(path_of(file), source);
        }
        for of_tests in test_modules(&by_path) {
            by_path.retain(|path, _| !path.starts_with(&of_tests));
        }
        Modules { by_path }
    }

    /// Of each module, which of its children use each other: directly or by what is inside them.
    pub fn uses_between_siblings(&self) -> BTreeMap<Path, Uses> {
        let mut found: BTreeMap<Path, Uses> = BTreeMap::new();
        for (from, _, target, line) in self.resolved() {
            let common = from.iter().zip(&target).take_while(|(one, other)| one == other).count();
            // Between a module and what is inside it there is no order.
            let (Some(user), Some(used)) = (from.get(common), target.get(common)) else { continue };
            let uses = found.entry(target[..common].to_vec()).or_default();
            uses.entry((user.clone(), used.clone())).or_default().push(line);
        }
        found
    }

    /// The lines by which a module uses a function of a module that it is inside of.
    pub fn functions_from_above(&self) -> BTreeSet<Line> {
        let mut found = BTreeSet::new();
        for (from, item, target, line) in self.resolved() {
            let is_above = from.len() > target.len() && from.starts_with(&target);
            if item.is_some_and(|name| is_above && self.has_function(&target, &name)) {
                found.insert(line);
            }
        }
        found
    }

    /// Each reference: the module it stands in, the item that it names if it is of one, the module
    /// that it leads to, and its line.
    fn resolved(&self) -> Vec<(&Path, Option<String>, Path, Line)> {
        let mut found = Vec::new();
        for (from, source) in &self.by_path {
            for it in &source.references {
                let Some((target, item)) = self.resolve(from, &it.inside, &it.path, 0) else {
                    continue;
                };
                let (file, path) = (source.file.clone(), it.path.join("::"));
                found.push((from, item, target, Line { file, line: it.line, path }));
            }
        }
        found
    }

    /// The module with a file that a path leads to, and the item in it that it names; `None` if it
    /// leads to another crate.
    fn resolve(
        &self,
        from: &Path,
        inside: &[String],
        path: &[String],
        imports: usize,
    ) -> Option<(Path, Option<String>)> {
        let (mut at, mut rest) = ([from.as_slice(), inside].concat(), path);
        let first = path.first()?;
        let is_relative = matches!(first.as_str(), "self" | "super" | "crate");
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                "self" => {}
                _ => break,
            }
            rest = after;
        }
        if !is_relative && !self.knows(&at, first, path) {
            return None;
        }
        // A module within a file counts as the file.
        while !self.by_path.contains_key(&at) {
            at.pop()?;
        }
        self.walk(at, rest, imports)
    }

    /// Whether the first name of a path is one of this crate, as seen from a module.
    fn knows(&self, at: &Path, first: &str, path: &[String]) -> bool {
        let child = [at.as_slice(), &[first.to_owned()]].concat();
        let imported = self.by_path.get(at).and_then(|source| source.imported.get(first));
        self.by_path.contains_key(&child) || imported.is_some_and(|it| it != path)
    }

    /// From a module on along the rest of a path, through what is imported on the way.
    fn walk(
        &self,
        mut at: Path,
        rest: &[String],
        imports: usize,
    ) -> Option<(Path, Option<String>)> {
        for (place, name) in rest.iter().enumerate() {
            let child = [at.as_slice(), std::slice::from_ref(name)].concat();
            if self.by_path.contains_key(&child) {
                at = child;
                continue;
            }
            let imported = self.by_path[&at].imported.get(name);
            if let Some(path) = imported.filter(|_| imports < IMPORTS_MAX) {
                let whole = [path.as_slice(), &rest[place + 1..]].concat();
                // What another crate has is none of this one's.
                return self.resolve(&at, &[], &whole, imports + 1);
            }
            return Some((at, Some(name.clone())));
        }
        Some((at, None))
    }

    fn has_function(&self, module: &Path, name: &str) -> bool {
        let tokens = &self.by_path[module].code.tokens;
        tokens.windows(2).any(|two| two[0].0.is_word("fn") && two[1].0.is_word(name))
    }
}

/// The module that a file is, by its path from `src`.
fn path_of(file: &str) -> Path {
    let mut path: Path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    path.pop_if(|last| last == "mod");
    let is_root = path.len() == 1 && ["lib", "main"].contains(&path[0].as_str());
    if is_root {
        path.clear();
    }
    path
}

/// The modules that only tests are compiled with.
fn test_modules(by_path: &BTreeMap<Path, Source>) -> Vec<Path> {
    let mut found = Vec::new();
    for (path, source) in by_path {
        for name in &source.code.test_modules {
            let name = std::slice::from_ref(name);
            found.push([path.as_slice(), name].concat());
            // An attribute names a file beside the one that it stands in.
            let parent = &path[..path.len().saturating_sub(1)];
            found.push([parent, name].concat());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let owned = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
        Modules::new(&files.iter().map(owned).collect())
    }

    /// Who uses whom below a module, as `user > used file:line`.
    fn uses(modules: &Modules, parent: &[&str]) -> Vec<String> {
        let parent: Path = parent.iter().map(|it| (*it).to_owned()).collect();
        let all = modules.uses_between_siblings().remove(&parent).unwrap_or_default();
        let line = |((user, used), lines): ((String, String), Vec<Line>)| {
            let lines: Vec<_> = lines.iter().map(|it| format!("{}:{}", it.file, it.line)).collect();
            format!("{user} > {used} {}", lines.join(" "))
        };
        all.into_iter().map(line).collect()
    }

    #[test]
    fn a_use_inside_two_folders_is_one_of_the_folders() {
        let modules = modules(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a/mod.rs", "mod c;"),
            ("a/c.rs", "\nuse crate::b::d::E;\nfn f() { super::super::b::g() }"),
            ("b/mod.rs", "mod d;\nfn g() {}"),
            ("b/d.rs", "use std::collections::BTreeMap;\nstruct E;"),
        ]);
        assert_eq!(uses(&modules, &[]), ["a > b a/c.rs:2 a/c.rs:3"]);
        assert!(uses(&modules, &["a"]).is_empty());
    }

    #[test]
    fn a_name_that_a_parent_imports_is_of_where_it_comes_from() {
        let modules = modules(&[
            ("lib.rs", "mod a;\nmod b;\nuse b::Deep;\nuse other::Foreign;\nstruct Own;"),
            ("a.rs", "use crate::{Deep, Foreign, Own};\nuse super::missing;"),
            ("b/mod.rs", "mod c;\npub use c::Deep;"),
            ("b/c.rs", "pub struct Deep;"),
        ]);
        assert_eq!(uses(&modules, &[]), ["a > b a.rs:1"]);
    }

    #[test]
    fn tests_use_whom_they_like() {
        let modules = modules(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;"),
            ("a_tests.rs", "use crate::b::B;"),
            ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }"),
        ]);
        assert!(uses(&modules, &[]).is_empty());
    }

    #[test]
    fn functions_of_a_parent_are_told_from_its_types_and_modules() {
        let modules = modules(&[
            ("lib.rs", "mod a;\nfn low() {}\nstruct High;"),
            ("a/mod.rs", "mod b;\nmod c;\nuse super::{High, low};"),
            ("a/b.rs", "use super::c;\nfn f() { super::super::low(); super::super::High::new() }"),
            ("a/c.rs", ""),
        ]);
        let lines = modules.functions_from_above();
        let lines: Vec<_> = lines.iter().map(|it| format!("{}:{}", it.file, it.line)).collect();
        assert_eq!(lines, ["a/b.rs:2", "a/mod.rs:3"]);
    }
}
