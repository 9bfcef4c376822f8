//! The searches that the project's pages show are run, with one seed each.

use std::process::Command;

use xtask::files;
use xtask::markdown::Page;

/// The words of each line of a page that searches, with where it is.
fn searches() -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for path in files::with_extension(&["md"]) {
        let page = Page::read(&files::text(&path));
        for (line, _, lines) in page.blocks.iter().filter(|(_, kind, _)| kind == "console") {
            for text in lines.iter().filter_map(|text| text.strip_prefix("$ muesli sim ")) {
                let command = text.split(" #").next().unwrap_or_default();
                let words = command.split_whitespace().map(str::to_owned).collect();
                all.push((format!("{}:{line}", path.display()), words));
            }
        }
    }
    all
}

/// Few seeds and transactions: whether a search holds, longer ones say.
fn shortened(mut words: Vec<String>) -> Vec<String> {
    for (option, least) in [("--seeds", "1"), ("--transactions", "100")] {
        if let Some(place) = words.iter().position(|word| word == option) {
            words[place + 1] = least.to_owned();
        }
    }
    words
}

#[test]
fn searches_on_pages_run_and_hold() {
    let all = searches();
    assert!(all.len() > 5, "{}", all.len());
    for (place, words) in all {
        let words = shortened(words);
        let mut command = Command::new(env!("CARGO_BIN_EXE_muesli"));
        let output = command.arg("sim").args(&words).output().expect("it can be run");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{place}: {words:?}: {found}{printed}");
    }
}
