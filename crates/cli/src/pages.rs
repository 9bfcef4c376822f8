//! The commands on the project's pages are taken as they stand there.

use xtask::files;
use xtask::markdown::Page;

use crate::command;

/// The words of each line of a page that runs this program, and where it is.
fn commands() -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for path in files::with_extension(&["md"]) {
        let page = Page::read(&files::text(&path));
        for (line, _, lines) in page.blocks.iter().filter(|(_, kind, _)| kind == "console") {
            for (text, line) in lines.iter().zip(line + 1..) {
                let run = text.strip_prefix("$ muesli ");
                let run = run.or_else(|| text.strip_prefix("$ cargo run --release -- "));
                let words = run.map(words).into_iter();
                all.extend(words.map(|words| (format!("{}:{line}", path.display()), words)));
            }
        }
    }
    all
}

/// As a shell takes a line apart: by spaces, `'as one'`, up to a comment or a file.
fn words(line: &str) -> Vec<String> {
    let mut words = vec!["muesli".to_owned()];
    let (mut quoted, mut within) = (false, false);
    for letter in line.chars() {
        match letter {
            '#' | '<' | '>' if !quoted && !within => break,
            ' ' if !quoted => within = false,
            letter => {
                if !within {
                    words.push(String::new());
                    within = true;
                }
                match letter {
                    '\'' => quoted = !quoted,
                    letter => words.last_mut().expect("never empty").push(letter),
                }
            }
        }
    }
    // A number that the reader knows.
    words.iter().map(|word| if word == "N" { "1".to_owned() } else { word.clone() }).collect()
}

#[test]
fn commands_on_pages_are_taken() {
    let all = commands();
    assert!(all.len() > 35, "{}", all.len());
    for (place, words) in all {
        let taken = command().try_get_matches_from(&words);
        assert!(
            taken.is_ok(),
            "{place}: {words:?}: {}",
            taken.err().map(|it| it.to_string()).unwrap_or_default()
        );
    }
}

#[test]
fn lines_are_taken_apart_as_by_a_shell() {
    let line = "sim bank --plan 'horizon 1s; 1ms+2ms crash n3' --seeds 1 # a comment";
    let plan = "horizon 1s; 1ms+2ms crash n3";
    assert_eq!(words(line), ["muesli", "sim", "bank", "--plan", plan, "--seeds", "1"]);
}
