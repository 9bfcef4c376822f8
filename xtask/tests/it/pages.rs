//! The project's pages: links lead somewhere, every page is found from its book, code is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use xtask::files;
use xtask::markdown::Page;

fn pages() -> BTreeMap<PathBuf, Page> {
    let all = files::with_extension(&["md"]).into_iter();
    all.map(|path| (path.clone(), Page::read(&files::text(&path)))).collect()
}

/// The file that a link on `page` leads to, by its path from the project's folder.
fn target(page: &Path, link: &str) -> PathBuf {
    let folder = page.parent().expect("a file is in a folder");
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{}: {link}", page.display()),
            other => path.push(other),
        }
    }
    path
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages = pages();
    assert!(pages.len() > 25 && pages.values().map(|page| page.links.len()).sum::<usize>() > 100);
    let mut wrong = Vec::new();
    for (path, page) in &pages {
        for (line, link) in page.links.iter().filter(|(_, link)| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let to = if file.is_empty() { path.clone() } else { target(path, file) };
            let is_there = files::root().join(&to).exists();
            let has = |to: &Page| anchor.is_empty() || to.anchors.contains(anchor);
            if !is_there || !pages.get(&to).is_none_or(has) {
                wrong.push(format!("{}:{line}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

#[test]
fn every_page_of_a_book_is_in_its_index() {
    let pages = pages();
    let mut books = BTreeSet::new();
    for path in pages.keys().filter(|path| path.starts_with("docs")) {
        let Some(book) = path.iter().nth(2).and(path.iter().nth(1)) else { continue };
        let index = Path::new("docs").join(book).join("README.md");
        books.insert(index.clone());
        let to = pages[&index].links.iter().map(|(_, link)| target(&index, link));
        let is_listed = path == &index || to.into_iter().any(|to| to == *path);
        assert!(is_listed, "{} does not list {}", index.display(), path.display());
    }
    assert_eq!(books.len(), 3);
}

/// Rust on a page is compiled with the tests: by `examples/books.rs`, or, for the front page, by
/// the crate `muesli`.
#[test]
fn rust_on_pages_is_tested() {
    let books = files::text(Path::new("examples/books.rs"));
    let library = files::text(Path::new("crates/muesli/src/lib.rs"));
    assert!(library.contains("include_str!(\"../../../README.md\")"));
    for (path, page) in pages() {
        for (line, kind, _) in page.blocks.iter().filter(|(_, kind, _)| kind.starts_with("rust")) {
            let place = format!("{}:{line}", path.display());
            assert!(!kind.contains("ignore"), "{place}: this code is not compiled");
            let name = path.strip_prefix("docs").map(|it| format!("\"{}\"", it.display()));
            let is_tested = name.is_ok_and(|name| books.contains(&name));
            assert!(is_tested || path == Path::new("README.md"), "{place}: not in books.rs");
        }
    }
}

/// Code, messages and pages name pages by their paths.
#[test]
fn pages_that_are_named_are_there() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files::with_extension(&["rs", "md", "toml"]) {
        let text = files::text(&path);
        for (at, _) in text.match_indices("docs/") {
            let is_name = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
            let rest = &text[at..];
            let name = &rest[..rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())];
            let name = name.trim_end_matches(['.', '/']);
            if name.ends_with(".md") {
                count += 1;
                let here = path.parent().expect("in a folder").join(name);
                let is_there =
                    files::root().join(name).exists() || files::root().join(here).exists();
                wrong.extend((!is_there).then(|| format!("{}: {name}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "pages that are not there:\n{}", wrong.join("\n"));
    assert!(count > 40, "{count}");
}
