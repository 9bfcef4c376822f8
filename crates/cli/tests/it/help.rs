//! What the commands say of themselves: it fits a terminal, and shells can complete it.

use std::collections::BTreeSet;

use crate::commands::{muesli, status, text};

/// Lines are at most so long.
const WIDTH: usize = 100;

fn help(path: &[String], flag: &str) -> String {
    let arguments: Vec<_> = path.iter().map(String::as_str).chain([flag]).collect();
    let output = muesli(&arguments);
    assert_eq!(status(&output), 0, "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The names that a help lists under a heading of subcommands.
fn subcommands(help: &str) -> Vec<String> {
    let headings = ["Commands:", "Workloads:"];
    let listed = help.lines().skip_while(|line| !headings.contains(line)).skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // What goes on from the line before is indented further.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn the_help_of_every_command_fits_a_hundred_columns() {
    let (mut left, mut seen) = (vec![Vec::new()], BTreeSet::new());
    while let Some(path) = left.pop() {
        for flag in ["-h", "--help"] {
            for line in help(&path, flag).lines() {
                assert!(line.chars().count() <= WIDTH, "muesli {path:?} {flag}: {line}");
            }
        }
        for name in subcommands(&help(&path, "--help")) {
            left.push([&path[..], &[name]].concat());
        }
        seen.insert(path.join(" "));
    }
    let expected = [
        "",
        "bench tpcc",
        "sim objects",
        "sim bank",
        "cluster restart",
        "admin move",
        "completions",
    ];
    for command in expected {
        assert!(seen.contains(command), "`{command}` is not among {seen:?}");
    }
}

#[test]
fn the_help_of_searches_says_how_small_workloads_are() {
    let bank = help(&["sim".to_owned(), "bank".to_owned()], "--help");
    assert!(bank.contains("Here these are the defaults: objects=30."), "{bank}");
    let objects = help(&["sim".to_owned(), "objects".to_owned()], "--help");
    assert!(objects.contains("objects=800000") && objects.contains("objects=600, bytes=40"));
    let bench = help(&["bench".to_owned(), "objects".to_owned()], "--help");
    assert!(!bench.contains("Here these are the defaults"), "{bench}");
}

#[test]
fn the_list_of_figures_fits_a_hundred_columns() {
    let output = muesli(&["reproduce", "list"]);
    assert_eq!(status(&output), 0);
    let list = text(&output.stdout);
    assert!(list.contains("bumper-fig3") && list.contains("granola-B.2"), "{list}");
    for line in list.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
}

#[test]
fn shells_complete_commands_options_and_names() {
    for shell in ["bash", "zsh", "fish"] {
        let output = muesli(&["completions", shell]);
        assert_eq!(status(&output), 0);
        let script = text(&output.stdout);
        for name in ["torture", "members", "objects", "procedure-threads", "bumper-time-warping"] {
            assert!(script.contains(name), "{shell} does not complete {name}");
        }
        assert!(!script.contains("bumper-tw"), "{shell}: earlier names are not offered");
    }
}

/// What a group of options is would be taken for what the command does.
#[test]
fn each_command_says_what_it_does() {
    for (command, does) in [
        ("export", "Write a database, or spaces of it, to a file"),
        ("import", "Take an export, or data of Redis, into a database"),
        ("torture", "Look for lost promises on real processes under random faults"),
    ] {
        assert_eq!(help(&[command.to_owned()], "-h").lines().next(), Some(does));
    }
}
