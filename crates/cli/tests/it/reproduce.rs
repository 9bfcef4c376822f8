//! Figures of papers, as a person asks for them.

use crate::commands::{muesli, status, text};

#[test]
fn a_figure_is_run_with_several_seeds_and_set_beside_the_paper() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("a plain path");
    let line = ["reproduce", "granola-6.11", "--quick", "--at", "10", "--seeds", "2", "--out", out];
    let output = muesli(&line);
    let output_text = text(&output.stdout);
    assert_eq!(status(&output), 0, "{output_text} {}", text(&output.stderr));
    assert!(
        output_text.contains("quick: % of pairs conflict 10, 2 s each, seeds 1 to 2; full"),
        "{output_text}"
    );
    assert!(
        output_text.contains("printed: paper: 10,000 tps: Granola, section 6.6.1"),
        "{output_text}"
    );
    assert!(output_text.contains(".."), "the range of the seeds is shown: {output_text}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("written");
    let table = read("granola-6.11.csv");
    for start in ["seed,line,", "1,\"10 clients\",10,", "2,\"100 clients\",10,", "printed,x,"] {
        assert!(table.lines().any(|line| line.starts_with(start)), "{start}: {table}");
    }
    let plot = read("granola-6.11.svg");
    assert!(plot.contains("stroke-dasharray") && plot.contains("paper: 10,000 tps"), "{plot}");
}
